# Two commands matter: `make fuzz` and `make test`. Both build first and get the reference nginx by themselves
# (`bin/oracle doctor` tells from where).

GO       ?= go
DURATION ?= 60s
SEED     ?=
FUZZ     ?= $(if $(SEED),--seed $(SEED))

# Static programs: the oracle's own binary is process 1 of a container that has no loader for it.
export CGO_ENABLED := 0

.PHONY: build test unit lint fuzz fuzz-go faults mutants bench pgo clean bin/oracle bin/proxy bin/proxy-cover

build: bin/oracle bin/proxy

# Always asked; Go's own cache knows what has changed, embedded files included.
bin/oracle:
	$(GO) build -trimpath -o $@ ./cmd/oracle

bin/proxy:
	$(GO) build -trimpath -o $@ ./cmd/proxy

# The proxy with Go's coverage counters, which steer a campaign. Without the main package among the counted ones
# Go leaves out what writes them.
bin/proxy-cover: bin/proxy
	$(GO) build -trimpath -pgo=off -cover -covermode=set -coverpkg=nginxoracle/proxy/...,nginxoracle/cmd/proxy -o $@ ./cmd/proxy

# Everything that must hold of a change: unit tests, every scenario, the regression corpus, the catalogue.
test: build lint unit
	bin/oracle replay --census scenarios
	bin/oracle findings --check
	$(GO) run ./tools/faults -kills 4

# Go's own engine on every parser of the proxy and of the oracle, and on the generator. Making interesting inputs
# smaller is bounded: it would take all of a short run.
FUZZTIME ?= 3s
fuzz-go:
	@for p in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for t in $$(grep -ho '^func Fuzz[A-Za-z0-9]*' $$p/*_test.go | cut -c6-); do \
			echo "$$p $$t"; $(GO) test -run '^$$' -fuzz "^$$t\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$p || exit 1; \
		done; \
	done

# A campaign whose processes are killed at random moments; the nightly run kills 50.
faults: build
	$(GO) run ./tools/faults -kills $(or $(KILLS),50) -seed $(or $(SEED),1)

bench: build
	bin/oracle bench

# The profile that the compiler arranges the proxy by (cmd/proxy/default.pgo): of the bench's workloads.
PGO_WORKLOADS := static-3b static-1m static-1m-sendfile return-200 proxy-small proxy-64k proxy-fresh routing
pgo: bin/oracle
	rm -rf bin/pgo && mkdir -p bin/pgo
	$(GO) build -trimpath -pgo=off -tags profile -o bin/proxy-profile ./cmd/proxy
	for w in $(PGO_WORKLOADS); do \
		PROXY_PROFILE=$(CURDIR)/bin/pgo bin/oracle bench --candidate $(CURDIR)/bin/proxy-profile --workload $$w --pairs 3 --idle-wait 1s; case $$? in 2|3) exit 1;; esac; \
	done
	$(GO) tool pprof -proto bin/pgo/*.pprof > bin/pgo/merged
	mv bin/pgo/merged cmd/proxy/default.pgo

# The reference is fetched before, so that no test's time is spent on it.
unit: build
	bin/oracle doctor
	$(GO) test ./...

lint:
	$(GO) vet ./...
	@test -z "$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null))" || { gofmt -l $$(git ls-files '*.go'); echo "gofmt -w these"; exit 1; }

fuzz: build bin/proxy-cover
	bin/oracle fuzz --duration $(DURATION) $(FUZZ)

# Bugs put into the proxy on purpose: how many does the oracle find?
mutants: build
	$(GO) run ./tools/mutants -n $(or $(N),30) -seed $(or $(SEED),1)

clean:
	rm -rf bin
