// Command mutants measures what the oracle would have found: it changes the proxy's source in one
// small way at a time, builds it, and looks whether the scenarios, the corpus or a campaign tell
// the difference. A survivor is a hole in the generator. `make mutants N=30 SEED=1`.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// outcome of one mutant.
type outcome string

const (
	killed     outcome = "killed"
	survived   outcome = "survived"
	equivalent outcome = "equivalent" // the same binary, or listed as equivalent with a reason
	unbuilt    outcome = "unbuilt"    // does not compile: not counted
	broken     outcome = "rig failed"
)

type record struct {
	Mutant
	Outcome outcome
	Stage   string
	Took    time.Duration
	Why     string
}

// mutated are the folders whose source is changed.
var mutated = []string{"proxy/conf", "proxy/http", "proxy/module", "proxy/modules", "proxy/upstream"}

type lab struct {
	repo, dir, oracle string
	baseline          [32]byte
	campaign          time.Duration
	seed              uint64
	known             map[string]string // listed equivalents: diff's hash -> reason
}

func main() {
	n := flag.Int("n", 30, "mutants")
	seed := flag.Uint64("seed", 1, "seed of the draw")
	campaign := flag.Duration("campaign", time.Minute, "length of the campaign against a mutant that the scenarios let live")
	out := flag.String("json", "", "also write the records to this file")
	into := flag.String("into", "", "build one proxy with all n changes there, and its coverage build beside it; try nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *into != "" {
		repo, err := os.Getwd()
		if err == nil {
			err = many(ctx, repo, *into, *n, *seed)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			os.Exit(3)
		}
		return
	}
	code, err := run(ctx, *n, *seed, *campaign, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, n int, seed uint64, campaign time.Duration, out string) (int, error) {
	repo, err := os.Getwd()
	if err != nil {
		return 3, err
	}
	all, err := sites(repo, mutated)
	if err != nil {
		return 3, err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return 3, err
	}
	defer os.RemoveAll(dir)
	l := &lab{repo: repo, dir: dir, oracle: filepath.Join(repo, "bin", "oracle"), campaign: campaign, seed: seed}
	if l.known, err = readEquivalents(filepath.Join(repo, "tools/mutants/equivalent.tsv")); err != nil {
		return 2, err
	}
	if l.baseline, err = l.build(ctx, nil); err != nil {
		return 3, fmt.Errorf("the unchanged proxy: %w", err)
	}
	fmt.Printf("mutants: %d places in %d kinds, %d drawn with seed %d\n", len(all), len(kinds), n, seed)
	var records []record
	for i, m := range deal(all, n*2, seed) { // spares for those that do not compile
		if counted(records) == n || ctx.Err() != nil {
			break
		}
		src, err := os.ReadFile(filepath.Join(repo, m.File))
		if err != nil {
			return 3, err
		}
		r := l.try(ctx, m, src)
		records = append(records, r)
		fmt.Printf("%3d %-10s %-20s %-9s %6.1fs %s:%d %.40q -> %.40q\n", i+1, r.Outcome, r.Kind, r.Stage, r.Took.Seconds(), m.File, m.Line, m.Old, m.New)
		if r.Outcome == survived || r.Outcome == broken {
			fmt.Println(m.Diff(src))
			if r.Why != "" {
				fmt.Println(r.Why)
			}
		}
	}
	if out != "" {
		b, err := json.MarshalIndent(records, "", " ")
		if err == nil {
			err = os.WriteFile(out, append(b, '\n'), 0o644)
		}
		if err != nil {
			return 3, err
		}
	}
	return summary(records), ctx.Err()
}

func counted(rs []record) (n int) {
	for _, r := range rs {
		if r.Outcome != unbuilt {
			n++
		}
	}
	return n
}

// summary prints the counts; the code is 1 when any mutant survived, 3 when the rig broke.
func summary(rs []record) int {
	count := map[outcome]int{}
	stage := map[string]int{}
	var quick int
	for _, r := range rs {
		count[r.Outcome]++
		if r.Outcome == killed {
			stage[r.Stage]++
			if r.Took < 10*time.Second {
				quick++
			}
		}
	}
	live := count[killed] + count[survived]
	share := 0.0
	if live > 0 {
		share = 100 * float64(count[killed]) / float64(live)
	}
	fmt.Printf("mutants: killed %d, survived %d, equivalent %d, did not compile %d, rig failed %d: %.0f%% of the non-equivalent killed\n",
		count[killed], count[survived], count[equivalent], count[unbuilt], count[broken], share)
	names := make([]string, 0, len(stage))
	for s := range stage {
		names = append(names, s)
	}
	slices.Sort(names)
	for _, s := range names {
		fmt.Printf("  killed by %s: %d\n", s, stage[s])
	}
	fmt.Printf("  killed within 10 s: %d\n", quick)
	switch {
	case count[broken] > 0 || live == 0:
		return 3
	case count[survived] > 0:
		return 1
	}
	return 0
}

// build compiles the proxy with one file replaced (nil: none) into the lab's folder.
func (l *lab) build(ctx context.Context, overlay map[string]string) (sum [32]byte, err error) {
	args := []string{"build", "-trimpath", "-pgo=off", "-o", filepath.Join(l.dir, "proxy")}
	if overlay != nil {
		b, err := json.Marshal(map[string]any{"Replace": overlay})
		if err != nil {
			return sum, err
		}
		file := filepath.Join(l.dir, "overlay.json")
		if err := os.WriteFile(file, b, 0o644); err != nil {
			return sum, err
		}
		args = append(args, "-overlay", file)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/proxy")...)
	cmd.Dir = l.repo
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return sum, fmt.Errorf("go build: %w: %s", err, bytes.TrimSpace(out))
	}
	b, err := os.ReadFile(filepath.Join(l.dir, "proxy"))
	return sha256.Sum256(b), err
}

// try builds one mutant and runs the stages until one tells it from nginx.
func (l *lab) try(ctx context.Context, m Mutant, src []byte) (r record) {
	r = record{Mutant: m}
	begin := time.Now()
	defer func() { r.Took = time.Since(begin) }()
	changed := filepath.Join(l.dir, "mutant.go")
	if err := os.WriteFile(changed, m.Apply(src), 0o644); err != nil {
		r.Outcome, r.Why = broken, err.Error()
		return r
	}
	sum, err := l.build(ctx, map[string]string{filepath.Join(l.repo, m.File): changed})
	switch why := l.known[key(m)]; {
	case err != nil:
		r.Outcome = unbuilt
		return r
	case sum == l.baseline || why != "":
		r.Outcome, r.Why = equivalent, why
		return r
	}
	begin = time.Now() // the stages' time, not the compiler's
	for _, s := range []struct {
		name string
		args []string
	}{
		{"scenarios", []string{"replay", "--jobs", "2", "--fail-fast", "scenarios"}},
		{"corpus", []string{"replay", "--jobs", "2", "--fail-fast", "corpus"}},
		{"campaign", []string{"fuzz", "--duration", l.campaign.String(), "--seed", fmt.Sprint(l.seed), "--dir", filepath.Join(l.dir, "campaign"), "--stop-at-first"}},
	} {
		code, out := l.oracleRun(ctx, s.args...)
		switch code {
		case 0, 4, 6:
			continue
		case 1, 5:
			r.Outcome, r.Stage = killed, s.name
			return r
		default:
			r.Outcome, r.Stage, r.Why = broken, s.name, fmt.Sprintf("exit %d: %s", code, out)
			return r
		}
	}
	r.Outcome, r.Stage = survived, "-"
	return r
}

// oracleRun runs the oracle against the mutant and gives its exit code and the end of its output.
func (l *lab) oracleRun(ctx context.Context, args ...string) (int, string) {
	if i := slices.Index(args, "--dir"); i >= 0 {
		if err := os.RemoveAll(args[i+1]); err != nil {
			return -1, err.Error()
		}
	}
	cmd := exec.CommandContext(ctx, l.oracle, append(args, "--candidate", filepath.Join(l.dir, "proxy"))...)
	cmd.Dir = l.repo
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return -1, err.Error()
	}
	text := strings.TrimSpace(string(out))
	return cmd.ProcessState.ExitCode(), text[max(0, len(text)-500):]
}

// key names a mutant in equivalent.tsv: file, kind, old and new text.
func key(m Mutant) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{m.File, m.Kind, m.Old, m.New}, "\x00")))
	return fmt.Sprintf("%x", sum[:6])
}

// readEquivalents reads the mutants that a person has found to be equivalent: key, reason.
func readEquivalents(path string) (map[string]string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		k, why, ok := strings.Cut(line, "\t")
		if !ok || len(k) != 12 || why == "" {
			return nil, fmt.Errorf("%s:%d: want a key of 12 digits, a tab, and the reason", path, i+1)
		}
		known[k] = why
	}
	return known, nil
}
