package diff

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"nginxoracle/oracle/mask"
	"nginxoracle/oracle/observe"
)

// refusal is how a candidate says that it knows a directive and does not have it.
const refusal = "is not supported in "

// Compare compares everything that was observed. Every part is compared whatever
// the parts before it gave; a stream is compared up to its first difference that
// no mask covers. ref and cand are observations of one case.
func Compare(ref, cand *observe.Observation) Result { return compare(ref, cand, nil) }

// Census compares, and counts besides which masks' values are there at all.
func Census(ref, cand *observe.Observation) Result { return compare(ref, cand, map[string]int{}) }

func compare(ref, cand *observe.Observation, shown map[string]int) Result {
	if why := broken(ref); why != "" {
		return Result{Verdict: RigFailed, Why: "reference: " + why}
	}
	if why := broken(cand); why != "" {
		return Result{Verdict: RigFailed, Why: "candidate: " + why}
	}
	if why := refuses(cand); why != "" {
		return Result{Verdict: Refused, Why: why}
	}
	c := comparer{m: mask.New(ref, cand), part: ref.Part}
	c.m.Shown = shown
	c.load(ref, cand)
	c.clients(ref.Clients, cand.Clients)
	c.origins(ref.Origins, cand.Origins)
	c.access(ref.Access, cand.Access)
	c.errors(ref.Errors, cand.Errors)
	c.tree(ref.Tree, cand.Tree)
	c.plain(KindTree, "do sections", undone(ref.Undone), undone(cand.Undone))
	c.processes(ref, cand)
	r := Result{Verdict: Agree, Mismatches: c.found, Masks: c.m.Used, Shown: shown}
	if len(c.found) > 0 {
		r.Verdict = Differ
	}
	return r
}

// undone is what could not be changed in a work tree, a line each.
func undone(list []observe.Undone) string {
	var b strings.Builder
	for _, u := range list {
		fmt.Fprintf(&b, "not done: line %d: %s\n", u.Line, u.Text)
	}
	return b.String()
}

// broken tells why an observation is none.
func broken(o *observe.Observation) string {
	if o == nil {
		return "there is no observation"
	}
	for _, list := range [][]observe.Conn{o.Clients, o.Origins} {
		for _, c := range list {
			if c.End == observe.EndNone {
				return fmt.Sprintf("the end of connection %d with %s was not seen", c.ID, c.Addr)
			}
		}
	}
	return ""
}

