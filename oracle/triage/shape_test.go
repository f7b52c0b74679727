package triage

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A hint only saves looking: whatever a pattern would change has it.
func TestShapersHints(t *testing.T) {
	words := []string{"2026/01/02 03:04:05 ", "7#7: ", "*12 ", ", client: ", " upstream: ", " in /cell/a:7", `"a"`, `"\"`, "127.0.0.1:80", "1.2", "12", "x", " ", "\n", ":"}
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "words"), "")
		for _, h := range shapers {
			if h.pattern.MatchString(s) && !strings.Contains(s, h.hint) {
				t.Fatalf("%q matches in %q, which has no %q", h.pattern, s, h.hint)
			}
		}
	})
	got := Shape(`2026/01/02 03:04:05 [error] 7#7: *1 open() "/cell/u00/x" failed (2: No such file) in /cell/nginx.conf:7, client: 127.0.0.1, server: a`)
	if want := `[error] open() "…" failed (N: No such file) in FILE`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
