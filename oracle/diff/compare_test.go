package diff

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/observe"
)

// full is an observation that has something of everything.
func full() *observe.Observation {
	return &observe.Observation{
		At: time.Unix(1796060367, 0), Took: time.Second,
		Test:  observe.Command{Text: "syntax is ok\n"},
		Start: observe.Command{},
		Clients: []observe.Conn{
			{ID: 1, Recv: []byte("HTTP/1.1 200 OK\r\n\r\n"), Marks: []int{19}, End: observe.EndClosed},
			{ID: 2, Recv: []byte("x"), End: observe.EndOpen},
		},
		Origins: []observe.Conn{
			{ID: 1, Addr: "127.0.0.1:9001", Recv: []byte("GET /b/x HTTP/1.0\r\n\r\n"), Marks: []int{21}, End: observe.EndClosed},
		},
		Access:  map[string][]byte{"logs/access.log": []byte("one\ntwo\n")},
		Errors:  []observe.LogEntry{{File: "logs/error.log", Level: "error", Text: "2026/11/30 17:39:27 [error] 1#1: *1 first"}},
		Tree:    []observe.FileState{{Path: "html/a", Mode: 0o644, Data: []byte("a")}, {Path: "html", Dir: true, Mode: 0o755}},
		Process: observe.Process{Started: true, FDBefore: 10, FDAfter: 10, Exit: engine.Exit{Exited: true}},
	}
}

func TestEqualObservationsAgree(t *testing.T) {
	r := Compare(full(), full())
	if r.Verdict != Agree || len(r.Mismatches) > 0 {
		t.Errorf("got %v %v", r.Verdict, r.Mismatches)
	}
}

// Everything that is observed is compared: each change of one thing is a
// mismatch of the right kind, at the right place, and of nothing else.
func TestEveryDifferenceIsSeen(t *testing.T) {
	tests := []struct {
		change func(o *observe.Observation)
		want   string // kind, where, at
	}{
		{func(o *observe.Observation) { o.Test.Code = 1 }, "load|nginx -t, exit|10"},
		{func(o *observe.Observation) { o.Test.Signal = 11 }, "load|nginx -t, exit|0"},
		{func(o *observe.Observation) { o.Test.Text = "syntax is off\n" }, "load|nginx -t, standard error|11"},
		{func(o *observe.Observation) { o.Test.Stdout = "x" }, "load|nginx -t, standard output|0"},
		{func(o *observe.Observation) { o.Process.Started = false }, "load|started|0"},
		{func(o *observe.Observation) { o.Clients[0].Recv = []byte("HTTP/1.1 404 OK\r\n\r\n") }, "client|client 1|9"},
		{func(o *observe.Observation) { o.Clients[0].Recv = o.Clients[0].Recv[:5] }, "client|client 1|5"},
		{func(o *observe.Observation) { o.Clients[0].Marks = []int{5} }, "client|client 1, ends of messages|1"},
		{func(o *observe.Observation) { o.Clients[1].End = observe.EndReset }, "end|client 2, end|0"},
		{func(o *observe.Observation) { o.Clients = o.Clients[:1] }, "conns|client 2|0"},
		{func(o *observe.Observation) { o.Origins[0].Recv = []byte("GET /b//x HTTP/1.0\r\n\r\n") }, "origin|origin 127.0.0.1:9001, connection 1|7"},
		{func(o *observe.Observation) { o.Origins[0].End = observe.EndOpen }, "end|origin 127.0.0.1:9001, connection 1, end|0"},
		{func(o *observe.Observation) { o.Access["logs/access.log"] = []byte("one\n") }, "access|logs/access.log|4"},
		{func(o *observe.Observation) { o.Access["logs/b.log"] = nil }, "access|logs/b.log|0"},
		{func(o *observe.Observation) { delete(o.Access, "logs/access.log") }, "access|logs/access.log|0"},
		{func(o *observe.Observation) { o.Errors[0].Text += "!" }, "error|logs/error.log|41"},
		{func(o *observe.Observation) {
			o.Errors[0].Text = strings.Replace(o.Errors[0].Text, "[error]", "[crit]", 1)
		}, "error|logs/error.log|21"},
		{func(o *observe.Observation) { o.Errors = nil }, "error|logs/error.log|0"},
		{func(o *observe.Observation) { o.Tree[0].Data = []byte("b") }, "tree|html/a|0"},
		{func(o *observe.Observation) { o.Tree[0].Mode = 0o600 }, "tree|html/a, kind|13"},
		{func(o *observe.Observation) { o.Tree = o.Tree[1:] }, "tree|html/a|0"},
		{func(o *observe.Observation) { o.Process.Exit.Code = 1 }, "process|exit|10"},
		{func(o *observe.Observation) { o.Process.FDAfter = 12 }, "process|descriptors gained|0"},
		{func(o *observe.Observation) { o.Process.Left = []string{"nginx: worker process"} }, "process|processes left|0"},
		{func(o *observe.Observation) { o.Process.Worker = "exited on signal 11" }, "process|workers|0"},
		{func(o *observe.Observation) {
			o.Undone = []observe.Undone{{Line: 4, Text: "remove x: no such file or directory"}}
		}, "tree|do sections|0"},
		{func(o *observe.Observation) { o.Timeouts = 1 }, "process|last-resort timeouts|0"},
	}
	for i, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			other := full()
			tt.change(other)
			for _, pair := range [][2]*observe.Observation{{full(), other}, {other, full()}} {
				r := Compare(pair[0], pair[1])
				var got []string
				for _, m := range r.Mismatches {
					got = append(got, fmt.Sprintf("%s|%s|%d", m.Kind, m.Where, m.At))
				}
				if d := cmp.Diff([]string{tt.want}, got); d != "" || r.Verdict != Differ {
					t.Errorf("%d: %v\n%s", i, r.Verdict, d)
				}
			}
		})
	}
}

