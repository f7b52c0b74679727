// Package mutate changes a unit in small ways: its directives, requests, bytes,
// connections and origins, and pieces borrowed from another unit.
package mutate

import (
	"bytes"
	"math/rand/v2"
	"strings"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// Kind is one way to change a unit. It answers false where it found nothing to change.
type kind struct {
	name   string
	weight int
	do     func(m *mutator) bool
}

type mutator struct {
	*rand.Rand
	g     *gen.Generator
	u     *gen.Unit // being changed
	other *gen.Unit // to borrow from
}

var kinds = []kind{
	{"drop directive", 3, dropDirective},
	{"copy directive", 1, copyDirective},
	{"swap directives", 1, swapDirectives},
	{"new directive", 6, newDirective},
	{"other argument", 4, otherArgument},
	{"borrow location", 3, borrowLocation},
	{"damage request", 5, damageRequest},
	{"change bytes", 4, changeBytes},
	{"copy request", 2, copyRequest},
	{"split send", 1, splitSend},
	{"drop step", 1, dropStep},
	{"other ending", 2, otherEnding},
	{"borrow client", 3, borrowClient},
	{"drop client", 1, dropClient},
	{"origin bytes", 4, originBytes},
	{"other origin", 4, otherOrigin},
	{"drop origin step", 1, dropOriginStep},
}

// Names lists the kinds, for tests and pages.
func Names() []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.name)
	}
	return out
}

// Mutate returns a changed copy of u, which follows from the seed and the two units alone.
func Mutate(seed, index uint64, g *gen.Generator, u, other *gen.Unit) *gen.Unit {
	m := &mutator{Rand: rand.New(rand.NewPCG(seed^0x6d757461, index)), g: g, u: u.Clone(), other: other}
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for left := 1 + m.IntN(4); left > 0; {
		at := m.IntN(total)
		for _, k := range kinds {
			if at -= k.weight; at < 0 {
				k.do(m)
				left--
				break
			}
		}
	}
	base, _, _ := strings.Cut(u.Label, "+m")
	m.u.Label = base + "+m"
	for i := range m.u.Clients {
		m.u.Clients[i].With = 0 // two at once are made with care, which a mutation knows nothing of
		m.u.Clients[i].Steps = gen.Steady(untilEnd(m.u.Clients[i].Steps))
	}
	for i := range m.u.Origins {
		for j := range m.u.Origins[i].Conns {
			m.u.Origins[i].Conns[j] = untilEnd(m.u.Origins[i].Conns[j])
		}
	}
	m.u.Own()
	return m.u
}

// untilEnd cuts a script behind the step that ends its connection.
func untilEnd(steps []casefile.Step) []casefile.Step {
	reads := false
	for i, s := range steps {
		switch s.Op {
		case casefile.Recv:
			reads = true
		case casefile.Again:
			if !reads { // it would answer for ever without being asked
				return steps[:i]
			}
			return steps[:i+1]
		case casefile.Close, casefile.Reset:
			return steps[:i+1]
		}
	}
	return steps
}

// blocks lists the blocks of the unit that directives can be put into, with their contexts.
func (m *mutator) blocks() (out []*conftree.Node, contexts []string) {
	conftree.Walk(m.u.Body, "http", func(n *conftree.Node, parent string) bool {
		ctx := n.Name()
		switch {
		case !n.Block || ctx == "types" || ctx == "map":
			return n.Block
		case ctx == "if" && parent == "server":
			ctx = "if-in-server"
		case ctx == "if":
			ctx = "if-in-location"
		}
		out, contexts = append(out, n), append(contexts, ctx)
		return true
	})
	return out, contexts
}

func dropDirective(m *mutator) bool {
	bs, _ := m.blocks()
	if len(bs) == 0 {
		return false
	}
	b := bs[m.IntN(len(bs))]
	if len(b.Kids) == 0 {
		return false
	}
	i := m.IntN(len(b.Kids))
	if n := b.Kids[i].Name(); n == "listen" || n == "server" || n == "set" {
		return false // a unit without its ports answers nothing; a variable without its set is unknown
	}
	b.Kids = append(b.Kids[:i:i], b.Kids[i+1:]...)
	return true
}

func copyDirective(m *mutator) bool {
	bs, _ := m.blocks()
	if len(bs) == 0 {
		return false
	}
	from, to := bs[m.IntN(len(bs))], bs[m.IntN(len(bs))]
	if len(from.Kids) == 0 || from.Name() != to.Name() {
		return false
	}
	n := from.Kids[m.IntN(len(from.Kids))]
	if n.Block || n.Name() == "listen" {
		return false
	}
	if !gen.Duplicates(n.Name()) {
		for i, old := range to.Kids {
			if old.Name() == n.Name() {
				to.Kids[i] = n.Clone()
				return old != n
			}
		}
	}
	to.Add(n.Clone())
	return true
}

