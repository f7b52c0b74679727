package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nginxoracle/oracle/campaign"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/count"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/minimize"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/reference"
	"nginxoracle/oracle/report"
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
CASE.min.txtar, which is written anew with every step (its field "shrinking" says that
it is not at its end) and is where an interrupted run goes on.`,
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
	return r.pair(ctx, c, run.Options{Test: true, Aged: true})
}

// PairQuick waits for nothing that is there to make a verdict certain.
func (r rig) PairQuick(ctx context.Context, c *casefile.Case) (ref, cand *observe.Observation, err error) {
	return r.pair(ctx, c, run.Options{})
}

func (r rig) pair(ctx context.Context, c *casefile.Case, opt run.Options) (ref, cand *observe.Observation, err error) {
	if err := r.j.open(ctx); err != nil {
		return nil, nil, err
	}
	ref, cand, err = run.Pair(ctx, r.j.ref, r.j.cand, c, campaign.Played(c, opt))
	if err != nil {
		r.j.close() // the next run gets new cells
		return nil, nil, err
	}
	return campaign.Seen(c, ref), campaign.Seen(c, cand), nil
}

func (r rig) Compare(ref, cand *observe.Observation) diff.Result { return diff.Compare(ref, cand) }

func (r rig) Screen(ctx context.Context, core string, best *casefile.Case, list []*casefile.Case) ([]minimize.Hint, error) {
	if err := r.j.open(ctx); err != nil {
		return nil, err
	}
	s := campaign.Screener{Ref: r.j.ref, Cand: r.j.cand, Compare: diff.Compare, Pair: func(ctx context.Context, c *casefile.Case, opt run.Options) (ref, cand *observe.Observation, err error) {
		return run.Pair(ctx, r.j.ref, r.j.cand, c, opt)
	}}
	hints, err := s.Screen(ctx, core, best, list)
	if err != nil {
		r.j.close()
	}
	return hints, err
}

func minimizeCase(cmd *cobra.Command, o *minimizeOptions, path string) error {
	c, err := loadCase(path)
	if err != nil {
		return err
	}
	if o.Output == "" {
		o.Output = besides(path)
	}
	if o.Time < 0 || o.Attempts < 0 {
		return exit.Errorf(exit.Usage, "minimize: want --time and --attempts from 0")
	}
	if sameFile(o.Output, path) {
		return exit.Errorf(exit.Usage, "minimize: the original is kept: give another --output than %s", path)
	}
	if err := writeTo("minimize", "--output", o.Output, isCase); err != nil {
		return err
	}
	start, ran := c, path
	half, err := halfWay(o.Output, c, path)
	if err != nil {
		return err
	}
	if half != nil {
		start, ran = half, o.Output
		fmt.Fprintf(cmd.ErrOrStderr(), "minimize: going on from %s\n", o.Output)
	}
	pair, err := reference.Resolve(cmd.Context(), o.Reference, o.Candidate, o.Cell, func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) })
	if err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("minimize: %w", err))
	}
	j := &judge{pair: pair}
	defer j.close()
	var saveErr error
	best := half
	opt := triage.Options{Budget: minimize.Budget{Time: o.Time, Attempts: o.Attempts}, Saved: func(s *casefile.Case, _ int) {
		best = s.Clone()
		best.Meta = append(without(c.Meta, "signature", "core"), casefile.Field{Key: shrinking, Value: "not at its end; to go on: " + goOn(o, path)})
		saveErr = catalog.WriteFile(o.Output, best.Print())
	}}
	rep := triage.Triage(cmd.Context(), rig{j}, start, opt)
	if half != nil && rep.Outcome != triage.Found && rep.Outcome != triage.Interrupted && rep.Outcome != triage.Rigged {
		// What was reached, with another build or other targets, says nothing of the case.
		fmt.Fprintf(cmd.ErrOrStderr(), "minimize: %s does not differ for certain (%s); beginning again from %s\n", o.Output, rep.Why, path)
		ran, best = path, nil
		rep = triage.Triage(cmd.Context(), rig{j}, c, opt)
	}
	if saveErr != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("minimize: %w", saveErr))
	}
	switch rep.Outcome {
	case triage.Gone:
		return done(cmd, exit.Agree, "minimize: %s does not differ (%s)", ran, rep.Why)
	case triage.Unstable:
		return done(cmd, exit.Unstable, "minimize: %s: %s", ran, rep.Why)
	case triage.Wrong:
		return exit.Errorf(exit.Usage, "minimize: %s", rep.Why)
	case triage.Found:
	case triage.Interrupted:
		if best == nil {
			return exit.Errorf(exit.Rig, "minimize: interrupted before anything smaller was found, nothing written; to begin again: %s", goOn(o, path))
		}
		best.Meta = c.Meta // the note is not what was shrunk
		return exit.Errorf(exit.Rig, "minimize: interrupted; the smallest so far, not run again yet, is %s (%d bytes of %d); to go on: %s",
			o.Output, len(best.Print()), len(c.Print()), goOn(o, path))
	default:
		return exit.Errorf(exit.Rig, "minimize: %s: %s", ran, rep.Why)
	}
	rep.Case.Meta = mergeMeta(c.Meta, rep)
	if err := catalog.WriteFile(o.Output, rep.Case.Print()); err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("minimize: %w", err))
	}
	before, after, size := len(c.Print()), len(rep.Case.Print()), minimize.Measure(rep.Case)
	if o.JSON {
		err = printJSON(cmd.OutOrStdout(), map[string]any{"case": path, "output": o.Output, "signature": rep.Signature.String(), "before": before, "after": after, "attempts": rep.Shrink.Attempts, "done": rep.Shrink.Done, "flaky": rep.Flaky, "lines": size.Lines, "requests": size.Requests, "bytes": size.Bytes, "runs": rep.Runs, "seconds": rep.Took.Seconds()})
		if err != nil {
			return exit.Wrap(exit.Rig, err)
		}
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "signature  %s\nshrunk     %d bytes to %d, %s\nwork       %s in %s\nagain      %s%s %s\n",
			rep.Signature, before, after, o.Output, rep.Shrink, rep.Took.Round(10*time.Millisecond), oracle("replay"), targetsAgain(o.options), report.Word(o.Output))
		if rep.Why != "" {
			fmt.Fprintf(cmd.OutOrStdout(), "note       %s\n", rep.Why)
		}
		if _, err := cmd.OutOrStdout().Write(rep.Case.Print()); err != nil {
			return exit.Wrap(exit.Rig, err)
		}
	}
	return done(cmd, exit.Differ, "minimize: %s differs: %s; %s of both targets, %.1f s", o.Output, size, count.Of(rep.Runs, "run"), rep.Took.Seconds())
}

// shrinking is the field of a result that is not at its end.
const shrinking = "shrinking"

// halfWay is what an interrupted run has left of c at output, to go on from; nil when there is nothing, or a run that came to its
// end has written it: that one begins again. Another case there is an error: it would be lost.
func halfWay(output string, c *casefile.Case, path string) (*casefile.Case, error) {
	half, err := casefile.Load(output)
	if err != nil {
		return nil, nil // none, or none that can be read: it is written anew
	}
	if half.Title != c.Title {
		return nil, exit.Errorf(exit.Usage, "minimize: %s is another case (%q), not a smaller form of %s: give another --output", output, half.Title, path)
	}
	if half.Get(shrinking) == "" {
		return nil, nil
	}
	return half, nil
}

// goOn is the command that goes on where this one ends.
func goOn(o *minimizeOptions, path string) string {
	s := oracle("minimize") + targetsAgain(o.options)
	if o.Output != besides(path) {
		s += " --output " + report.Word(o.Output)
	}
	return s + " " + report.Word(path)
}

// besides is where the result goes that nobody gave a name to.
func besides(path string) string { return strings.TrimSuffix(path, ".txtar") + ".min.txtar" }

func without(meta []casefile.Field, keys ...string) []casefile.Field {
	return slices.DeleteFunc(slices.Clone(meta), func(f casefile.Field) bool { return slices.Contains(keys, f.Key) })
}

// mergeMeta keeps the original's fields and brings the signature up to date.
func mergeMeta(meta []casefile.Field, rep triage.Report) []casefile.Field {
	return append(without(meta, "signature", "core", shrinking), casefile.Field{Key: "signature", Value: rep.Signature.String()})
}
