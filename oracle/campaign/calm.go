package campaign

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
)

// calmRuns is how often units that differed while the machine held them up are played again, in a
// batch of their own: fewer units wait less for each other, and each run is repeated while it is
// held up (see run.Options.Calm).
const calmRuns = 3

// lateSlots are the units of a batch that the machine has held up in one of its observations, and
// that may meet a timer: what such a unit shows says nothing. Where the whole batch took too long, that is any unit
// that has an upstream.
func lateSlots(cs *casefile.Case, seen ...*observe.Observation) map[int]bool {
	late := map[int]bool{}
	isTimed := timed(cs)
	for _, o := range seen {
		if fails := inUnits(cs, upstream.Match); o.Slow && fails != nil {
			for _, c := range o.Clients {
				s := (c.ID - 1) / 100
				late[s] = late[s] || fails(s)
			}
		}
		for _, s := range o.LateLanes {
			late[s] = late[s] || isTimed != nil && isTimed(s)
		}
	}
	return late
}

// upstream is what counts the failures of servers, each for ten seconds by default.
var upstream = regexp.MustCompile(`\bupstream["']?\s`)

// calmly plays units again that differed while the machine held them up. What differs there counts
// like any other difference; what agrees, agrees.
func (c *Campaign) calmly(ctx context.Context, rig *cells, b *gen.Batch, slots []int, of map[int][]diff.Mismatch, n uint64) error {
	c.count(func(s *State) { s.Late += len(slots) })
	for try := 0; try < calmRuns && len(slots) > 0; try++ {
		part := b.Only(slots...)
		cs := part.Case()
		cs.Name = fmt.Sprintf("batch %d, %d units that were held up", n, len(slots))
		ref, cand, err := rig.pair(ctx, cs, lanes(cs, run.Options{Calm: true}))
		if ctx.Err() != nil || errors.Is(err, errBroken) {
			return broken(ctx, err)
		}
		if err != nil {
			break // counted and kept by the rig
		}
		ref, cand = byUnit(cs, ref), byUnit(cs, cand)
		c.count(func(s *State) { s.Boots += 2 })
		r := c.cfg.Compare(ref, cand)
		if r.Verdict != diff.Agree && r.Verdict != diff.Differ {
			c.rigFailed(cs, fmt.Errorf("compare %s: %s", cs.Name, r.Why))
			break
		}
		found, again, _ := bySlot(r.Mismatches, len(part.Units))
		late := lateSlots(cs, ref, cand)
		var left []int
		for _, s := range found {
			if late[s] {
				left = append(left, slots[s])
				continue
			}
			c.keepUnit(part, s, again[s], false)
		}
		slots = left
	}
	// A machine that gives no calm moment: each by itself, as triage runs it.
	for _, s := range slots {
		c.keepUnit(b, s, of[s], true)
	}
	return nil
}
