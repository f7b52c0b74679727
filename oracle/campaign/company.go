package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
	"nginxoracle/oracle/triage"
)

// crowd is the batch in which a unit differed.
type crowd struct {
	whole *casefile.Case
	slot  int
	late  bool // the machine stood still while the unit played, and it has a short timer
}

// inCompany deals with a unit that differed in its batch and agrees alone. It is no wavering of
// the reference: what others of the batch did, or a machine that stood still, has a part in
// it. The batch is run again, side by side as it was: what differs there again, while the reference agrees
// with itself, is the candidate's; what does not is counted. fate is empty when ctx has ended.
func (c *Campaign) inCompany(ctx context.Context, rig *cells, p *pendingCase) (fate string, err error) {
	if p.crowd.late {
		c.count(func(s *State) { s.Late++; c.cores[p.Core]-- })
		return "agrees alone: the machine held its batch up", nil
	}
	var first *observe.Observation
	again := 0
	for range companyRuns {
		ref, cand, err := rig.pair(ctx, p.crowd.whole, lanes(p.crowd.whole, run.Options{}))
		if ctx.Err() != nil {
			return "", nil
		}
		if errors.Is(err, errBroken) {
			return "", err
		}
		if err != nil {
			break // counted by the rig
		}
		ref, cand = byUnit(ref), byUnit(cand)
		if !slices.Contains(c.coresIn(p.crowd.slot, ref, cand), p.Core) {
			break
		}
		if first != nil && len(c.coresIn(p.crowd.slot, first, ref)) > 0 {
			break // the reference is not of one mind either
		}
		first = ref
		again++
	}
	why, cs := "differs in company, agrees alone; did not come again in the same company", p.Case
	if again == companyRuns {
		why, cs = fmt.Sprintf("unit %02d differs in company again and again, agrees alone", p.crowd.slot), p.crowd.whole
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.state
	s.Company++
	s.LastCompany = p.Core + ": " + why
	if again == companyRuns {
		s.CompanyAgain++
	} else {
		c.cores[p.Core]--
	}
	if s.Company > 100 && again < companyRuns { // enough to look at
		return why, nil
	}
	n := cs.Clone()
	n.Prose = append(n.Prose, p.Core+": "+why)
	return why, catalog.WriteFile(c.path("company", fmt.Sprintf("%04d.txtar", s.Company)), n.Print())
}

// companyRuns is how often a batch must differ again before it counts. A crowd in which a unit
// differs by chance in every fifth run does so twice in a row in 1 of 25.
const companyRuns = 2

// coresIn lists what two observations of a batch differ in at one slot.
func (c *Campaign) coresIn(slot int, a, b *observe.Observation) []string {
	var own []diff.Mismatch
	for _, m := range c.cfg.Compare(a, b).Mismatches {
		if n, ok := slotOf(m); ok && n == slot {
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
