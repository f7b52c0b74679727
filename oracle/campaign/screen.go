package campaign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/minimize"
	"nginxoracle/oracle/minimize/conftree"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
	"nginxoracle/oracle/triage"
)

// While a generated case is shrunk, its variations are played side by side as the units of a batch: one
// boot of both targets tells of a hundred. The case itself is unit 0 and must show its difference there.

// Screener is a pair of cells in which variations are played side by side.
type Screener struct {
	Ref, Cand engine.Cell
	Pair      func(ctx context.Context, c *casefile.Case, opt run.Options) (ref, cand *observe.Observation, err error)
	Compare   func(ref, cand *observe.Observation) diff.Result
}

// Screen tells which variations of a case show a difference, see minimize.Screen.
func (s *Screener) Screen(ctx context.Context, core string, best *casefile.Case, list []*casefile.Case) ([]minimize.Hint, error) {
	if !screens(core) {
		return nil, nil
	}
	head, unit, ok := apart(best)
	if !ok {
		return nil, nil
	}
	b := &gen.Batch{Head: head, Units: []*gen.Unit{unit}}
	shared, conf := headText(head), conftree.Print(unit.Body)
	whose, same := []int{-1}, true
	var rest []int
	hints := make([]minimize.Hint, len(list))
	for i, c := range list[:min(len(list), gen.MaxUnits-1)] {
		h, u, ok := apart(c)
		switch {
		case ok && bytes.Equal(headText(h), shared):
			b.Units, whose = append(b.Units, u), append(whose, i)
			same = same && bytes.Equal(conftree.Print(u.Body), conf)
		case talked(core) && !slices.ContainsFunc(c.Sections, func(s casefile.Section) bool { return s.Client }):
			hints[i] = minimize.Unlikely
		default:
			rest = append(rest, i)
		}
	}
	if len(rest) <= testedAlone {
		if err := s.load(ctx, list, rest, hints); err != nil {
			return nil, err
		}
	}
	if len(b.Units) == 1 {
		return hints, nil
	}
	if !same { // some may not load: they would take the others along
		for _, cell := range []engine.Cell{s.Ref, s.Cand} {
			good, err := loading(ctx, cell, b)
			if err != nil {
				return nil, err
			}
			if len(good) == 0 || good[0] != 0 {
				return nil, nil
			}
			for slot := range b.Units {
				if !slices.Contains(good, slot) { // it does not come as far as what is looked for
					hints[whose[slot]] = minimize.Unlikely
				}
			}
			left := make([]int, len(good))
			for i, slot := range good {
				left[i] = whose[slot]
			}
			b, whose = b.Only(good...), left
		}
	}
	if len(b.Units) == 1 {
		return hints, nil
	}
	cs := b.Case()
	cs.Name = fmt.Sprintf("%d variations of %s", len(b.Units)-1, best.Name)
	ref, cand, err := s.Pair(ctx, cs, lanes(cs, run.Options{Aged: true}))
	if err != nil {
		return nil, err
	}
	ref, cand = byUnit(cs, ref), byUnit(cs, cand)
	if !ref.Process.Started || !cand.Process.Started || crash(ref) != "" || crash(cand) != "" {
		return nil, nil
	}
	r := s.Compare(ref, cand)
	if r.Verdict != diff.Differ {
		return nil, nil
	}
	shows := map[int]bool{}
	_, of, _ := bySlot(r.Mismatches, len(b.Units))
	for slot, ms := range of {
		shows[slot] = slices.Contains(triage.Cores(diff.Result{Mismatches: ms}), core)
	}
	if !shows[0] {
		return nil, nil
	}
	late := lateSlots(cs, ref, cand)
	for slot := 1; slot < len(b.Units); slot++ {
		switch {
		case late[slot]:
		case shows[slot]:
			hints[whose[slot]] = minimize.Likely
		default:
			hints[whose[slot]] = minimize.Unlikely
		}
	}
	return hints, nil
}

// screens tells whether a difference can belong to one unit of a batch: what a server says while it starts, and
// how it ends, is all units'.
func screens(core string) bool {
	return !strings.HasPrefix(core, string(diff.KindLoad)+":") && !strings.HasPrefix(core, string(diff.KindProcess)+":")
}

// talked tells whether a difference is one that takes a client.
func talked(core string) bool {
	kind, _, _ := strings.Cut(core, ":")
	return slices.Contains([]diff.Kind{diff.KindClient, diff.KindOrigin, diff.KindConns, diff.KindEnd, diff.KindAccess}, diff.Kind(kind))
}