func swapDirectives(m *mutator) bool {
	bs, _ := m.blocks()
	if len(bs) == 0 {
		return false
	}
	b := bs[m.IntN(len(bs))]
	if len(b.Kids) < 2 {
		return false
	}
	i := m.IntN(len(b.Kids) - 1)
	b.Kids[i], b.Kids[i+1] = b.Kids[i+1], b.Kids[i]
	return true
}

func newDirective(m *mutator) bool {
	bs, contexts := m.blocks()
	if len(bs) == 0 {
		return false
	}
	i := m.IntN(len(bs))
	n := m.g.Directive(m.Uint64(), 0, contexts[i])
	if n == nil {
		return false
	}
	for k, old := range bs[i].Kids { // one more of most directives would be a duplicate
		if old.Name() == n.Name() {
			bs[i].Kids[k] = n
			return true
		}
	}
	at := m.IntN(len(bs[i].Kids) + 1)
	bs[i].Kids = append(bs[i].Kids[:at:at], append([]*conftree.Node{n}, bs[i].Kids[at:]...)...)
	return true
}

func otherArgument(m *mutator) bool {
	var all []*conftree.Node
	conftree.Walk(m.u.Body, "http", func(n *conftree.Node, parent string) bool {
		switch n.Name() {
		case "listen", "set", "map", "upstream", "server", "location", "if", "log_format", "access_log":
			return n.Block
		}
		if len(n.Words) > 1 && parent != "types" && parent != "map" && parent != "upstream" {
			all = append(all, n)
		}
		return true
	})
	if len(all) == 0 {
		return false
	}
	for range argumentTries {
		n := all[m.IntN(len(all))]
		if m.IntN(100) < anyArgument {
			n.Words[1+m.IntN(len(n.Words)-1)] = m.g.Argument(m.Uint64(), 0)
			return true
		}
		if again := m.g.Again(m.Uint64(), 0, n.Name()); again != nil && !again.Block {
			n.Words = again.Words
			return true
		}
	}
	return false
}

// A value of any kind at any place mostly does not load, and a unit that does not load compares a diagnosis
// and nothing else; the wrong configurations do that at a tenth of the cost. anyArgument is how many of 100
// changed arguments are such.
const (
	anyArgument   = 15
	argumentTries = 8
)

func borrowLocation(m *mutator) bool {
	if m.other == nil {
		return false
	}
	var from []*conftree.Node
	conftree.Walk(m.other.Body, "http", func(n *conftree.Node, parent string) bool {
		if n.Name() == "location" && parent == "server" && !strings.Contains(string(conftree.Print([]*conftree.Node{n})), "u00_") {
			from = append(from, n)
		}
		return n.Block
	})
	var servers []*conftree.Node
	for _, n := range m.u.Body {
		if n.Name() == "server" {
			servers = append(servers, n)
		}
	}
	if len(from) == 0 || len(servers) == 0 {
		return false
	}
	l, s := from[m.IntN(len(from))].Clone(), servers[m.IntN(len(servers))]
	for _, n := range s.Kids {
		if n.Name() == "location" && strings.TrimLeft(strings.Join(n.Words[1:], " "), "^~ ") == strings.TrimLeft(strings.Join(l.Words[1:], " "), "^~ ") {
			return false
		}
	}
	s.Add(l)
	return true
}

// sends lists the send steps of clients.
func (m *mutator) sends() (out []*casefile.Step) {
	for i := range m.u.Clients {
		for j := range m.u.Clients[i].Steps {
			if s := &m.u.Clients[i].Steps[j]; s.Op == casefile.Send {
				out = append(out, s)
			}
		}
	}
	return out
}

func damageRequest(m *mutator) bool {
	all := m.sends()
	if len(all) == 0 {
		return false
	}
	s := all[m.IntN(len(all))]
	raw := m.g.Damage(m.Uint64(), 0, string(bytes.Join(s.Data, nil)))
	if raw == "" {
		return false
	}
	s.Data = [][]byte{[]byte(raw)}
	return true
}

func (m *mutator) spoil(s *casefile.Step) {
	b := bytes.Join(s.Data, nil)
	for range 1 + m.IntN(3) {
		if len(b) == 0 {
			return
		}
		i := m.IntN(len(b))
		switch m.IntN(4) {
		case 0:
			b[i] ^= 1 << m.IntN(8)
		case 1:
			if len(b) > 1 {
				b = append(b[:i], b[i+1:]...)
			}
		case 2:
			b = append(b[:i], append([]byte{"\x00\r\n \t:/%0;\xff"[m.IntN(11)]}, b[i:]...)...)
		case 3:
			k := min(len(b)-i, 1+m.IntN(12))
			b = append(b[:i+k], append(bytes.Clone(b[i:i+k]), b[i+k:]...)...)
		}
	}
	s.Data = [][]byte{b}
}

