package wire

import "testing"

// A message ends at the same place however its bytes arrive, and never behind what has come.
func FuzzFramer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcX", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3;x\nabc\n0\nT: 1\n\nX",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", "\r\n\nGET /\r\n\r\n", "HTTP",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
	} {
		f.Add([]byte(s), byte(0))
		f.Add([]byte(s), byte(5))
	}
	f.Fuzz(func(t *testing.T, b []byte, how byte) {
		fresh := func() framer {
			fr := framer{request: how&1 != 0, noBody: how&2 != 0, head: how&4 != 0}
			fr.start(0)
			return fr
		}
		whole := fresh()
		end, ok := whole.end(b)
		if ok && (end < 0 || end > len(b)) {
			t.Fatalf("%q ends at %d", b, end)
		}
		slow := fresh()
		for i := 0; i <= len(b); i++ {
			at, done := slow.end(b[:i])
			if !done {
				continue
			}
			if !ok || at != end || i < end {
				t.Fatalf("%q: whole %d, %v; cut at %d of it: %d", b, end, ok, i, at)
			}
			return
		}
		if ok {
			t.Fatalf("%q ends at %d, but not when it comes byte by byte", b, end)
		}
	})
}
