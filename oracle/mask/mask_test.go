package mask

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nginxoracle/oracle/observe"
)

// runAt is when the runs of these tests began.
var runAt = time.Date(2026, 11, 30, 17, 39, 27, 400e6, time.UTC)

func observation(vars ...string) *observe.Observation {
	return &observe.Observation{
		At: runAt, Took: 300 * time.Millisecond, Mentions: observe.Mentions{Vars: vars},
		Process: observe.Process{Pid: 12},
		Clients: []observe.Conn{{ID: 1, Port: 40001}, {ID: 2, Port: 40002}},
	}
}

// example is a pair of texts for one row.
type example struct {
	row, ref, cand string
	where          Where
	equal          bool
}

// Every row has an example that it masks and one that it must not. The texts are
// what the value stands in.
var examples = []example{
	{"date", "\r\nDate: Mon, 30 Nov 2026 17:39:27 GMT\r\n", "\r\nDate: Mon, 30 Nov 2026 17:39:28 GMT\r\n", Client, true},
	{"date", "\r\nDate: Mon, 30 Nov 2026 17:39:27 GMT\r\n", "\r\nDate: Mon, 30 Nov 2026 17:39:40 GMT\r\n", Client, false},
	{"date", "\r\nDate: Mon, 30 Nov 2026 17:39:27 GMT\r\n", "\r\nDate: Mon, 30 Nov 2026 17:39:28\r\n", Client, false},
	{"date", "\r\nDate: Mon, 30 Nov 2026 17:39:27 GMT\r\n", "\r\ndate: Mon, 30 Nov 2026 17:39:27 GMT\r\n", Client, false},
	{"expires", "\r\nExpires: Mon, 30 Nov 2026 18:39:27 GMT\r\n", "\r\nExpires: Mon, 30 Nov 2026 18:39:28 GMT\r\n", Client, true},
	{"expires", "\r\nExpires: Mon, 30 Nov 2026 18:39:27 GMT\r\n", "\r\nExpires: Mon, 30 Nov 2026 18:49:28 GMT\r\n", Client, false},
	{"max-age", "\r\nCache-Control: max-age=3601\r\n", "\r\nCache-Control: max-age=3600\r\n", Client, true},
	{"max-age", "\r\nCache-Control: max-age=3601\r\n", "\r\nCache-Control: max-age=3700\r\n", Client, false},
	{"max-age-sent", "/a max-age=3601 200\n", "/a max-age=3600 200\n", Access, true},
	{"max-age-sent", "/a max-age=3601 200\n", "/a max-age=3700 200\n", Access, false},
	{"max-age-sent", "/a xmax-age=3601 200\n", "/a xmax-age=3600 200\n", Access, false},
	{"max-age", "\r\nCache-Control: max-age=2306371723\r\n", "\r\nCache-Control: max-age=2306371721\r\n", Client, true},
	{"last-modified", "\r\nLast-Modified: Mon, 30 Nov 2026 17:39:27 GMT\r\n", "\r\nLast-Modified: Mon, 30 Nov 2026 17:39:28 GMT\r\n", Client, true},
	{"last-modified", "\r\nLast-Modified: Mon, 30 Nov 2026 17:39:27 GMT\r\n", "\r\nLast-Modified: Mon, 30 Nov 2026 17:30:28 GMT\r\n", Client, false},
	{"etag", "\r\nETag: \"6b0db4cf-2\"\r\n", "\r\nETag: \"6b0db4d0-2\"\r\n", Client, true},
	{"etag", "\r\nETag: W/\"6b0db4cf-2\"\r\n", "\r\nETag: W/\"6b0db4d0-3\"\r\n", Client, false},
	{"etag", "\r\nETag: \"6b0db4cf-2\"\r\n", "\r\nETag: \"5a3bd100-2\"\r\n", Client, false},
	{"log-time", "2026/11/30 17:39:27 [error] 1#1: x", "2026/11/30 17:39:28 [error] 1#1: x", Error, true},
	{"log-time", "2026/11/30 17:39:27 [error] 1#1: x", "2026/11/30 16:39:28 [error] 1#1: x", Error, false},
	{"log-pid", "2026/11/30 17:39:27 [error] 13#1: x", "2026/11/30 17:39:27 [error] 9#1: x", Error, true},
	{"log-pid", "2026/11/30 17:39:27 [error] 13#1: x", "2026/11/30 17:39:27 [error] x#1: x", Error, false},
	{"log-tid", "2026/11/30 17:39:27 [error] 1#13: x", "2026/11/30 17:39:27 [error] 1#20: x", Error, true},
	{"log-tid", "2026/11/30 17:39:27 [error] 1#13: x\n2026/11/30 17:39:27 [error] 1#13: x", "2026/11/30 17:39:27 [error] 1#20: x\n2026/11/30 17:39:27 [error] 1#21: x", Error, false},
	{"log-connection", "2026/11/30 17:39:27 [error] 1#1: *1 x", "2026/11/30 17:39:27 [error] 1#1: *3 x", Error, true},
	{"log-connection", "2026/11/30 17:39:27 [error] 1#1: *1 x", "2026/11/30 17:39:27 [error] 1#1: x", Error, false},
	{"log-pid", "2026/11/30 17:39:27 [warn] 16#1: a\n2026/11/30 17:39:27 [warn] 17#1: b", "2026/11/30 17:39:27 [warn] 31#1: a\n2026/11/30 17:39:27 [warn] 31#1: b", Error, true},
	{"log-pid", "2026/11/30 17:39:27 [warn] 16#1: a\n2026/11/30 17:39:27 [warn] 16#1: b", "2026/11/30 17:39:27 [warn] 31#1: a\n2026/11/30 17:39:27 [warn] 32#1: b", Error, false},
	{"buffer-address", "zero size buf in writer t:1 r:0 f:0 000055F99849C840 000055F99849C840-000055F99849C840 0000000000000000 0-0 while", "zero size buf in writer t:1 r:0 f:0 000000C000917300 000000C000917300-000000C000917300 0000000000000000 0-0 while", Error, true},
	{"buffer-address", "zero size buf in writer t:1 r:0 f:0 000055F99849C840 000055F99849C840-000055F99849C840 0000000000000000 0-0 while", "zero size buf in writer t:1 r:0 f:0 000000C000917300 000000C000917300-000000C000917300 000000C000917300 0-0 while", Error, false},
	{"buffer-address", "zero size buf in writer t:1 r:0 f:0 000055F99849C840 000055F99849C840-000055F99849C840 0000000000000000 0-0 while", "zero size buf in writer t:1 r:0 f:0 000000C000917300 000000C000917301-000000C000917301 0000000000000000 0-0 while", Error, false},
	{"notice-pid", "worker process 13 exited on signal 11", "worker process 14 exited on signal 11", Error, true},
	{"notice-pid", "worker process 13 exited on signal 11", "worker process 13 exited on signal 6", Error, false},
	{"time_local", `1.1.1.1 - - [30/Nov/2026:17:39:27 +0000] "GET`, `1.1.1.1 - - [30/Nov/2026:17:39:28 +0000] "GET`, Access, true},
	{"time_local", `1.1.1.1 - - [30/Nov/2026:17:39:27 +0000] "GET`, `1.1.1.1 - - [30/Nov/2026:17:39:27 GMT] "GET`, Access, false},
	{"time_local-sent", "X: 30/Nov/2026:17:39:27 +0000", "X: 30/Nov/2026:17:39:28 +0000", Client, true},
	{"time_local-sent", "X: 30/Nov/2026:17:39:27 +0000", "X: 29/Nov/2026:17:39:28 +0000", Client, false},
	{"time_iso8601", "2026-11-30T17:39:27+00:00", "2026-11-30T17:39:28+00:00", Access, true},
	{"time_iso8601", "2026-11-30T17:39:27+00:00", "2026-11-30T17:39:28Z", Access, false},
	{"msec", "1796060367.401", "1796060367.650", Origin, true},
	{"msec", "1796060367.401", "1796060367.6", Origin, false},
	{"msec", "1796060367.401", "1796069999.401", Origin, false},
	{"duration", "rt=0.001 ut=0.000", "rt=0.003 ut=0.002", Access, true},
	{"duration", "rt=0.001", "rt=9.001", Access, false},
	{"duration", "rt=0.001", "rt=-", Access, false},
	{"request_id", "id 8dc0bb68545ade3316776f8ebeca4817", "id 700b223d50b299b42a8600cfb225f8df", Client, true},
	{"request_id", "id 8dc0bb68545ade3316776f8ebeca4817", "id 700b223d50b299b42a8600cfb225f8d", Client, false},
	{"pid", "pid 13", "pid 14", Client, true},
	{"pid", "pid 13", "pid 400", Client, false},
	{"connection", "c 1", "c 2", Client, true},
	{"connection", "c 1", "c 200", Client, false},
	{"port", "p 40001", "p 40002", Client, true},
	{"port", "p 40001", "p 40003", Client, false},
}