// One more origin connection shows twice: as their number, and as what it received.
func TestConnectionsOfAnOrigin(t *testing.T) {
	other := full()
	other.Origins = append(other.Origins, observe.Conn{ID: 2, Addr: "127.0.0.1:9001", Recv: []byte("GET"), End: observe.EndClosed})
	r := Compare(full(), other)
	if len(r.Mismatches) != 2 || r.Mismatches[0].Kind != KindConns || r.Mismatches[1].Kind != KindOrigin {
		t.Errorf("got %+v", r.Mismatches)
	}
}

// Comparing is total: a difference in one place does not end the comparison.
func TestAllDifferencesAreListed(t *testing.T) {
	other := full()
	other.Clients[0].Recv = nil
	other.Origins[0].Recv = nil
	other.Access = nil
	other.Errors = nil
	if r := Compare(full(), other); len(r.Mismatches) != 4 {
		t.Errorf("%d mismatches, want 4", len(r.Mismatches))
	}
}

// A worker's crash is named before what comes of it: a new one holds fewer descriptors.
func TestCrashComesBeforeItsDescriptors(t *testing.T) {
	a, b := full(), full()
	a.Process.Worker = "exited on signal 11"
	b.Process.FDAfter++
	r := Compare(a, b)
	if len(r.Mismatches) != 2 || r.Mismatches[0].Where != Workers || r.Mismatches[1].Where != Descriptors {
		t.Errorf("got %v, want the workers, then the descriptors", r.Mismatches)
	}
}

func TestMessageCountsMarks(t *testing.T) {
	a, b := full(), full()
	a.Clients[0] = observe.Conn{ID: 1, Recv: []byte("aaaabbbbcccc"), Marks: []int{4, 8, 12}, End: observe.EndOpen}
	b.Clients[0] = observe.Conn{ID: 1, Recv: []byte("aaaabbXbcccc"), Marks: []int{4, 8, 12}, End: observe.EndOpen}
	r := Compare(a, b)
	if len(r.Mismatches) != 1 || r.Mismatches[0].Message != 1 {
		t.Errorf("got %+v", r.Mismatches)
	}
}

