package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/minimize/conftree"
)

// most is how many directives are named: a shrunk case has few, and a long list
// helps nobody.
const most = 6

// scaffold are directives that nearly every case has and that say nothing about
// why it differs.
var scaffold = []string{"events", "http", "server", "listen", "location", "worker_processes", "worker_connections"}

// inPlay names the directives that may have had a part, with their lines: those
// of the locations that the requests' paths lead to and of the levels around
// them; all when that leaves none.
func (v *View) inPlay() string {
	c, found, place := v.Case, v.Result.Mismatches, v.Place
	if place == nil {
		place = func(line int) string { return fmt.Sprintf("nginx.conf:%d", line) }
	}
	f := c.File("nginx.conf")
	if f == nil {
		return ""
	}
	nodes, err := conftree.Parse(f.Data)
	if err != nil {
		return "" // the configuration itself is what the case is about
	}
	paths := requestPaths(c, found)
	var near, all []string
	var walk func(list []*conftree.Node, on bool)
	walk = func(list []*conftree.Node, on bool) {
		for _, n := range list {
			name := n.Name()
			if !slices.Contains(scaffold, name) {
				entry := fmt.Sprintf("%s (%s)", name, place(n.Line))
				all = append(all, entry)
				if on {
					near = append(near, entry)
				}
			}
			walk(n.Kids, on && (name != "location" || leads(n, paths)))
		}
	}
	walk(nodes, true)
	if len(near) == 0 {
		near = all
	}
	more := ""
	if len(near) > most {
		// The innermost come last in the text and are the likeliest.
		more = fmt.Sprintf(" and %d more", len(near)-most)
		near = near[len(near)-most:]
	}
	return strings.Join(near, ", ") + more
}

// leads tells whether a request for one of paths may end in location n: a prefix
// that fits, and every regular expression and named location, which are not evaluated here.
func leads(n *conftree.Node, paths []string) bool {
	if len(n.Words) < 2 {
		return true
	}
	pattern := conftree.Value(n.Words[len(n.Words)-1])
	modifier := ""
	if len(n.Words) > 2 {
		modifier = n.Words[1]
	}
	if strings.HasPrefix(modifier, "~") || strings.HasPrefix(pattern, "~") || strings.HasPrefix(pattern, "@") || len(paths) == 0 {
		return true
	}
	pattern = strings.TrimLeft(pattern, "=^~ ")
	return slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, pattern) })
}

// requestPaths are the targets of the requests of the clients that differ, of
// all clients when it is not a client that differs.
func requestPaths(c *casefile.Case, found []diff.Mismatch) []string {
	of := func(pick func(casefile.Section) bool) []string {
		var paths []string
		for _, s := range c.Sections {
			if !s.Client || !pick(s) {
				continue
			}
			for i := range s.Steps {
				for line := range bytes.Lines(bytes.Join(s.Steps[i].Data, nil)) {
					if words := strings.Fields(string(line)); len(words) >= 2 && strings.HasPrefix(words[1], "/") {
						paths = append(paths, words[1])
					}
				}
			}
		}
		return paths
	}
	paths := of(func(s casefile.Section) bool {
		return slices.ContainsFunc(found, func(m diff.Mismatch) bool {
			return strings.HasPrefix(m.Where+",", fmt.Sprintf("client %d,", s.ID))
		})
	})
	if len(paths) == 0 {
		paths = of(func(casefile.Section) bool { return true })
	}
	return paths
}
