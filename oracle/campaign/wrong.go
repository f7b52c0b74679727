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

// probe is a configuration of which only what both sides say is compared.
type probe struct {
	conf  []byte
	files []casefile.File // beside it
	count func(*State)
	keep  func(core string) *pendingCase // made when it differs
}

// wrongOnes compares the diagnostics of wrong configurations, and of those units of a batch that the
// reference does not load.
func (c *Campaign) wrongOnes(ctx context.Context, rig *cells, g *gen.Generator, n uint64, b *gen.Batch, bad []int) error {
	var list []probe
	for i := range c.cfg.Wrong {
		cs := g.Wrong(c.state.Seed, n*1000+uint64(i))
		list = append(list, probe{
			conf: cs.File("nginx.conf").Data, files: cs.Files,
			count: func(s *State) { s.Wrong++ },
			keep: func(core string) *pendingCase {
				return &pendingCase{Case: cs, Core: core, Label: strings.TrimPrefix(cs.Title, "generated: ")}
			},
		})
	}
	if len(bad) > 0 {
		sheet, files := b.Sheet(), b.Files()
		for _, slot := range bad {
			list = append(list, probe{
				conf: sheet.Conf(slot), files: files,
				count: func(s *State) { s.Dropped++ },
				keep: func(core string) *pendingCase {
					return &pendingCase{Case: b.Only(slot).Case(), Core: core, Label: b.Units[slot].Label, From: b.Units[slot].From}
				},
			})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return c.diagnoses(ctx, rig, list)
}

// diagnoses compares what both sides say of configurations: all of them lie in one work tree, and -t
// is run on each.
func (c *Campaign) diagnoses(ctx context.Context, rig *cells, list []probe) error {
	var refs, cands []*observe.Observation
	err := rig.again(ctx, nil, func() error {
		done := make(chan error, 1)
		go func() {
			var err error
			cands, err = testAll(ctx, rig.cand, list)
			done <- err
		}()
		var err error
		refs, err = testAll(ctx, rig.ref, list)
		return errors.Join(err, <-done)
	})
	if err != nil {
		return broken(ctx, err)
	}
	for i := range list {
		p := &list[i]
		c.count(func(s *State) { s.Cases++; p.count(s) })
		text := cands[i].Test.Text
		if m := notSupported.FindStringSubmatch(text); m != nil && !strings.Contains(refs[i].Test.Text, "not supported") {
			c.count(func(s *State) { s.Refused++ })
			continue
		}
		r := c.cfg.Compare(refs[i], cands[i])
		switch r.Verdict {
		case diff.Differ:
			c.keep(p.keep(triage.Cores(r)[0]))
		case diff.Agree, diff.Refused:
		default:
			c.rigFailed(p.keep("").Case, fmt.Errorf("compare diagnostics: %s", r.Why))
		}
		c.learnWrong(refs[i], cands[i])
	}
	return nil
}

// probeFiles is the work tree of probes: probe i's configuration is wNN.conf.
func probeFiles(list []probe) []engine.File {
	files := []engine.File{{Path: "logs", Dir: true}}
	have := map[string]bool{"logs": true, "nginx.conf": true}
	for i := range list {
		files = append(files, engine.File{Path: probeName(i), Data: list[i].conf})
		for _, f := range sieveFiles(list[i].files) {
			if !have[f.Path] {
				have[f.Path] = true
				files = append(files, f)
			}
		}
	}
	return files
}

func probeName(i int) string { return fmt.Sprintf("w%02d.conf", i) }

// testAll runs -t on every probe's configuration in one cell.
func testAll(ctx context.Context, cell engine.Cell, list []probe) ([]*observe.Observation, error) {
	if err := cell.Reset(ctx, probeFiles(list)); err != nil {
		return nil, fmt.Errorf("wrong configurations: %w", err)
	}
	out := make([]*observe.Observation, len(list))
	for i := range list {
		res, err := cell.Command(ctx, "-p", "/cell/", "-c", "/cell/"+probeName(i), "-e", "/cell/logs/error.log", "-g", "daemon off;", "-t")
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
