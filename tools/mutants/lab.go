package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// lab builds mutants and tries them.
type lab struct {
	repo, dir, oracle string
	tmp               string
	plain             string // the unchanged proxy, built as the mutants are
	sum               [32]byte
	campaign          time.Duration
	jobs              int
	seed              uint64
	known             map[string]string // listed equivalents: key -> reason
}

// open makes the lab's folders and the unchanged proxy, which must start.
func (l *lab) open(ctx context.Context) (err error) {
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return err
	}
	if l.tmp, err = os.MkdirTemp("", "mutants-"); err != nil {
		return err
	}
	if l.known, err = readEquivalents(filepath.Join(l.repo, "tools/mutants/equivalent.tsv")); err != nil {
		return err
	}
	l.plain = filepath.Join(l.tmp, "plain")
	if l.sum, err = l.build(ctx, l.plain, nil); err != nil {
		return fmt.Errorf("the unchanged proxy: %w", err)
	}
	if why := l.dead(ctx, l.plain); why != "" {
		return fmt.Errorf("the unchanged proxy dies at start: %s", why)
	}
	return nil
}

func (l *lab) close() { os.RemoveAll(l.tmp) }

// build compiles the proxy with files replaced (nil: none). All builds share Go's cache, so that only the
// package that was changed and what imports it are compiled; the profile would have the compiler do all of them
// anew. Without a build number and line tables, a change of code that is linked nowhere gives the same program.
func (l *lab) build(ctx context.Context, out string, overlay map[string]string) (sum [32]byte, err error) {
	args := []string{"build", "-trimpath", "-pgo=off", "-ldflags=-buildid= -s -w", "-o", out}
	if overlay != nil {
		b, err := json.Marshal(map[string]any{"Replace": overlay})
		if err != nil {
			return sum, err
		}
		file := filepath.Join(l.tmp, "overlay.json")
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
	b, err := os.ReadFile(out)
	return sha256.Sum256(b), err
}

// stage is one way to look at a mutant.
type stage struct {
	name string
	run  func(*lab, context.Context, string, *record) (outcome, string)
}

// stages are run in this order until one kills: the campaign first, whose power is measured on every mutant.
var stages = []stage{{"campaign", (*lab).fuzz}, {"scenarios", replay("scenarios")}, {"corpus", replay("corpus")}}

// try builds one mutant and runs the stages until one tells it from nginx.
func (l *lab) try(ctx context.Context, m Mutant, src []byte, seed uint64) (r record) {
	r = record{Key: key(m, src), Source: hash(src), Mutant: m, Seed: seed, Diff: m.Diff(src)}
	changed, binary := filepath.Join(l.tmp, "mutant.go"), filepath.Join(l.tmp, "mutant")
	if err := os.WriteFile(changed, m.Apply(src), 0o644); err != nil {
		r.Outcome, r.Why = broken, err.Error()
		return r
	}
	sum, err := l.build(ctx, binary, map[string]string{filepath.Join(l.repo, m.File): changed})
	if err != nil {
		r.Outcome, r.Why = unbuilt, lastLine(err.Error())
		return r
	}
	if sum == l.sum {
		r.Outcome, r.Why = equivalent, "the same program"
		return r
	}
	if why := l.dead(ctx, binary); why != "" {
		r.Outcome, r.Why = stillborn, why
		return r
	}
	r.Outcome = survived
	for _, s := range stages {
		o, said := s.run(l, ctx, binary, &r)
		r.Stages = append(r.Stages, s.name+": "+said)
		switch o {
		case killed:
			r.Outcome, r.Stage, r.What = killed, s.name, said
			return r
		case broken: // another stage may still tell
			r.Outcome, r.Why = broken, s.name+": "+said
		}
	}
	return r
}

// fuzz runs a campaign against a mutant. A kill is a mismatch that came again and that the unchanged proxy does
// not show. Recorded divergences are told by a copy of the catalogue, in which nothing is filed.
func (l *lab) fuzz(ctx context.Context, binary string, r *record) (outcome, string) {
	dir, corpus := filepath.Join(l.tmp, "campaign"), filepath.Join(l.tmp, "corpus")
	for _, d := range []string{dir, corpus} {
		if err := os.RemoveAll(d); err != nil {
			return broken, err.Error()
		}
	}
	if err := os.CopyFS(corpus, os.DirFS(filepath.Join(l.repo, "corpus"))); err != nil {
		return broken, err.Error()
	}
	code, out, said := l.ask(ctx, l.campaign+4*time.Minute, "fuzz", "--json", "--stop-at-first", "--duration", l.campaign.String(), "--jobs", fmt.Sprint(l.jobs),
		"--seed", fmt.Sprint(r.Seed), "--dir", dir, "--corpus", corpus, "--candidate", binary)
	var sum struct {
		Why     string
		Units   int
		Took    time.Duration
		Waiting []string
		Open    []struct{ File string }
		Stopped *struct {
			Seen, Sure       time.Duration
			Unit, Core, File string
		}
	}
	if err := json.Unmarshal(out, &sum); err != nil || code != 0 && code != 1 && code != 4 && code != 6 {
		return broken, fmt.Sprintf("exit %d: %s", code, said)
	}
	r.Blocks = sum.Units
	if code != 1 {
		return survived, fmt.Sprintf("exit %d", code)
	}
	cases := sum.Waiting
	r.Seen, r.Sure, r.Where = sum.Took, sum.Took, ""
	if s := sum.Stopped; s != nil {
		r.Seen, r.Sure, r.Where = s.Seen, s.Sure, s.Unit
		cases = []string{s.File}
	}
	for _, f := range sum.Open {
		cases = append(cases, f.File)
	}
	for _, f := range cases[:min(len(cases), 5)] {
		mutant, _, _ := l.ask(ctx, time.Minute, "replay", f, "--candidate", binary)
		plain, _, said := l.ask(ctx, time.Minute, "replay", f, "--candidate", l.plain)
		switch {
		case (mutant == 1 || mutant == 6) && plain == 0:
			text, err := os.ReadFile(f)
			if err == nil {
				err = os.WriteFile(filepath.Join(l.dir, r.Key+".txtar"), text, 0o644)
			}
			if err != nil {
				return broken, err.Error()
			}
			return killed, sum.Why
		case plain != 0:
			return broken, "not the mutant's own: the unchanged proxy ends with " + said
		}
	}
	if len(cases) == 0 { // in company only, or wavering
		return killed, sum.Why
	}
	return broken, "seen, and not again: " + sum.Why
}

// replay runs saved cases against a mutant; all of them agree on the unchanged proxy.
func replay(folder string) func(*lab, context.Context, string, *record) (outcome, string) {
	return func(l *lab, ctx context.Context, binary string, r *record) (outcome, string) {
		code, out, said := l.ask(ctx, 8*time.Minute, "replay", folder, "--fail-fast", "--jobs", fmt.Sprint(l.jobs), "--candidate", binary)
		switch code {
		case 0, 4:
			return survived, fmt.Sprintf("exit %d", code)
		case 1, 5, 6: // a case that is refused is one that the proxy supports
			r.Where, _, _ = strings.Cut(string(out), " ")
			return killed, fmt.Sprintf("exit %d: %s", code, r.Where)
		}
		return broken, fmt.Sprintf("exit %d: %s", code, said)
	}
}

// ask runs the oracle and gives its exit code, what it printed, and its last line.
func (l *lab) ask(ctx context.Context, most time.Duration, args ...string) (code int, out []byte, said string) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.oracle, args...)
	cmd.Dir = l.repo
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it takes its cells away
	cmd.WaitDelay = time.Minute
	var stdout, both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &both
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return -1, nil, err.Error()
	}
	if ctx.Err() != nil {
		return -1, nil, fmt.Sprintf("%s did not end in %s", args[0], most)
	}
	return cmd.ProcessState.ExitCode(), stdout.Bytes(), lastLine(stdout.String() + both.String())
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// plainest is a case that every server that lives agrees on.
const plainest = `# The plainest request
-- nginx.conf --
events {}
http {
    server {
        listen 127.0.0.1:8080;
        location / { return 200 "ok"; }
    }
}
-- client 1 --
send "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
recv response
close
`

