package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Page is a campaign or a replay as an HTML page: one file, nothing fetched.
type Page struct {
	Title   string
	Verdict string // the exit code's name
	Good    bool
	Made    time.Time
	Facts   []Fact
	Spent   map[string]time.Duration
	Masks   map[string]int
	Signals map[string]int
	Views   []JSON // what differs, side by side; those that agree are only counted
	Covered []Covered
	Lists   []List
}

// Fact is one line of the summary.
type Fact struct{ Name, Value string }

// Covered is how much of one module's directives a campaign could use.
type Covered struct {
	Module    string
	Supported int
	All       int
	Refused   string // names
}

// List is a titled list of lines, shown as they are.
type List struct {
	Title string
	Lines []string
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"bars": bars, "counts": counts, "percent": func(c Covered) int { return 100 * c.Supported / max(c.All, 1) },
	"differs": func(j JSON) bool { return len(j.Mismatches) > 0 || j.Verdict != "agree" },
	"cut":     cutText, "fate": func(v string) string { return strings.ReplaceAll(v, " ", "-") },
}).Parse(pageText))

// Write writes the page.
func (p *Page) Write(w io.Writer) error { return page.Execute(w, p) }

// bar is one row of a plot; X and W are in the plot's own units, 0 to 600.
type bar struct {
	Name, Text string
	Y, W       int
}

type plot struct {
	Bars   []bar
	Height int
}

func bars(m map[string]time.Duration) plot {
	var most time.Duration
	for _, d := range m {
		most = max(most, d)
	}
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if m[a] != m[b] {
			return int(m[b] - m[a])
		}
		return strings.Compare(a, b)
	})
	p := plot{Height: 22 * len(names)}
	for i, n := range names {
		p.Bars = append(p.Bars, bar{Name: n, Text: fmt.Sprintf("%.1f s", m[n].Seconds()), Y: 22 * i, W: int(500 * m[n] / max(most, 1))})
	}
	return p
}

// counts orders a count by size.
func counts(m map[string]int) []Fact {
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if m[a] != m[b] {
			return m[b] - m[a]
		}
		return strings.Compare(a, b)
	})
	var out []Fact
	for _, n := range names {
		out = append(out, Fact{n, fmt.Sprint(m[n])})
	}
	return out
}

// piece is a text in three: what both sides have, the line where they differ first, the rest.
type piece struct{ Same, Other, Rest string }

// cutText divides two escaped texts where they differ first.
func cutText(m JSONMismatch) [2]piece {
	n := 0
	for n < len(m.Reference) && n < len(m.Candidate) && m.Reference[n] == m.Candidate[n] {
		n++
	}
	for n > 0 && n < len(m.Reference) && m.Reference[n]&0xc0 == 0x80 { // not inside of a letter
		n--
	}
	return [2]piece{pieceOf(m.Reference, n), pieceOf(m.Candidate, n)}
}

func pieceOf(s string, n int) piece {
	other, rest := s[n:], ""
	if i := strings.Index(other, `\n`); i >= 0 {
		other, rest = other[:i+2], other[i+2:]
	}
	lines := strings.NewReplacer(`\n`, "\\n\n").Replace // a line of the text is a line of the page
	return piece{lines(s[:n]), lines(other), lines(rest)}
}
