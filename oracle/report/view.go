// Package report shows what a replay found to a person: side by side, the bytes
// around the first difference, what led there, and the line to type for seeing it again.
package report

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
)

// View is one compared case.
type View struct {
	Case   *casefile.Case
	Ref    string // the targets' names
	Cand   string
	Result diff.Result
	Again  string // the command that shows it again
	Word   string // the verdict's word, where it is not the result's own ("as recorded")
	Note   string // what a person must know of an agreement: that little was compared
	// Place names a line of nginx.conf; nil: "nginx.conf:LINE". Where a case was made of a person's own files, and is
	// kept nowhere, its lines mean nothing to the person.
	Place   func(line int) string
	Unsaved bool // no line of the case's file is named
}

// Style is how a view is written.
type Style struct {
	Color bool
	Width int // columns; 0 means 100
}

// Write writes v: one line when the case agrees, all mismatches otherwise.
func (v *View) Write(w io.Writer, st Style) {
	if st.Width < 60 {
		st.Width = 100
	}
	word := v.Word
	if word == "" {
		word = v.Result.Verdict.String()
	}
	fmt.Fprintf(w, "%-*s %s\n", st.Width-12, v.Case.Name, st.verdict(v.Result.Verdict, word))
	if v.Result.Why != "" {
		fmt.Fprintf(w, "  %s\n", v.Result.Why)
	}
	if v.Note != "" {
		fmt.Fprintf(w, "  %s\n", v.Note)
	}
	if len(v.Result.Mismatches) == 0 {
		return
	}
	for i := range v.Result.Mismatches {
		v.mismatch(w, &v.Result.Mismatches[i], st)
	}
	play := v.inPlay()
	if play == "" {
		play = "nothing of nginx.conf"
	}
	fmt.Fprintf(w, "  in play: %s     masks used: %s\n", play, masks(v.Result.Masks))
	if v.Again != "" {
		fmt.Fprintf(w, "  again:   %s\n", v.Again)
	}
}

func masks(used map[string]int) string {
	if len(used) == 0 {
		return "none"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(used)) {
		parts = append(parts, fmt.Sprintf("%s×%d", name, used[name]))
	}
	return strings.Join(parts, ", ")
}

func (v *View) mismatch(w io.Writer, m *diff.Mismatch, st Style) {
	fmt.Fprintf(w, "  %s, byte %d\n", m.Where, m.At)
	if after := v.led(m, st.Width-24); after != "" {
		fmt.Fprintf(w, "    after  %s\n", after)
	}
	refName, candName := short(v.Ref), short(v.Cand)
	label := max(len([]rune(refName)), len([]rune(candName)), 5)
	room := st.Width - label - 8
	ref, col := window(m.Ref, m.At, room)
	cand, candCol := window(m.Cand, m.Pos, room)
	// Both windows begin equally far before the difference, so that the places stand under each other.
	if candCol < col {
		cand = strings.Repeat(" ", col-candCol) + cand
	} else if col < candCol {
		ref, col = strings.Repeat(" ", candCol-col)+ref, candCol
	}
	fmt.Fprintf(w, "    %-*s  %s\n", label, refName, st.paint(ref, green, col))
	fmt.Fprintf(w, "    %-*s  %s\n", label, candName, st.paint(cand, red, col))
	fmt.Fprintf(w, "    %*s  %s^\n", label, "", strings.Repeat(" ", col))
}

// short cuts a target's name, which may be a path, at its front.
func short(name string) string {
	const most = 16
	if r := []rune(name); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return name
}

// before and behind bound what is shown around a difference, in bytes.
const before, behind = 48, 120

// window cuts the bytes around at out of text, escaped to at most room columns,
// and tells in which column the place at stands.
func window(text []byte, at, room int) (line string, col int) {
	at = min(at, len(text))
	from := max(0, at-min(before, room/2))
	// Begin at a line's start where one is near.
	if i := bytes.LastIndexByte(text[from:at], '\n'); i >= 0 && i+1 < at-from {
		from += i + 1
	}
	lead := ""
	if from > 0 {
		lead = "…"
	}
	head := string(casefile.AppendEscaped(nil, text[from:at]))
	to := min(len(text), at+behind)
	tail := string(casefile.AppendEscaped(nil, text[at:to]))
	col = len([]rune(lead)) + len(head)
	if left := max(12, room-col); len(tail) > left {
		tail, to = tail[:left-1], 0
	}
	if to < len(text) {
		tail += "…"
	}
	if len(text) == at {
		tail += "(end)"
	}
	return lead + head + tail, col
}

// led says what a client had sent last when the difference came, cut to room columns.
func (v *View) led(m *diff.Mismatch, room int) string {
	if m.Kind != diff.KindClient && m.Kind != diff.KindEnd {
		return ""
	}
	for _, s := range v.Case.Sections {
		if !s.Client || !strings.HasPrefix(m.Where+",", fmt.Sprintf("client %d,", s.ID)) {
			continue
		}
		var last *casefile.Step
		recvs := 0
		for i := range s.Steps {
			switch s.Steps[i].Op {
			case casefile.Send:
				if recvs <= m.Message || m.Kind == diff.KindEnd {
					last = &s.Steps[i]
				}
			case casefile.Recv:
				recvs++
			}
		}
		if last == nil {
			return ""
		}
		sent := casefile.Quote(bytes.Join(last.Data, nil))
		if len(sent) > room {
			sent = sent[:room] + "…"
		}
		if v.Unsaved {
			return sent
		}
		return fmt.Sprintf("%s (line %d)", sent, last.Line)
	}
	return ""
}

const (
	green = "\x1b[32m"
	red   = "\x1b[31m"
	amber = "\x1b[33m"
	plain = "\x1b[0m"
)

// paint colours what comes behind column col.
func (st Style) paint(s, color string, col int) string {
	r := []rune(s)
	if !st.Color || col > len(r) {
		return s
	}
	return string(r[:col]) + color + string(r[col:]) + plain
}

func (st Style) verdict(v diff.Verdict, word string) string {
	if !st.Color {
		return word
	}
	switch v {
	case diff.Agree:
		return green + word + plain
	case diff.Differ, diff.RigFailed:
		return red + word + plain
	}
	return amber + word + plain
}
