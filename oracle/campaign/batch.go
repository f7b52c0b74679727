package campaign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"nginxoracle/fuzz/gen"
	"nginxoracle/fuzz/mutate"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/minimize/conftree"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
	"nginxoracle/oracle/triage"
)

// selfEvery is how often a batch is run on the reference a second time: it
// tells what nginx alone would do with the same streams (the ceiling), and
// whether the reference agrees with itself.
const selfEvery = 12

// testEvery is how often a batch is run with -t before the start; the start
// gives the same diagnostics without it.
const testEvery = 4

// make fills batch number n: fresh units, and changed seeds among them.
func (c *Campaign) make(g *gen.Generator, n uint64) *gen.Batch {
	b := g.Batch(c.state.Seed, n)
	if !c.cfg.Feedback {
		return b
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := rand.New(rand.NewPCG(c.state.Seed^0x73656564, n))
	if c.pool.Len() < 20 {
		return b
	}
	share := c.changedShare()
	for i := range b.Units {
		if r.IntN(100) < share {
			s, o := c.pool.Pick(r), c.pool.Pick(r)
			b.Units[i] = mutate.Mutate(c.state.Seed, n*gen.MaxUnits+uint64(i), g, s.Unit, o.Unit)
			b.Units[i].From = s.Signal
		}
	}
	return b
}

var confPlace = regexp.MustCompile(`in /cell/nginx\.conf:(\d+)`)

// notSupported is how a candidate refuses a directive that nginx knows.
var notSupported = regexp.MustCompile(`directive "([^"]+)" is not supported`)

// runBatch runs one batch and deals with what differs.
func (c *Campaign) runBatch(ctx context.Context, rig *cells, g *gen.Generator, n uint64) error {
	var b *gen.Batch
	err := c.stage("generate", func() error { b = c.make(g, n); return nil })
	if err != nil {
		return err
	}
	whole, bad := b, []int(nil)
	err = c.stage("sieve", func() (err error) {
		if b, bad, err = c.sieve(ctx, rig, whole); err != nil {
			b = whole
			return broken(ctx, err)
		}
		b, err = c.sieveRefused(ctx, rig, b)
		return broken(ctx, err)
	})
	if err != nil || ctx.Err() != nil {
		return err
	}
	err = c.stage("wrong", func() error { return c.wrongOnes(ctx, rig, g, n, whole, bad) })
	if err != nil || ctx.Err() != nil {
		return err
	}
	crashers := 0
	for tries := 0; len(b.Units) > 0; tries++ {
		cs := b.Case()
		cs.Name = fmt.Sprintf("batch %d", n)
		ref, cand, err := c.batchPair(ctx, rig, cs, n)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, errBroken) {
			return err
		}
		if err != nil {
			return nil // counted and kept by the rig
		}
		ref, cand = byUnit(cs, ref), byUnit(cs, cand)
		c.count(func(s *State) {
			s.Boots += 2
			s.Timeouts += ref.Timeouts + cand.Timeouts
			s.stages("reference", ref)
			s.stages("candidate", cand)
		})
		if m := notSupported.FindStringSubmatch(diagnostics(cand)); m != nil && notSupported.FindString(diagnostics(ref)) == "" {
			// It may refuse more, which is cheaper to find by trying.
			if b, err = c.sieveRefused(ctx, rig, c.refused(b, m[1])); broken(ctx, err) != nil {
				return err
			}
			continue
		}
		text := diagnostics(ref)
		if ref.Test.Code != 0 || ref.Start.Code != 0 || !ref.Process.Started {
			// The reference does not take one of the units: its diagnosis is compared, and the others go on without it.
			slot, ok := badSlot(cs.File("nginx.conf").Data, text)
			if !ok || tries > 12 {
				c.count(func(s *State) { s.Spoiled++; s.LastSpoiled = lastEmerg(text) })
				_, err := c.compare(ctx, rig, cs, b, ref, cand, n)
				return err
			}
			if r := c.cfg.Compare(ref, cand); r.Verdict == diff.Differ {
				c.keep(&pendingCase{Case: b.Only(slot).Case(), Core: triage.Cores(r)[0], Label: b.Units[slot].Label, From: b.Units[slot].From})
			}
			c.count(func(s *State) { s.Dropped++; s.Cases++ })
			b.Units = slices.Delete(slices.Clone(b.Units), slot, slot+1)
			continue
		}
		if crashers == crashersMost && len(c.crashes(ref, cand)) > 0 {
			// What all units have in common makes it crash: the first few are kept, and what the others show says nothing.
			c.count(func(s *State) {
				s.Spoiled++
				s.LastSpoiled = "a worker crashes at every turn: " + crash(ref) + crash(cand)
			})
			return nil
		}
		if crashers < crashersMost {
			left, ok, err := c.withoutCrasher(ctx, rig, b, ref, cand)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			if ok {
				b = left
				crashers++
				continue
			}
		}
		ex := exchanges(cs)
		c.count(func(s *State) {
			s.Batches++
			s.Cases++
			s.Units += len(b.Units)
			s.Exchanges += ex
		})
		var differ []int
		if err := c.stage("compare", func() (err error) { differ, err = c.compare(ctx, rig, cs, b, ref, cand, n); return err }); err != nil {
			return err
		}
		if err := c.stage("learn", func() error { c.learn(cs, b, ref, cand, n, differ); return nil }); err != nil {
			return err
		}
		if err := c.stage("guide", func() error { return c.guide(ctx, rig, b, ref, cand, n) }); err != nil {
			return err
		}
		if n%selfEvery == 0 {
			return c.selfCheck(ctx, rig, b, cs, ref, n)
		}
		return nil
	}
	return nil
}

