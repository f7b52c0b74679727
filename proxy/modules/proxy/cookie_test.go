package proxy

import "testing"

func show(attrs []attr) string {
	out := ""
	for i, a := range attrs {
		if a.key == nil {
			continue
		}
		if i > 0 {
			out += "; "
		}
		out += string(a.key)
		if a.value != nil {
			out += "=" + string(a.value)
		}
	}
	return out
}

func TestParseCookie(t *testing.T) {
	for in, want := range map[string]string{
		"a=1; Path=/":        "a=1; Path=/",
		" a = 1 ;Secure; x=": "a=1; Secure; x=",
		"a":                  "a",
		"a=b=c;":             "a=b=c; ",
	} {
		if got := show(parseCookie([]byte(in))); got != want {
			t.Errorf("parseCookie(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestEditFlags(t *testing.T) {
	for _, c := range []struct {
		in    string
		flags int
		want  string
	}{
		{"a=1", secureOn | httpOnlyOn | sameSiteLax, "a=1; Secure; HttpOnly; SameSite=Lax"},
		{"a=1; secure; HTTPONLY", secureOn | httpOnlyOn, "a=1; secure; HTTPONLY"},
		{"a=1; Secure; HttpOnly; SameSite=x", secureOff | httpOnlyOff | sameSiteOff, "a=1"},
		{"a=1; samesite=STRICT", sameSiteStrict, "a=1; samesite=STRICT"},
		{"a=1; samesite=lax; p", sameSiteNone, "a=1; SameSite=None; p"},
	} {
		if got := show(editFlags(parseCookie([]byte(c.in)), c.flags)); got != c.want {
			t.Errorf("editFlags(%q, %b) = %q, want %q", c.in, c.flags, got, c.want)
		}
	}
}
