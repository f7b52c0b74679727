package inet

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"nginxoracle/proxy/ev"
)

// What netip prints of any address must be read back, and print as netip prints it but for the
// dots that nginx puts into more kinds of address.
func TestAddr6RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ip [16]byte
		for i := 0; i < 16; i += 2 {
			w := rapid.SampledFrom([]uint16{0, 0, 0, 1, 0xff, 0xabcd}).Draw(t, "word")
			ip[i], ip[i+1] = byte(w>>8), byte(w)
		}
		text := netip.AddrFrom16(ip).String()
		got, ok := Addr6(text)
		if !ok || got != ip {
			t.Fatalf("%s: %v %v, want %v", text, got, ok, ip)
		}
		a := ev.Addr{Family: ev.INET6, IP: ip}
		again, ok := Addr6(a.AppendIP(nil))
		if !ok || again != ip {
			t.Fatalf("%s is printed as %s", text, a.AppendIP(nil))
		}
	})
}

func TestAddr6Refuses(t *testing.T) {
	for _, s := range []string{"", ":", ":::", "1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "::1::2", "12345::", "g::", "::1.2.3", "1.2.3.4"} {
		if ip, ok := Addr6(s); ok {
			t.Errorf("%q is %v", s, ip)
		}
	}
}

func TestListen(t *testing.T) {
	for text, want := range map[string]string{
		"80": "0.0.0.0:80", "*:80": "0.0.0.0:80", "1.2.3.4": "1.2.3.4:80", "1.2.3.4:8080": "1.2.3.4:8080",
		"[::1]": "[::1]:80", "[::1]:8080": "[::1]:8080", "unix:/a": "unix:/a", "80-82": "0.0.0.0:80 0.0.0.0:81 0.0.0.0:82",
		"1.2.3.4:1-2": "1.2.3.4:1 1.2.3.4:2", "127.1:1": "127.0.0.1:1", "0": "invalid port", "65536": "invalid port",
		"2-1": "invalid port range", "a/b": "invalid host", "[::1": "invalid host", "[::1]x": "invalid host",
		"[]": "no host", ":80": "no host", "unix:": "no path in the unix domain socket", "[z]": "invalid IPv6 address",
		"1.2.3.4:x": "invalid port", "no.such.name.invalid": "host not found",
	} {
		addrs, err := Listen(text, 80)
		got := ""
		for i, a := range addrs {
			if i > 0 {
				got += " "
			}
			got += a.Text()
		}
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestCIDR(t *testing.T) {
	for _, c := range []struct {
		net, addr       string
		lowBits, in, ok bool
	}{
		{"10.0.0.0/8", "10.1.2.3", false, true, true},
		{"10.0.0.0/8", "11.0.0.0", false, false, true},
		{"10.0.0.1/8", "10.9.9.9", true, true, true},
		{"0.0.0.0/0", "1.2.3.4", false, true, true},
		{"1.2.3.4", "1.2.3.4", false, true, true},
		{"10.0.0.0/8", "::ffff:10.0.0.1", false, true, true},
		{"fe80::/10", "febf::1", false, true, true},
		{"fe80::/10", "fec0::1", false, false, true},
		{"10.0.0.0/33", "1.1.1.1", false, false, false},
		{"10.0.0.0/x", "1.1.1.1", false, false, false},
		{"10.0.0.0/", "1.1.1.1", false, false, false},
	} {
		net, low, ok := ParseCIDR(c.net)
		a, _ := Parse(c.addr)
		if ok != c.ok || low != c.lowBits || ok && net.Match(a) != c.in {
			t.Errorf("%s, %s: low %v in %v ok %v", c.net, c.addr, low, net.Match(a), ok)
		}
	}
}