// refused remembers what a candidate says that it does not support, and gives the batch without it; without units
// when it is not found. What is said may be a name, or a name and a value ("directio 4m"): then it is the value that is
// refused, unless it is written in another way in the configuration.
func (c *Campaign) refused(b *gen.Batch, what string) *gen.Batch {
	if left, ok := without(b, what); ok {
		c.refuse(what)
		return left
	}
	name, _, _ := strings.Cut(what, " ")
	c.refuse(name)
	if left, ok := without(b, name); ok {
		return left
	}
	n := *b
	n.Units = nil
	return &n
}

// without leaves out the units, and of the head the directives, that use something, see is.
func without(b *gen.Batch, what string) (*gen.Batch, bool) {
	var left []int
	for i, u := range b.Units {
		if !uses(u, what) {
			left = append(left, i)
		}
	}
	n := b.Only(left...)
	drop := func(list []*conftree.Node) []*conftree.Node {
		return slices.DeleteFunc(slices.Clone(list), func(d *conftree.Node) bool { return is(d, what) })
	}
	n.Head.Main, n.Head.HTTP = drop(b.Head.Main), drop(b.Head.HTTP)
	return n, len(left) < len(b.Units) || len(n.Head.Main) < len(b.Head.Main) || len(n.Head.HTTP) < len(b.Head.HTTP)
}

// diagnostics is what a server said of its configuration.
func diagnostics(o *observe.Observation) string { return o.Test.Text + o.Start.Text }

func lastEmerg(text string) string {
	for _, l := range strings.Split(text, "\n") {
		if strings.Contains(l, "[emerg]") {
			return l
		}
	}
	return firstLine(text)
}

func badSlot(conf []byte, text string) (int, bool) {
	for _, m := range confPlace.FindAllStringSubmatch(text, -1) {
		line, err := strconv.Atoi(m[1])
		if err != nil || !strings.Contains(text, "emerg") {
			continue
		}
		if slot, ok := gen.SlotOfLine(conf, line); ok && isEmerg(text, m[0]) {
			return slot, true
		}
	}
	// messages without a place name the unit by its names
	for _, l := range strings.Split(text, "\n") {
		if strings.Contains(l, "[emerg]") {
			if slots := slotsIn([]byte(l)); len(slots) == 1 {
				return slots[0], true
			}
		}
	}
	return 0, false
}

// isEmerg tells whether the line with that place is an [emerg].
func isEmerg(text, place string) bool {
	for _, l := range strings.Split(text, "\n") {
		if strings.HasSuffix(strings.TrimSpace(l), place) {
			return strings.Contains(l, "[emerg]")
		}
	}
	return false
}

