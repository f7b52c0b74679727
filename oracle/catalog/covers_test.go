package catalog

import (
	"testing"

	"nginxoracle/oracle/casefile"
)

// A divergence covers what has more directives only when it says so.
func TestCovering(t *testing.T) {
	entry := func(status, covers string) *Catalog {
		return &Catalog{Entries: []*Entry{{Case: &casefile.Case{Meta: []casefile.Field{{Key: "status", Value: status}, {Key: "covers", Value: covers},
			{Key: "signature", Value: "process: crash [location proxy_pass]"}}}}}}
	}
	for _, x := range []struct {
		c          *Catalog
		core       string
		directives []string
		want       bool
	}{
		{entry(Divergence, "more"), "process: crash", []string{"location", "proxy_pass", "root"}, true},
		{entry(Divergence, "more"), "process: crash", []string{"location", "proxy_pass"}, true},
		{entry(Divergence, "more"), "process: crash", []string{"location", "root"}, false},
		{entry(Divergence, "more"), "process: exit", []string{"location", "proxy_pass", "root"}, false},
		{entry(Divergence, ""), "process: crash", []string{"location", "proxy_pass", "root"}, false},
		{entry(Fixed, "more"), "process: crash", []string{"location", "proxy_pass", "root"}, false},
	} {
		if got := x.c.Covering(x.core, x.directives) != nil; got != x.want {
			t.Errorf("%s %v: covered %v, want %v", x.core, x.directives, got, x.want)
		}
	}
}