func changeBytes(m *mutator) bool {
	all := m.sends()
	if len(all) == 0 {
		return false
	}
	m.spoil(all[m.IntN(len(all))])
	return true
}

func (m *mutator) client() *casefile.Section {
	if len(m.u.Clients) == 0 {
		return nil
	}
	return &m.u.Clients[m.IntN(len(m.u.Clients))]
}

func copyRequest(m *mutator) bool {
	all, c := m.sends(), m.client()
	if c == nil || len(all) == 0 {
		return false
	}
	s := *all[m.IntN(len(all))]
	steps := []casefile.Step{{Op: casefile.Send, Data: s.Data}, {Op: casefile.Recv, What: casefile.Response}}
	at := m.IntN(len(c.Steps) + 1)
	c.Steps = append(c.Steps[:at:at], append(steps, c.Steps[at:]...)...)
	return true
}

func splitSend(m *mutator) bool {
	c := m.client()
	if c == nil {
		return false
	}
	for i, s := range c.Steps {
		b := bytes.Join(s.Data, nil)
		if s.Op != casefile.Send || len(b) < 2 || m.IntN(2) == 0 {
			continue
		}
		k := 1 + m.IntN(len(b)-1)
		parts := []casefile.Step{{Op: casefile.Send, Data: [][]byte{b[:k]}}, {Op: casefile.Settle}, {Op: casefile.Send, Data: [][]byte{b[k:]}}}
		c.Steps = append(c.Steps[:i:i], append(parts, c.Steps[i+1:]...)...)
		return true
	}
	return false
}

func dropStep(m *mutator) bool {
	c := m.client()
	if c == nil || len(c.Steps) < 2 {
		return false
	}
	i := m.IntN(len(c.Steps))
	c.Steps = append(c.Steps[:i:i], c.Steps[i+1:]...)
	return true
}

func otherEnding(m *mutator) bool {
	c := m.client()
	if c == nil {
		return false
	}
	for len(c.Steps) > 0 {
		last := c.Steps[len(c.Steps)-1]
		if last.Op == casefile.Send || last.Op == casefile.Recv && last.What != casefile.All && last.What != casefile.None {
			break
		}
		c.Steps = c.Steps[:len(c.Steps)-1]
	}
	endings := [][]casefile.Step{
		{{Op: casefile.Close}}, {{Op: casefile.Reset}}, {{Op: casefile.Shutdown}, {Op: casefile.Recv, What: casefile.All}},
		{{Op: casefile.Recv, What: casefile.All}}, {{Op: casefile.Settle}, {Op: casefile.Close}}, {{Op: casefile.Recv, What: casefile.None}, {Op: casefile.Shutdown}, {Op: casefile.Recv, What: casefile.All}},
	}
	c.Steps = append(c.Steps, endings[m.IntN(len(endings))]...)
	return true
}

func borrowClient(m *mutator) bool {
	if m.other == nil || len(m.other.Clients) == 0 || len(m.u.Clients) >= 12 {
		return false
	}
	c := m.other.Clients[m.IntN(len(m.other.Clients))]
	c.Steps = append([]casefile.Step(nil), c.Steps...)
	for _, x := range m.u.Clients {
		c.ID = max(c.ID, x.ID+1)
	}
	if len(m.u.Clients) > 0 {
		c.Addr = m.u.Clients[0].Addr
	}
	c.With = 0
	if c.ID > 99 {
		return false
	}
	m.u.Clients = append(m.u.Clients, c)
	return true
}

func dropClient(m *mutator) bool {
	if len(m.u.Clients) < 2 {
		return false
	}
	i := m.IntN(len(m.u.Clients))
	m.u.Clients = append(m.u.Clients[:i:i], m.u.Clients[i+1:]...)
	for j := range m.u.Clients {
		m.u.Clients[j].With = 0
	}
	return true
}

func (m *mutator) script() *[]casefile.Step {
	if len(m.u.Origins) == 0 {
		return nil
	}
	o := &m.u.Origins[m.IntN(len(m.u.Origins))]
	if len(o.Conns) == 0 {
		return nil
	}
	return &o.Conns[m.IntN(len(o.Conns))]
}

func originBytes(m *mutator) bool {
	s := m.script()
	if s == nil {
		return false
	}
	for i := range *s {
		if (*s)[i].Op == casefile.Send {
			m.spoil(&(*s)[i])
			return true
		}
	}
	return false
}

func otherOrigin(m *mutator) bool {
	s := m.script()
	if s == nil {
		return false
	}
	*s = m.g.Origin(m.Uint64(), 0)
	return true
}

func dropOriginStep(m *mutator) bool {
	s := m.script()
	if s == nil || len(*s) < 2 {
		return false
	}
	i := m.IntN(len(*s))
	*s = append((*s)[:i:i], (*s)[i+1:]...)
	return true
}
