package ev

import (
	"math/rand/v2"
	"testing"
	"time"
)

// HTTPTime is what Go's own formatting gives.
func TestHTTPTime(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 10000 {
		sec := rnd.Int64N(253402300800)
		want := time.Unix(sec, 0).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
		if got := string(HTTPTime(nil, sec)); got != want {
			t.Fatalf("%d: %q, want %q", sec, got, want)
		}
	}
	for sec, want := range map[int64]string{-1: "Thu, 01 Jan 1970 00:00:00 GMT", 1 << 60: "Fri, 31 Dec 9999 23:59:59 GMT"} {
		if got := string(HTTPTime(nil, sec)); got != want {
			t.Errorf("%d: %q, want %q", sec, got, want)
		}
	}
}
