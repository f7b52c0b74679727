// Package triage turns a mismatch into a finding or says why it is none: it
// runs the case again on both sides, compares the reference with itself,
// shrinks the case while its signature stays, and names it.
package triage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/minimize"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
)

// The flake policy.
//
// reRuns is how often a mismatch is run again on both sides. With the run that
// found it there are reRuns+1 = 4 observations of the reference, compared with
// each other. A reference that answers in a second way in a share p of its runs
// is taken for stable with (1-p)^4 + p^4: 0.66 for p = 0.1, 0.13 for p = 0.5.
// What slips through is caught when the shrunk case is run again: settleRuns
// further runs, which leaves (1-p)^7 + p^7: 0.48 and 0.02.
//
// mustRecur is how many of the re-runs must show the mismatch. 1 of 3: a
// candidate that is wrong in one run of three (while the reference is stable)
// is missed with (2/3)^3 = 0.30, and its file says "flaky"; asking for 3 of 3
// would miss it with 0.96.
const (
	reRuns     = 3
	settleRuns = 3
	mustRecur  = 1
)

// Rig runs a case. An error means that there is no verdict.
type Rig interface {
	// Pair runs a case on the reference and on the candidate.
	Pair(ctx context.Context, c *casefile.Case) (ref, cand *observe.Observation, err error)
	// Compare compares two observations.
	Compare(ref, cand *observe.Observation) diff.Result
}

// Screener is a Rig that can play many variations of a case side by side.
type Screener interface {
	// Screen tells which variations of best show a difference; nil: it cannot tell, see minimize.Screen. An error is
	// the rig's.
	Screen(ctx context.Context, core string, best *casefile.Case, list []*casefile.Case) ([]minimize.Hint, error)
}

// Quick is a Rig that can run a case with fewer waits than a verdict wants: what is looked for shows there, too,
// or it does not.
type Quick interface {
	PairQuick(ctx context.Context, c *casefile.Case) (ref, cand *observe.Observation, err error)
}

// Outcome is what triage made of a mismatch.
type Outcome int

const (
	NoOutcome   Outcome = iota
	Found               // a finding: it recurs, and the reference is stable
	Unstable            // the reference differs from itself
	Gone                // it did not come again
	Rigged              // the rig broke
	Interrupted         // the context ended: Case is the smallest so far, not run again
	Wrong               // the case asks for what cannot be (see run.Undone)
)

func (o Outcome) String() string {
	return [...]string{"none", "found", "unstable", "gone", "rig failed", "interrupted", "wrong"}[o]
}

// Report is the result of triage.
type Report struct {
	Outcome   Outcome
	Why       string
	Signature Signature
	Case      *casefile.Case // shrunk; the original when nothing could go
	Result    diff.Result    // of the shrunk case's last run
	Recurred  int            // in how many of the settling runs the mismatch came
	Flaky     bool
	Shrink    minimize.Stats
	Runs      int // boots of both targets
	Took      time.Duration
}

// Options of triage.
type Options struct {
	Budget minimize.Budget
	Saved  func(c *casefile.Case, runs int) // see minimize.Options; runs is how often both targets were booted until then
	Known  func(Signature) bool             // true ends triage before shrinking (a signature of the unshrunk case)
}

// Check runs a case n times on both sides. It answers the results, or the
// reason why the reference cannot be trusted with it; then the last result is that of the
// reference against itself.
func Check(ctx context.Context, rig Rig, c *casefile.Case, n int) (results []diff.Result, unstable string, err error) {
	var refs []*observe.Observation
	for range n {
		ref, cand, err := rig.Pair(ctx, c)
		if err == nil {
			err = run.Undone(c, ref)
		}
		if err != nil {
			return results, "", err
		}
		for i, old := range refs {
			if r := rig.Compare(old, ref); r.Verdict == diff.Differ {
				return append(results, r), fmt.Sprintf("the reference differs from itself (runs %d and %d): %s", i+1, len(refs)+1, Cores(r)[0]), nil
			} else if r.Verdict == diff.RigFailed {
				return results, "", errors.New(r.Why)
			}
		}
		refs = append(refs, ref)
		r := rig.Compare(ref, cand)
		if r.Verdict == diff.RigFailed || r.Verdict == diff.NoVerdict {
			return results, "", fmt.Errorf("compare: %s", r.Why)
		}
		results = append(results, r)
	}
	return results, "", nil
}

// counting counts a rig's runs.
type counting struct {
	Rig
	runs int
}

