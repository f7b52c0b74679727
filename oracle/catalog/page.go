package catalog

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// Page is FINDINGS.md. base is the folder the page stands in; links are relative to it.
func (c *Catalog) Page(base string) []byte {
	var b bytes.Buffer
	count := map[string]int{}
	for _, e := range c.Entries {
		count[e.Status()]++
	}
	fmt.Fprintf(&b, "# Findings\n\nGenerated from corpus/ by `oracle findings`; not edited by hand. Every line is a case that\n`oracle replay FILE` runs again.\n\n")
	fmt.Fprintf(&b, "%d findings: %d fixed, %d divergences, %d new.\n", len(c.Entries), count[Fixed], count[Divergence], count[New])
	section := func(title, status string, row func(e *Entry)) {
		if count[status] == 0 {
			return
		}
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		for _, e := range c.Entries {
			if e.Status() == status {
				row(e)
			}
		}
	}
	link := func(e *Entry) string {
		rel, err := filepath.Rel(base, e.Path)
		if err != nil {
			rel = e.Path
		}
		return fmt.Sprintf("[%s](%s)", e.ID, filepath.ToSlash(rel))
	}
	section("New", New, func(e *Entry) { fmt.Fprintf(&b, "- %s %s\n", link(e), e.Case.Title) })
	section("Divergences", Divergence, func(e *Entry) {
		fmt.Fprintf(&b, "- %s %s\n  - why it stays: %s\n", link(e), e.Case.Title, e.Get("reason"))
		if rfc := e.Get("rfc"); rfc != "" {
			fmt.Fprintf(&b, "  - the standard: %s\n", rfc)
		}
		if build := e.Build(); build != "" {
			fmt.Fprintf(&b, "  - proved again only on the build of nginx it was recorded with: sha256 %s…\n", build)
		}
		fmt.Fprintf(&b, "  - decision: %s\n  - signature: %s\n", e.Get("decision"), code(e.Signature()))
	})
	section("Fixed", Fixed, func(e *Entry) { fmt.Fprintf(&b, "- %s %s\n", link(e), e.Case.Title) })
	return b.Bytes()
}

func code(s string) string {
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}
