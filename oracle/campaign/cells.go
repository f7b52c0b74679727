package campaign

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
)

// cells is a pair of cells that is opened again when one breaks.
type cells struct {
	cfg       *Config
	note      func(*casefile.Case, error)
	good      func() // what was noted last has a verdict after all
	ref, cand engine.Cell
	covered   engine.Cell // the coverage build, opened when it is first needed
	useCover  bool        // pairs run on it instead of the candidate
	test      bool        // run -t first when triage asks
	runs      atomic.Int64
}

func (p *cells) open(ctx context.Context) error {
	var err error
	if p.ref == nil {
		if p.ref, err = p.cfg.OpenRef(ctx); err != nil {
			p.ref = nil
			return fmt.Errorf("campaign: reference: %w", err)
		}
	}
	if p.cand == nil {
		if p.cand, err = p.cfg.OpenCand(ctx); err != nil {
			p.cand = nil
			return fmt.Errorf("campaign: candidate: %w", err)
		}
	}
	if p.useCover && p.covered == nil {
		if p.covered, err = p.cfg.OpenCover(ctx); err != nil {
			p.covered = nil
			return fmt.Errorf("campaign: coverage build: %w", err)
		}
	}
	return nil
}

func (p *cells) close() {
	// A cell that does not close has broken already; what it ran ends with its namespace.
	if p.ref != nil {
		_ = p.ref.Close()
	}
	if p.cand != nil {
		_ = p.cand.Close()
	}
	if p.covered != nil {
		_ = p.covered.Close()
	}
	p.ref, p.cand, p.covered = nil, nil, nil
}

// again runs f, and once more with fresh cells when the rig broke. What breaks
// twice is given up with the error; the cells are good again after it.
func (p *cells) again(ctx context.Context, c *casefile.Case, f func() error) error {
	p.runs.Add(1)
	err := f()
	if err == nil || ctx.Err() != nil {
		return err
	}
	p.note(c, err)
	p.close()
	if oerr := p.open(ctx); oerr != nil {
		return errors.Join(err, errBroken, oerr)
	}
	if err = f(); err != nil && ctx.Err() == nil {
		p.note(c, err)
		p.close()
		if oerr := p.open(ctx); oerr != nil {
			return errors.Join(err, errBroken, oerr)
		}
	}
	if err == nil {
		p.good()
	}
	return err
}

// errBroken marks a rig that could not be put up again.
var errBroken = errors.New("cells cannot be opened")

// pair runs a case on both sides at once.
func (p *cells) pair(ctx context.Context, c *casefile.Case, opt run.Options) (ref, cand *observe.Observation, err error) {
	return p.pairWith(ctx, c, opt, opt)
}

// pairWith is pair with options for each side; useCover chooses the candidate's build.
func (p *cells) pairWith(ctx context.Context, c *casefile.Case, refOpt, candOpt run.Options) (ref, cand *observe.Observation, err error) {
	if err := p.open(ctx); err != nil {
		return nil, nil, errors.Join(errBroken, err)
	}
	err = p.again(ctx, c, func() error {
		var err error
		ref, cand, err = p.both(ctx, c, refOpt, candOpt)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return ref, cand, nil
}

// both runs a case on both sides once.
func (p *cells) both(ctx context.Context, c *casefile.Case, refOpt, candOpt run.Options) (ref, cand *observe.Observation, err error) {
	candCell := p.cand
	if p.useCover {
		candCell = p.covered
	}
	done := make(chan error, 1)
	go func() {
		var err error
		cand, err = p.cfg.Run(ctx, candCell, c, candOpt)
		done <- err
	}()
	ref, err = p.cfg.Run(ctx, p.ref, c, refOpt)
	if other := <-done; other != nil {
		err = errors.Join(err, other)
	}
	return ref, cand, err
}

// cover runs a case on the candidate's coverage build alone.
func (p *cells) cover(ctx context.Context, c *casefile.Case) (o *observe.Observation, err error) {
	p.useCover = true
	defer func() { p.useCover = false }()
	if err := p.open(ctx); err != nil {
		return nil, errors.Join(errBroken, err)
	}
	err = p.again(ctx, c, func() error {
		var err error
		o, err = p.cfg.Run(ctx, p.covered, c, lanes(c, run.Options{Aside: true}))
		return err
	})
	return o, err
}

// alone runs a case on the reference alone.
func (p *cells) alone(ctx context.Context, c *casefile.Case, opt run.Options) (ref *observe.Observation, err error) {
	err = p.again(ctx, c, func() error {
		var err error
		ref, err = p.cfg.Run(ctx, p.ref, c, opt)
		return err
	})
	return ref, err
}

// Pair and Compare make a pair of cells a triage.Rig.
func (p *cells) Pair(ctx context.Context, c *casefile.Case) (ref, cand *observe.Observation, err error) {
	ref, cand, err = p.pair(ctx, c, Played(c, run.Options{Test: p.test, Aged: true}))
	if err != nil {
		return nil, nil, err
	}
	return Seen(c, ref), Seen(c, cand), nil
}

// PairQuick makes a pair of cells a triage.Quick: nothing is waited for that is there to make a verdict certain.
func (p *cells) PairQuick(ctx context.Context, c *casefile.Case) (ref, cand *observe.Observation, err error) {
	ref, cand, err = p.pair(ctx, c, Played(c, run.Options{Test: p.test}))
	if err != nil {
		return nil, nil, err
	}
	return Seen(c, ref), Seen(c, cand), nil
}

func (p *cells) Compare(ref, cand *observe.Observation) diff.Result { return p.cfg.Compare(ref, cand) }
