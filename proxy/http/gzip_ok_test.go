package http

import "testing"

func TestAcceptsGzip(t *testing.T) {
	for _, c := range []struct {
		in   string
		want bool
	}{
		{"gzip", true}, {"deflate, gzip", true}, {"deflate,GZIP", true}, {"xgzip", false}, {"xgzip, gzip", true},
		{"gzipx", false}, {"gzip ,x", true}, {"gzip;q=1", true}, {"gzip;q=0", false}, {"gzip; q=0.001", true},
		{"gzip;q=0.000", false}, {"gzip;q=1.000", true}, {"gzip;q=1.001", false}, {"gzip;q=0.0001", false},
		{"gzip;q=2", false}, {"gzip;q=", false}, {"gzip;q", false}, {"gzip;", true}, {"gzip; x", false},
		{"gzip;q=0.5,deflate", true}, {"gzip;q=0,gzip", false}, {"gzip,;q=0", true}, {"gzip;q=0.5 x", true},
		{"gzip;q=1x", false}, {"*", false},
	} {
		if got := acceptsGzip([]byte(c.in)); got != c.want {
			t.Errorf("%q: %v", c.in, got)
		}
	}
}