// compare compares a batch's observations and keeps what differs, by unit. What differs while the
// machine held it up is played again first.
func (c *Campaign) compare(ctx context.Context, rig *cells, cs *casefile.Case, b *gen.Batch, ref, cand *observe.Observation, n uint64) (differ []int, err error) {
	r := c.cfg.Compare(ref, cand)
	c.mask(r)
	switch r.Verdict {
	case diff.Agree:
		return nil, nil
	case diff.Refused:
		c.count(func(s *State) { s.Refused++ })
		return nil, nil
	case diff.Differ:
	default:
		c.rigFailed(cs, fmt.Errorf("compare batch %d: %s", n, r.Why))
		return nil, nil
	}
	c.count(func(s *State) { s.Differed++ })
	if ref.Process.Started != cand.Process.Started {
		// Every unit differs then, for one reason: which units it takes is looked for, once.
		loads := slices.DeleteFunc(slices.Clone(r.Mismatches), func(m diff.Mismatch) bool { return m.Kind != diff.KindLoad })
		c.keepBatch(cs, b, loads, n)
		return nil, nil
	}
	slots, of, loose := bySlot(r.Mismatches, len(b.Units))
	late := lateSlots(cs, ref, cand)
	var held []int
	for _, s := range slots {
		if late[s] {
			held = append(held, s)
			continue
		}
		c.keepUnit(b, s, of[s], false)
	}
	if len(held) > 0 {
		if err := c.calmly(ctx, rig, b, held, of, n); err != nil {
			return slots, err
		}
	}
	if len(slots) == 0 && len(loose) > 0 {
		c.keepBatch(cs, b, loose, n)
	}
	return slots, nil
}

// keepBatch saves a batch that differed in what belongs to no unit.
func (c *Campaign) keepBatch(cs *casefile.Case, b *gen.Batch, ms []diff.Mismatch, n uint64) {
	c.keep(&pendingCase{Case: cs, Core: triage.Cores(diff.Result{Mismatches: ms})[0], Label: fmt.Sprintf("%d/%d", c.state.Seed, n),
		crowd: &crowd{b: b, slot: nobody, shared: inCache(b, ms), seen: excerpts(ms)}})
}

// keepUnit saves the unit of a batch that differed.
func (c *Campaign) keepUnit(b *gen.Batch, slot int, ms []diff.Mismatch, late bool) {
	u := b.Units[slot]
	c.keep(&pendingCase{Case: b.Only(slot).Case(), Core: triage.Cores(diff.Result{Mismatches: ms})[0], Label: u.Label, From: u.From,
		crowd: &crowd{b: b, slot: slot, late: late, shared: ofServer(b, slot, ms), seen: excerpts(ms)}})
}

var clientNumber = regexp.MustCompile(`client (\d+)`)

// slotOf tells which unit a mismatch belongs to.
func slotOf(m diff.Mismatch) (int, bool) {
	if slot, ok := placeSlot(m.Where); ok {
		return slot, true
	}
	for _, v := range [][]byte{firstDifference(m.Ref, m.Cand), firstDifference(m.Cand, m.Ref)} {
		if s := slotsIn(v); len(s) == 1 {
			return s[0], true
		}
	}
	return 0, false
}

// placeSlot tells which unit a mismatch's place names.
func placeSlot(where string) (int, bool) {
	if g := clientNumber.FindStringSubmatch(where); g != nil {
		n, err := strconv.Atoi(g[1])
		if err == nil && n > 0 {
			return (n - 1) / 100, true
		}
	}
	if s := slotsIn([]byte(where)); len(s) == 1 {
		return s[0], true
	}
	return 0, false
}

// firstDifference is the line of a where a first differs from b.
func firstDifference(a, b []byte) []byte {
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range x {
		if i >= len(y) || triage.Shape(x[i]) != triage.Shape(y[i]) {
			return []byte(x[i])
		}
	}
	return nil
}

// slotsIn lists the slots whose ports (20SSk) or names (uSS, uSS_x) stand in a text, ports first.
// It is asked of every line of every log, and looks by hand.
func slotsIn(text []byte) (out []int) {
	out = scanSlots(text, '2', func(at int) (int, bool) {
		if at+5 > len(text) || text[at+1] != '0' || !isDigit(text[at+4]) || at+5 < len(text) && isWord(text[at+5]) || isProcess(text, at, at+5) {
			return 0, false
		}
		return two(text[at+2:])
	}, out)
	return namesIn(text, out)
}

// isProcess tells whether a number of a log's entry is that of a process, a thread or a connection (20129#20135: *20077,
// process 20129 exited), which a server that has been started some hundred times has in the range of ports.
func isProcess(text []byte, begin, end int) bool {
	if end < len(text) && text[end] == '#' {
		return true
	}
	before := text[:begin]
	return bytes.HasSuffix(before, []byte("#")) || bytes.HasSuffix(before, []byte(": *")) || bytes.HasSuffix(before, []byte("process ")) || bytes.HasSuffix(before, []byte("pid "))
}

