package catalog

import (
	"testing"

	"nginxoracle/oracle/casefile"
)

func coversEntry(status, covers string) *Entry {
	meta := []casefile.Field{{Key: "finding", Value: "F-0001"}, {Key: "status", Value: status}, {Key: "reason", Value: "r"}, {Key: "decision", Value: "D-001"},
		{Key: "signature", Value: "process: crash [location proxy_pass]"}}
	if covers != "" {
		meta = append(meta, casefile.Field{Key: "covers", Value: covers})
	}
	return &Entry{ID: "F-0001", Case: &casefile.Case{Meta: meta}}
}

// A divergence covers what has more directives only when it names each of them.
func TestCovering(t *testing.T) {
	for _, x := range []struct {
		covers     string
		core       string
		directives []string
		want       bool
	}{
		{"root alias", "process: crash", []string{"location", "proxy_pass", "root"}, true},
		{"root alias", "process: crash", []string{"location", "proxy_pass"}, true},
		{"root alias", "process: crash", []string{"location", "root"}, false},
		{"root alias", "process: crash", []string{"location", "proxy_pass", "gzip"}, false},
		{"root alias", "process: crash", []string{"location", "proxy_pass", "root", "gzip"}, false},
		{"root alias", "process: exit", []string{"location", "proxy_pass", "root"}, false},
		{"", "process: crash", []string{"location", "proxy_pass", "root"}, false},
	} {
		c := &Catalog{Entries: []*Entry{coversEntry(Divergence, x.covers)}}
		if got := c.Covering(x.core, x.directives) != nil; got != x.want {
			t.Errorf("covers %q, %s %v: covered %v, want %v", x.covers, x.core, x.directives, got, x.want)
		}
	}
}

// A finding that is fixed, or that nobody has looked at, stands for itself only.
func TestOnlyDivergencesCover(t *testing.T) {
	if err := coversEntry(Divergence, "root").check(); err != nil {
		t.Errorf("a divergence: %v", err)
	}
	for _, status := range []string{New, Fixed} {
		if err := coversEntry(status, "root").check(); err == nil {
			t.Errorf("status %s: no error", status)
		}
		if err := coversEntry(status, "").check(); err != nil {
			t.Errorf("status %s without covers: %v", status, err)
		}
	}
}
