package run

import "testing"

func TestShortAndHasty(t *testing.T) {
	for _, x := range []struct {
		conf         string
		short, hasty bool
	}{
		{"client_header_timeout 0;", true, true},
		{"client_body_timeout\t0s ;", true, true},
		{`proxy_read_timeout "0ms";`, true, true},
		{"send_timeout 00;", true, true},
		{"keepalive_timeout 0;", false, false},
		{"keepalive_timeout 65 0;", false, false},
		{"client_header_timeout 10;", false, false},
		{"client_header_timeout 60s;", false, false},
		{"client_header_timeout 50ms;", true, false},
		{"proxy_next_upstream_timeout 0;", false, false}, // no limit
		{"limit_rate 10;", true, false},
	} {
		if got := Short([]byte(x.conf)); got != x.short {
			t.Errorf("%s: short %v, want %v", x.conf, got, x.short)
		}
		if got := Hasty([]byte(x.conf)); got != x.hasty {
			t.Errorf("%s: hasty %v, want %v", x.conf, got, x.hasty)
		}
	}
}

func TestLeaves(t *testing.T) {
	for conf, want := range map[string]bool{"location / { post_action /x; }": true, "location / { proxy_pass http://u; }": false} {
		if got := Leaves([]byte(conf)); got != want {
			t.Errorf("%s: %v, want %v", conf, got, want)
		}
	}
}
