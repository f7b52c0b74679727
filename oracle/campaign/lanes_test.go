package campaign

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/observe"
)

// tempNumber says what counters renumber in the library's own words.
var tempNumber = regexp.MustCompile(`\b0{3}\d{7}\b|\b0{10}\d{10}\b`)

func byPattern(c counters, unit int, text []byte) []byte {
	return tempNumber.ReplaceAllFunc(text, func(b []byte) []byte {
		n, err := strconv.Atoi(string(b))
		if err != nil {
			return b
		}
		return fmt.Appendf(nil, "%0*d", len(b), c.number(unit, n))
	})
}

func TestCountersRenumber(t *testing.T) {
	c := counters{}
	for _, tt := range []struct {
		unit       int
		text, want string
	}{
		{1, "proxy_temp/7/00/0000000007", "proxy_temp/1/00/0000000001"},
		{1, "--00000000000000000009\r\n--00000000000000000007--", "--00000000000000000002\r\n--00000000000000000001--"},
		{2, "0000000009 0000000007 0000000009", "0000000001 0000000002 0000000001"},
		{1, "0001234567, x0000000007 00000000079 0010000007 00000000010000000007 00000000000000000007", "0000000003, x0000000007 00000000079 0010000007 00000000010000000007 00000000000000000001"},
		{1, "000", "000"},
		{3, "/body/0000000004408:1| /body/0000000005502 /body/0000000004200 0000000004200", "/body/0000000001408:1| /body/0000000002502 /body/0000000001200 0000000004200"},
	} {
		text := []byte(tt.text)
		if got := string(c.in(tt.unit, text)); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
		if string(text) != tt.text {
			t.Errorf("%q was changed", tt.text)
		}
	}
}

// The folders of hashed levels follow the number that a file gets.
func TestLevelsFollowTheNumber(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"open() \"/cell/tp/7/43/0012340437\" failed", "open() \"/cell/tp/7/43/0012340437\" failed"}, // no number of a temporary file: these begin with three zeros
		{"open() \"/cell/tp/7/43/0002340437\" failed", "open() \"/cell/tp/1/00/0000000001\" failed"},
		{"/tp/37/4/02/0000002437", "/tp/01/0/00/0000000001"},
		{"tp/437/0000002437", "tp/001/0000000001"},
		{"tp/8/0000002437", "tp/8/0000000001"},     // no level of it
		{"tp/8/7/0000002437", "tp/8/1/0000000001"}, // only the nearer one is
		{"0000002437", "0000000001"},
		{"a /0000002437", "a /0000000001"},
		{"7/0000002437", "1/0000000001"},
	} {
		if got := string(counters{}.in(1, []byte(tt.text))); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestCountersAreAPattern(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"0", "000", "0000000000", "0000012", "1234567", "9", "x", " ", ":", "_"})).Draw(t, "parts")
		text := ""
		for _, p := range parts {
			text += p
		}
		if got, want := string(counters{}.in(1, []byte(text))), string(byPattern(counters{}, 1, []byte(text))); got != want {
			t.Fatalf("%q: got %q, want %q", text, got, want)
		}
		if got, want := withoutNumbers(text), regexp.MustCompile(`\d+`).ReplaceAllString(text, "0"); got != want {
			t.Fatalf("%q: got %q, want %q", text, got, want)
		}
	})
}

