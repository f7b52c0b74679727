package inet

import (
	"syscall"
	"testing"
)

// What is read as an address prints as a text that is read as the same address.
func FuzzAddresses(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "::1", "1::", "::ffff:1.2.3.4", "1.2.3.4/33", "[::1]:80", "127.0.0.1:80-90", "*:1", "80", "unix:/a", "unix:", "localhost", "[::", "1:2:3:4:5:6:7:8", "fe80::/10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if a, ok := Parse(s); ok {
			if _, mapped := Mapped(a); a.Family == syscall.AF_UNIX || Wildcard(a) && mapped {
				t.Fatalf("%q is %+v", s, a)
			}
		}
		if a, ok := ParsePort(s); ok && a.Family != syscall.AF_INET && a.Family != syscall.AF_INET6 {
			t.Fatalf("%q with a port is %+v", s, a)
		}
		ParseCIDR(s)
		if len(s) > 0 && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z') && !(len(s) > 5 && s[:5] == "unix:") {
			return // a name is looked up, which is not the parser's
		}
		addrs, err := Listen(s, 80)
		if err == nil && len(addrs) == 0 {
			t.Fatalf("listen %q gives no address and no error", s)
		}
		for _, a := range addrs {
			if a.Family != syscall.AF_UNIX && (a.Port < 1 || a.Port > 65535) {
				t.Fatalf("listen %q gives port %d", s, a.Port)
			}
		}
	})
}
