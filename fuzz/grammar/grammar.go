// Package grammar is what the generator knows of nginx's configuration
// language, as data: nginx's own directive and variable tables (read off nginx
// 1.26.3's source) and one row a directive with weighted forms of its
// arguments. It shares nothing with the proxy.
package grammar

import (
	_ "embed"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

//go:embed directives.tsv
var directivesText string

//go:embed variables.tsv
var variablesText string

//go:embed args.txt
var argsText string

// Directive is one row of nginx's directive tables. Two modules may have a
// directive of the same name in different contexts ("server").
type Directive struct {
	Name     string
	Module   string
	Contexts []string // main, events, http, server, location, upstream, if-in-server, if-in-location, limit_except, any
	Args     string   // argument flags, as in the table: flag, noargs, take1, take12, 1more, block,…
	Stage    string
}

// Block tells whether the directive opens a block.
func (d Directive) Block() bool { return strings.HasPrefix(d.Args, "block") }

// In tells whether the directive may stand in a context.
func (d Directive) In(context string) bool {
	for _, c := range d.Contexts {
		if c == context {
			return true
		}
	}
	return false
}

// Takes tells whether a number of arguments (the name not counted) is right.
func (d Directive) Takes(n int) bool {
	for _, f := range strings.Split(d.Args, ",") {
		switch {
		case f == "block":
		case f == "noargs" && n == 0, f == "flag" && n == 1,
			f == "1more" && n >= 1, f == "2more" && n >= 2, f == "any":
			return true
		case strings.HasPrefix(f, "take") && strings.Contains(f[4:], strconv.Itoa(n)):
			return true
		}
	}
	return false
}

// Row is the generator's row of a directive: how often it is put somewhere
// unasked (0: only where a feature of the generator places it), and the forms
// of its arguments with {placeholders}.
type Row struct {
	Name   string
	Weight int
	Forms  []string
}

// Variable is one row of nginx's variables; a name with a trailing _ is a family.
type Variable struct{ Name, Module string }

// Tables holds everything, parsed once.
type Tables struct {
	Directives []Directive // in the table's order
	Variables  []string    // http variables, sorted; a trailing _ is a family
	AllVars    []Variable  // of every module, in the table's order
	Rows       []Row       // in the file's order
	byName     map[string][]Directive
	rowByName  map[string]Row
}

// Load parses the embedded tables.
func Load() (*Tables, error) {
	t := &Tables{byName: map[string][]Directive{}, rowByName: map[string]Row{}}
	for i, line := range strings.Split(directivesText, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 5 {
			return nil, fmt.Errorf("directives.tsv, line %d: %d fields, want 5", i+1, len(f))
		}
		d := Directive{Name: f[0], Module: f[1], Args: f[3], Stage: f[4]}
		if f[2] != "" {
			d.Contexts = strings.Split(f[2], ",")
		} else {
			d.Contexts = []string{"any"}
		}
		t.Directives = append(t.Directives, d)
		t.byName[d.Name] = append(t.byName[d.Name], d)
	}
	seen := map[string]bool{}
	for _, line := range strings.Split(variablesText, "\n") {
		name, module, ok := strings.Cut(line, "\t")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		t.AllVars = append(t.AllVars, Variable{Name: name, Module: module})
		if strings.Contains(module, "stream") || seen[name] {
			continue
		}
		seen[name] = true
		t.Variables = append(t.Variables, name)
	}
	sort.Strings(t.Variables)
	for i, line := range strings.Split(argsText, "\n") {
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		f := strings.SplitN(strings.Join(strings.Fields(line), " "), " ", 3)
		if len(f) < 2 {
			return nil, fmt.Errorf("args.txt, line %d: want name, weight and forms", i+1)
		}
		w, err := strconv.Atoi(f[1])
		if err != nil {
			return nil, fmt.Errorf("args.txt, line %d: weight: %w", i+1, err)
		}
		row := Row{Name: f[0], Weight: w}
		if len(f) == 3 {
			row.Forms = strings.Split(f[2], " | ")
		} else {
			row.Forms = []string{""}
		}
		if len(t.byName[row.Name]) == 0 {
			return nil, fmt.Errorf("args.txt, line %d: nginx has no directive %q", i+1, row.Name)
		}
		t.Rows = append(t.Rows, row)
		t.rowByName[row.Name] = row
	}
	return t, nil
}

// Named lists the rows of nginx's tables with a name.
func (t *Tables) Named(name string) []Directive { return t.byName[name] }

// Row is the generator's row of a directive.
func (t *Tables) Row(name string) (Row, bool) {
	r, ok := t.rowByName[name]
	return r, ok
}

// HTTP tells whether a directive of that name belongs to the http part of
// nginx (main and events included) and may stand in the context.
func (t *Tables) HTTP(name, context string) bool {
	for _, d := range t.byName[name] {
		if !strings.Contains(d.Module, "_stream_") && !strings.Contains(d.Module, "_mail_") && d.In(context) {
			return true
		}
	}
	return false
}

// Module names the http module a directive of that context comes from.
func (t *Tables) Module(name string) string {
	for _, d := range t.byName[name] {
		return d.Module
	}
	return ""
}

// Sprinkled lists the rows with a weight that may stand in a context.
func (t *Tables) Sprinkled(context string, known func(string) bool) []Row {
	var out []Row
	for _, r := range t.Rows {
		if r.Weight > 0 && t.HTTP(r.Name, context) && (known == nil || known(r.Name)) {
			out = append(out, r)
		}
	}
	return out
}
