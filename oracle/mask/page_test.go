package mask

import (
	"flag"
	"fmt"
	"strings"

	"nginxoracle/oracle/observe"
)

var update = flag.Bool("update", false, "write docs/masks.md")

// page is the row's paragraph in docs/masks.md.
func (r Row) page() string {
	where := map[Where]string{Client: "client", Origin: "origin", Access: "access log", Error: "error log", Diag: "diagnostics", Tree: "files"}
	var places []string
	for _, w := range []Where{Client, Origin, Access, Error, Diag, Tree} {
		if r.Where&w != 0 {
			places = append(places, where[w])
		}
	}
	s := fmt.Sprintf("\n## %s\n\nIn: %s. Form: `%s`\n", r.Name, strings.Join(places, ", "), r.Form)
	if len(r.Vars) > 0 {
		s += "Only where the configuration mentions $" + strings.Join(r.Vars, ", $") + ".\n"
	}
	if r.Trait != "" {
		s += "Only where the configuration has " + map[string]string{
			observe.Expires: "`expires`",
			observe.Moment:  "`expires` with a moment (`@15h`), `modified` or a variable",
		}[r.Trait] + ".\n"
	}
	if r.Bind {
		s += "Bound: one value of the reference always goes with the same value of the candidate"
		if !r.Fold {
			s += ", and the other way round"
		}
		s += ".\n"
	}
	return s + "Why: " + r.Why + ".\n"
}
