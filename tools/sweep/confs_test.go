package main

import (
	"slices"
	"strings"
	"testing"

	"nginxoracle/fuzz/grammar"
)

func plans(t *testing.T, p plan) []conf {
	t.Helper()
	tables, err := grammar.Load()
	if err != nil {
		t.Fatal(err)
	}
	p.has = func(d grammar.Directive) bool {
		return !strings.Contains(d.Module, "_stream_") && !strings.Contains(d.Module, "_mail_") && d.Module != "ngx_stream" && d.Module != "ngx_mail"
	}
	return p.configurations(tables)
}

func TestASeedMakesTheSameConfigurations(t *testing.T) {
	a, b := plans(t, plan{seed: 3, n: 500, random: 500}), plans(t, plan{seed: 3, n: 500, random: 500})
	if len(a) != 1000 || !slices.Equal(a, b) {
		t.Errorf("%d and %d configurations, want the same 1000", len(a), len(b))
	}
	if slices.Equal(a, plans(t, plan{seed: 4, n: 500, random: 500})) {
		t.Error("another seed makes the same configurations")
	}
}

// A place that has no text, or a placeholder that is left, sweeps nothing.
func TestEveryDirectiveIsSweptInEveryPlace(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range plans(t, plan{seed: 1, n: -1}) {
		if strings.Contains(c.text, "%!") || strings.TrimSpace(c.text) == "" {
			t.Fatalf("%s: %q", c.own, c.text)
		}
		_, place, _ := strings.Cut(c.own[strings.LastIndex(c.own, "\n")+1:], "; (")
		seen[c.about+" "+strings.TrimSuffix(place, ")")] = true
	}
	for _, want := range []string{"gzip_types location", "proxy_pass if-in-location", "allow limit_except", "zone upstream", "use events", "worker_priority main", "set if-in-server", "listen server"} {
		if !seen[want] {
			t.Errorf("nothing about %s", want)
		}
	}
}
