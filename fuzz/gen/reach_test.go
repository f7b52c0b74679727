package gen

import (
	"strings"
	"testing"

	"nginxoracle/oracle/minimize/conftree"
)

// Every directive of the grammar, and every variable that is said to be made, comes in some batch, or stands
// aside with a reason; and what stands aside does not come.
func TestEverythingIsReached(t *testing.T) {
	g := generator(t, 2)
	seen, text := map[string]bool{"http": true}, &strings.Builder{}
	walk := func(list []*conftree.Node) {
		conftree.Walk(list, "main", func(n *conftree.Node, _ string) bool {
			seen[n.Name()] = true
			for _, w := range n.Words {
				if strings.Contains(w, "$") {
					text.WriteString(w + " ")
				}
			}
			return true
		})
	}
	for i := range uint64(2000) {
		b := g.Batch(11, i)
		walk(b.Head.Main)
		walk(b.Head.HTTP)
		for _, u := range b.Units {
			walk(u.Body)
		}
	}
	for _, r := range g.w.t.Rows {
		if seen[r.Name] == (Aside[r.Name] != "") {
			t.Errorf("%s: seen %v, aside %q", r.Name, seen[r.Name], Aside[r.Name])
		}
	}
	for _, v := range g.w.t.Variables {
		came := strings.Contains(text.String(), "$"+v) || strings.Contains(text.String(), "${"+v)
		if !strings.HasSuffix(v, "_") && came != MakesVariable(v) {
			t.Errorf("$%s: came %v, said to be made %v", v, came, MakesVariable(v))
		}
		if MakesVariable(v) && AsideVariables[v] != "" {
			t.Errorf("$%s is made and stands aside", v)
		}
	}
}