// unlike tells how a proxy differs on the plainest request, "" when it does not.
func (l *lab) unlike(ctx context.Context, binary string) string {
	file := filepath.Join(l.tmp, "plainest.txtar")
	if err := os.WriteFile(file, []byte(plainest), 0o644); err != nil {
		return err.Error()
	}
	if code, _, said := l.ask(ctx, time.Minute, "replay", file, "--candidate", binary); code != 0 {
		return said
	}
	return ""
}

// dead tells why a proxy does not serve the plainest request, "" when it does: one that cannot tell its version, does not
// take the configuration, or says nothing at all. A wrong answer is an answer.
func (l *lab) dead(ctx context.Context, binary string) string {
	file := filepath.Join(l.tmp, "plainest.txtar")
	if err := os.WriteFile(file, []byte(plainest), 0o644); err != nil {
		return err.Error()
	}
	code, out, said := l.ask(ctx, time.Minute, "replay", "--json", file, "--candidate", binary)
	if code == 2 {
		return said
	}
	for line := range bytes.Lines(out) {
		var v struct {
			Mismatches []struct{ Kind, Where, Candidate string }
		}
		if json.Unmarshal(line, &v) != nil {
			continue
		}
		for _, m := range v.Mismatches {
			if m.Kind == "load" || m.Kind == "client" && m.Candidate == "" {
				return strings.TrimSpace(m.Kind + " " + m.Where + ": " + m.Candidate)
			}
		}
	}
	return ""
}