func TestEveryRow(t *testing.T) {
	seen := map[string][2]int{}
	for _, e := range examples {
		row := rowOf(e.row)
		if row == nil {
			t.Errorf("example for %q, which is no row", e.row)
			continue
		}
		if row.Where&e.where == 0 {
			t.Errorf("%s: the example stands where the row does not apply", e.row)
		}
		m := New(observation(needs(row)...), observation(needs(row)...))
		at, equal, _ := m.Compare(e.where, []byte(e.ref), []byte(e.cand))
		if equal != e.equal {
			t.Errorf("%s: %q and %q: equal %v, want %v (at %d)", e.row, e.ref, e.cand, equal, e.equal, at)
		}
		n := seen[e.row]
		if e.equal {
			n[1]++
			if m.Used[e.row] == 0 {
				t.Errorf("%s: %q and %q: masked by %v instead", e.row, e.ref, e.cand, m.Used)
			}
			// The row alone does it: without it the texts differ.
			m = New(observation(needs(row)...), observation(needs(row)...))
			m.table = without(e.row)
			if _, equal, _ := m.Compare(e.where, []byte(e.ref), []byte(e.cand)); equal {
				t.Errorf("%s: %q and %q are equal without it", e.row, e.ref, e.cand)
			}
		} else {
			n[0]++
		}
		seen[e.row] = n
	}
	for _, r := range Table {
		if n := seen[r.Name]; n[0] == 0 || n[1] == 0 {
			t.Errorf("row %s: %d examples that it masks and %d that it must not; want both", r.Name, n[1], n[0])
		}
	}
}

