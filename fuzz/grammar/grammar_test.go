package grammar

import (
	"strings"
	"testing"

	"nginxoracle/oracle/minimize/conftree"
)

// Every form must give an argument count that nginx's own table allows, with
// placeholders counted as one argument each.
func TestFormsMatchTable(t *testing.T) {
	tab, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tab.Rows {
		for _, form := range r.Forms {
			if form == "" {
				continue
			}
			s := strings.NewReplacer("{", "P", "}", "P").Replace(form)
			list, err := conftree.Parse([]byte(r.Name + " " + s + ";"))
			if err != nil {
				t.Errorf("%s %s: %v", r.Name, form, err)
				continue
			}
			ok := false
			for _, d := range tab.Named(r.Name) {
				ok = ok || d.Takes(len(list[0].Words)-1)
			}
			if !ok {
				t.Errorf("%s %s: argument count is not in the table", r.Name, form)
			}
		}
	}
}

func TestContexts(t *testing.T) {
	tab, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if !tab.HTTP("add_header", "if-in-location") || tab.HTTP("internal", "server") {
		t.Error("contexts of add_header or internal are wrong")
	}
	if len(tab.Directives) < 700 || len(tab.Variables) < 100 {
		t.Errorf("%d directives, %d variables", len(tab.Directives), len(tab.Variables))
	}
	if n := len(tab.Sprinkled("location", nil)); n < 80 {
		t.Errorf("only %d rows can be sprinkled in a location", n)
	}
}