// namesIn adds the slots whose names stand in a text to out.
func namesIn(text []byte, out []int) []int {
	return scanSlots(text, 'u', func(at int) (int, bool) {
		if at+3 > len(text) || at+3 < len(text) && text[at+3] != '_' && isWord(text[at+3]) {
			return 0, false
		}
		return two(text[at+1:])
	}, out)
}

// scanSlots calls slot at every word that begins with first, and adds what it finds.
func scanSlots(text []byte, first byte, slot func(at int) (int, bool), out []int) []int {
	for at := 0; at < len(text); at++ {
		i := bytes.IndexByte(text[at:], first)
		if i < 0 {
			break
		}
		at += i
		if at > 0 && isWord(text[at-1]) {
			continue
		}
		if n, ok := slot(at); ok && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func two(b []byte) (int, bool) {
	if !isDigit(b[0]) || !isDigit(b[1]) {
		return 0, false
	}
	return int(b[0]-'0')*10 + int(b[1]-'0'), true
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// isWord tells the bytes of a regular expression's \w, between which there is no \b.
func isWord(b byte) bool {
	return isDigit(b) || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_'
}

// exchanges counts what a case asks for: every wait for a response, or for all that comes.
func exchanges(cs *casefile.Case) (n int) {
	for _, s := range cs.Sections {
		got := 0
		for _, st := range s.Steps {
			if st.Op == casefile.Recv && (st.What == casefile.Response || st.What == casefile.Head) {
				got++
			}
		}
		if got == 0 {
			got = 1 // a connection that reads to its end, or is cut
		}
		n += got
	}
	return n
}

// selfCheck runs the batch once more on the reference alone. A unit in which it differs from
// itself is run by itself: what agrees there differs in company only.
func (c *Campaign) selfCheck(ctx context.Context, rig *cells, b *gen.Batch, cs *casefile.Case, ref *observe.Observation, n uint64) error {
	again, err := rig.alone(ctx, cs, lanes(cs, run.Options{Test: n%testEvery == 0}))
	if err != nil {
		return broken(ctx, err)
	}
	c.count(func(s *State) {
		s.Boots++
		s.AloneExchanges += exchanges(cs)
		s.AloneTook += again.Took
		s.SelfChecks++
	})
	r := c.cfg.Compare(ref, byUnit(cs, again))
	if r.Verdict != diff.Differ {
		return nil
	}
	slots, of, loose := bySlot(r.Mismatches, len(b.Units))
	late := lateSlots(cs, ref, again)
	for _, slot := range slots {
		if late[slot] { // what it shows says nothing
			continue
		}
		core := triage.Cores(diff.Result{Mismatches: of[slot]})[0]
		unit := b.Only(slot).Case()
		one, err := rig.alone(ctx, unit, run.Options{})
		if err != nil {
			return broken(ctx, err)
		}
		two, err := rig.alone(ctx, unit, run.Options{})
		if err != nil {
			return broken(ctx, err)
		}
		if r := c.cfg.Compare(one, two); r.Verdict == diff.Differ {
			c.unstable(unit, fmt.Sprintf("the reference differs from itself: %s at %s", triage.Cores(r)[0], r.Mismatches[0].Where), excerpts(r.Mismatches)...)
			continue
		}
		if timed(unit)(0) || ofServer(b, slot, of[slot]) {
			c.count(func(s *State) { s.Late++ }) // as in inCompany
			continue
		}
		if err := c.inCompanyOnly(b.Case(), core+": unit "+fmt.Sprintf("%02d", slot)+": the reference differs from itself in company, agrees alone", excerpts(of[slot])); err != nil {
			return err
		}
	}
	if len(slots) == 0 && len(loose) > 0 && !inCache(b, loose) {
		c.unstable(cs, fmt.Sprintf("the reference differs from itself: %s at %s", triage.Cores(r)[0], loose[0].Where), excerpts(loose)...)
	}
	return nil
}

// broken passes on only the error that no further run can get over; the others are counted by the rig.
func broken(ctx context.Context, err error) error {
	if ctx.Err() == nil && errors.Is(err, errBroken) {
		return err
	}
	return nil
}
