package campaign

import (
	"context"
	"fmt"
	"slices"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
)

// A server, or a worker, that crashes takes the exchanges of a whole batch with it, and each of its units then differs.
// Only the one that makes it crash says something: it is looked for, kept by itself, and the others are
// played again without it.

// crashersMost is how many such units are looked for in one batch: of a server that crashes at every turn the first few
// say it all, and each costs as many runs as there are halvings.
const crashersMost = 3

// crash is how a server or a worker of it has ended that should not have; empty when none has.
func crash(o *observe.Observation) string {
	p := &o.Process
	if p.Started && (p.Exit.Code != 0 || p.Exit.Signal != 0) {
		return fmt.Sprintf("exit %d, signal %d %s", p.Exit.Code, p.Exit.Signal, p.Worker)
	}
	return p.Worker
}

// crashes are the mismatches of processes that crashed on one side and not on the other in the same way.
func (c *Campaign) crashes(ref, cand *observe.Observation) []diff.Mismatch {
	if crash(ref) == crash(cand) {
		return nil
	}
	r := c.cfg.Compare(ref, cand)
	return slices.DeleteFunc(slices.Clone(r.Mismatches), func(m diff.Mismatch) bool { return m.Where != diff.Workers && m.Where != diff.Exit })
}

// crasher looks for the unit of b that makes a process crash, halves first; -1 when none does so by itself.
func (c *Campaign) crasher(ctx context.Context, rig *cells, b *gen.Batch) (slot int, err error) {
	slots := make([]int, len(b.Units))
	for i := range slots {
		slots[i] = i
	}
	for len(slots) > 1 {
		half := slots[:len(slots)/2]
		there, err := c.crashesWith(ctx, rig, b.Only(half...))
		if err != nil {
			return -1, err
		}
		if there {
			slots = half
		} else {
			slots = slots[len(half):]
		}
	}
	there, err := c.crashesWith(ctx, rig, b.Only(slots...))
	if err != nil || !there {
		return -1, err
	}
	return slots[0], nil
}

func (c *Campaign) crashesWith(ctx context.Context, rig *cells, b *gen.Batch) (bool, error) {
	cs := b.Case()
	cs.Name = fmt.Sprintf("%d units that may crash a worker", len(b.Units))
	ref, cand, err := rig.pair(ctx, cs, lanes(cs, run.Options{}))
	if err != nil {
		return false, err
	}
	c.count(func(s *State) { s.Boots += 2 })
	return crash(ref) != crash(cand), nil
}

// withoutCrasher keeps the unit that makes a worker crash, and gives the batch without it; ok is false when
// nothing crashed, or no unit makes it crash by itself.
func (c *Campaign) withoutCrasher(ctx context.Context, rig *cells, b *gen.Batch, ref, cand *observe.Observation) (left *gen.Batch, ok bool, err error) {
	ms := c.crashes(ref, cand)
	if len(ms) == 0 || len(b.Units) == 1 {
		return b, false, nil
	}
	slot := -1
	err = c.stage("crash", func() (err error) { slot, err = c.crasher(ctx, rig, b); return err })
	if err != nil || slot < 0 {
		return b, false, broken(ctx, err)
	}
	c.keepUnit(b, slot, ms, false)
	c.count(func(s *State) { s.Crashers++; s.Cases++; s.Units++; s.Exchanges += exchanges(b.Only(slot).Case()) })
	n := *b
	n.Units = slices.Delete(slices.Clone(b.Units), slot, slot+1)
	return &n, true, nil
}