// testedAlone is how many variations that cannot be played beside others are tested by -t: most of a few lack
// what every configuration has, and of many most do load.
const testedAlone = 8

// load finds the variations that the reference does not load.
func (s *Screener) load(ctx context.Context, list []*casefile.Case, which []int, hints []minimize.Hint) error {
	var probes []probe
	for _, i := range which {
		c := list[i]
		if conf := c.File("nginx.conf"); conf != nil {
			probes = append(probes, probe{conf: conf.Data, files: c.Files})
		}
	}
	if len(probes) < len(which) || len(probes) == 0 {
		return nil
	}
	seen, err := testAll(ctx, s.Ref, probes)
	if err != nil {
		return err
	}
	for k, i := range which {
		if seen[k].Test.Code != 0 {
			hints[i] = minimize.Unlikely
		}
	}
	return nil
}

func headText(h gen.Head) []byte {
	return append(conftree.Print(h.Main), conftree.PrintAt(h.HTTP, 1)...)
}

// apart makes a case of one unit a unit and what it inherits. Shrinking has taken the marks from its configuration:
// what names the unit is the unit's. false: something of it would be another unit's, too.
func apart(c *casefile.Case) (head gen.Head, u *gen.Unit, ok bool) {
	conf := c.File("nginx.conf")
	if conf == nil || together(c) {
		return head, nil, false
	}
	top, err := conftree.Parse(conf.Data)
	if err != nil {
		return head, nil, false
	}
	u = &gen.Unit{Label: c.Title, Origins: c.Origins}
	http := 0
	for _, n := range top {
		if n.Name() != "http" || !n.Block {
			if named(conftree.Print([]*conftree.Node{n})) {
				return head, nil, false
			}
			head.Main = append(head.Main, n)
			continue
		}
		http++
		for _, k := range n.Kids {
			text := conftree.Print([]*conftree.Node{k})
			switch slots := slotsIn(text); {
			case named(text):
				u.Body = append(u.Body, k)
			case len(slots) > 0:
				return head, nil, false
			case k.Name() == "server" && k.Block: // its names and where it listens have gone
				u.Body = append(u.Body, k)
			default:
				head.HTTP = append(head.HTTP, k)
			}
		}
	}
	if http != 1 {
		return head, nil, false
	}
	for _, f := range c.Files {
		switch {
		case f.Path == "nginx.conf", f.Path == "logs" && f.Dir:
		case named([]byte(f.Path)):
			u.Files = append(u.Files, f)
		default:
			return head, nil, false
		}
	}
	for _, o := range c.Origins {
		if !named([]byte(o.Addr)) {
			return head, nil, false
		}
	}
	for _, s := range c.Sections {
		if !s.Client || !named([]byte(s.Addr)) || s.ID < 1 || s.ID > 99 {
			return head, nil, false
		}
		u.Clients = append(u.Clients, s)
	}
	return head, u, len(u.Body) > 0 && len(u.Clients) > 0
}

// named tells whether a text names slot 0 and no other.
func named(text []byte) bool {
	s := slotsIn(text)
	return len(s) == 1 && s[0] == 0
}

// loading are the slots of the units that a target loads beside each other.
func loading(ctx context.Context, cell engine.Cell, b *gen.Batch) (good []int, err error) {
	if err := cell.Reset(ctx, sieveFiles(b.Files())); err != nil {
		return nil, fmt.Errorf("sieve variations: %w", err)
	}
	good, _, err = (&sieving{cell: cell, sheet: b.Sheet()}).sort(ctx, len(b.Units), len(b.Units))
	return good, err
}

// Screen makes a pair of cells a triage.Screener.
func (p *cells) Screen(ctx context.Context, core string, best *casefile.Case, list []*casefile.Case) (hints []minimize.Hint, err error) {
	if err := p.open(ctx); err != nil {
		return nil, errors.Join(errBroken, err)
	}
	err = p.again(ctx, best, func() error {
		s := Screener{Ref: p.ref, Cand: p.cand, Compare: p.cfg.Compare, Pair: func(ctx context.Context, c *casefile.Case, opt run.Options) (ref, cand *observe.Observation, err error) {
			return p.both(ctx, c, opt, opt)
		}}
		hints, err = s.Screen(ctx, core, best, list)
		return err
	})
	return hints, err
}
