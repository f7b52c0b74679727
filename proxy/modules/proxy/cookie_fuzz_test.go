package proxy

import (
	"bytes"
	"testing"

	"nginxoracle/proxy/http/httptest"
)

// A Set-Cookie line has a part more than semicolons; no part holds one or begins or ends with a space; and a line
// put together of the parts is taken apart to the same.
func FuzzParseCookie(f *testing.F) {
	for _, line := range httptest.Seen(f, "../../..", "Set-Cookie: ", `\"`) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		attrs := parseCookie(line)
		if want := bytes.Count(line, []byte(";")) + 1; len(attrs) != want {
			t.Fatalf("%q has %d parts, want %d", line, len(attrs), want)
		}
		var again []byte
		for i, a := range attrs {
			if i > 0 {
				again = append(again, "; "...)
			}
			again = append(again, a.key...)
			if a.value != nil {
				again = append(append(again, '='), a.value...)
			}
			for _, b := range [][]byte{a.key, a.value} {
				if bytes.IndexByte(b, ';') >= 0 || bytes.HasPrefix(b, []byte(" ")) || bytes.HasSuffix(b, []byte(" ")) {
					t.Fatalf("%q has a part %q = %q", line, a.key, a.value)
				}
			}
		}
		for i, b := range parseCookie(again) {
			if a := attrs[i]; !bytes.Equal(a.key, b.key) || !bytes.Equal(a.value, b.value) || (a.value == nil) != (b.value == nil) {
				t.Fatalf("%q, taken apart and put together as %q: part %d is %q = %q, want %q = %q", line, again, i, b.key, b.value, a.key, a.value)
			}
		}
	})
}
