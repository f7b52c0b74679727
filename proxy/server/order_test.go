package server

import (
	"flag"
	"os"
	"strings"
	"testing"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

var update = flag.Bool("update", false, "write what is found into testdata")

// TestModuleOrder prints the order that decides phases and filters; a change of it shows in a review.
func TestModuleOrder(t *testing.T) {
	var b strings.Builder
	b.WriteString("modules:\n")
	for _, m := range httpModules {
		b.WriteString("  " + m.Name + "\n")
	}
	filters := func(title string, has func(m *http.Module) bool) {
		b.WriteString(title + ", the first that runs first:\n")
		for i := len(httpModules) - 1; i >= 0; i-- {
			if has(httpModules[i]) {
				b.WriteString("  " + httpModules[i].Name + "\n")
			}
		}
	}
	filters("header filters", func(m *http.Module) bool { return m.HeaderFilter != nil })
	filters("body filters", func(m *http.Module) bool { return m.BodyFilter != nil })
	const name = "testdata/order.txt"
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%swant\n%s(go test ./proxy/server -update writes it)", b.String(), want)
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
