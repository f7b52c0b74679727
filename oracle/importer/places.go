package importer

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"nginxoracle/oracle/minimize/conftree"
)

// Place is where a line came from. File is "" for a line that was added.
type Place struct {
	File string
	Line int
}

func (p Place) String() string {
	if p.File == "" {
		return "a line that was added"
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// places notes where each line of the printed configuration came from. The lines are counted as conftree.Print writes them.
func (m *importer) places(list []*conftree.Node, name string) {
	for _, n := range list {
		name := cmp.Or(m.from[n], name)
		p := Place{name, n.Line}
		if n.Line == 0 {
			p = Place{}
		}
		add := func(lines int) {
			for range lines {
				m.res.Places = append(m.res.Places, p)
			}
		}
		add(1 + strings.Count(strings.Join(n.Words, " "), "\n"))
		if n.Block {
			m.places(n.Kids, name)
			add(1) // its brace
		}
	}
}

var inCell = regexp.MustCompile(`/cell/nginx\.conf:(\d+)`)

// Place is where a line of the case's nginx.conf came from.
func (r *Result) Place(line int) Place {
	if line < 1 || line > len(r.Places) {
		return Place{}
	}
	return r.Places[line-1]
}

// Own puts the person's own files and lines into a message that names the cell's.
func (r *Result) Own(text string) string {
	text = inCell.ReplaceAllStringFunc(text, func(s string) string {
		line, err := strconv.Atoi(inCell.FindStringSubmatch(s)[1])
		if p := r.Place(line); err == nil && p.File != "" {
			return p.String()
		}
		return r.Case.Name + ", a line that was added"
	})
	text = strings.ReplaceAll(text, "/cell/nginx.conf", r.Case.Name)
	return strings.ReplaceAll(text, "/cell/files/", "/")
}
