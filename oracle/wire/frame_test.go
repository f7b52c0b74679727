package wire

import "testing"

// Every message is fed byte by byte too: the end must be found at the same place
// however the bytes arrive, and never before its last byte is there.
func TestFraming(t *testing.T) {
	const res, req = false, true
	tests := []struct {
		name  string
		kind  bool
		head  bool // HEAD, or headers only for a request
		bytes string
		end   int // -1: until the connection closes
	}{
		{"length", res, false, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcX", 41},
		{"length, any case and spaces", res, false, "HTTP/1.1 200 OK\r\nCONTENT-length : \t3 \r\n\r\nabcX", 44},
		{"zero length", res, false, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nX", 38},
		{"bare newlines", res, false, "HTTP/1.1 200 OK\nContent-Length: 1\n\nabc", 36},
		{"no length", res, false, "HTTP/1.1 200 OK\r\nServer: x\r\n\r\nabc", -1},
		{"broken length", res, false, "HTTP/1.1 200 OK\r\nContent-Length: 3x\r\n\r\nabc", -1},
		{"negative length", res, false, "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc", -1},
		{"chunked", res, false, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nX", 60},
		{"chunk extension and trailer", res, false,
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\nA;x=1\r\n0123456789\r\n000\r\nT: 1\r\nU: 2\r\n\r\nX", 91},
		{"broken chunk", res, false, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", -1},
		{"chunked wins over length", res, false, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 72},
		{"HEAD", res, true, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nX", 38},
		{"204", res, false, "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nX", 46},
		{"304", res, false, "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\nX", 48},
		{"interim", res, false, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naX", 64},
		{"switching", res, false, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nraw", 48},
		{"0.9", res, false, "<html>no header", -1},
		{"nothing but a proto", res, false, "HTTP/", -1},
		{"request without body", req, false, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", 27},
		{"request with length", req, false, "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nabX", 40},
		{"request chunked", req, false, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nX", 58},
		{"request behind empty lines", req, false, "\r\n\nGET / HTTP/1.1\r\n\r\nX", 21},
		{"headers only", req, true, "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nab", 38},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fresh := func() *framer {
				f := &framer{request: tt.kind, noBody: tt.head && !tt.kind, head: tt.head && tt.kind}
				f.start(0)
				return f
			}
			text := []byte(tt.bytes)
			if got := endOf(fresh(), text); got != tt.end {
				t.Errorf("whole: end %d, want %d", got, tt.end)
			}
			f := fresh()
			for n := 1; n <= len(text); n++ {
				end, ok := f.end(text[:n])
				if ok && (end != tt.end || n < tt.end) {
					t.Fatalf("after %d bytes: end %d, want %d", n, end, tt.end)
				}
				if !ok && tt.end >= 0 && n >= tt.end {
					t.Fatalf("after %d bytes: not over, want end %d", n, tt.end)
				}
			}
		})
	}
}

func endOf(f *framer, b []byte) int {
	if end, ok := f.end(b); ok {
		return end
	}
	return -1
}

// Two pipelined messages: the second starts where the first ended.
func TestFramingStartsAnywhere(t *testing.T) {
	one := "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"
	text := []byte(one + one)
	f := &framer{}
	f.start(len(one))
	if end := endOf(f, text); end != 2*len(one) {
		t.Errorf("end %d, want %d", end, 2*len(one))
	}
}

// A request whose header does not tell for certain where it ends may be followed by more of its body.
func TestRequestsOfUnsureLength(t *testing.T) {
	for head, unsure := range map[string]bool{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n":                                                  false,
		"HEAD / HTTP/1.1\r\n\r\n":                                                            false,
		"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n":                                       false,
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":                     false,
		"POST / HTTP/1.1\r\n\r\n":                                                            true,
		"GET / HTTP/1.1\r\nTransfer-Encoding: under_score\r\n\r\n":                           true,
		"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n": true,
	} {
		f := framer{request: true}
		f.start(0)
		if end, ok := f.end([]byte(head)); !ok || end != len(head) || f.unsure != unsure {
			t.Errorf("%q: ends at %d (%v), unsure %v, want %v", head, end, ok, f.unsure, unsure)
		}
	}
}