func (r *counting) Pair(ctx context.Context, c *casefile.Case) (ref, cand *observe.Observation, err error) {
	r.runs++
	return r.Rig.Pair(ctx, c)
}

// quickly is PairQuick where there is one.
func (r *counting) quickly(ctx context.Context, c *casefile.Case) (ref, cand *observe.Observation, err error) {
	if q, ok := r.Rig.(Quick); ok {
		r.runs++
		return q.PairQuick(ctx, c)
	}
	return r.Pair(ctx, c)
}

// Triage makes a finding out of a case that differed.
func Triage(ctx context.Context, rig Rig, c *casefile.Case, o Options) Report {
	start := time.Now()
	counted := &counting{Rig: rig}
	rig = counted
	rep := Report{Case: c}
	done := func(out Outcome, why string) Report {
		rep.Outcome, rep.Why, rep.Runs, rep.Took = out, why, counted.runs, time.Since(start)
		return rep
	}
	broke := func(err error) Report {
		if ctx.Err() != nil {
			return done(Interrupted, ctx.Err().Error())
		}
		if e := (*casefile.Error)(nil); errors.As(err, &e) {
			return done(Wrong, err.Error())
		}
		return done(Rigged, err.Error())
	}
	results, unstable, err := Check(ctx, rig, c, reRuns)
	if err != nil {
		return broke(err)
	}
	if unstable != "" {
		rep.Result = results[len(results)-1]
		return done(Unstable, unstable)
	}
	recurred := 0
	for _, r := range results {
		if r.Verdict == diff.Differ {
			recurred++
			rep.Result = r
		}
	}
	if recurred < mustRecur {
		return done(Gone, fmt.Sprintf("came in none of %d runs", reRuns))
	}
	core := Cores(rep.Result)[0]
	rep.Flaky = recurred < reRuns
	rep.Signature = SignatureOf(c, rep.Result)
	if o.Known != nil && o.Known(rep.Signature) {
		return done(Found, "known before shrinking")
	}
	play := counted.Pair
	try := func(ctx context.Context, c *casefile.Case) (bool, error) {
		ref, cand, err := play(ctx, c)
		if err != nil {
			return false, err
		}
		if run.Undone(c, ref) != nil {
			return false, nil // shrunk too far: a step's file has gone
		}
		r := rig.Compare(ref, cand)
		if r.Verdict == diff.RigFailed {
			return false, errors.New(r.Why)
		}
		return r.Verdict == diff.Differ && slices.Contains(Cores(r), core), nil
	}
	play = counted.quickly
	if quick, err := try(ctx, c); !quick || err != nil {
		play = counted.Pair
	}
	var saved func(*casefile.Case)
	if o.Saved != nil {
		saved = func(c *casefile.Case) { o.Saved(c, counted.runs) }
	}
	var screen minimize.Screen
	if s, ok := counted.Rig.(Screener); ok {
		screen = func(ctx context.Context, best *casefile.Case, list []*casefile.Case) []minimize.Hint {
			counted.runs++
			hints, err := s.Screen(ctx, core, best, list)
			if err != nil {
				return nil // what is tried alone then tells whether the rig is broken
			}
			return hints
		}
	}
	var small *casefile.Case
	small, rep.Shrink, err = minimize.Shrink(ctx, c, try, minimize.Options{Budget: o.Budget, Saved: saved, Screen: screen})
	if err != nil && ctx.Err() == nil {
		rep.Shrink.Why = err.Error() // what was reached so far still counts
	}
	if ctx.Err() != nil {
		rep.Case = small
		return broke(ctx.Err())
	}
	results, unstable, err = Check(ctx, rig, small, settleRuns)
	switch {
	case err != nil:
		rep.Case = small
		return broke(err)
	case unstable != "":
		// shrinking walked into a case that wavers: the original stands
		rep.Why = "shrunk case dropped: " + unstable
		small = c
	default:
		for _, r := range results {
			if r.Verdict == diff.Differ && slices.Contains(Cores(r), core) {
				rep.Recurred++
				rep.Result = r
			}
		}
		if rep.Recurred == 0 {
			rep.Why = "shrunk case dropped: it does not show the mismatch again"
			small = c
		}
		rep.Flaky = rep.Flaky || rep.Recurred > 0 && rep.Recurred < settleRuns
	}
	rep.Case = small
	rep.Signature = Signature{Core: core, Directives: minimize.Directives(small)}
	return done(Found, rep.Why)
}
