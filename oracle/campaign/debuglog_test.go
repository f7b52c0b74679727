package campaign

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"nginxoracle/oracle/observe"
)

const debugText = `2026/01/02 03:04:05 [debug] 7#7: epoll: fd:6 ev:0001 d:00007F0000
2026/01/02 03:04:05 [debug] 7#7: *1 accept: 127.0.0.1:40001 fd:3
2026/01/02 03:04:05 [debug] 7#7: *2 accept: 127.0.0.1:40002 fd:4
2026/01/02 03:04:05 [debug] 7#7: *1 http header: "Host: a "quoted" name"
2026/01/02 03:04:05 [debug] 7#7: *2 http header: "Host: b"
2026/01/02 03:04:05 [info] 7#7: *2 client sent invalid header
2026/01/02 03:04:05 [debug] 7#7: *1 malloc: 000055D0A:4096
2026/01/02 03:04:05 [debug] 7#7: *1 http finalize request: 404, "/u00/x?" a:1, c:1
a value's second line
2026/01/02 03:04:05 [debug] 7#7: *1 http header: "Accept: c"
2026/01/02 03:04:05 [debug] 7#7: *3 malloc: 000055D0B:1
2026/01/02 03:04:05 [debug] 7#7: *1 open /cell/u00/x failed
`

func TestDebugShapes(t *testing.T) {
	clients := []observe.Conn{{ID: 101, Port: 40001}, {ID: 1, Port: 40002}, {ID: 201}}
	want := [][]string{
		{"accept: #:# fd:#", `http header: ""`},
		{"accept: #:# fd:#", `http header: ""`, "malloc: #:#", "http finalize request: 404", "open # failed"},
	}
	if d := cmp.Diff(want, debugShapes([]byte(debugText), clients, 2)); d != "" {
		t.Error(d)
	}
}