// needs is what a configuration must have for the row to apply.
func needs(row *Row) []string { return append(slices.Clone(row.Vars), row.Trait) }

func rowOf(name string) *Row {
	for i := range Table {
		if Table[i].Name == name {
			return &Table[i]
		}
	}
	return nil
}

func without(name string) (rows []Row) {
	for _, r := range Table {
		if r.Name != name {
			rows = append(rows, r)
		}
	}
	return rows
}

// A row for a variable applies only where the configuration mentions it.
func TestVariablesMustBeMentioned(t *testing.T) {
	m := New(observation(), observation())
	if _, equal, _ := m.Compare(Access, []byte("0.001"), []byte("0.002")); equal {
		t.Error("a duration was masked though no variable for one is mentioned")
	}
}

// What only a log_format has stands in lines of that form, and nowhere else.
func TestLoggedVariables(t *testing.T) {
	for _, x := range []struct {
		where     Where
		ref, cand string
		equal     bool
	}{
		{Access, "a\n1 200 5\nb", "a\n2 200 5\nb", true},
		{Access, "1 200 5\n2 200 5\n", "2 200 5\n3 200 5\n", true},
		{Access, "1 200 5", "1 200 6", false},
		{Access, "1 6 5\n", "1 7 5\n", false},
		{Access, "1\n", "2\n", false}, // a line of another format
		{Client, "\r\nX: 1 200 5\r\n", "\r\nX: 2 200 5\r\n", false},
		{Origin, "1 200 5\n", "2 200 5\n", false},
		{Tree, "1 200 5\n", "2 200 5\n", true},
	} {
		o := observation()
		o.Mentions.Logged = map[string][]observe.Place{"connection": {{Before: "^$", After: "^ .* .*$"}}}
		m := New(o, o)
		m.Shown = map[string]int{}
		if _, equal, _ := m.Compare(x.where, []byte(x.ref), []byte(x.cand)); equal != x.equal {
			t.Errorf("%q and %q: equal %v", x.ref, x.cand, equal)
		}
		if want := strings.Count(x.ref, " 5\n"); x.equal && m.Shown["connection"] != want {
			t.Errorf("%q: %d values shown, want %d", x.ref, m.Shown["connection"], want)
		}
	}
}

