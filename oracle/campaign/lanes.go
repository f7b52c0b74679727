package campaign

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
)

// The units of a batch are played side by side: each has its own ports, files and
// origins. What they share is the server's logs and its counter of temporary files, where
// the order in which units come is chance; byUnit takes that order out of an observation,
// and nothing else. What differs is run again by itself, in order, before it is a mismatch.

// timed tells for every slot of a batch whether its unit may meet a timer.
func timed(cs *casefile.Case) func(slot int) bool { return inUnits(cs, run.Short) }

// inUnits tells for every slot of a batch whether is holds of its unit's configuration, or of what it inherits.
func inUnits(cs *casefile.Case, is func(conf []byte) bool) func(slot int) bool {
	conf := cs.File("nginx.conf")
	if conf == nil {
		return nil
	}
	head, parts := gen.Parts(conf.Data)
	all := is(head) // of a case that shrinking has taken the marks from: the whole text
	found := map[int]bool{}
	for slot, text := range parts {
		found[slot] = all || is(text)
	}
	return func(slot int) bool { return found[slot] || all && len(parts) == 0 }
}

// lanes makes a batch's options play its units side by side.
func lanes(cs *casefile.Case, opt run.Options) run.Options {
	opt.Timed, opt.Hasty, opt.Leaves = timed(cs), inUnits(cs, run.Hasty), inUnits(cs, run.Leaves)
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

// whose tells for every unit of a batch which variables it mentions, or inherits a mention of (see run.Mentions): only what may show a
// variable's value is compared with its mask. Of what belongs to no unit it may be any.
func whose(cs *casefile.Case, all observe.Mentions) func(where string) observe.Part {
	head, confs := []byte(nil), map[int][][]byte{}
	for _, f := range cs.Files {
		owner := slotsIn([]byte(f.Path))
		switch {
		case f.Path == "nginx.conf":
			shared, parts := gen.Parts(f.Data)
			head = append(head, shared...)
			for slot, text := range parts {
				confs[slot] = append(confs[slot], text)
			}
		case len(owner) == 1:
			confs[owner[0]] = append(confs[owner[0]], f.Data)
		default:
			head = append(append(head, f.Data...), '\n')
		}
	}
	parts := map[int]observe.Part{}
	return func(where string) observe.Part {
		slot, ok := placeSlot(where)
		if !ok {
			return observe.Part{Name: "nobody", Mentions: all, Mixed: true}
		}
		p, ok := parts[slot]
		if !ok {
			p = observe.Part{Name: strconv.Itoa(slot), Mentions: all}
			if own := confs[slot]; len(own) > 0 {
				p.Mentions = run.Mentions(append(slices.Clone(own), head)...)
			}
			parts[slot] = p
		}
		return p
	}
}

// byUnit gives the observation of a batch with what units have in common taken apart: of a log that several
// write to, each unit's lines by themselves, in the order in which they came, and those of no unit
// by their text; each unit's temporary files numbered from one.
func byUnit(cs *casefile.Case, o *observe.Observation) *observe.Observation {
	n := *o
	n.Part = whose(cs, o.Mentions)
	count := counters{}
	n.Clients = slices.Clone(o.Clients)
	for i := range n.Clients {
		c := &n.Clients[i]
		c.Recv = count.in((c.ID-1)/100, c.Recv)
	}
	n.Errors = slices.Clone(o.Errors)
	for i, e := range n.Errors {
		unit := unitOf(diff.Uncut(e.Text)) // what is cut off hangs on how many digits a process has
		n.Errors[i].Text = string(count.in(unit, []byte(e.Text)))
		switch {
		case unit == nobody:
			n.Errors[i].Text = connection.ReplaceAllString(n.Errors[i].Text, "${1}*0 ")
		case unitOf(e.File) != unit:
			n.Errors[i].File = partOf(e.Where(), unit)
		}
	}
	sortLines(n.Errors, func(e observe.LogEntry) string { return e.Text })
	logs := temporaryLogs(o.Access)
	n.Access = make(map[string][]byte, len(logs))
	for _, name := range slices.Sorted(maps.Keys(logs)) { // numbers are given in this order
		data := logs[name]
		owner := unitOf(name)
		var rest []string
		for l := range strings.Lines(string(data)) {
			unit := unitOf(l)
			whose := unit
			if owner != nobody {
				whose = owner
			}
			text := count.in(whose, []byte(l))
			switch {
			case owner != nobody:
				n.Access[name] = append(n.Access[name], text...)
			case unit != nobody:
				n.Access[partOf(name, unit)] = append(n.Access[partOf(name, unit)], text...)
			default:
				rest = append(rest, string(text))
			}
		}
		if owner == nobody || len(data) == 0 {
			sortLines(rest, func(s string) string { return s })
			n.Access[name] = []byte(strings.Join(rest, ""))
		}
	}
	n.Tree = temporary(o.Tree)
	return &n
}

// partOf names a unit's part of a log.
func partOf(log string, unit int) string { return fmt.Sprintf("%s of u%02d", log, unit) }

// sortLines sorts by unit, stably; lines of no unit come last, sorted by their text without what
// is never the same: times, processes and connections. Those that are then equal stay as they came.
func sortLines[T any](lines []T, text func(T) string) {
	type keyed struct {
		line        T
		unit        int
		shape, text string // of lines of no unit
	}
	list := make([]keyed, len(lines))
	for i, l := range lines {
		t := diff.Uncut(text(l))
		list[i] = keyed{line: l, unit: unitOf(t)}
		if list[i].unit == nobody {
			list[i].unit = gen.MaxUnits
			list[i].shape = withoutNumbers(t)
			list[i].text = passing.ReplaceAllString(t, "")
		}
	}
	slices.SortStableFunc(list, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.unit, b.unit), strings.Compare(a.shape, b.shape), strings.Compare(a.text, b.text))
	})
	for i := range list {
		lines[i] = list[i].line
	}
}

