// Package mask compares two texts apart from values that may rightly differ. A
// mask is a declared row (see Table): it says what form a value has and why it may
// differ. It deletes nothing: a value of the wrong form, or one that only one side
// has, is a difference like any other.
package mask

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"time"

	"nginxoracle/oracle/observe"
)

// Side is what a row's check may know of the run that a value comes from.
type Side struct {
	At    time.Time // when the run began
	Took  time.Duration
	Pid   int // main process
	Conns int // connections that the case made and saw
	Ports map[int]bool
}

// during tells whether t lies within the run, give or take the window.
func (s *Side) during(t time.Time) error {
	from, to := s.At.Add(-window), s.At.Add(s.Took+window)
	// A clock's value is a whole second, cut off.
	if t.Before(from.Truncate(time.Second)) || t.After(to) {
		return fmt.Errorf("is not within the run (%s to %s)", from.UTC().Format(time.DateTime), to.UTC().Format(time.DateTime))
	}
	return nil
}

func sideOf(o *observe.Observation) *Side {
	s := &Side{At: o.At, Took: o.Took, Pid: o.Process.Pid, Conns: len(o.Clients) + len(o.Origins),
		Ports: map[int]bool{}}
	for _, c := range o.Clients {
		s.Ports[c.Port] = true
	}
	return s
}

// Comparer compares texts of one pair of observations. Values that a row binds
// stay bound from one text to the next.
type Comparer struct {
	Used map[string]int // masks used, with how often
	// Shown counts where the reference's texts show a value that a row is for, whether or not it
	// differs; for a census. Nil: it is not counted, since looking costs time.
	Shown map[string]int

	ref, cand *Side
	part      observe.Part // that the texts belong to
	table     []Row
	there     map[binding]string // row and the reference's value -> the candidate's
	back      map[binding]string // and the other way round
	forms     map[string]*regexp.Regexp
}

type binding struct{ part, row, value string }

// New makes a comparer for two observations of one case.
func New(ref, cand *observe.Observation) *Comparer {
	return &Comparer{
		Used: map[string]int{}, ref: sideOf(ref), cand: sideOf(cand), table: Table,
		part:  observe.Part{Mentions: ref.Mentions},
		there: map[binding]string{}, back: map[binding]string{}, forms: map[string]*regexp.Regexp{},
	}
}

// In says which part of the observations the next texts belong to.
func (m *Comparer) In(p observe.Part) { m.part = p }

// Shift is one masked difference: behind it the candidate's text runs Delta
// bytes ahead of the reference's. At is the end of the value in the reference's text.
type Shift struct{ At, Delta int }

// Alignment maps places of the reference's text to the candidate's.
type Alignment []Shift

// Map gives the candidate's place of the reference's place at.
func (a Alignment) Map(at int) int {
	delta := 0
	for _, s := range a {
		if s.At > at {
			break
		}
		delta = s.Delta
	}
	return at + delta
}

// Compare compares two texts that stand at where. equal tells whether only
// masked values differ; otherwise at is the reference's byte of the first
// difference that no mask covers.
func (m *Comparer) Compare(where Where, ref, cand []byte) (at int, equal bool, align Alignment) {
	if m.Shown != nil {
		m.show(where, ref)
	}
	if bytes.Equal(ref, cand) {
		return 0, true, nil
	}
	return m.compare(m.finder(where, ref), m.finder(where, cand))
}

func (m *Comparer) compare(rs, cs *finder) (at int, equal bool, align Alignment) {
	ref, cand := rs.text, cs.text
	i, j := 0, 0
	for {
		n := commonPrefix(ref[i:], cand[j:])
		i, j = i+n, j+n
		if i == len(ref) && j == len(cand) {
			return 0, true, align
		}
		r, c, ok := m.covering(rs, cs, i, j)
		if !ok {
			return i, false, align
		}
		i, j = r.end, c.end
		align = append(align, Shift{At: i, Delta: j - i})
	}
}

