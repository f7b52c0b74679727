package mask

import (
	"bytes"
	"testing"
	"time"

	"nginxoracle/oracle/observe"
)

// A text is equal to itself; two that are equal but for masks are so both ways; a difference lies inside of the reference's text.
func FuzzCompare(f *testing.F) {
	f.Add([]byte("Date: Mon, 30 Nov 2026 18:50:46 GMT\r\n"), []byte("Date: Mon, 30 Nov 2026 18:50:47 GMT\r\n"), byte(0))
	f.Add([]byte("2026/11/30 18:50:46 [error] 12#12: *1 x"), []byte("2026/11/30 18:50:46 [error] 1#1: *2 x"), byte(2))
	f.Add([]byte("ETag: \"a-1\""), []byte("ETag: \"b-2\""), byte(1))
	f.Add([]byte("c 2a"), []byte("c 2b"), byte(0))
	places := []Where{Client, Origin, Error, Access, Diag, Tree}
	f.Fuzz(func(t *testing.T, a, b []byte, place byte) {
		where := places[int(place)%len(places)]
		o := func() *observe.Observation {
			return &observe.Observation{At: time.Date(2026, 11, 30, 18, 50, 46, 0, time.UTC), Mentions: observe.Mentions{Vars: []string{"request_id", "connection", "pid", "msec", "request_time"}}}
		}
		if _, equal, _ := New(o(), o()).Compare(where, a, bytes.Clone(a)); !equal {
			t.Fatalf("%q differs from itself", a)
		}
		at, equal, align := New(o(), o()).Compare(where, a, b)
		if !equal && (at < 0 || at > len(a) || align.Map(at) < 0 || align.Map(at) > len(b)) {
			t.Fatalf("%q and %q differ at %d, %d", a, b, at, align.Map(at))
		}
	})
}