// Seconds that a configuration gives, and times that an origin gives, are compared.
func TestFixedTimesAreCompared(t *testing.T) {
	for _, x := range []struct {
		has       []string
		where     Where
		ref, cand string
	}{
		{nil, Client, "\r\nCache-Control: max-age=60\r\n", "\r\nCache-Control: max-age=59\r\n"},
		{[]string{observe.Expires}, Client, "\r\nCache-Control: max-age=60\r\n", "\r\nCache-Control: max-age=59\r\n"},
		{[]string{observe.Expires, "sent_http_cache_control"}, Access, "max-age=60\n", "max-age=59\n"},
		{nil, Client, "\r\nExpires: Mon, 30 Nov 2026 18:39:27 GMT\r\n", "\r\nExpires: Mon, 30 Nov 2026 18:39:28 GMT\r\n"},
	} {
		m := New(observation(x.has...), observation(x.has...))
		if _, equal, _ := m.Compare(x.where, []byte(x.ref), []byte(x.cand)); equal {
			t.Errorf("with %q: %q and %q are equal by %v", x.has, x.ref, x.cand, m.Used)
		}
	}
}

// Comparing goes on behind a masked value, and a value bound in one text stays
// bound in the next.
func TestGoesOnAndBinds(t *testing.T) {
	m := New(observation("request_id"), observation("request_id"))
	a, b := "8dc0bb68545ade3316776f8ebeca4817", "700b223d50b299b42a8600cfb225f8df"
	at, equal, _ := m.Compare(Client, []byte("id "+a+" end"), []byte("id "+b+" END"))
	if equal || at != len("id "+a+" ") {
		t.Errorf("behind the masked value: equal %v at %d", equal, at)
	}
	if _, equal, _ := m.Compare(Origin, []byte(a), []byte(b)); !equal {
		t.Error("the same pair again: not equal")
	}
	if _, equal, _ := m.Compare(Origin, []byte(a), []byte(strings.Repeat("0", 32))); equal {
		t.Error("a bound value went with another one")
	}
	if _, equal, _ := m.Compare(Access, []byte(strings.Repeat("1", 32)), []byte(b)); equal {
		t.Error("two values went with the same one")
	}
}

func TestAlignmentMapsPlaces(t *testing.T) {
	m := New(observation("pid"), observation("pid"))
	ref, cand := "pid 12, then", "pid 70, then"
	_, equal, align := m.Compare(Client, []byte(ref+" pid 9x"), []byte(cand+" pid 9x"))
	if !equal || align.Map(0) != 0 || align.Map(len(ref)) != len(cand) {
		t.Errorf("equal %v, alignment %v", equal, align)
	}
	m = New(observation(), observation())
	_, equal, align = m.Compare(Error, []byte("2026/11/30 17:39:27 [warn] 9#9: a\nb"), []byte("2026/11/30 17:39:27 [warn] 123#123: a\nb"))
	if !equal || align.Map(0) != 0 || align.Map(34) != 38 {
		t.Errorf("equal %v, alignment %v", equal, align)
	}
}

// A value that one side has longer is cut at its own end, not at the other's.
func TestValueThatGoesOn(t *testing.T) {
	m := New(observation(), observation())
	if _, equal, _ := m.Compare(Error, []byte("2026/11/30 17:39:27 [warn] 1#1: *1 a"), []byte("2026/11/30 17:39:27 [warn] 1#1: *12 a")); !equal {
		t.Error("*1 and *12 are not masked")
	}
}

