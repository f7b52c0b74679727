package campaign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/minimize/conftree"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
	"nginxoracle/oracle/triage"
)

// crowd is the batch in which a unit differed.
type crowd struct {
	b      *gen.Batch
	slot   int      // nobody: what differed belongs to no unit
	late   bool     // the machine held the unit up, and it has a short timer
	shared bool     // it differed in nothing but what all units of the server have a part in
	seen   []string // what differed
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
	switch again {
	case notAgain:
		c.count(func(s *State) { c.cores[p.Core]-- })
		if p.crowd.shared {
			// How many connections there were at that moment, or what was asked for last, is the crowd's.
			c.count(func(s *State) { s.Late++ })
			return "agrees alone and when its batch is played again: what differed is the whole server's", nil
		}
		if p.crowd.slot != nobody && timed(p.Case)(0) {
			// In a crowd its steps come some milliseconds sooner or later; by itself and in two more crowds it agreed.
			c.count(func(s *State) { s.Late++ })
			return "agrees alone and when its batch is played again: it has short timers", nil
		}
		why := "differs in company, agrees alone; did not come again in the same company"
		return why, c.inCompanyOnly(p.crowd.b.Case(), p.Core+": "+why, p.crowd.seen)
	case elsewhere: // there is no one difference to keep while units are taken out
		why := "the batch differs again and again, each time elsewhere; the unit agrees alone"
		c.count(func(s *State) { s.CompanyAgain++ })
		return why, c.inCompanyOnly(p.crowd.b.Case(), p.Core+": "+why, append(slices.Clone(p.crowd.seen), h.seen...))
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
	if p.crowd.shared && rep.Outcome == triage.Unstable { // the reference does not agree with itself in that company
		c.count(func(s *State) { c.cores[p.Core]--; s.Late++ })
		return "agrees alone, and the reference wavers in its company: what differed is the whole server's", nil
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

// ofLoading begins the name of a difference that nginx -t may show, and nothing else.
const ofLoading = string(diff.KindLoad) + ":"

// companyRuns is how often a batch must differ again before it counts. A crowd in which a unit
// differs by chance in every fifth run does so twice in a row in 1 of 25. A fault that gives one
// connection's bytes to another shows each time in other units: that anything at all differs in both runs
// is asked of batches only in which the reference gave the same twice, and of units that no timer has met.
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
	seen []string // what differed in the last run elsewhere
}

// repeat is what came of playing a batch again.
type repeat int

const (
	notAgain  repeat = iota
	sameAgain        // the same difference at the same unit, every time
	elsewhere        // a difference every time, though not the same
)

// again tells whether the difference comes in every one of some more runs, in which the
// reference agrees with itself, or another one does.
func (h *company) again(ctx context.Context, b *gen.Batch, slot int) (repeat, error) {
	same, other := true, true
	var first *observe.Observation
	for range companyRuns {
		cs, ref, cand, err := h.play(ctx, b)
		if err != nil || ref == nil {
			return notAgain, err
		}
		r := h.c.cfg.Compare(ref, cand)
		same = same && slices.Contains(coresAt(slot, r), h.core)
		said := saying(b, cs, r, ref, cand)
		other, h.seen = other && len(said) > 0, excerpts(said)
		if first != nil {
			self := h.c.cfg.Compare(first, ref)
			same = same && len(coresAt(slot, self)) == 0
			other = other && self.Verdict == diff.Agree
		}
		if !same && !other {
			return notAgain, nil
		}
		first = ref
	}
	if same {
		return sameAgain, nil
	}
	return elsewhere, nil
}

// saying are the mismatches of a run that say something of the candidate: not those of units that the
// machine held up (nor what belongs to none, when there are such), nor of those that show what stub_status counts, nor pages that another unit recoded.
func saying(b *gen.Batch, cs *casefile.Case, r diff.Result, ref, cand *observe.Observation) (out []diff.Mismatch) {
	late := lateSlots(cs, ref, cand)
	held := slices.Contains(slices.Collect(maps.Values(late)), true)
	counts := map[int]bool{} // units that have asked for them
	for _, o := range []*observe.Observation{ref, cand} {
		for _, cl := range o.Clients {
			counts[(cl.ID-1)/100] = counts[(cl.ID-1)/100] || bytes.Contains(cl.Recv, []byte("\nActive connections: ")) || bytes.HasPrefix(cl.Recv, []byte("Active connections: "))
		}
	}
	for _, m := range r.Mismatches {
		n, ok := slotOf(m)
		if ok && n < len(b.Units) {
			if !late[n] && !counts[n] && !ofServer(b, n, []diff.Mismatch{m}) {
				out = append(out, m)
			}
		} else if !held {
			out = append(out, m)
		}
	}
	return out
}

// statusNumbers is what stub_status shows of the whole server; see ngx_http_stub_status_handler.
var statusNumbers = regexp.MustCompile(`Active connections: (\d+) \nserver accepts handled requests\n (\d+) (\d+) (\d+) \nReading: (\d+) Writing: (\d+) Waiting: (\d+) \n`)

// ofServer tells whether what a unit differed in is the whole server's and not its own: what stub_status counts, pages that
// another unit recodes, or what the server's memory held.
func ofServer(b *gen.Batch, slot int, ms []diff.Mismatch) bool {
	return inCounts(ms) || inPages(b, ms) || inMemory(b, slot)
}

// inMemory tells whether a root or an alias that counts for a unit begins with a variable. Where that is empty, nginx tells from a
// byte that nobody has written yet whether the path is a full one (ngx_http_map_uri_to_path has ngx_get_full_name look at it before
// the URI is there): what memory held last, in a crowd another unit's.
func inMemory(b *gen.Batch, slot int) bool {
	var in func(list []*conftree.Node) bool
	in = func(list []*conftree.Node) bool {
		return slices.ContainsFunc(list, func(n *conftree.Node) bool {
			args := n.Words[min(1, len(n.Words)):]
			named := (n.Name() == "root" || n.Name() == "alias") && len(args) > 0 && strings.HasPrefix(conftree.Value(args[0]), "$")
			return named || in(n.Kids)
		})
	}
	return in(b.Head.HTTP) || slot >= 0 && slot < len(b.Units) && in(b.Units[slot].Body)
}

// inCounts tells whether each of some mismatches begins within a number that stub_status shows.
func inCounts(ms []diff.Mismatch) bool {
	within := func(text []byte, at int) bool {
		for _, m := range statusNumbers.FindAllSubmatchIndex(text, -1) {
			for i := 2; i < len(m); i += 2 {
				if m[i] <= at && at <= m[i+1] { // at its end: the other's is longer
					return true
				}
			}
		}
		return false
	}
	return len(ms) > 0 && !slices.ContainsFunc(ms, func(m diff.Mismatch) bool { return !within(m.Ref, m.At) || !within(m.Cand, m.Pos) })
}

// inPages tells whether each of some mismatches begins within one of nginx's own pages, while a unit of the batch has a charset_map:
// ngx_http_charset_recode writes into the very pages (ngx_http_error_404_page and its like are the server's, not the
// request's), so that what a page says from then on hangs on which unit came first. The proxy's pages are changed in the same way.
func inPages(b *gen.Batch, ms []diff.Mismatch) bool {
	recodes := slices.ContainsFunc(b.Units, func(u *gen.Unit) bool {
		return slices.ContainsFunc(u.Body, func(n *conftree.Node) bool { return n.Name() == "charset_map" })
	})
	within := func(text []byte, at int) bool {
		before := text[max(0, min(at, len(text))-pageMost):min(at, len(text))]
		begin := bytes.LastIndex(before, []byte("<html>\r\n<he"))
		return begin >= 0 && !bytes.Contains(before[begin:], []byte("</html>"))
	}
	return recodes && len(b.Units) > 1 && len(ms) > 0 && !slices.ContainsFunc(ms, func(m diff.Mismatch) bool {
		return m.Kind != diff.KindClient || !within(m.Ref, m.At) || !within(m.Cand, m.Pos)
	})
}

// pageMost is longer than any of nginx's own pages is.
const pageMost = 600

// inCache tells whether nothing differs but how many descriptors a server is left with, while all units share one cache of
// open files (open_file_cache of the head): which files it holds at the end hangs on which unit came last.
func inCache(b *gen.Batch, ms []diff.Mismatch) bool {
	cached := slices.ContainsFunc(b.Head.HTTP, func(n *conftree.Node) bool { return n.Name() == "open_file_cache" })
	return cached && len(b.Units) > 1 && len(ms) > 0 && !slices.ContainsFunc(ms, func(m diff.Mismatch) bool { return m.Kind != diff.KindProcess || m.Where != diff.Descriptors })
}

// play runs a batch on both sides. Without an observation there is no verdict, and the rig has counted it.
func (h *company) play(ctx context.Context, b *gen.Batch) (cs *casefile.Case, ref, cand *observe.Observation, err error) {
	cs = b.Case()
	cs.Name = fmt.Sprintf("company of %d units", len(b.Units))
	ref, cand, err = h.rig.pair(ctx, cs, lanes(cs, run.Options{Calm: true, Test: strings.HasPrefix(h.core, ofLoading)}))
	if errors.Is(err, errBroken) {
		return cs, nil, nil, err
	}
	if err != nil {
		return cs, nil, nil, nil
	}
	return cs, byUnit(cs, ref), byUnit(cs, cand), nil
}

// shows runs a batch, and tells whether the difference is there.
func (h *company) shows(ctx context.Context, b *gen.Batch, slot int) (bool, error) {
	_, ref, cand, err := h.play(ctx, b)
	if err != nil || ref == nil {
		return false, err
	}
	return slices.Contains(coresAt(slot, h.c.cfg.Compare(ref, cand)), h.core), nil
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
			shows, err := h.shows(ctx, n, s)
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

// coresAt lists what two observations of a batch differ in at one slot, or at none.
func coresAt(slot int, r diff.Result) []string {
	var own []diff.Mismatch
	for _, m := range r.Mismatches {
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
