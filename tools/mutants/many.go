package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// subtle are the kinds of mutants that leave most of a server working: what a campaign must look for.
var subtle = map[string]bool{"boundary": true, "off-by-one": true, "constant": true, "dropped-assignment": true}

// many builds one proxy with n small changes, each in a file of its own, and beside it the same with
// coverage counters: a server to measure the search on (oracle fuzz --compare-feedback), and the shrinking. One that
// shows in the plainest request is not taken: it would be in every unit, in front of all others. With found, only
// those are taken that a campaign finds by themselves, and by what is answered: one that shows while a configuration
// is loaded takes its whole batch along.
func many(ctx context.Context, l *lab, into string, n int, found bool) error {
	files, err := sources(ctx, l.repo)
	if err != nil {
		return err
	}
	all, err := sites(l.repo, files)
	if err != nil {
		return err
	}
	if l.dir == "" {
		l.dir = into + "-faults"
	}
	if err := l.open(ctx); err != nil {
		return err
	}
	defer l.close()
	if into, err = filepath.Abs(into); err != nil {
		return err
	}
	// Coverage counters are put into the files that lie there: go build -cover knows no -overlay.
	tree, try := filepath.Join(l.tmp, "tree"), filepath.Join(l.tmp, "try")
	if err := copyProxy(l.repo, tree); err != nil {
		return err
	}
	if err := buildTree(ctx, tree, try); err != nil {
		return fmt.Errorf("the unchanged proxy: %w", err)
	}
	if why := l.unlike(ctx, try); why != "" {
		return fmt.Errorf("the unchanged proxy: %s", why)
	}
	one := filepath.Join(l.tmp, "one")
	if err := copyProxy(l.repo, one); err != nil {
		return err
	}
	alone := func(m Mutant, src []byte, number int) (says string, err error) {
		file, binary := filepath.Join(one, m.File), filepath.Join(l.tmp, "alone")
		if err := os.WriteFile(file, m.Apply(src), 0o644); err != nil {
			return "", err
		}
		built := buildTree(ctx, one, binary)
		if err := os.WriteFile(file, src, 0o644); err != nil {
			return "", err
		}
		if built != nil || l.unlike(ctx, binary) != "" {
			return "", nil
		}
		r := record{Key: key(m, src), Mutant: m, Seed: l.seed*1000 + uint64(number)}
		if o, why := l.fuzz(ctx, binary, &r); o == killed {
			return why, nil
		}
		return "", nil
	}
	done := map[string]bool{}
	for i, m := range deal(all, 20*n, l.seed) {
		if len(done) == n || ctx.Err() != nil {
			break
		}
		if done[m.File] || !subtle[m.Kind] {
			continue
		}
		src, err := os.ReadFile(filepath.Join(l.repo, m.File))
		if err != nil {
			return err
		}
		says := ""
		if found {
			if says, err = alone(m, src, i); err != nil {
				return err
			}
			core, answered := strings.CutPrefix(says, firstMismatch)
			if !answered || strings.HasPrefix(core, atLoad) || strings.HasPrefix(core, atEnd) {
				continue
			}
		}
		file := filepath.Join(tree, m.File)
		if err := os.WriteFile(file, m.Apply(src), 0o644); err != nil {
			return err
		}
		if buildTree(ctx, tree, try) != nil || l.unlike(ctx, try) != "" {
			if err := os.WriteFile(file, src, 0o644); err != nil {
				return err
			}
			continue
		}
		done[m.File] = true
		fmt.Printf("%2d %-20s %s:%d %.40q -> %.40q  %s\n", len(done), m.Kind, m.File, m.Line, m.Old, m.New, says)
	}
	if len(done) < n {
		return fmt.Errorf("only %d of %d changes could be made", len(done), n)
	}
	if err := buildTree(ctx, tree, into); err != nil {
		return err
	}
	return buildTree(ctx, tree, into+"-cover", "-cover", "-covermode=set", "-coverpkg=nginxoracle/proxy/...,nginxoracle/cmd/proxy")
}

// What a campaign says that ends at its first mismatch, and how the names of differences begin that are seen in what a
// server says while it starts, and in how it ends.
const (
	firstMismatch = "stopped at the first mismatch: "
	atLoad        = "load:"
	atEnd         = "process:"
)

// copyProxy copies what the proxy is built of.
func copyProxy(repo, to string) error {
	for _, d := range []string{"proxy", "cmd/proxy"} {
		if err := os.CopyFS(filepath.Join(to, d), os.DirFS(filepath.Join(repo, d))); err != nil {
			return err
		}
	}
	for _, f := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(repo, f))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, f), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func buildTree(ctx context.Context, tree, out string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-pgo=off", "-buildvcs=false", "-o", out}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/proxy")...)
	cmd.Dir = tree
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, said)
	}
	return nil
}