// A difference right behind a value is no part of it, whether the value was the same on both sides
// or was masked; comparing ends there.
func TestDifferenceRightBehindAValue(t *testing.T) {
	for _, x := range []struct {
		ref, cand string
		at        int
	}{
		{"c 2a", "c 2b", 3},
		{"c 2", "c 2b", 3},
		{"c 1a", "c 2b", 3},
		{"c 1, c 12\n", "c 2, c 13\r\n", 9},
	} {
		m := New(observation("connection"), observation("connection"))
		for _, side := range []*Side{m.ref, m.cand} {
			side.Conns = 100
		}
		if at, equal, _ := m.Compare(Client, []byte(x.ref), []byte(x.cand)); equal || at != x.at {
			t.Errorf("%q and %q: equal %v at %d, want a difference at %d", x.ref, x.cand, equal, at, x.at)
		}
	}
}

// A flooded log is compared with work that grows as the log does: each value is looked at a few
// times, however many there are.
func TestFloodedLog(t *testing.T) {
	var ref, cand bytes.Buffer
	const lines = 10_000
	for i := range lines {
		fmt.Fprintf(&ref, "2026/11/30 17:39:27 [error] 13#13: *%d a\n", i+1)
		fmt.Fprintf(&cand, "2026/11/30 17:39:28 [error] 9#9: *%d a\n", i+2)
	}
	m := New(observation(), observation())
	rs, cs := m.finder(Error, ref.Bytes()), m.finder(Error, cand.Bytes())
	if at, equal, _ := m.compare(rs, cs); !equal {
		t.Errorf("a difference at %d", at)
	}
	if n := m.Used["log-connection"]; n != lines {
		t.Errorf("%d connections' numbers were masked, want %d", n, lines)
	}
	// four values a line, four masked differences
	if n := rs.looks + cs.looks; n == 0 || n > 2*lines*4*8 {
		t.Errorf("%d looks at values for %d lines", n, lines)
	}
}

// Looking through a text piece by piece finds what a form finds in the whole text.
func TestFinderFindsWhatTheFormFinds(t *testing.T) {
	var parts []string
	for _, e := range examples {
		parts = append(parts, e.ref, e.cand)
	}
	parts = append(parts, "\n", "\r\n", "\r\n\r\n", "1", "ab ", strings.Repeat("12 ", piece/2))
	r := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		var text []byte
		for len(text) < 3*piece {
			text = append(text, parts[r.IntN(len(parts))]...)
		}
		for i := range Table {
			row := &Table[i]
			m := New(observation(needs(row)...), observation(needs(row)...))
			f := m.finder(row.Where, text)
			f.around(i, len(text))
			var want []span
			for _, g := range row.Form.FindAllSubmatchIndex(text, -1) {
				want = append(want, span{g[2], g[3]})
			}
			if d := cmp.Diff(want, f.rows[i].found, cmp.AllowUnexported(span{})); d != "" {
				t.Fatalf("%s: %s", row.Name, d)
			}
		}
	}
}

// docs/masks.md names every row and no other.
func TestPageNamesEveryRow(t *testing.T) {
	page, err := os.ReadFile("../../docs/masks.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, r := range Table {
		want.WriteString(r.page())
	}
	if _, got, _ := strings.Cut(string(page), "<!-- rows: written by go test ./oracle/mask -update -->\n"); got != want.String() {
		if *update {
			head, _, _ := strings.Cut(string(page), "<!-- rows")
			text := head + "<!-- rows: written by go test ./oracle/mask -update -->\n" + want.String()
			if err := os.WriteFile("../../docs/masks.md", []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Error("docs/masks.md is not what the table says; run: go test ./oracle/mask -update")
	}
}

// Seconds until a moment are fewer in a run that began later.
func TestMaxAgeIsCountedFromTheRun(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	early, late := &Side{At: at}, &Side{At: at.Add(100 * time.Second)}
	for _, e := range []struct {
		ref, cand string
		r, c      *Side
		same      bool
	}{
		{"500", "400", early, late, true},
		{"400", "500", late, early, true},
		{"400", "500", early, late, false},
		{"500", "500", early, late, false},
		{"500", "498", early, early, true},
		{"500", "497", early, early, false},
		{"x", "497", early, early, false},
	} {
		if err := sameMoment(e.ref, e.cand, e.r, e.c); (err == nil) != e.same {
			t.Errorf("%s at %s and %s at %s: %v", e.ref, e.r.At.Format(time.TimeOnly), e.cand, e.c.At.Format(time.TimeOnly), err)
		}
	}
}
