package run

import (
	"bytes"
	"strings"
	"testing"
)

// Taking a log apart loses nothing but whole entries below "warn", and keeps the order.
func FuzzEntries(f *testing.F) {
	f.Add([]byte("2026/11/30 18:50:46 [error] 1#1: a\nmore\n2026/11/30 18:50:46 [info] 1#1: b\nmore\n"))
	f.Add([]byte("no entry\nnginx: [emerg] x\n"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		rest := string(b)
		for _, e := range entries("log", b) {
			i := strings.Index(rest, e.Text)
			if i < 0 {
				t.Fatalf("entry %q is not in what is left of %q", e.Text, b)
			}
			rest = rest[i+len(e.Text):]
		}
		if kept := entries("log", b); len(bytes.TrimSpace(b)) > 0 && len(kept) == 0 && !bytes.Contains(b, []byte("] ")) {
			t.Fatalf("nothing is left of %q", b)
		}
	})
}
