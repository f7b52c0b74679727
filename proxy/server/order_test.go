package server

import (
	"os"
	"slices"
	"strings"
	"testing"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// TestModuleOrder: the list is a part of nginx's whole list, which stands in testdata/order.txt, in its
// order: that decides which handlers and filters run first.
func TestModuleOrder(t *testing.T) {
	b, err := os.ReadFile("testdata/order.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(b))
	at := -1
	for _, m := range httpModules {
		i := slices.Index(all, m.Name)
		switch {
		case i < 0:
			t.Errorf("%s is no module of nginx's", m.Name)
		case i <= at:
			t.Errorf("%s stands after %s, in nginx before it", m.Name, all[at])
		default:
			at = i
		}
	}
}

// allSets are the modules as a run would have them.
func allSets() []*module.Set {
	http.Modules = httpModules
	http.IndexModules()
	return moduleSets()
}

// TestDirectivesAreNginxs: what is supported stands where nginx's tables say, with the arguments that
// they say.
func TestDirectivesAreNginxs(t *testing.T) {
	type key struct {
		module, name string
	}
	table := map[key]tableRow{}
	for _, r := range tableRows() {
		name := strings.TrimSuffix(r.module, "_module")
		table[key{name, r.name}] = r
	}
	// files of nginx's source that hold the table of another module's name
	file := map[string]string{
		"ngx_core": "nginx", "ngx_errlog": "ngx_log", "ngx_events": "ngx_event", "ngx_event_core": "ngx_event",
	}
	for _, s := range allSets() {
		if s.Name == refused || s.Type == module.ConfModule {
			continue
		}
		name := strings.TrimSuffix(s.Name, "_module")
		if f := file[name]; f != "" {
			name = f
		}
		for i := range s.Directives {
			d := &s.Directives[i]
			if name == "ngx_http_header_count" {
				continue // of Debian's patches, not in nginx's own tables
			}
			row, ok := table[key{name, d.Name}]
			if !ok {
				t.Errorf("%s: nginx's module has no directive %q", s.Name, d.Name)
				continue
			}
			if got := d.Where &^ module.Direct; got != row.where {
				t.Errorf("%s: %s stands in %b, in nginx in %b", s.Name, d.Name, got, row.where)
			}
			if d.Args != row.args {
				t.Errorf("%s: %s takes %b, in nginx %b", s.Name, d.Name, d.Args, row.args)
			}
		}
	}
}

// TestEveryDirectiveIsKnown: each of nginx's directives is supported or refused in each of its places.
func TestEveryDirectiveIsKnown(t *testing.T) {
	have := map[string]module.Where{}
	for _, s := range allSets() {
		for i := range s.Directives {
			have[s.Directives[i].Name] |= s.Directives[i].Where
		}
	}
	for _, r := range tableRows() {
		if w := have[r.name]; w&module.Any == 0 && r.where&^w != 0 {
			t.Errorf("%s is unknown in %b", r.name, r.where&^w)
		}
	}
}
