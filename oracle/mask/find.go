package mask

import (
	"bytes"
	"regexp"
)

// span is one place where a row's form was found.
type span struct{ start, end int }

// finder finds the rows' values in one text. It is asked from the text's front to its end, looks no
// further ahead than it is asked for, and goes over each value once: a log that a server has flooded is
// millions of values long, and mostly differs at its begin.
type finder struct {
	text  []byte
	where Where
	rows  []values // as the table's; without a form where the row does not apply
	looks int      // at values, in all
}

// values are a row's, as far as they were looked for.
type values struct {
	form  *regexp.Regexp
	found []span
	all   bool // there are no more
	at    int  // the first that does not end in front of where the finder was asked last
	next  int  // where the text goes on that was not looked through, behind the end of a line
	end   int  // of the last thing that the form matched
}

// piece is how much of a text is looked through at a time, to the end of the line: patterns are
// several times faster on short texts.
const piece = 4 << 10

// lineEnd is how far a form looks back over the end of the line before: no form holds more of it.
const lineEnd = len("\r\n")

func (m *Comparer) finder(where Where, text []byte) *finder {
	f := &finder{text: text, where: where, rows: make([]values, len(m.table))}
	for i := range m.table {
		if row := &m.table[i]; row.Where&where != 0 && m.applies(row, where) {
			f.rows[i].form = row.Form
		}
	}
	return f
}

// around gives the values of a row that hold the place at, or begin or end there: two at most. at
// never goes back.
func (f *finder) around(row, at int) []span {
	v := &f.rows[row]
	if v.form == nil {
		return nil
	}
	for {
		for v.at < len(v.found) && v.found[v.at].end < at {
			v.at++
			f.looks++
		}
		end := v.at
		for end < len(v.found) && v.found[end].start <= at {
			end++
			f.looks++
		}
		if end < len(v.found) || v.all {
			return v.found[v.at:end]
		}
		v.more(f.text)
	}
}

// more looks through the next piece. A form that begins with the end of the line before finds it,
// unless it belongs to the value before.
func (v *values) more(text []byte) {
	from, to := max(v.next-lineEnd, v.end, 0), v.next+piece
	if i := bytes.IndexByte(text[min(to, len(text)):], '\n'); i >= 0 {
		to += i + 1
	} else {
		to = len(text)
	}
	for _, g := range v.form.FindAllSubmatchIndex(text[from:to], -1) {
		v.found = append(v.found, span{start: from + g[2], end: from + g[3]})
		v.end = from + g[1]
	}
	v.next, v.all = to, to == len(text)
}