// Equal lines of several units come in any order: their connections are not told apart, those of a unit's own lines are.
func TestLinesOfNobodyBindNoConnection(t *testing.T) {
	line := func(conn, rest string) observe.LogEntry {
		return observe.LogEntry{File: "logs/error.log", Level: "error", Text: "2026/11/30 22:30:50 [error] 253#253: *" + conn + " " + rest}
	}
	seen := func(first, second, own string) *observe.Observation {
		const forbidden = `access forbidden by rule, request: "GET / HTTP/1.1", host: "localhost"`
		return byUnit(&casefile.Case{}, &observe.Observation{Errors: []observe.LogEntry{
			line(first, forbidden), line(second, forbidden), line(own, `x, host: "s0.u08.test"`), line(own, `y, host: "s0.u08.test"`),
		}})
	}
	if r := diff.Compare(seen("8", "8", "9"), seen("7", "8", "7")); r.Verdict != diff.Agree {
		t.Errorf("units' equal lines in another order: %v", r)
	}
	o := seen("8", "8", "12")
	o.Errors[1].Text = strings.Replace(o.Errors[1].Text, "*12", "*13", 1)
	if r := diff.Compare(seen("8", "8", "9"), o); r.Verdict != diff.Differ {
		t.Errorf("a unit's line of another connection: %v", r)
	}
}

// A process's number looks like a port once there have been twenty thousand; it names no unit.
func TestProcessesNameNoUnit(t *testing.T) {
	for _, x := range []struct {
		line string
		want int
	}{
		{`2026/12/01 07:17:12 [error] 20129#20135: *712 open() "/cell/u22/html/x" failed`, 22},
		{`2026/12/01 07:17:12 [error] 20129#20135: *712 upstream prematurely closed connection, upstream: "http://127.0.0.1:20085/"`, 8},
		{`2026/12/01 07:17:12 [error] 9#9: *20712 upstream prematurely closed connection, upstream: "http://127.0.0.1:20085/"`, 8},
		{`2026/12/01 07:17:12 [warn] 20129#20129: duplicate MIME type "text/html" in /cell/nginx.conf:129`, nobody},
		{`2026/12/01 07:17:12 [alert] 9#9: worker process 20129 exited on signal 11`, nobody},
		{`2026/12/01 07:17:12 [error] 9#9: *7 limiting requests, excess: 1.000 by zone "u07_z", port 20075`, 7},
	} {
		if got := unitOf(x.line); got != x.want {
			t.Errorf("%s: unit %d, want %d", x.line, got, x.want)
		}
	}
}

// Which unit an entry belongs to does not hang on how much of it is cut off, which is by how many digits a process has.
func TestCutEntriesKeepTheirUnit(t *testing.T) {
	for size := 1850; size < 1960; size++ {
		seen := func(pid string) *observe.Observation {
			e := "2026/12/01 10:16:04 [error] " + pid + "#" + pid + `: *1 the value of the "$arg_k" key is more than 255 bytes: "` + strings.Repeat("x", size) + `, host: "s0.u34.test"`
			cut := func(s string) string { return s[:min(len(s), 2047)] }
			return byUnit(&casefile.Case{}, &observe.Observation{Errors: []observe.LogEntry{{File: "logs/error.log", Level: "error", Text: cut(e)}}})
		}
		if r := diff.Compare(seen("9"), seen("12345")); r.Verdict != diff.Agree {
			t.Fatalf("a value of %d bytes: %v", size, r.Mismatches)
		}
	}
}

// The same files in several logs of a unit are numbered alike, however often it is done.
func TestNumbersOfSeveralLogs(t *testing.T) {
	o := &observe.Observation{Access: map[string][]byte{}}
	for _, n := range []string{"a", "b", "c", "d"} {
		o.Access["logs/u01."+n] = fmt.Appendf(nil, "/body/000000000%d\n", n[0]-'a'+3)
	}
	for range 50 {
		got := byUnit(&casefile.Case{}, o).Access
		for _, n := range []string{"a", "b", "c", "d"} {
			if want := fmt.Sprintf("/body/000000000%d\n", n[0]-'a'+1); string(got["logs/u01."+n]) != want {
				t.Fatalf("log %s: %q, want %q", n, got["logs/u01."+n], want)
			}
		}
	}
}

