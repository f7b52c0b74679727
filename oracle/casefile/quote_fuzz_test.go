package casefile

import (
	"bytes"
	"testing"
)

// Any bytes come back from their quoted form, which is one line.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "GET / HTTP/1.1\r\n", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "\x00\xff\"\\", "é\u2028"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		q := quotePart(b)
		if bytes.ContainsAny([]byte(q), "\r\n") {
			t.Fatalf("%q is not one line", q)
		}
		parts, err := parseParts(q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if got := bytes.Join(parts, nil); !bytes.Equal(got, b) {
			t.Fatalf("%s is %q, want %q", q, got, b)
		}
		if w, rest, err := word(quoteWord(string(b))); err != nil || w != string(b) || rest != "" {
			t.Fatalf("word %q: %q, %q, %v", b, w, rest, err)
		}
		parseParts(string(b))
	})
}
