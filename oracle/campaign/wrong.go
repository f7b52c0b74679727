package campaign

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/triage"
)

// wrongOnes compares the diagnostics of wrong configurations: many of them lie
// in one work tree, and -t is run on each.
func (c *Campaign) wrongOnes(ctx context.Context, rig *cells, g *gen.Generator, batch uint64) error {
	n := c.cfg.Wrong
	if n == 0 {
		return nil
	}
	cases := make([]*casefile.Case, n)
	for i := range cases {
		cases[i] = g.Wrong(c.state.Seed, batch*1000+uint64(i))
	}
	return c.diagnoses(ctx, rig, cases, func(i int, core string) *pendingCase {
		return &pendingCase{Case: cases[i], Core: core, Label: strings.TrimPrefix(cases[i].Title, "generated: ")}
	}, func(s *State) { s.Wrong++ })
}

// diagnoses compares what both sides say of configurations; pending makes a pending case of one
// that differs, and count counts each.
func (c *Campaign) diagnoses(ctx context.Context, rig *cells, cases []*casefile.Case, pending func(i int, core string) *pendingCase, count func(*State)) error {
	var refs, cands []*observe.Observation
	err := rig.again(ctx, nil, func() error {
		done := make(chan error, 1)
		go func() {
			var err error
			cands, err = testAll(ctx, rig.cand, cases)
			done <- err
		}()
		var err error
		refs, err = testAll(ctx, rig.ref, cases)
		return errors.Join(err, <-done)
	})
	if err != nil {
		return broken(ctx, err)
	}
	for i, cs := range cases {
		c.count(func(s *State) { s.Cases++; count(s) })
		text := cands[i].Test.Text
		if m := notSupported.FindStringSubmatch(text); m != nil && !strings.Contains(refs[i].Test.Text, "not supported") {
			c.count(func(s *State) { s.Refused++ })
			continue
		}
		r := c.cfg.Compare(refs[i], cands[i])
		switch r.Verdict {
		case diff.Differ:
			c.keep(pending(i, triage.Cores(r)[0]))
		case diff.Agree, diff.Refused:
		default:
			c.rigFailed(cs, fmt.Errorf("compare diagnostics: %s", r.Why))
		}
		c.learnWrong(cs, refs[i], cands[i])
	}
	return nil
}

// testAll runs -t on every case's configuration in one cell.
func testAll(ctx context.Context, cell engine.Cell, cases []*casefile.Case) ([]*observe.Observation, error) {
	files := []engine.File{{Path: "logs", Dir: true}}
	for i, cs := range cases {
		for _, f := range cs.Files {
			switch {
			case f.Path == "nginx.conf":
				files = append(files, engine.File{Path: fmt.Sprintf("w%02d.conf", i), Data: f.Data})
			case i == 0 && !f.Dir:
				files = append(files, engine.File{Path: f.Path, Data: f.Data, Mode: uint32(f.Mode)})
			}
		}
	}
	if err := cell.Reset(ctx, files); err != nil {
		return nil, fmt.Errorf("wrong configurations: %w", err)
	}
	out := make([]*observe.Observation, len(cases))
	for i := range cases {
		res, err := cell.Command(ctx, "-p", "/cell/", "-c", fmt.Sprintf("/cell/w%02d.conf", i), "-e", "/cell/logs/error.log", "-g", "daemon off;", "-t")
		if err != nil {
			return nil, fmt.Errorf("wrong configurations: %w", err)
		}
		out[i] = &observe.Observation{Info: cell.Info(), Test: observe.Command{Code: res.Exit.Code, Signal: res.Exit.Signal, Text: string(res.Stderr), Stdout: string(res.Stdout)}}
		if !res.Exit.Exited {
			out[i].Test.Text += "\n(did not end, was killed)"
		}
	}
	return out, nil
}

// askDirectives asks the candidate which directives it knows ("--directives",
// one "name<TAB>module" a line). One that does not say is asked by trying.
func (c *Campaign) askDirectives(ctx context.Context, rig *cells) {
	if c.cfg.Self {
		return
	}
	names := Supported(ctx, rig.cand)
	c.count(func(s *State) { s.Supported = names })
}

// Supported is the list of directives that a target prints of itself, nil when it does not. A cell that
// breaks here is no answer either: it shows at its next use, where it is counted.
func Supported(ctx context.Context, cell engine.Cell) []string {
	out, err := cell.Command(ctx, "--directives")
	if err != nil || !out.Exit.Exited || out.Exit.Code != 0 {
		return nil
	}
	var names []string
	for _, l := range strings.Split(string(out.Stdout), "\n") {
		if name, _, ok := strings.Cut(l, "\t"); ok {
			names = append(names, name)
		}
	}
	return names
}
