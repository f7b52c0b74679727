package triage

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/minimize"
)

// Signature says what a mismatch is about, without the accidents of the case
// that shows it. Core is where and how the sides differ; Directives are those
// left in the configuration that shows it.
type Signature struct {
	Core       string
	Directives []string
}

// String is the signature's one-line form, as it stands in a finding's file.
func (s Signature) String() string { return s.Core + " [" + strings.Join(s.Directives, " ") + "]" }

// order is how telling the kinds are: the first one present names a finding.
var order = []diff.Kind{diff.KindProcess, diff.KindLoad, diff.KindOrigin, diff.KindClient, diff.KindConns, diff.KindEnd, diff.KindError, diff.KindAccess, diff.KindTree}

// SignatureOf is the signature of a differing result of a case.
func SignatureOf(c *casefile.Case, r diff.Result) Signature {
	s := Signature{Directives: minimize.Directives(c)}
	if cores := Cores(r); len(cores) > 0 {
		s.Core = cores[0]
	}
	return s
}

// Cores lists what every mismatch of a result is about, the most telling first, each once.
func Cores(r diff.Result) []string {
	ms := slices.Clone(r.Mismatches)
	rank := func(m diff.Mismatch) int {
		if i := slices.Index(order, m.Kind); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(ms, func(a, b diff.Mismatch) int { return rank(a) - rank(b) })
	var out []string
	for _, m := range ms {
		if c := Core(m); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// Core is what one mismatch is about.
func Core(m diff.Mismatch) string {
	how := ""
	switch m.Kind {
	case diff.KindClient, diff.KindOrigin:
		how = messages(m.Ref, m.Cand)
	case diff.KindError, diff.KindLoad:
		how = lines(m.Ref, m.Cand)
	case diff.KindEnd, diff.KindConns, diff.KindProcess:
		how = Shape(string(m.Ref)) + " / " + Shape(string(m.Cand))
	case diff.KindTree:
		how = Shape(m.Where)
	case diff.KindAccess:
		how = "line"
		if n, k := bytes.Count(m.Ref, []byte("\n")), bytes.Count(m.Cand, []byte("\n")); n < k {
			how = "more lines"
		} else if n > k {
			how = "fewer lines"
		}
	}
	return string(m.Kind) + ": " + how
}

// Shape takes what varies from run to run and case to case out of a message:
// names in quotes, numbers, addresses, times, places.
func Shape(s string) string {
	s = dropTails(dropProcesses(dropStamps(s)))
	for i := range shapers {
		if h := &shapers[i]; strings.Contains(s, h.hint) {
			s = h.pattern.ReplaceAllString(s, h.with)
		}
	}
	s = noNumbers(s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 160 {
		s = strings.ToValidUTF8(s[:160], "") + "…"
	}
	return s
}

// lines tells two texts of diagnostics apart by their first different line.
func lines(ref, cand []byte) string {
	a, b := strings.Split(strings.TrimSpace(string(ref)), "\n"), strings.Split(strings.TrimSpace(string(cand)), "\n")
	for i := range max(len(a), len(b)) {
		x, y := "", ""
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x == y {
			continue
		}
		if sx, sy := Shape(x), Shape(y); sx != sy {
			return none(sx) + " / " + none(sy)
		} else if dropProcesses(dropStamps(x)) != dropProcesses(dropStamps(y)) {
			return sx + " (details)"
		}
	}
	return "times or process numbers"
}

func none(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// message is one HTTP message of a stream.
type message struct {
	first   string
	headers []string // as sent
	body    []byte
}

var startLine = regexp.MustCompile(`(?m)^HTTP/\d\.\d \d{3}`)

// cut parts a stream into messages at its start lines: good enough for naming a difference.
func cut(stream []byte) (out []message) {
	at := startLine.FindAllIndex(stream, -1)
	if len(at) == 0 || at[0][0] > 0 {
		at = append([][]int{{0, 0}}, at...)
	}
	for i, a := range at {
		end := len(stream)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		head, body, _ := bytes.Cut(stream[a[0]:end], []byte("\r\n\r\n"))
		ls := strings.Split(string(head), "\r\n")
		out = append(out, message{first: ls[0], headers: ls[1:], body: body})
	}
	return out
}

// clockFields are header values that the time of day goes into: masks compare
// them, and they name no difference.
var clockFields = regexp.MustCompile(`(\r\n(?:Date|Expires): )[^\r\n]*|(max-age=)\d+`)

// messages names the first difference of two streams of HTTP messages.
func messages(ref, cand []byte) string {
	if a, b := clockFields.ReplaceAll(ref, []byte("$1$2X")), clockFields.ReplaceAll(cand, []byte("$1$2X")); !bytes.Equal(a, b) {
		ref, cand = a, b
	}
	switch {
	case len(ref) == 0:
		return "nothing / " + status(cut(cand)[0].first)
	case len(cand) == 0:
		return status(cut(ref)[0].first) + " / nothing"
	}
	a, b := cut(ref), cut(cand)
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x.first != y.first {
			if status(x.first) != status(y.first) {
				return status(x.first) + " / " + status(y.first)
			}
			return "first line of " + status(x.first)
		}
		if d := headerDiff(x.headers, y.headers); d != "" {
			return "headers of " + status(x.first) + ": " + d
		}
		if !bytes.Equal(x.body, y.body) {
			how := "differs"
			switch {
			case bytes.HasPrefix(x.body, y.body):
				how = "short"
			case bytes.HasPrefix(y.body, x.body):
				how = "long"
			}
			if i+1 < len(a) != (i+1 < len(b)) {
				how += ", then a message more on one side"
			}
			return "body of " + status(x.first) + " " + how
		}
	}
	if len(a) > len(b) {
		return "message missing: " + status(a[len(b)].first)
	}
	if len(b) > len(a) {
		return "message too many: " + status(b[len(a)].first)
	}
	return "bytes"
}

// status is a start line's class: a response's status, a request's method and version.
func status(first string) string {
	f := strings.Fields(first)
	switch {
	case len(f) >= 2 && strings.HasPrefix(f[0], "HTTP/"):
		return f[1]
	case len(f) >= 3 && strings.HasPrefix(f[len(f)-1], "HTTP/"):
		return "request " + f[len(f)-1]
	case first == "":
		return "nothing"
	}
	return "bytes"
}

// headerDiff names the first header that differs: missing, added, other value or other place.
func headerDiff(a, b []string) string {
	if slices.Equal(a, b) {
		return ""
	}
	name := func(l string) string {
		n, _, _ := strings.Cut(l, ":")
		return strings.ToLower(n)
	}
	values := func(list []string) map[string][]string {
		m := map[string][]string{}
		for _, l := range list {
			m[name(l)] = append(m[name(l)], l)
		}
		return m
	}
	va, vb := values(a), values(b)
	for _, l := range a {
		n := name(l)
		switch {
		case len(vb[n]) < len(va[n]):
			return n + " missing"
		case !slices.Equal(va[n], vb[n]) && len(va[n]) == len(vb[n]):
			return n + " differs"
		}
	}
	for _, l := range b {
		if n := name(l); len(vb[n]) > len(va[n]) {
			return n + " added"
		}
	}
	return "order"
}

// Slug makes a file name's part out of a signature.
func (s Signature) Slug() string {
	text := s.Core
	if n := len(s.Directives); n > 0 && n <= 3 {
		text = strings.Join(s.Directives, " ") + " " + text
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, text)
	var parts []string
	for _, p := range strings.Split(text, "-") {
		if p != "" {
			parts = append(parts, p)
		}
	}
	slug := strings.Join(parts, "-")
	if len(slug) > 48 {
		slug = strings.TrimRight(slug[:48], "-")
	}
	if slug == "" {
		return "unnamed"
	}
	return slug
}

// Describe is a finding's title.
func (s Signature) Describe() string {
	if len(s.Directives) == 0 {
		return s.Core
	}
	list, more := s.Directives, ""
	if len(list) > 6 { // not shrunk to the end
		list, more = list[:6], fmt.Sprintf(" and %d more", len(s.Directives)-6)
	}
	return fmt.Sprintf("%s, with %s%s", s.Core, strings.Join(list, ", "), more)
}
