// Command mutants measures what the oracle would have found: it changes the proxy's source in one
// small way at a time, builds it, and looks whether a campaign, the scenarios or the corpus tell
// the difference. A survivor is a hole in the generator. `make mutants N=30 SEED=1`.
package main

import (
	"context"
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

func main() {
	n := flag.Int("n", 30, "mutants that compile and start")
	seed := flag.Uint64("seed", 1, "seed of the draw and of the campaigns")
	campaign := flag.Duration("campaign", time.Minute, "length of the campaign against each mutant, which ends at its first sure mismatch")
	jobs := flag.Int("jobs", 2, "pairs of cells of a campaign or a replay")
	dir := flag.String("dir", "", "what is known of each mutant, written as it comes: the same command goes on there (default: campaign/mutants-SEED)")
	again := flag.Bool("again", false, "try once more those of -dir that the campaign or all stages let live")
	into := flag.String("into", "", "build one proxy with all n changes there, and its coverage build beside it; try nothing")
	found := flag.Bool("found", false, "with -into: only changes that a campaign of -campaign finds one by one, by what is answered")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	repo, err := os.Getwd()
	code := 3
	switch {
	case err != nil:
	case *into != "":
		l := &lab{repo: repo, dir: *dir, oracle: filepath.Join(repo, "bin", "oracle"), campaign: *campaign, jobs: *jobs, seed: *seed}
		if err = many(ctx, l, *into, *n, *found); err == nil {
			code = 0
		}
	default:
		if *dir == "" {
			*dir = filepath.Join(repo, "campaign", fmt.Sprintf("mutants-%d", *seed))
		}
		l := &lab{repo: repo, dir: *dir, oracle: filepath.Join(repo, "bin", "oracle"), campaign: *campaign, jobs: *jobs, seed: *seed}
		code, err = run(ctx, l, *n, *again)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	os.Exit(code)
}

// run tries mutants as they are dealt until n of them count, and those of an earlier run not again.
func run(ctx context.Context, l *lab, n int, again bool) (int, error) {
	files, err := sources(ctx, l.repo)
	if err != nil {
		return 3, err
	}
	all, err := sites(l.repo, files)
	if err != nil {
		return 3, err
	}
	if err := l.open(ctx); err != nil {
		return 3, err
	}
	defer l.close()
	b, err := openBook(filepath.Join(l.dir, "mutants.json"))
	if err != nil {
		return 2, err
	}
	fmt.Printf("mutants: %d places in %d files, %d kinds; %d wanted, drawn with seed %d; %s has what is known\n", len(all), len(files), len(kinds), n, l.seed, b.path)
	var list []record
	for i, m := range deal(all, n*3, l.seed) { // spares for those that do not compile or do not start
		if counted(list) == n || ctx.Err() != nil {
			break
		}
		src, err := os.ReadFile(filepath.Join(l.repo, m.File))
		if err != nil {
			return 3, err
		}
		old, known := b.find(m, src)
		r := old
		if !known || again && old.letLive() && l.known[old.Key] == "" {
			r = l.try(ctx, m, src, l.seed*1000+uint64(i))
			if ctx.Err() != nil {
				break // what a signal has cut short is tried again
			}
			if err := b.put(r); err != nil {
				return 3, err
			}
		}
		if why := l.known[r.Key]; r.Outcome == survived && why != "" {
			r.Outcome, r.Why = equivalent, why
		}
		list = append(list, r)
		fmt.Printf("%3d %s\n", len(list), r.line())
		if r.letLive() || r.Outcome == broken {
			fmt.Println(indent(r.Diff))
		}
	}
	return summary(os.Stdout, list), ctx.Err()
}

// sources lists the proxy's own source files that are compiled into it here: no tests, no other platform's.
func sources(ctx context.Context, repo string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", `{{if not .Standard}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`, "./cmd/proxy")
	cmd.Dir = repo
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var files []string
	for _, f := range strings.Fields(string(out)) {
		if rel, err := filepath.Rel(repo, f); err == nil && strings.HasPrefix(rel, "proxy/") {
			files = append(files, rel)
		}
	}
	slices.Sort(files)
	if len(files) == 0 {
		return nil, errors.New("go list: no files of the proxy")
	}
	return files, nil
}

func indent(s string) string { return "      " + strings.ReplaceAll(s, "\n", "\n      ") }
