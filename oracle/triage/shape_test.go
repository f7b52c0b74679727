package triage

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What is cut out by hand is what these patterns match, and a hint is in everything that its pattern matches.
func TestShapeIsPatterns(t *testing.T) {
	patterns := []struct {
		byHand  func(string) string
		pattern *regexp.Regexp
		with    string
	}{
		{dropStamps, regexp.MustCompile(`[0-9]{4}/\d\d/\d\d \d\d:\d\d:\d\d `), ""},
		{dropProcesses, regexp.MustCompile(`\d+#\d+: (\*\d+ )?`), ""},
		{dropTails, regexp.MustCompile(`,? (client|server|request|upstream|host|subrequest|referrer): .*`), ""},
		{noNumbers, regexp.MustCompile(`\d+`), "N"},
	}
	words := []string{"2026/01/02 03:04:05 ", "2026/01/02 ", "/02 03:04:05 ", "7#7: ", "7#", "#", "*12 ", "*", ": ", ", client: ", " upstream: ", " subrequest: ", ",",
		" in /cell/a:7", `"a"`, `"\"`, "127.0.0.1:80", "1.2", "12", "x", "é", "\xff", " ", "\n", ":"}
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "words"), "")
		for _, p := range patterns {
			if got, want := p.byHand(s), p.pattern.ReplaceAllString(s, p.with); got != want {
				t.Fatalf("%q, %s: got %q, want %q", s, p.pattern, got, want)
			}
		}
		for _, h := range shapers {
			if h.pattern.MatchString(s) && !strings.Contains(s, h.hint) {
				t.Fatalf("%q matches in %q, which has no %q", h.pattern, s, h.hint)
			}
		}
	})
}

func TestShape(t *testing.T) {
	got := Shape(`2026/01/02 03:04:05 [error] 7#7: *1 open() "/cell/u00/x" failed (2: No such file) in /cell/nginx.conf:7, client: 127.0.0.1, server: a`)
	if want := `[error] open() "…" failed (N: No such file) in FILE`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func BenchmarkShape(b *testing.B) {
	s := `2026/01/02 03:04:05 [error] 7#7: *1 open() "/cell/u00/html/x" failed (2: No such file or directory), client: 127.0.0.1, server: a, request: "GET /x HTTP/1.1", host: "a:20000"`
	for range b.N {
		Shape(s)
	}
}
