package minimize

import (
	"bytes"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// The levels of passes (see Pass.Level): who talks, what there is, and how each thing is written.
const (
	speakers = iota
	things
	texts
	levels
)

// Passes is the order in which a case is taken apart: what costs most to look
// at goes first.
func Passes() []Pass {
	return []Pass{
		{Name: "clients", Items: func(c *casefile.Case) int { return len(c.Sections) }, Without: withoutSections},
		{Name: "exchanges", Items: func(c *casefile.Case) int { return len(exchanges(c)) }, Without: withoutExchanges},
		partPass("requests", speakers, requestParts),
		confPass("blocks", func(n *conftree.Node) bool { return n.Block }),
		confPass("directives", func(n *conftree.Node) bool { return !n.Block }),
		{Name: "origins", Level: things, Items: func(c *casefile.Case) int { return len(c.Origins) }, Without: withoutOrigins},
		{Name: "files", Level: things, Items: func(c *casefile.Case) int { return len(c.Files) }, Without: withoutFiles},
		{Name: "steps", Level: things, Items: countSteps, Without: withoutSteps},
		{Name: "origin connections", Level: things, Items: countConns, Without: withoutConns},
		{Name: "origin steps", Level: things, Items: countOriginSteps, Without: withoutOriginSteps},
		{Name: "join", Level: things, Items: joinable, Without: withoutSplit, Single: true},
		partPass("lines", things, lineParts),
		unwrapPass(),
		wordPass(),
		{Name: "names", Items: func(*casefile.Case) int { return len(renames) }, Without: rename, Single: true, Last: true},
		partPass("runs", texts, runParts),
		partPass("bytes", texts, byteParts),
		filePass(),
	}
}

func keep[T any](list []T, drop []bool) []T {
	out := make([]T, 0, len(list))
	for i, x := range list {
		if !drop[i] {
			out = append(out, x)
		}
	}
	return out
}

func withoutSections(c *casefile.Case, drop []bool) *casefile.Case {
	n := c.Clone()
	n.Sections = keep(n.Sections, drop)
	return fixWith(n)
}

// fixWith lets a client run alone whose companion is gone.
func fixWith(c *casefile.Case) *casefile.Case {
	group := map[int]bool{}
	for i := range c.Sections {
		s := &c.Sections[i]
		if !s.Client || s.With == 0 || !group[s.With] {
			s.With = 0
			group = map[int]bool{}
		}
		if s.Client {
			group[s.ID] = true
		}
	}
	return c
}

func withoutOrigins(c *casefile.Case, drop []bool) *casefile.Case {
	n := c.Clone()
	n.Origins = keep(n.Origins, drop)
	return n
}

func withoutFiles(c *casefile.Case, drop []bool) *casefile.Case {
	n := c.Clone()
	for i, f := range n.Files {
		if f.Path == "nginx.conf" || f.Path == "logs" {
			drop = append([]bool(nil), drop...)
			drop[i] = false
		}
	}
	n.Files = keep(n.Files, drop)
	if len(n.Files) == len(c.Files) {
		return nil
	}
	return n
}

func countSteps(c *casefile.Case) (n int) {
	for _, s := range c.Sections {
		n += len(s.Steps)
	}
	return n
}

func withoutSteps(c *casefile.Case, drop []bool) *casefile.Case {
	n := c.Clone()
	at := 0
	for i := range n.Sections {
		k := len(n.Sections[i].Steps)
		n.Sections[i].Steps = keep(n.Sections[i].Steps, drop[at:at+k])
		at += k
	}
	return n
}

// exchanges are the runs of steps from what is sent to what is waited for after it: neither goes without the other.
func exchanges(c *casefile.Case) (out []span) {
	for i, s := range c.Sections {
		begin := 0
		for k := 1; k < len(s.Steps); k++ {
			if s.Steps[k].Op == casefile.Send && s.Steps[k-1].Op == casefile.Recv {
				out = append(out, span{i, begin, k})
				begin = k
			}
		}
		if begin < len(s.Steps) {
			out = append(out, span{i, begin, len(s.Steps)})
		}
	}
	return out
}

type span struct{ section, from, to int }

func withoutExchanges(c *casefile.Case, drop []bool) *casefile.Case {
	n := c.Clone()
	gone := make([]map[int]bool, len(n.Sections))
	for k, x := range exchanges(c) {
		if k < len(drop) && drop[k] {
			if gone[x.section] == nil {
				gone[x.section] = map[int]bool{}
			}
			for i := x.from; i < x.to; i++ {
				gone[x.section][i] = true
			}
		}
	}
	for i := range n.Sections {
		var left []casefile.Step
		for k, s := range n.Sections[i].Steps {
			if !gone[i][k] {
				left = append(left, s)
			}
		}
		n.Sections[i].Steps = left
	}
	return n
}

// requestParts cuts in front of request lines.
func requestParts(b []byte) (parts [][]byte) {
	begin := 0
	for _, m := range requestLine.FindAllIndex(b, -1) {
		if m[0] > begin {
			parts = append(parts, b[begin:m[0]])
			begin = m[0]
		}
	}
	return append(parts, b[begin:])
}

func countConns(c *casefile.Case) (n int) {
	for _, o := range c.Origins {
		n += len(o.Conns)
	}
	return n
}

func withoutConns(c *casefile.Case, drop []bool) *casefile.Case {
	n := c.Clone()
	at := 0
	for i := range n.Origins {
		k := len(n.Origins[i].Conns)
		n.Origins[i].Conns = keep(n.Origins[i].Conns, drop[at:at+k])
		if len(n.Origins[i].Conns) == 0 {
			n.Origins[i].Conns = [][]casefile.Step{nil}
		}
		at += k
	}
	return n
}

func countOriginSteps(c *casefile.Case) (n int) {
	for _, o := range c.Origins {
		for _, s := range o.Conns {
			n += len(s)
		}
	}
	return n
}

func withoutOriginSteps(c *casefile.Case, drop []bool) *casefile.Case {
	n := c.Clone()
	at := 0
	for i := range n.Origins {
		for j := range n.Origins[i].Conns {
			k := len(n.Origins[i].Conns[j])
			n.Origins[i].Conns[j] = keep(n.Origins[i].Conns[j], drop[at:at+k])
			at += k
		}
	}
	return n
}

// sends lists every step that sends bytes, clients' and origins'.
func sends(c *casefile.Case) (out []*casefile.Step) {
	add := func(steps []casefile.Step) {
		for i := range steps {
			if steps[i].Op == casefile.Send {
				out = append(out, &steps[i])
			}
		}
	}
	for i := range c.Sections {
		add(c.Sections[i].Steps)
	}
	for i := range c.Origins {
		for j := range c.Origins[i].Conns {
			add(c.Origins[i].Conns[j])
		}
	}
	return out
}

// joinable counts places where two sends are next to each other, or have only
// a settle or a pause between them.
func joinable(c *casefile.Case) int { return len(joins(c)) }

type join struct {
	steps    *[]casefile.Step
	at, next int
}

func joins(c *casefile.Case) (out []join) {
	look := func(steps *[]casefile.Step) {
		last := -1
		for i, s := range *steps {
			switch s.Op {
			case casefile.Send:
				if last >= 0 {
					out = append(out, join{steps, last, i})
				}
				last = i
			case casefile.Settle, casefile.Pause:
			default:
				last = -1
			}
		}
	}
	for i := range c.Sections {
		look(&c.Sections[i].Steps)
	}
	for i := range c.Origins {
		for j := range c.Origins[i].Conns {
			look(&c.Origins[i].Conns[j])
		}
	}
	return out
}

func withoutSplit(c *casefile.Case, drop []bool) *casefile.Case {
	n := c.Clone()
	for i, j := range joins(n) {
		if !drop[i] {
			continue
		}
		s := *j.steps
		s[j.at].Data = [][]byte{append(bytes.Join(s[j.at].Data, nil), bytes.Join(s[j.next].Data, nil)...)}
		*j.steps = append(append([]casefile.Step(nil), s[:j.at+1]...), s[j.next+1:]...)
		return n
	}
	return nil
}

// partPass cuts what is sent into parts and drops some.
func partPass(name string, level int, cut func([]byte) [][]byte) Pass {
	return Pass{Name: name, Level: level,
		Items: func(c *casefile.Case) (n int) {
			for _, s := range sends(c) {
				n += len(cut(bytes.Join(s.Data, nil)))
			}
			return n
		},
		Without: func(c *casefile.Case, drop []bool) *casefile.Case {
			n := c.Clone()
			at := 0
			for _, s := range sends(n) {
				parts := cut(bytes.Join(s.Data, nil))
				left := keep(parts, drop[at:at+len(parts)])
				at += len(parts)
				if len(left) == 0 {
					return nil // a send of nothing: the steps pass drops it whole
				}
				s.Data = [][]byte{bytes.Join(left, nil)}
			}
			return n
		}}
}

func lineParts(b []byte) [][]byte {
	parts := bytes.SplitAfter(b, []byte("\n"))
	if n := len(parts); n > 0 && len(parts[n-1]) == 0 {
		parts = parts[:n-1]
	}
	return parts
}

// runParts cuts at the borders between words, blanks and marks.
func runParts(b []byte) (parts [][]byte) {
	class := func(c byte) int {
		switch {
		case c == '\r' || c == '\n':
			return 0
		case c == ' ' || c == '\t':
			return 1
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_':
			return 2
		}
		return 3
	}
	start := 0
	for i := 1; i <= len(b); i++ {
		if i == len(b) || class(b[i]) != class(b[i-1]) || class(b[i]) == 3 {
			parts = append(parts, b[start:i])
			start = i
		}
	}
	return parts
}

// byteParts are single bytes for what is short, and larger pieces of what is long.
func byteParts(b []byte) (parts [][]byte) {
	size := max(1, len(b)/256)
	for i := 0; i < len(b); i += size {
		parts = append(parts, b[i:min(i+size, len(b))])
	}
	return parts
}

// confPass drops directives of the configuration for which is holds.
func confPass(name string, is func(*conftree.Node) bool) Pass {
	return Pass{Name: name, Level: things,
		Items: func(c *casefile.Case) (n int) {
			top, ok := conf(c)
			if !ok {
				return 0
			}
			conftree.Walk(top, "", func(x *conftree.Node, _ string) bool {
				if is(x) {
					n++
				}
				return true
			})
			return n
		},
		Without: func(c *casefile.Case, drop []bool) *casefile.Case {
			top, ok := conf(c)
			if !ok {
				return nil
			}
			i := 0
			var filter func(list []*conftree.Node) []*conftree.Node
			filter = func(list []*conftree.Node) []*conftree.Node {
				var out []*conftree.Node
				for _, x := range list {
					gone := false
					if is(x) {
						gone = drop[i]
						i++
					}
					x.Kids = filter(x.Kids)
					if !gone {
						out = append(out, x)
					}
				}
				return out
			}
			return withConf(c, filter(top))
		}}
}

// unwrapPass replaces a block by what is in it.
func unwrapPass() Pass {
	each := func(c *casefile.Case, f func(list *[]*conftree.Node, i int)) []*conftree.Node {
		top, ok := conf(c)
		if !ok {
			return nil
		}
		var walk func(list *[]*conftree.Node)
		walk = func(list *[]*conftree.Node) {
			for i := 0; i < len(*list); i++ {
				x := (*list)[i]
				if !x.Block {
					continue
				}
				f(list, i)
				walk(&x.Kids)
			}
		}
		walk(&top)
		return top
	}
	return Pass{Name: "unwrap", Level: things, Single: true,
		Items: func(c *casefile.Case) (n int) {
			each(c, func(*[]*conftree.Node, int) { n++ })
			return n
		},
		Without: func(c *casefile.Case, drop []bool) *casefile.Case {
			k, done := 0, false
			top := each(c, func(list *[]*conftree.Node, i int) {
				if k < len(drop) && drop[k] && !done {
					done = true
					l := *list
					*list = append(append(append([]*conftree.Node(nil), l[:i]...), l[i].Kids...), l[i+1:]...)
				}
				k++
			})
			if !done {
				return nil
			}
			return withConf(c, top)
		}}
}

// wordPass drops arguments, and shortens what is in quotes, one at a time.
func wordPass() Pass {
	type change struct {
		n       *conftree.Node
		word    int
		shorter string // "" drops the word
	}
	changes := func(top []*conftree.Node) (out []change) {
		conftree.Walk(top, "", func(n *conftree.Node, _ string) bool {
			for i := 1; i < len(n.Words); i++ {
				w := n.Words[i]
				out = append(out, change{n, i, ""})
				if v := conftree.Value(w); len(v) > 3 && w[0] == '"' {
					out = append(out, change{n, i, conftree.Quote(v[:len(v)/2])}, change{n, i, conftree.Quote(v[len(v)/2:])}, change{n, i, "x"})
				}
			}
			return true
		})
		return out
	}
	return Pass{Name: "arguments", Level: texts, Single: true, Many: true,
		Items: func(c *casefile.Case) int {
			top, _ := conf(c)
			return len(changes(top))
		},
		Without: func(c *casefile.Case, drop []bool) *casefile.Case {
			top, _ := conf(c)
			list := changes(top)
			var last *change
			for i := min(len(list), len(drop)) - 1; i >= 0; i-- { // those of a directive in front keep their places
				ch := &list[i]
				if !drop[i] || last != nil && last.n == ch.n && last.word == ch.word {
					continue
				}
				if last = ch; ch.shorter != "" {
					ch.n.Words[ch.word] = ch.shorter
				} else {
					ch.n.Words = append(ch.n.Words[:ch.word:ch.word], ch.n.Words[ch.word+1:]...)
				}
			}
			if last == nil {
				return nil
			}
			return withConf(c, top)
		}}
}

// renames make a case look hand-written; each is tried like any other change.
var renames = []struct{ old, new string }{
	{"u00/html", "html"}, {"127.0.0.1:20000", "127.0.0.1:8080"}, {"127.0.0.1:20005", "127.0.0.1:9001"}, {"127.0.0.1:20006", "127.0.0.1:9002"},
	{"s0.u00.test", "a.test"}, {"s1.u00.test", "b.test"}, {"logs/u00.log", "logs/access.log"}, {"u00_", "v_"}, {"localhost", "a.test"},
}

func rename(c *casefile.Case, drop []bool) *casefile.Case {
	for i, d := range drop {
		if d {
			return Replace(c, renames[i].old, renames[i].new)
		}
	}
	return nil
}

// Replace replaces a string everywhere in a case; nil when it is nowhere.
func Replace(c *casefile.Case, old, new string) *casefile.Case {
	n := c.Clone()
	found := false
	re := func(s string) string {
		found = found || strings.Contains(s, old)
		return strings.ReplaceAll(s, old, new)
	}
	steps := func(list []casefile.Step) {
		for i := range list {
			for j := range list[i].Data {
				list[i].Data[j] = []byte(re(string(list[i].Data[j])))
			}
		}
	}
	for i := range n.Files {
		f := &n.Files[i]
		f.Path, f.Link, f.Data = re(f.Path), re(f.Link), []byte(re(string(f.Data)))
	}
	for i := range n.Origins {
		n.Origins[i].Addr = re(n.Origins[i].Addr)
		for _, s := range n.Origins[i].Conns {
			steps(s)
		}
	}
	for i := range n.Sections {
		n.Sections[i].Addr = re(n.Sections[i].Addr)
		steps(n.Sections[i].Steps)
	}
	if !found {
		return nil
	}
	return n
}

// filePass cuts the ends of files other than the configuration off, half of them and more, and
// shortens a configuration that does not parse line by line.
func filePass() Pass {
	type piece struct{ file, from, to int }
	pieces := func(c *casefile.Case) (out []piece) {
		for i, f := range c.Files {
			if f.Path == "nginx.conf" {
				if _, ok := conf(c); ok {
					continue
				}
				at := 0
				for _, l := range lineParts(f.Data) {
					out = append(out, piece{i, at, at + len(l)})
					at += len(l)
				}
				if len(f.Data) < 400 {
					for k := range f.Data {
						out = append(out, piece{i, k, k + 1})
					}
				}
				continue
			}
			n := len(f.Data)
			for _, left := range []int{0, 1, n / 16, n / 4, n / 2} {
				if left < n && (len(out) == 0 || out[len(out)-1].file != i || left > out[len(out)-1].from) {
					out = append(out, piece{i, left, n})
				}
			}
		}
		return out
	}
	return Pass{Name: "contents", Level: texts, Single: true, Many: true,
		Items: func(c *casefile.Case) int { return len(pieces(c)) },
		Without: func(c *casefile.Case, drop []bool) *casefile.Case {
			n := c.Clone()
			gone := map[int][]bool{} // pieces of one file may overlap
			for i, p := range pieces(c) {
				if i < len(drop) && drop[i] {
					if gone[p.file] == nil {
						gone[p.file] = make([]bool, len(c.Files[p.file].Data))
					}
					for k := p.from; k < p.to; k++ {
						gone[p.file][k] = true
					}
				}
			}
			for i, g := range gone {
				n.Files[i].Data = keep(n.Files[i].Data, g)
			}
			return n
		}}
}

// conf is the parsed nginx.conf of a case, fresh for every call; false when it
// does not parse (a case about syntax).
func conf(c *casefile.Case) ([]*conftree.Node, bool) {
	for _, f := range c.Files {
		if f.Path == "nginx.conf" {
			top, err := conftree.Parse(f.Data)
			return top, err == nil
		}
	}
	return nil, false
}

func withConf(c *casefile.Case, top []*conftree.Node) *casefile.Case {
	n := c.Clone()
	for i := range n.Files {
		if n.Files[i].Path == "nginx.conf" {
			n.Files[i].Data = conftree.Print(top)
		}
	}
	return n
}

// Directives lists the names of the directives of a case's configuration, each
// once, sorted; what every configuration has is left out.
func Directives(c *casefile.Case) []string {
	top, ok := conf(c)
	if !ok {
		return nil
	}
	return conftree.Names(top)
}

// Reachable tells whether every client's port is one that the configuration
// listens on. A configuration that does not parse is not started at all.
func Reachable(c *casefile.Case) bool {
	top, ok := conf(c)
	if !ok {
		return true
	}
	ports := map[string]bool{}
	conftree.Walk(top, "", func(n *conftree.Node, parent string) bool {
		if n.Name() == "listen" && parent == "server" && len(n.Words) > 1 {
			addr := conftree.Value(n.Words[1])
			ports[addr[strings.LastIndexByte(addr, ':')+1:]] = true
		}
		return true
	})
	for _, s := range c.Sections {
		addr := s.Addr
		if addr == "" {
			addr = casefile.DefaultAddr
		}
		if s.Client && !strings.HasPrefix(addr, "unix:") && !ports[addr[strings.LastIndexByte(addr, ':')+1:]] {
			return false
		}
	}
	return true
}
