package parse

import (
	"bytes"
	"testing"
)

// What is escaped comes back when it is unescaped, and EscapeCount says how much longer it gets.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"/a b", "%41", "%", "%4", "%zz", "é?x=1&y", "\x00\xff", "a%3fb"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for kind := EscapeURI; kind <= EscapeMailAuth; kind++ {
			e := Escape(nil, b, kind)
			if want := len(b) + 2*EscapeCount(b, kind); len(e) != want {
				t.Fatalf("kind %d: %q has %d bytes, want %d", kind, e, len(e), want)
			}
			if kind == EscapeRefresh {
				continue // leaves "%" alone
			}
			if back, n := Unescape(nil, e, UnescapeAll); n != len(e) || !bytes.Equal(back, b) {
				t.Fatalf("kind %d: %q escaped is %q, and back %q (%d bytes taken)", kind, b, e, back, n)
			}
		}
		for _, kind := range []UnescapeKind{UnescapeAll, UnescapeURIKind, UnescapeRedirectURI} {
			out, n := Unescape(nil, b, kind)
			if n > len(b) || len(out) > len(b) {
				t.Fatalf("%q: %d bytes out of %d", b, len(out), n)
			}
			same, m := Unescape(append([]byte(nil), b...)[:0], append([]byte(nil), b...), kind)
			if m != n || !bytes.Equal(same, out) {
				t.Fatalf("%q unescaped in place is %q, want %q", b, same, out)
			}
		}
		if got := EscapeHTML(nil, b); bytes.ContainsAny(got, "<>\"") {
			t.Fatalf("%q as HTML is %q", b, got)
		}
		EscapeJSON(nil, b)
		UnsafeURI(nil, b)
	})
}
