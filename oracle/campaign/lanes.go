package campaign

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
)

// The units of a batch are played side by side: each has its own ports, files and
// origins. What they share is the server's logs and its counter of temporary files, where
// the order in which units come is chance; byUnit takes that order out of an observation,
// and nothing else. What differs is run again by itself, in order, before it is a mismatch.

// timed tells for every slot of a batch whether its unit may meet a timer.
func timed(cs *casefile.Case) func(slot int) bool {
	conf := cs.File("nginx.conf")
	if conf == nil {
		return nil
	}
	head, parts := gen.Parts(conf.Data)
	all := run.Short(head)
	found := map[int]bool{}
	for slot, text := range parts {
		found[slot] = all || run.Short(text)
	}
	return func(slot int) bool { return found[slot] }
}

// lanes makes a batch's options play its units side by side.
func lanes(cs *casefile.Case, opt run.Options) run.Options {
	opt.Timed = timed(cs)
	opt.Lane = func(s casefile.Section) int { return (s.ID - 1) / 100 }
	opt.Serves = func(addr string) (int, bool) {
		i := strings.LastIndexByte(addr, ':')
		if i < 0 {
			return 0, false
		}
		port, err := strconv.Atoi(addr[i+1:])
		if err != nil {
			if s := slotsIn([]byte(addr)); len(s) == 1 {
				return s[0], true
			}
			return 0, false
		}
		return gen.SlotOfPort(port)
	}
	return opt
}

// nobody holds the lines that name no unit.
const nobody = -1

// byUnit gives the observation with its logs' lines sorted by unit (each unit's in the order in
// which they came; those of no unit by their text) and each unit's temporary files numbered from one.
func byUnit(o *observe.Observation) *observe.Observation {
	n := *o
	count := counters{}
	n.Clients = slices.Clone(o.Clients)
	for i := range n.Clients {
		c := &n.Clients[i]
		c.Recv = count.in((c.ID-1)/100, c.Recv)
	}
	n.Errors = slices.Clone(o.Errors)
	for i, e := range n.Errors {
		n.Errors[i].Text = string(count.in(unitOf(e.Text), []byte(e.Text)))
	}
	sortLines(n.Errors, func(e observe.LogEntry) string { return e.Text })
	n.Access = make(map[string][]byte, len(o.Access))
	for name, data := range o.Access {
		lines := strings.SplitAfter(string(data), "\n")
		for i, l := range lines {
			lines[i] = string(count.in(unitOf(l), []byte(l)))
		}
		if len(slotsIn([]byte(name))) != 1 {
			sortLines(lines, func(s string) string { return s })
		}
		n.Access[name] = []byte(strings.Join(lines, ""))
	}
	return &n
}

// sortLines sorts by unit, stably; lines of no unit come last, sorted by their text without
// the numbers in it, which are times and counts.
func sortLines[T any](lines []T, text func(T) string) {
	type keyed struct {
		line T
		unit int
		text string // of lines of no unit
	}
	list := make([]keyed, len(lines))
	for i, l := range lines {
		list[i] = keyed{line: l, unit: unitOf(text(l))}
		if list[i].unit == nobody {
			list[i].unit = gen.MaxUnits
			list[i].text = digits.ReplaceAllString(text(l), "0")
		}
	}
	slices.SortStableFunc(list, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.unit, b.unit), strings.Compare(a.text, b.text))
	})
	for i := range list {
		lines[i] = list[i].line
	}
}

var digits = regexp.MustCompile(`\d+`)

// unitOf is the unit that a log's line names, or nobody.
func unitOf(line string) int {
	if s := slotsIn([]byte(line)); len(s) == 1 {
		return s[0]
	}
	return nobody
}

// tempNumber is a number of nginx's counter of temporary files: ten digits in a file's name,
// twenty in the boundary of a multipart response (ngx_next_temp_number).
var tempNumber = regexp.MustCompile(`\b0{3}\d{7}\b|\b0{10}\d{10}\b`)

// counters renumbers each unit's temporary files in the order in which they are seen.
type counters map[int]map[int]int

func (c counters) in(unit int, text []byte) []byte {
	if !bytes.Contains(text, []byte("000")) {
		return text
	}
	return tempNumber.ReplaceAllFunc(text, func(b []byte) []byte {
		n, err := strconv.Atoi(string(b))
		if err != nil {
			return b
		}
		if c[unit] == nil {
			c[unit] = map[int]int{}
		}
		if _, ok := c[unit][n]; !ok {
			c[unit][n] = len(c[unit]) + 1
		}
		return fmt.Appendf(nil, "%0*d", len(b), c[unit][n])
	})
}

// stage times f.
func (c *Campaign) stage(name string, f func() error) error {
	begin := c.cfg.Now()
	err := f()
	c.count(func(s *State) { s.Spent[name] += c.cfg.Now().Sub(begin) })
	return err
}

// stages adds up where a run's time went, by side.
func (s *State) stages(side string, o *observe.Observation) {
	for _, x := range o.Spent {
		s.Spent[side+" "+x.Stage] += x.Time
	}
}
