package upstream

import "testing"

func TestParseURL(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"127.0.0.1:81/x", "127.0.0.1 81 /x 127.0.0.1:81"},
		{"127.0.0.1", "127.0.0.1 80  127.0.0.1:80"},
		{"a.test?q", "a.test 80 ?q "},
		{"a.test:8080", "a.test 8080  "},
		{"a.test/b:c", "a.test 80 /b:c "},
		{"[::1]:82/y", "[::1] 82 /y [::1]:82"},
		{"[::ffff:1.2.3.4]", "[::ffff:1.2.3.4] 80  [::ffff:1.2.3.4]:80"},
		{"unix:/s.sock:/u", "/s.sock 0 /u unix:/s.sock"},
		{"unix:", "no path in the unix domain socket"},
		{":80", "no host"},
		{"a:0", "invalid port"},
		{"a:65536", "invalid port"},
		{"[::1", "invalid host"},
		{"[::1]x", "invalid host"},
		{"[]", "no host"},
		{"[::g]", "invalid IPv6 address"},
	} {
		u := URL{Text: c.text, DefaultPort: 80, URIPart: true, NoResolve: true}
		got := ""
		if err := ParseURL(&u); err != nil {
			got = err.Error()
		} else {
			got = u.Host + " " + itoa(u.Port) + " " + u.URI + " "
			if len(u.Addrs) > 0 {
				got += u.Addrs[0].Name
			}
		}
		if got != c.want {
			t.Errorf("ParseURL(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

func TestURINotAllowedInServerLine(t *testing.T) {
	u := URL{Text: "a/b", DefaultPort: 80}
	if err := ParseURL(&u); err == nil || err.Error() != "invalid host" {
		t.Errorf("ParseURL without URIPart = %v, want invalid host", err)
	}
}