// refuses returns the line in which a candidate refuses a directive.
func refuses(o *observe.Observation) string {
	for _, text := range []string{o.Test.Text, o.Start.Text} {
		for line := range strings.Lines(text) {
			if strings.Contains(line, "[emerg] directive ") && strings.Contains(line, refusal) {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

type comparer struct {
	m     *mask.Comparer
	part  func(where string) observe.Part
	found []Mismatch
}

func (c *comparer) add(kind Kind, where string, at, pos int, ref, cand []byte) {
	c.found = append(c.found, Mismatch{Kind: kind, Where: where, At: at, Pos: pos, Ref: ref, Cand: cand})
}

// text compares two texts with the masks of their place, and returns how their places map.
func (c *comparer) text(kind Kind, where string, at mask.Where, ref, cand []byte) (mask.Alignment, bool) {
	if c.part != nil {
		c.m.In(c.part(where))
	}
	i, equal, align := c.m.Compare(at, ref, cand)
	if !equal {
		c.add(kind, where, i, align.Map(i), ref, cand)
	}
	return align, equal
}

// plain compares two values that no mask applies to.
func (c *comparer) plain(kind Kind, where string, ref, cand string) {
	if ref != cand {
		i := firstDiff(ref, cand)
		c.add(kind, where, i, i, []byte(ref), []byte(cand))
	}
}

func firstDiff(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// load compares how the configuration was taken. Once a server runs, what it
// writes to standard error is an error log and compared as one.
func (c *comparer) load(ref, cand *observe.Observation) {
	c.command("nginx -t", ref.Test, cand.Test)
	c.plain(KindLoad, "started", strconv.FormatBool(ref.Process.Started), strconv.FormatBool(cand.Process.Started))
	if !ref.Process.Started && !cand.Process.Started {
		c.command("start", ref.Start, cand.Start)
	}
}

func (c *comparer) command(where string, ref, cand observe.Command) {
	c.plain(KindLoad, where+", exit", exitText(ref.Code, ref.Signal), exitText(cand.Code, cand.Signal))
	c.text(KindLoad, where+", standard error", mask.Diag, []byte(ref.Text), []byte(cand.Text))
	c.text(KindLoad, where+", standard output", mask.Diag, []byte(ref.Stdout), []byte(cand.Stdout))
}

func exitText(code, signal int) string {
	if signal != 0 {
		return fmt.Sprintf("killed by signal %d", signal)
	}
	return fmt.Sprintf("exit code %d", code)
}

func (c *comparer) clients(ref, cand []observe.Conn) {
	for i := range max(len(ref), len(cand)) {
		switch {
		case i >= len(cand):
			c.missing(KindConns, fmt.Sprintf("client %d", ref[i].ID), ref[i].Recv, nil)
		case i >= len(ref):
			c.missing(KindConns, fmt.Sprintf("client %d", cand[i].ID), nil, cand[i].Recv)
		default:
			c.conn(KindClient, fmt.Sprintf("client %d", ref[i].ID), mask.Client, &ref[i], &cand[i])
		}
	}
}

// missing notes something that only one side has (the other is nil).
func (c *comparer) missing(kind Kind, where string, ref, cand []byte) {
	if ref == nil {
		ref = []byte("(none)")
	} else {
		cand = []byte("(none)")
	}
	c.add(kind, where, 0, 0, ref, cand)
}

// conn compares one connection: its bytes, where its messages ended, its end.
// Messages' ends are compared only where the bytes agree: otherwise they say nothing more.
func (c *comparer) conn(kind Kind, where string, at mask.Where, ref, cand *observe.Conn) {
	align, equal := c.text(kind, where, at, ref.Recv, cand.Recv)
	if !equal {
		m := &c.found[len(c.found)-1]
		for _, mark := range ref.Marks {
			if mark <= m.At {
				m.Message++
			}
		}
	}
	if equal && !sameMarks(align, ref.Marks, cand.Marks) {
		c.plain(kind, where+", ends of messages", fmt.Sprint(ref.Marks), fmt.Sprint(cand.Marks))
	}
	c.plain(KindEnd, where+", end", string(ref.End), string(cand.End))
}

func sameMarks(align mask.Alignment, ref, cand []int) bool {
	if len(ref) != len(cand) {
		return false
	}
	for i := range ref {
		if align.Map(ref[i]) != cand[i] {
			return false
		}
	}
	return true
}

func (c *comparer) origins(ref, cand []observe.Conn) {
	byAddr := func(list []observe.Conn) map[string][]*observe.Conn {
		m := map[string][]*observe.Conn{}
		for i := range list {
			m[list[i].Addr] = append(m[list[i].Addr], &list[i])
		}
		return m
	}
	r, d := byAddr(ref), byAddr(cand)
	for _, addr := range union(r, d) {
		rs, ds := r[addr], d[addr]
		c.plain(KindConns, "origin "+addr+", connections", strconv.Itoa(len(rs)), strconv.Itoa(len(ds)))
		for i := range max(len(rs), len(ds)) {
			where := fmt.Sprintf("origin %s, connection %d", addr, i+1)
			switch {
			case i >= len(ds):
				c.missing(KindOrigin, where, rs[i].Recv, nil)
			case i >= len(rs):
				c.missing(KindOrigin, where, nil, ds[i].Recv)
			default:
				c.conn(KindOrigin, where, mask.Origin, rs[i], ds[i])
			}
		}
	}
}

// union lists the keys of both maps, sorted.
func union[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func (c *comparer) access(ref, cand map[string][]byte) {
	for _, name := range union(ref, cand) {
		r, inRef := ref[name]
		d, inCand := cand[name]
		switch {
		case !inRef:
			c.missing(KindAccess, name, nil, d)
		case !inCand:
			c.missing(KindAccess, name, r, nil)
		default:
			c.text(KindAccess, name, mask.Access, r, d)
		}
	}
}

// errors compares the error logs, each as one text: an entry that one side lacks
// shows as the first difference.
func (c *comparer) errors(ref, cand []observe.LogEntry) {
	byLog := func(list []observe.LogEntry) map[string]*bytes.Buffer {
		m := map[string]*bytes.Buffer{}
		for _, e := range list {
			b := m[e.Where()]
			if b == nil {
				b = new(bytes.Buffer)
				m[e.Where()] = b
			}
			b.WriteString(Uncut(e.Text) + "\n")
		}
		return m
	}
	r, d := byLog(ref), byLog(cand)
	for _, name := range union(r, d) {
		var rt, dt []byte
		if b := r[name]; b != nil {
			rt = b.Bytes()
		}
		if b := d[name]; b != nil {
			dt = b.Bytes()
		}
		c.text(KindError, name, mask.Error, rt, dt)
	}
}

// An entry of the error log is cut off at 2048 bytes with its newline (src/core/ngx_log.h,
// NGX_MAX_ERROR_STR), so that where its text ends depends on how many digits the numbers in front of
// it have. A text is compared as far as it would go behind numbers of the most digits.
const (
	entryMost = 2047
	// Where a text gives way to "... (20: Not a directory)" and what follows (src/core/ngx_log.c, ngx_log_errno).
	errnoAt    = entryMost + 1 - 50
	numberMost = len("1234567#1234567: *1234567 ")
)

var entryNumbers = regexp.MustCompile(`^\S+ \S+ \[\w+\] (\d+#\d+: (?:\*\d+ )?)`)

// Uncut is the part of an entry that is compared.
func Uncut(text string) string {
	if len(text) <= entryMost-numberMost {
		return text
	}
	m := entryNumbers.FindStringSubmatchIndex(text)
	if m == nil {
		return text
	}
	short := numberMost - (m[3] - m[2])
	if len(text) > errnoAt && strings.HasPrefix(text[errnoAt:], "... (") {
		return text[:errnoAt-short] + text[errnoAt:]
	}
	return text[:min(len(text), entryMost-short)]
}

func (c *comparer) tree(ref, cand []observe.FileState) {
	byPath := func(list []observe.FileState) map[string]*observe.FileState {
		m := map[string]*observe.FileState{}
		for i := range list {
			m[list[i].Path] = &list[i]
		}
		return m
	}
	r, d := byPath(ref), byPath(cand)
	for _, name := range union(r, d) {
		a, b := r[name], d[name]
		switch {
		case a == nil:
			c.missing(KindTree, name, nil, []byte(b.Kind()))
		case b == nil:
			c.missing(KindTree, name, []byte(a.Kind()), nil)
		default:
			c.plain(KindTree, name+", kind", a.Kind(), b.Kind())
			c.text(KindTree, name, mask.Tree, a.Data, b.Data)
		}
	}
}

func (c *comparer) processes(ref, cand *observe.Observation) {
	r, d := &ref.Process, &cand.Process
	// First, for a crash says why the rest differs: a finding is named, and shrunk, by what comes first.
	c.plain(KindProcess, Workers, worker(r), worker(d))
	if r.Started && d.Started {
		c.plain(KindProcess, Exit, exitText(r.Exit.Code, r.Exit.Signal), exitText(d.Exit.Code, d.Exit.Signal))
		c.plain(KindProcess, Descriptors, strconv.Itoa(r.FDAfter-r.FDBefore), strconv.Itoa(d.FDAfter-d.FDBefore))
	}
	c.plain(KindProcess, "processes left", strings.Join(r.Left, "\n"), strings.Join(d.Left, "\n"))
	c.plain(KindProcess, "last-resort timeouts", strconv.Itoa(ref.Timeouts), strconv.Itoa(cand.Timeouts))
}

// Where processes differ: a worker's crash, the main process's, and how many descriptors the server has at rest.
const (
	Descriptors = "descriptors gained"

	Workers = "workers"
	Exit    = "exit"
)

func worker(p *observe.Process) string {
	if p.Worker == "" {
		return "none crashed"
	}
	return p.Worker
}
