package http

import (
	"bytes"
	"testing"
)

// An Accept-Encoding that nobody would take for gzip is not; the answer does not hang on the letters' case.
func FuzzAcceptEncoding(f *testing.F) {
	for _, s := range []string{"gzip", "gzip;q=0", "*;q=0.1", "x-gzip, gzip;q=0.001", "GZIP ; Q=1.", "gzip;q=0.0001", "a,gzip"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := acceptsGzip(b)
		if got && !bytes.Contains(bytes.ToLower(b), []byte("gzip")) {
			t.Fatalf("%q is taken for gzip", b)
		}
		if up := acceptsGzip(bytes.Map(upper, b)); up != got {
			t.Fatalf("%q: %v, in capitals %v", b, got, up)
		}
	})
}

func upper(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r - 'a' + 'A'
	}
	return r
}
