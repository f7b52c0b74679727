# Two commands matter: `make fuzz` and `make test`. Both build first and get the
# reference nginx by themselves (see `bin/oracle doctor`).

GO       ?= go
DURATION ?= 60s
GOSRC    := $(shell find . -name '*.go' -not -name '*_test.go' -not -path './.cache/*') go.mod go.sum

export CGO_ENABLED := 0

.PHONY: build test fuzz clean

build: bin/oracle bin/proxy

bin/oracle: $(GOSRC)
	$(GO) build -trimpath -o $@ ./cmd/oracle

bin/proxy: $(GOSRC)
	$(GO) build -trimpath -o $@ ./cmd/proxy

test: build
	$(GO) vet ./...
	$(GO) test ./...
	bin/oracle replay scenarios corpus
	bin/oracle findings --check

fuzz: build
	bin/oracle fuzz --duration $(DURATION)

clean:
	rm -rf bin