// connection is the number in front of an error log's entry. Which of several units' equal lines comes first is
// chance, so that what lines of no unit say of connections is no fact about them.
var connection = regexp.MustCompile(`^(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\w+\] \d+#\d+: )\*\d+ `)

// passing is what stands in front of an error log's entry, and the time of a line of the combined format.
var passing = regexp.MustCompile(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d |\d+#\d+: (?:\*\d+ )?|\[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]`)

// unitOf is the unit that a log's line, or its name, names, or nobody. A name goes before a port: any
// number may look like one.
func unitOf(line string) int {
	s := slotsIn([]byte(line))
	if len(s) == 1 {
		return s[0]
	}
	if s = namesIn([]byte(line), nil); len(s) == 1 {
		return s[0]
	}
	return nobody
}

// counters renumbers each unit's temporary files in the order in which they are seen.
type counters map[int]map[int]int

// in renumbers in one text. A number of nginx's counter of temporary files is a word of ten digits, three
// zeros first (a file's name), or of twenty, ten zeros first (the boundary of a multipart response); see
// ngx_next_temp_number. Every byte of a batch goes through here: the zeros are looked for, not the word.
func (c counters) in(unit int, text []byte) []byte {
	out, mine := text, false
	for at := 0; ; {
		i := bytes.Index(text[at:], zeros)
		if i < 0 {
			return out
		}
		begin := at + i
		for at = begin + len(zeros); at < len(text) && isWord(text[at]); {
			at++
		}
		word := text[begin:at]
		if len(word) > fileDigits && begin > 0 && text[begin-1] == '/' && allDigits(word[:fileDigits]) { // a file's name, and what a log has behind it
			word, at = word[:fileDigits], begin+fileDigits
		}
		if begin > 0 && isWord(text[begin-1]) || len(word) != fileDigits && (len(word) != boundaryDigits || !bytes.HasPrefix(word, manyZeros)) {
			continue
		}
		n, err := strconv.Atoi(string(word))
		if err != nil {
			continue
		}
		if !mine {
			out, mine = bytes.Clone(text), true
		}
		number := fmt.Sprintf("%0*d", len(word), c.number(unit, n))
		copy(out[begin:at], number)
		if len(word) == fileDigits {
			relevel(out[:begin], string(word), number)
		}
	}
}

func allDigits(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r < '0' || r > '9' })
}

