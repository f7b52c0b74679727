package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"nginxoracle/oracle/campaign"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/reference"
	"nginxoracle/oracle/run"
)

// outcome is what became of one case.
type outcome struct {
	c         *casefile.Case
	result    diff.Result
	ref, cand *observe.Observation
	err       error // the rig broke
	expected  expectation
	skipped   bool // never run
}

// expectation is what a case that is kept as a recorded divergence has turned out to be.
type expectation string

const (
	ordinary   expectation = ""
	asRecorded expectation = "as recorded"
	stale      expectation = "stale"
)

// recorded decides what a difference means for a case with "status: divergence":
// asRecorded when result is exactly the difference that the catalogue knows, ordinary
// when it is another one.
var recorded = func(c *casefile.Case, result diff.Result) expectation { return ordinary }

// judge runs cases in one pair of cells. It is used by one goroutine.
type judge struct {
	pair      reference.Pair
	alone     bool // the reference against itself
	census    bool // count the masks' values that do not differ, too
	ref, cand engine.Cell
}

// selfRuns is how often the reference is run again when a case differs. A case
// that is unstable in one of p of its runs is taken for a finding with
// probability (1-p)^selfRuns; triage runs more before it files one.
const selfRuns = 2

func (j *judge) run(ctx context.Context, c *casefile.Case) (out outcome) {
	out = outcome{c: c}
	defer func() {
		if out.err != nil {
			out.result = diff.Result{Verdict: diff.RigFailed}
			if !wrongFile(out.err) {
				j.close() // the next case gets new cells
			}
		}
	}()
	if out.err = j.open(ctx); out.err != nil {
		return out
	}
	opt := campaign.Played(c, run.Options{Test: true, Aged: true})
	if j.alone {
		if out.ref, out.err = run.RunWith(ctx, j.ref, c, opt); out.err != nil {
			return out
		}
		if out.cand, out.err = run.RunWith(ctx, j.ref, c, opt); out.err != nil {
			return out
		}
		if out.err = run.Wrong(c, out.ref); out.err != nil {
			return out
		}
		out.ref, out.cand = campaign.Seen(c, out.ref), campaign.Seen(c, out.cand)
		out.result = diff.Compare(out.ref, out.cand)
		if out.result.Verdict == diff.Differ {
			out.result.Verdict, out.result.Why = diff.Unstable, "the reference differs from itself"
		}
		return out
	}
	if out.ref, out.cand, out.err = run.Pair(ctx, j.ref, j.cand, c, opt); out.err != nil {
		return out
	}
	if out.err = run.Wrong(c, out.ref); out.err != nil {
		return out
	}
	out.ref, out.cand = campaign.Seen(c, out.ref), campaign.Seen(c, out.cand)
	compare := diff.Compare
	if j.census {
		compare = diff.Census
	}
	out.result = compare(out.ref, out.cand)
	switch {
	case out.result.Verdict == diff.Differ:
		out.err = j.stable(ctx, &out, opt)
	case out.result.Verdict == diff.Agree && c.Get("status") == "divergence" && strings.HasPrefix(out.ref.Info.SHA256, c.Get("build")):
		out.expected = stale
		out.result.Why = "the case is recorded as a divergence, but both targets agree"
	}
	return out
}

// wrongFile tells whether an error is a case's fault.
func wrongFile(err error) bool {
	var e *casefile.Error
	return errors.As(err, &e)
}

// noVerdict gives an error of a run its code: a case's own fault is no broken rig.
func noVerdict(err error) error {
	if wrongFile(err) {
		return exit.Wrap(exit.Usage, err)
	}
	return exit.Wrap(exit.Rig, err)
}

// stable runs the reference again: a case in which it differs from itself is unstable.
func (j *judge) stable(ctx context.Context, out *outcome, opt run.Options) error {
	for range selfRuns {
		again, err := run.RunWith(ctx, j.ref, out.c, opt)
		if err != nil {
			return fmt.Errorf("reference, again: %w", err)
		}
		again = campaign.Seen(out.c, again)
		if self := diff.Compare(out.ref, again); self.Verdict != diff.Agree {
			self.Verdict, self.Why = diff.Unstable, "the reference differs from itself"
			out.result, out.cand = self, again
			return nil
		}
	}
	if out.c.Get("status") == "divergence" {
		out.expected = recorded(out.c, out.result)
	}
	return nil
}

// otherBuild tells whether a case is recorded with another build of nginx than the reference's: there it may
// differ or not.
func (j *judge) otherBuild(ctx context.Context, c *casefile.Case) (bool, error) {
	build := c.Get("build")
	if build == "" {
		return false, nil
	}
	if err := j.open(ctx); err != nil {
		return false, err
	}
	return !strings.HasPrefix(j.ref.Info().SHA256, build), nil
}

func (j *judge) open(ctx context.Context) (err error) {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("not run: %w", err)
	}
	if j.ref == nil {
		if j.ref, err = engine.Open(ctx, j.pair.Reference); err != nil {
			return err
		}
	}
	if j.cand == nil && !j.alone {
		if j.cand, err = engine.Open(ctx, j.pair.Candidate); err != nil {
			return err
		}
	}
	return nil
}

// close ends the cells; a cell that has broken says so once more, which is no news.
func (j *judge) close() error {
	var errs []error
	for _, c := range []*engine.Cell{&j.ref, &j.cand} {
		if *c != nil {
			errs = append(errs, (*c).Close())
			*c = nil
		}
	}
	return errors.Join(errs...)
}
