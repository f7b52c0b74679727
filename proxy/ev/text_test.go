package ev

import (
	"net"
	"testing"
)

func TestAddrText(t *testing.T) {
	for _, tc := range []struct{ ip, want string }{
		{"::", "[::]:80"},
		{"::1", "[::1]:80"},
		{"::ffff:1.2.3.4", "[::ffff:1.2.3.4]:80"},
		{"::1.2.3.4", "[::1.2.3.4]:80"},
		{"2001:db8::", "[2001:db8::]:80"},
		{"1:0:0:2:0:0:0:3", "[1:0:0:2::3]:80"},
		{"1:0:2:3:4:5:6:7", "[1:0:2:3:4:5:6:7]:80"},
	} {
		a := Addr{Family: INET6, Port: 80}
		copy(a.IP[:], net.ParseIP(tc.ip).To16())
		if got := a.Text(); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.ip, got, tc.want)
		}
	}
}

func TestFnmatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.conf", "a.conf", true}, {"*.conf", ".conf", false}, {".*", ".a", true}, {"a?c", "abc", true},
		{"[a-c]x", "bx", true}, {"[!a-c]x", "bx", false}, {"[]x]", "]", true}, {"[a", "[a", true},
		{`\*`, "*", true}, {`\*`, "a", false}, {"*", "", true}, {"?", "", false}, {"**b", "aab", true},
	} {
		if got := Fnmatch(tc.pattern, tc.name); got != tc.want {
			t.Errorf("%s on %s: %v", tc.pattern, tc.name, got)
		}
	}
}