// relevel makes the folders of hashed levels that stand before a temporary file's name follow its new number: the first is
// its last digits, each further one the digits before; see ngx_create_hashed_filename.
func relevel(before []byte, old, number string) {
	levels := bytes.Split(before[max(0, len(before)-4*levelsMost-2):], []byte("/")) // of a folder that this cuts too much is left to be a level
	end := len(levels) - 1                                                          // behind the last slash nothing stands
	if end < 1 || len(levels[end]) != 0 {
		return
	}
	from := max(0, end-levelsMost)
	for from < end && !follows(levels[from:end], old) { // the longest run of folders that the old number gives
		from++
	}
	at := len(number)
	for _, l := range levels[from:end] {
		copy(l, number[at-len(l):at])
		at -= len(l)
	}
}

// levelsMost is how many levels a temp_path has; see ngx_conf_set_path_slot.
const levelsMost = 3

// follows tells whether the levels are made of a number's digits.
func follows(levels [][]byte, number string) bool {
	at := len(number)
	for _, l := range levels {
		if len(l) == 0 || len(l) > min(at, 3) || string(l) != number[at-len(l):at] {
			return false
		}
		at -= len(l)
	}
	return true
}

func (c counters) number(unit, n int) int {
	if unit == nobody { // whose line it is nobody knows, nor in which order they came
		return 0
	}
	if c[unit] == nil {
		c[unit] = map[int]int{}
	}
	if _, ok := c[unit][n]; !ok {
		c[unit][n] = len(c[unit]) + 1
	}
	return c[unit][n]
}

const (
	fileDigits     = 10
	boundaryDigits = 20
)

var (
	zeros     = []byte("000")
	manyZeros = []byte("0000000000")
)

// withoutNumbers is a line with every number in it as 0.
func withoutNumbers(line string) string {
	b := make([]byte, 0, len(line))
	for i := range len(line) {
		switch {
		case !isDigit(line[i]):
			b = append(b, line[i])
		case i == 0 || !isDigit(line[i-1]):
			b = append(b, '0')
		}
	}
	return string(b)
}

// Of the files that requests leave in the server's folders for them, the number and with it the folders of
// hashed levels (proxy_temp_path, 1 2) hang on which unit came first.
var (
	tempFile  = regexp.MustCompile(`^(/var/lib/nginx/\w+|.*(?:_t[b-eq-sp]|/tp))/(?:\d{1,3}/){0,3}\d{10}$`)
	tempLevel = regexp.MustCompile(`^(/var/lib/nginx/\w+|.*(?:_t[b-eq-sp]|/tp))/\d{1,3}(?:/\d{1,3}){0,2}$`)
)

// temporary gives a tree with the temporary files numbered in the order of what they hold, and one
// folder in place of those of hashed levels.
func temporary(tree []observe.FileState) []observe.FileState {
	var out, files []observe.FileState
	levels := map[string]bool{}
	for _, f := range tree {
		if m := tempFile.FindStringSubmatch(f.Path); m != nil && !f.Dir {
			f.Path = m[1]
			files = append(files, f)
			continue
		}
		if m := tempLevel.FindStringSubmatch(f.Path); m != nil && f.Dir {
			if levels[m[1]] {
				continue
			}
			levels[m[1]] = true
			f.Path = m[1] + "/levels"
		}
		out = append(out, f)
	}
	slices.SortStableFunc(files, func(a, b observe.FileState) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), bytes.Compare(a.Data, b.Data))
	})
	for i, f := range files {
		f.Path = fmt.Sprintf("%s/file %d", f.Path, i+1)
		out = append(out, f)
	}
	return out
}

// temporaryLogs gives logs with the temporary files among them, of a folder below logs/, numbered in the order of what they hold.
func temporaryLogs(logs map[string][]byte) map[string][]byte {
	out := make(map[string][]byte, len(logs))
	var files []observe.FileState
	for name, data := range logs {
		if tempFile.MatchString(name) {
			files = append(files, observe.FileState{Path: name, Data: data})
		} else {
			out[name] = data
		}
	}
	for _, f := range temporary(files) {
		out[f.Path] = f.Data
	}
	return out
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