func (m *Comparer) show(where Where, ref []byte) {
	for i := range m.table {
		row := &m.table[i]
		if row.Where&where == 0 || !m.applies(row, where) {
			continue
		}
		for _, g := range row.Form.FindAllSubmatchIndex(ref, -1) {
			if m.stands(row, where, ref, span{g[2], g[3]}) && row.Check(string(ref[g[2]:g[3]]), m.ref) == nil {
				m.Shown[row.Name]++
			}
		}
	}
}

// Idle lists the rows that a census has found no need of: their values differed nowhere, and of those
// that are equal by chance none was there.
func Idle(used, shown map[string]int) (names []string) {
	for _, r := range Table {
		if used[r.Name] == 0 && !(r.Chance && shown[r.Name] > 0) {
			names = append(names, r.Name)
		}
	}
	return names
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// applies tells whether a text at where may hold values of a row.
func (m *Comparer) applies(row *Row, where Where) bool {
	if row.Trait != "" && !slices.Contains(m.part.Vars, row.Trait) {
		return false
	}
	return m.anywhere(row) || where&wires == 0 && slices.ContainsFunc(row.Vars, func(v string) bool { return m.part.Logged[v] != nil })
}

// anywhere tells whether a row's variable may be part of any text.
func (m *Comparer) anywhere(row *Row) bool {
	return len(row.Vars) == 0 || slices.ContainsFunc(row.Vars, func(v string) bool { return slices.Contains(m.part.Vars, v) })
}

// stands tells whether a value stands where one of the row's may: where only log_formats have the variable, its line must be of such a format.
func (m *Comparer) stands(row *Row, where Where, text []byte, s span) bool {
	if row.Inside || m.anywhere(row) {
		return true
	}
	from := bytes.LastIndexByte(text[:s.start], '\n') + 1
	to := len(text)
	if i := bytes.IndexByte(text[s.end:], '\n'); i >= 0 {
		to = s.end + i
	}
	for _, v := range row.Vars {
		for _, p := range m.part.Logged[v] {
			if m.form(p.Before).Match(text[from:s.start]) && m.form(p.After).Match(text[s.end:to]) {
				return true
			}
		}
	}
	return false
}

// form compiles a pattern once.
func (m *Comparer) form(p string) *regexp.Regexp {
	f := m.forms[p]
	if f == nil {
		f = regexp.MustCompile(p)
		m.forms[p] = f
	}
	return f
}

// covering finds a row whose value covers the difference at i in the reference's
// and at j in the candidate's text, began at the same place in both, and passes
// its checks. A value that ends in front of the difference on both sides does not cover it: comparing
// must come forward with every value, or it would not end.
func (m *Comparer) covering(rs, cs *finder, i, j int) (r, c span, ok bool) {
	for row := range rs.rows {
		for _, r := range rs.around(row, i) {
			for _, c := range cs.around(row, j) {
				if i-r.start != j-c.start || r.end == i && c.end == j {
					continue
				}
				if !m.stands(&m.table[row], rs.where, rs.text, r) || !m.stands(&m.table[row], cs.where, cs.text, c) {
					continue
				}
				if m.accept(&m.table[row], string(rs.text[r.start:r.end]), string(cs.text[c.start:c.end])) {
					return r, c, true
				}
			}
		}
	}
	return span{}, span{}, false
}

func (m *Comparer) accept(row *Row, ref, cand string) bool {
	if row.Check(ref, m.ref) != nil || row.Check(cand, m.cand) != nil {
		return false
	}
	if row.Pair != nil && row.Pair(ref, cand, m.ref, m.cand) != nil {
		return false
	}
	if row.Bind && (row.Fold || !m.part.Mixed) {
		part := m.part.Name
		if row.Fold { // of processes, which all parts of a case share
			part = ""
		}
		r, c := binding{part, row.Name, ref}, binding{part, row.Name, cand}
		if v, ok := m.there[r]; ok && v != cand {
			return false
		}
		if v, ok := m.back[c]; ok && v != ref && !row.Fold {
			return false
		}
		m.there[r], m.back[c] = cand, ref
	}
	m.Used[row.Name]++
	return true
}
