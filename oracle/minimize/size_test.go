package minimize

import "testing"

func TestMeasure(t *testing.T) {
	conf := "-- nginx.conf --\nevents {\n}\n\nhttp {\n    include inc/a.conf;\n}\n-- inc/a.conf --\netag off;\n-- html/b --\nb\nb\n"
	for name, c := range map[string]struct {
		clients  string
		requests int
	}{
		"no client":              {"", 0},
		"one that waits":         {"-- client 1 --\nsend \"GET / HTTP/1.1\\r\\n\\r\\n\"\nrecv response\n", 1},
		"damaged, and to an end": {"-- client 1 --\nsend \"\\x00\"\nrecv all\n", 1},
		"a pipeline to an end":   {"-- client 1 --\nsend \"GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\nGE\"\nsend \"T /b HTTP/1.0\\r\\n\\r\\n\"\nrecv all\n", 2},
		"two that wait":          {"-- client 1 --\nsend \"x\"\nrecv response\nsend \"y\"\nrecv head\n", 2},
		"two clients":            {"-- client 1 --\nsend \"x\"\n-- client 2 --\nsend \"x\"\n", 2},
	} {
		s := Measure(parse(t, "# t\n"+conf+c.clients))
		if s.Requests != c.requests || s.Lines != 6 {
			t.Errorf("%s: %+v, want 6 lines, %d requests", name, s, c.requests)
		}
	}
	a, b := Measure(parse(t, "# t\n"+conf)), Measure(parse(t, "# t\n#\n# long prose\n# signature: x\n"+conf))
	if a.Bytes != b.Bytes {
		t.Errorf("the comment counts: %d and %d bytes", a.Bytes, b.Bytes)
	}
}

func TestFew(t *testing.T) {
	for s, want := range map[Size]bool{{Lines: 24, Requests: 1}: true, {Lines: 25, Requests: 1}: false, {Lines: 3, Requests: 2}: false, {Lines: 3}: true} {
		if s.Few() != want {
			t.Errorf("%+v: %v", s, !want)
		}
	}
}
