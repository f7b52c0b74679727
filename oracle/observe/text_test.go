package observe

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nginxoracle/oracle/engine"
)

// Everything that is not as it should be shows in the text; a clean start and
// exit, and files that are as the case made them, do not.
func TestText(t *testing.T) {
	o := &Observation{
		Info: engine.Info{Target: "nginx", Kind: "local", Version: "nginx version: nginx/1.26.3"},
		Test: Command{Text: "syntax is ok\n"},
		Clients: []Conn{{ID: 1, Addr: "127.0.0.1:8080", Recv: []byte("one\r\ntwo\x00" + strings.Repeat("x", 400)), Marks: []int{5, 5},
			End: EndReset, Note: "send failed: broken pipe"}},
		Origins: []Conn{{ID: 2, Addr: "127.0.0.1:9001", Recv: []byte("GET"), End: EndOpen}},
		Access:  map[string][]byte{"logs/b.log": []byte("b\n"), "logs/a.log": []byte("a\n")},
		Errors:  []LogEntry{{File: "logs/error.log", Level: "error", Text: "[error] x"}, {Level: "warn", Text: "[warn] y"}},
		Tree: []FileState{{Path: "same"}, {Path: "made", Mode: 0o600, Data: []byte("d"), New: true}, {Path: "d", Dir: true, Mode: 0o700, New: true},
			{Path: "l", Link: "to", New: true}, {Path: "s", Mode: 0o140777, New: true}},
		Process:  Process{Started: true, Exit: engine.Exit{Exited: true, Signal: 9}, Worker: "exited on signal 11", Left: []string{"nginx"}, FDBefore: 3, FDAfter: 4},
		Timeouts: 2,
	}
	want := `nginx (local cell): nginx version: nginx/1.26.3
  client 1 to 127.0.0.1:8080: 409 bytes, reset
    one\r\n
    ── recv 1 ends at byte 5
    ── recv 2 ends at byte 5
    two\x00` + strings.Repeat("x", 296) + `… (404 bytes)
    (send failed: broken pipe)
  origin 127.0.0.1:9001, connection 2: 3 bytes, open
    GET
  logs/a.log
    a\n
  logs/b.log
    b\n
  logs/error.log
    [error] x
  standard error
    [warn] y
  made: file, mode 0600
    d
  d: folder, mode 0700
  l: link to to
  s: socket, mode 0777
  exit: code 0, signal 9
  a worker exited on signal 11
  left running: nginx
  descriptors: 3 at the start, 4 at the end
  last-resort timeouts: 2
`
	var b bytes.Buffer
	o.Text(&b)
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}

	o = &Observation{Test: Command{Code: 1, Text: "nginx: [emerg] no\n"}, Start: Command{Code: 1, Text: "x"}}
	b.Reset()
	o.Text(&b)
	if got := b.String(); !strings.Contains(got, "nginx -t: code 1\n    nginx: [emerg] no\\n\n") || !strings.Contains(got, "start: code 1") {
		t.Errorf("a refused configuration: %s", got)
	}
}
