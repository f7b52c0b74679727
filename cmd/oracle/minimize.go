package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/minimize"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/reference"
	"nginxoracle/oracle/run"
	"nginxoracle/oracle/triage"
)

type minimizeOptions struct {
	*options
	Time     time.Duration
	Attempts int
	Output   string
}

func newMinimize(o *options) *cobra.Command {
	mo := &minimizeOptions{options: o}
	cmd := &cobra.Command{
		Use:   "minimize CASE",
		Short: "Shrink a failing case",
		Long: `minimize runs a differing case again, makes sure that the reference agrees with
itself on it, and takes away configuration, clients, origins, files and bytes for
as long as the same difference stays. The original is kept: the result goes to
CASE.min.txtar, which is written anew with every step and is where an interrupted
run goes on.`,
		Example: "  oracle minimize campaign/proxy/originals/F-0001.txtar\n  oracle minimize mine.txtar --output small.txtar --time 1m",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return minimizeCase(cmd, mo, args[0]) },
	}
	f := cmd.Flags()
	f.DurationVar(&mo.Time, "time", time.Minute, "time to spend (0: no bound)")
	f.IntVar(&mo.Attempts, "attempts", 0, "attempts to spend (0: no bound)")
	f.StringVarP(&mo.Output, "output", "o", "", "where the result goes")
	return cmd
}

// rig is a pair of cells as triage wants one.
type rig struct{ j *judge }

func (r rig) Pair(ctx context.Context, c *casefile.Case) (ref, cand *observe.Observation, err error) {
	if err := r.j.open(ctx); err != nil {
		return nil, nil, err
	}
	ref, cand, err = run.Pair(ctx, r.j.ref, r.j.cand, c, run.Options{Test: true})
	if err != nil {
		r.j.close() // the next run gets new cells
	}
	return ref, cand, err
}

func (r rig) Compare(ref, cand *observe.Observation) diff.Result { return diff.Compare(ref, cand) }

func minimizeCase(cmd *cobra.Command, o *minimizeOptions, path string) error {
	c, err := loadCase(path)
	if err != nil {
		return err
	}
	if o.Output == "" {
		o.Output = strings.TrimSuffix(path, ".txtar") + ".min.txtar"
	}
	if o.Output == path {
		return exit.Errorf(exit.Usage, "minimize: the original is kept: give another --output than %s", path)
	}
	start := c
	if half, err := casefile.Load(o.Output); err == nil {
		start = half
		fmt.Fprintf(cmd.ErrOrStderr(), "minimize: going on from %s\n", o.Output)
	}
	pair, err := reference.Resolve(cmd.Context(), o.Reference, o.Candidate, o.Cell, func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) })
	if err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("minimize: %w", err))
	}
	j := &judge{pair: pair}
	defer j.close()
	var saveErr error
	opt := triage.Options{Budget: minimize.Budget{Time: o.Time, Attempts: o.Attempts}, Saved: func(s *casefile.Case) {
		saveErr = catalog.WriteFile(o.Output, s.Print())
	}}
	rep := triage.Triage(cmd.Context(), rig{j}, start, opt)
	if saveErr != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("minimize: %w", saveErr))
	}
	switch rep.Outcome {
	case triage.Gone:
		return done(cmd, exit.Agree, "minimize: %s does not differ (%s)", path, rep.Why)
	case triage.Unstable:
		return done(cmd, exit.Unstable, "minimize: %s: %s", path, rep.Why)
	case triage.Found:
	default:
		return exit.Errorf(exit.Rig, "minimize: %s: %s", path, rep.Why)
	}
	rep.Case.Meta = mergeMeta(c.Meta, rep)
	if err := catalog.WriteFile(o.Output, rep.Case.Print()); err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("minimize: %w", err))
	}
	before, after := len(c.Print()), len(rep.Case.Print())
	if o.JSON {
		err = printJSON(cmd.OutOrStdout(), map[string]any{"case": path, "output": o.Output, "signature": rep.Signature.String(), "before": before, "after": after, "attempts": rep.Shrink.Attempts, "done": rep.Shrink.Done, "flaky": rep.Flaky, "seconds": rep.Took.Seconds()})
		if err != nil {
			return exit.Wrap(exit.Rig, err)
		}
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "signature  %s\nshrunk     %d bytes to %d, %s\nwork       %s in %s\nagain      oracle replay%s %s\n",
			rep.Signature, before, after, o.Output, rep.Shrink, rep.Took.Round(10*time.Millisecond), targetsAgain(o.options), o.Output)
		if rep.Why != "" {
			fmt.Fprintf(cmd.OutOrStdout(), "note       %s\n", rep.Why)
		}
		if _, err := cmd.OutOrStdout().Write(rep.Case.Print()); err != nil {
			return exit.Wrap(exit.Rig, err)
		}
	}
	return done(cmd, exit.Differ, "minimize: %s differs", o.Output)
}

// mergeMeta keeps the original's fields and brings the signature up to date.
func mergeMeta(meta []casefile.Field, rep triage.Report) []casefile.Field {
	var out []casefile.Field
	for _, f := range meta {
		if f.Key != "signature" && f.Key != "core" {
			out = append(out, f)
		}
	}
	return append(out, casefile.Field{Key: "signature", Value: rep.Signature.String()})
}
