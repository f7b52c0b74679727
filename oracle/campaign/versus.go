package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
)

// Versus is one campaign twice, at the same time and from the same seed: steered by what it sees, and blind.
type Versus struct {
	Steered, Blind Summary
}

// versusEvery is the period of the instruments when steering is measured: dense enough for the
// counts to mean something in a minute, and the same on both sides.
const versusEvery = 4

// CompareFeedback runs cfg with and without feedback, side by side, in folders of cfg.Dir that must be
// new. Nothing is shrunk or filed: what differs is counted by its core. An error means that one of
// the two gave no verdict.
func CompareFeedback(ctx context.Context, cfg Config) (v Versus, err error) {
	cfg.Measure, cfg.NoTriage, cfg.GuideEvery = true, true, versusEvery
	arms := []struct {
		name     string
		feedback bool
		sum      *Summary
		err      error
	}{{name: "steered", feedback: true, sum: &v.Steered}, {name: "blind", sum: &v.Blind}}
	var all []*Campaign
	for _, a := range arms {
		one := cfg
		one.Feedback, one.Dir, one.Corpus = a.feedback, filepath.Join(cfg.Dir, a.name), filepath.Join(cfg.Dir, a.name+"-corpus")
		c, err := New(one)
		if err != nil {
			return v, err
		}
		if c.state.Next > 0 {
			return v, fmt.Errorf("campaign: %s was used before: give another --dir", one.Dir)
		}
		all = append(all, c)
	}
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() { *arms[i].sum, arms[i].err = c.Run(ctx) })
	}
	wg.Wait()
	return v, errors.Join(arms[0].err, arms[1].err)
}

// Print writes the two side by side.
func (v Versus) Print(w io.Writer) {
	row := func(what string, f func(Summary) int) {
		a, b := f(v.Steered), f(v.Blind)
		ratio := "-"
		if b > 0 {
			ratio = fmt.Sprintf("%.2f", float64(a)/float64(b))
		}
		fmt.Fprintf(w, "%-44s %10d %10d %8s\n", what, a, b, ratio)
	}
	fmt.Fprintf(w, "%-44s %10s %10s %8s\n", fmt.Sprintf("seed %d, %.0f s, one of %d batches looked at", v.Steered.Seed, v.Steered.Took.Seconds(), versusEvery), "feedback", "blind", "ratio")
	row("batches compared", func(s Summary) int { return s.Batches })
	row("server blocks compared", func(s Summary) int { return s.Units })
	row("exchanges compared", func(s Summary) int { return s.Exchanges })
	row("distinct blocks of the candidate's source", func(s Summary) int { return s.Signals[sigCoverage] })
	row("distinct shapes of debug messages", func(s Summary) int { return s.Signals[sigDebug] })
	row("distinct paired behaviours", func(s Summary) int {
		return s.Signals[sigAsymmetry] + s.Signals[sigResponse] + s.Signals[sigUpstream] + s.Signals[sigLog]
	})
	row("of them unlike on the two sides", func(s Summary) int { return s.Signals[sigAsymmetry] })
	row("distinct signatures of mismatches", func(s Summary) int { return len(s.Cores) })
	row("units that differ", func(s Summary) int { return s.Mismatches })
	row("runs without verdict", func(s Summary) int { return s.RigFailed })
	for _, s := range []Summary{v.Steered, v.Blind} {
		if s.Uncovered != "" {
			fmt.Fprintf(w, "no blocks are counted: %s\n", s.Uncovered)
			break
		}
	}
}
