package range_filter

import (
	"fmt"
	"testing"

	"nginxoracle/proxy/http"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in   string
		want string
	}{
		{"0-0", "[0 1]"}, {"2-4", "[2 5]"}, {"5-", "[5 10]"}, {"-3", "[7 10]"}, {"-100", "[0 10]"}, {"9-100", "[9 10]"},
		{" 1 - 2 ", "[1 3]"}, {"0-0,2-3 , -1", "[0 1] [2 4] [9 10]"},
		{"10-", "416"}, {"4-3", "416"}, {"", "416"}, {"a", "416"}, {"1", "416"}, {"1-2x", "416"}, {"1-2,", "416"},
		{"9223372036854775807-", "416"}, {"9223372036854775808-", "416"}, {"1-9223372036854775808", "416"},
		{"0-5,4-9", "-5"}, {"-0", "416"}, {"0-0,1-1,2-2,3-3", "-5"}, {"20-30,-1", "[9 10]"},
	} {
		g := &ctx{}
		got := ""
		if rc := g.parse([]byte(c.in), 10, 3); rc != http.OK {
			got = fmt.Sprint(int(rc))
		} else {
			for i, s := range g.spans {
				if i > 0 {
					got += " "
				}
				got += fmt.Sprintf("[%d %d]", s.start, s.end)
			}
		}
		if got != c.want {
			t.Errorf("%q: %s, want %s", c.in, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0-0,2-3", int64(10), uint8(3))
	f.Fuzz(func(t *testing.T, s string, length int64, limit uint8) {
		if length < 0 {
			return
		}
		g := &ctx{}
		if g.parse([]byte(s), length, uint64(limit)) != http.OK {
			return
		}
		total := int64(0)
		for _, s := range g.spans {
			if s.start < 0 || s.end > length || s.start >= s.end {
				t.Fatalf("span %v of %d", s, length)
			}
			total += s.end - s.start
		}
		if total > length || len(g.spans) > int(limit) {
			t.Fatalf("%d bytes in %d spans of %d", total, len(g.spans), length)
		}
	})
}
