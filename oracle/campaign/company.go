package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
	"nginxoracle/oracle/triage"
)

// crowd is the batch in which a unit differed.
type crowd struct {
	b    *gen.Batch
	slot int      // nobody: what differed belongs to no unit
	late bool     // the machine held the unit up, and it has a short timer
	seen []string // what differed
}

// inCompany deals with what differed in a batch and is no unit's own: the unit agrees alone, or there is
// none. It is no wavering of the reference: what others of the batch did, or a machine that stood still, has
// a part in it. The batch is run again, side by side as it was: what differs there again, while the
// reference agrees with itself, is the candidate's or the rig's. As many units as can go are taken out, and the
// company that is left is triaged like any other case.
func (c *Campaign) inCompany(ctx context.Context, rig *cells, p *pendingCase) (fate string, err error) {
	if p.crowd.late {
		c.count(func(s *State) { c.cores[p.Core]-- })
		return "agrees alone: the machine held its batch up", nil
	}
	h := &company{c: c, rig: rig, core: p.Core, left: bisectRuns}
	again, err := h.again(ctx, p.crowd.b, p.crowd.slot)
	if err != nil || ctx.Err() != nil {
		return "", broken(ctx, err)
	}
	if !again {
		c.count(func(s *State) { c.cores[p.Core]-- })
		why := "differs in company, agrees alone; did not come again in the same company"
		return why, c.inCompanyOnly(p.crowd.b.Case(), p.Core+": "+why, p.crowd.seen)
	}
	b, err := h.smallest(ctx, p.crowd.b, p.crowd.slot)
	if err != nil || ctx.Err() != nil {
		return "", broken(ctx, err)
	}
	q := *p
	q.Case = b.Case()
	q.Case.Meta = append(q.Case.Meta, casefile.Field{Key: lanesKey, Value: lanesUnits})
	rep := c.bounded(ctx, rig, &q, q.Case)
	if ctx.Err() != nil {
		return "", nil
	}
	if rep.Outcome == triage.Found && (!rep.Flaky || rep.Shrink.Done) {
		return c.settle(&q, rep)
	}
	why := "differs in company again and again, agrees alone"
	c.count(func(s *State) { s.CompanyAgain++ })
	return why, c.inCompanyOnly(q.Case, p.Core+": "+why, append(q.differed(rep), rep.Outcome.String()+": "+rep.Why))
}

// inCompanyOnly counts and keeps a company whose difference is no finding.
func (c *Campaign) inCompanyOnly(cs *casefile.Case, why string, seen []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.state
	s.Company++
	s.LastCompany = why
	if s.Company > 100 { // enough to look at
		return nil
	}
	n := cs.Clone()
	n.Prose = append(append(n.Prose, why), seen...)
	if !together(n) {
		n.Meta = append(n.Meta, casefile.Field{Key: lanesKey, Value: lanesUnits})
	}
	return catalog.WriteFile(c.path("company", fmt.Sprintf("%04d.txtar", s.Company)), n.Print())
}

// companyRuns is how often a batch must differ again before it counts. A crowd in which a unit
// differs by chance in every fifth run does so twice in a row in 1 of 25.
const companyRuns = 2

// bisectRuns bounds the runs of both sides in which a company is made smaller. One other unit
// of 99 is found in about 14, since halves that can go go first; each takes at most as long as its batch.
const bisectRuns = 40

// company looks for the units that a difference needs.
type company struct {
	c    *Campaign
	rig  *cells
	core string
	left int
}

// again tells whether the difference comes in every one of some more runs, in which the
// reference agrees with itself.
func (h *company) again(ctx context.Context, b *gen.Batch, slot int) (bool, error) {
	var first *observe.Observation
	for range companyRuns {
		shows, ref, err := h.shows(ctx, b, slot)
		if err != nil || !shows {
			return false, err
		}
		if first != nil && len(h.coresIn(slot, first, ref)) > 0 {
			return false, nil
		}
		first = ref
	}
	return true, nil
}

// shows runs a batch, and tells whether the difference is there.
func (h *company) shows(ctx context.Context, b *gen.Batch, slot int) (bool, *observe.Observation, error) {
	cs := b.Case()
	cs.Name = fmt.Sprintf("company of %d units", len(b.Units))
	ref, cand, err := h.rig.pair(ctx, cs, lanes(cs, run.Options{Calm: true}))
	if errors.Is(err, errBroken) {
		return false, nil, err
	}
	if err != nil {
		return false, nil, nil // counted by the rig
	}
	ref, cand = byUnit(ref), byUnit(cand)
	return slices.Contains(h.coresIn(slot, ref, cand), h.core), ref, nil
}

// smallest takes out as many units beside slot's as can go, halves first.
func (h *company) smallest(ctx context.Context, b *gen.Batch, slot int) (*gen.Batch, error) {
	var others []int
	for i := range b.Units {
		if i != slot {
			others = append(others, i)
		}
	}
	with := func(others []int) (*gen.Batch, int) {
		if slot == nobody {
			return b.Only(others...), nobody
		}
		return b.Only(append([]int{slot}, others...)...), 0
	}
	for size := len(others); size > 0; size /= 2 {
		for at := 0; at < len(others) && h.left > 0 && ctx.Err() == nil; h.left-- {
			rest := slices.Delete(slices.Clone(others), at, min(at+size, len(others)))
			n, s := with(rest)
			if len(n.Units) == 0 {
				break
			}
			shows, _, err := h.shows(ctx, n, s)
			if err != nil {
				return nil, err
			}
			if shows {
				others = rest
			} else {
				at += size
			}
		}
	}
	n, _ := with(others)
	return n, nil
}

// coresIn lists what two observations of a batch differ in at one slot, or at none.
func (h *company) coresIn(slot int, a, b *observe.Observation) []string {
	var own []diff.Mismatch
	for _, m := range h.c.cfg.Compare(a, b).Mismatches {
		n, ok := slotOf(m)
		if ok && n == slot || !ok && slot == nobody {
			own = append(own, m)
		}
	}
	return triage.Cores(diff.Result{Mismatches: own})
}

// bySlot sorts mismatches by the unit that they belong to; loose are those of none.
func bySlot(ms []diff.Mismatch, units int) (slots []int, of map[int][]diff.Mismatch, loose []diff.Mismatch) {
	of = map[int][]diff.Mismatch{}
	for _, m := range ms {
		if slot, ok := slotOf(m); ok && slot < units {
			of[slot] = append(of[slot], m)
		} else {
			loose = append(loose, m)
		}
	}
	for s := range of {
		slots = append(slots, s)
	}
	sort.Ints(slots)
	return slots, of, loose
}
