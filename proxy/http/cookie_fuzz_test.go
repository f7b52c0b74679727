package http

import (
	"bytes"
	"strings"
	"testing"

	"nginxoracle/proxy/http/httptest"
)

// A cookie's value lies in its field, ends in front of ";", and is the one that was put there, behind whatever
// stands before it in the field or in a field before.
func FuzzCookieValue(f *testing.F) {
	for _, field := range httptest.Seen(f, "../..", "Cookie: ", `\"`) {
		f.Add([]byte(field), "a", "1")
	}
	f.Fuzz(func(t *testing.T, field []byte, name, value string) {
		line := func(b []byte) *Header { return &Header{Value: b} }
		got, ok := CookieValue(line(field), name)
		if ok && (!bytes.Contains(field, got) || bytes.IndexByte(got, ';') >= 0 || bytes.HasPrefix(got, []byte(" "))) {
			t.Fatalf("%q of %q is %q", name, field, got)
		}
		if ok && !strings.Contains(strings.ToLower(string(field)), strings.ToLower(name)) {
			t.Fatalf("%q is found in %q", name, field)
		}
		if name == "" || strings.ContainsAny(name, "=;, ") || strings.ContainsAny(value, "; ") || ok {
			return
		}
		for c := range []byte(name) { // letters beyond ASCII have no other case here, and do in strings.ToLower
			if name[c] >= 0x80 {
				return
			}
		}
		// Two: as in nginx, one right behind the name is taken for the "=" that is missing.
		made := []byte(";; " + name + " = " + value + "; z=1")
		for _, h := range []*Header{
			line(append(bytes.Clone(field), made...)),
			{Value: field, Next: line(made[3:])},
		} {
			if got, ok := CookieValue(h, name); !ok || string(got) != value {
				t.Fatalf("%q behind %q is %q (%v), want %q", name, field, got, ok, value)
			}
		}
	})
}

// An argument's value lies in the query string, ends in front of "&", and is the one that was put there.
func FuzzArg(f *testing.F) {
	for _, args := range httptest.Seen(f, "../..", "?", "\" \n") {
		f.Add([]byte(args), "a", "1")
	}
	f.Fuzz(func(t *testing.T, args []byte, name, value string) {
		r := &Request{}
		r.Args = args
		got, ok := r.Arg(name)
		if ok && !bytes.Contains(args, got) {
			t.Fatalf("%q of %q is %q", name, args, got)
		}
		if name == "" || strings.ContainsAny(name, "=&") || strings.ContainsRune(value, '&') {
			return
		}
		if ok && bytes.IndexByte(got, '&') >= 0 {
			t.Fatalf("%q of %q is %q, over the next argument", name, args, got)
		}
		if ok {
			return
		}
		r.Args = append(bytes.Clone(args), "&"+name+"="+value+"&z=1"...)
		if got, ok := r.Arg(name); !ok || string(got) != value {
			t.Fatalf("%q of %q is %q (%v), want %q", name, r.Args, got, ok, value)
		}
	})
}