func TestBrokenObservationsGiveNoVerdictOfTargets(t *testing.T) {
	unseen := full()
	unseen.Clients[1].End = observe.EndNone
	for _, pair := range [][2]*observe.Observation{{nil, full()}, {full(), nil}, {unseen, full()}, {full(), unseen}} {
		if r := Compare(pair[0], pair[1]); r.Verdict != RigFailed || r.Why == "" {
			t.Errorf("got %v %q", r.Verdict, r.Why)
		}
	}
}

func TestRefusal(t *testing.T) {
	cand := full()
	cand.Process.Started = false
	cand.Test = observe.Command{Code: 1, Text: "nginx: [emerg] directive \"gzip\" is not supported in /cell/nginx.conf:3\nnginx: test failed\n"}
	r := Compare(full(), cand)
	if r.Verdict != Refused || r.Why != `nginx: [emerg] directive "gzip" is not supported in /cell/nginx.conf:3` {
		t.Errorf("got %v %q", r.Verdict, r.Why)
	}
	// Only the candidate can refuse, and only with the words of a refusal.
	if r := Compare(cand, full()); r.Verdict != Differ {
		t.Errorf("the reference refused: %v", r.Verdict)
	}
	cand.Test.Text = "nginx: [emerg] method is not supported in this place\n"
	if r := Compare(full(), cand); r.Verdict != Differ {
		t.Errorf("other words: %v", r.Verdict)
	}
}

func TestZeroVerdictIsNone(t *testing.T) {
	var r Result
	for _, v := range []Verdict{Agree, Differ, Unstable, RigFailed, Refused} {
		if r.Verdict == v || r.Verdict.String() != "no verdict" {
			t.Errorf("the zero value reads as %v", r.Verdict)
		}
	}
}

// The text of an entry that is cut off depends on the digits of the numbers before it; only what
// both have is compared, and no more than those digits is left out.
func TestEntryCutByItsNumbers(t *testing.T) {
	entry := func(numbers, tail string) []observe.LogEntry {
		text := "2026/11/30 10:00:00 [error] " + numbers + `open() "/cell/` + strings.Repeat("x", 3000)
		return []observe.LogEntry{{Level: "error", Text: text[:entryMost-len(tail)] + tail}}
	}
	tail := func(s string) string { return (s + strings.Repeat(" while reading upstream", 3))[:entryMost-errnoAt] }
	const errno = "... (20: Not a directory)"
	for _, c := range []struct {
		ref, cand []observe.LogEntry
		want      Verdict
	}{
		{entry("9#9: *9 ", ""), entry("1234#1234: *123 ", ""), Agree},
		{entry("9#9: *9 ", ""), entry("1234#1234: *123 ", strings.Repeat("y", 100)), Differ},
		{entry("9#9: *9 ", tail(errno)), entry("1234#1234: *123 ", tail(errno)), Agree},
		{entry("9#9: *9 ", tail(errno)), entry("1234#1234: *123 ", tail("... (21: Is a directory)")), Differ},
		{entry("9#9: *9 ", tail(errno)), entry("1234#1234: *123 ", strings.Repeat("y", 100)+tail(errno)), Differ},
	} {
		ref, cand := &observe.Observation{Errors: c.ref}, &observe.Observation{Errors: c.cand}
		ref.Process.Pid, cand.Process.Pid = 8, 1233
		cand.Clients = make([]observe.Conn, 200)
		for i := range cand.Clients {
			cand.Clients[i].End = observe.EndClosed
		}
		ref.Clients = cand.Clients
		if r := Compare(ref, cand); r.Verdict != c.want {
			t.Errorf("want %s, got %+v", c.want, r)
		}
	}
}