// A temporary file's number, and the folders of hashed levels that are made of it, say nothing of a unit.
func TestTemporaryFilesOfAUnitsOwnFolders(t *testing.T) {
	tree := func(level string) []observe.FileState {
		return []observe.FileState{{Path: "logs/u16_td", Dir: true}, {Path: "logs/u16_td/" + level[:1], Dir: true}, {Path: "logs/u16_td/" + level, Dir: true},
			{Path: "logs/u16_td/" + level + "/0000000" + level[2:] + level[:1], Data: []byte("body")}, {Path: "u16/tp/00000000" + level[2:]}, {Path: "u16/html/0000000001"}}
	}
	a, b := temporary(tree("0/03")), temporary(tree("9/02"))
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%v\nand %v", a, b)
	}
	if last := temporary(tree("0/03")); !strings.Contains(fmt.Sprint(last), "u16/html/0000000001") {
		t.Errorf("a document lost its name: %v", last)
	}
}

// A temporary file below logs/ is read as a log; its number says nothing of a unit there either.
func TestTemporaryFilesBelowLogs(t *testing.T) {
	seen := func(a, b string) map[string][]byte {
		return byUnit(&casefile.Case{}, &observe.Observation{Access: map[string][]byte{"logs/u51_tb/" + a: []byte("a"), "logs/u51_tb/" + b: []byte("b"), "logs/u51.log": []byte("line\n")}}).Access
	}
	first := seen("0000000062", "0000000063")
	if got := fmt.Sprint(first); got != fmt.Sprint(seen("0000000070", "0000000064")) || string(first["logs/u51.log"]) != "line\n" || len(first) != 3 {
		t.Errorf("%s; and in another order %v", got, seen("0000000070", "0000000064"))
	}
	if got := fmt.Sprint(seen("0000000062", "0000000063")); got == fmt.Sprint(byUnit(&casefile.Case{}, &observe.Observation{Access: map[string][]byte{"logs/u51_tb/0000000062": []byte("a"), "logs/u51.log": []byte("line\n")}}).Access) {
		t.Error("a file that is not there makes no difference")
	}
}

// Masks bind a unit's values among themselves; of lines of nobody, which come in any order, they bind none; and
// they apply to units that mention the variable, and to no other.
func TestMasksOfAUnitApplyToIt(t *testing.T) {
	conf := []byte("http {\n    # unit 00: a\nlog_format u00 $connection;\n    # unit 01: b\nserver { listen 127.0.0.1:20010; }\n    # end of units\n}\n")
	head, parts := gen.Parts(conf)
	if len(parts) != 2 || len(head) == 0 {
		t.Fatalf("the configuration has parts %v", parts)
	}
	cs := &casefile.Case{Files: []casefile.File{{Path: "nginx.conf", Data: conf}}}
	seen := func(nobody, own, other string) *observe.Observation {
		o := &observe.Observation{Mentions: observe.Mentions{Vars: []string{"connection"}}, Access: map[string][]byte{
			"logs/access.log": []byte(nobody), "logs/u00.log": []byte(own), "logs/u01.log": []byte(other)}}
		return byUnit(cs, o)
	}
	for _, x := range []struct {
		name      string
		ref, cand *observe.Observation
		want      diff.Verdict
	}{
		{"lines of nobody in another order", seen("9 8\n9 7\n", "9\n", "x\n"), seen("5 8\n6 7\n", "6\n", "x\n"), diff.Agree},
		{"one connection becomes two", seen("", "9\n9\n", "x\n"), seen("", "8\n7\n", "x\n"), diff.Differ},
		{"two become one", seen("", "9\n8\n", "x\n"), seen("", "7\n7\n", "x\n"), diff.Differ},
		{"a number of a unit that has no such variable", seen("", "9\n", "8\n"), seen("", "9\n", "7\n"), diff.Differ},
	} {
		if r := diff.Compare(x.ref, x.cand); r.Verdict != x.want {
			t.Errorf("%s: %v, want %v: %v", x.name, r.Verdict, x.want, r.Mismatches)
		}
	}
}
