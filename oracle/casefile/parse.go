package casefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
)

// DefaultAddr is where a client connects when its section names no address.
const DefaultAddr = "127.0.0.1:8080"

// Error is a fault in a case file, with its place.
type Error struct {
	File string
	Line int
	Msg  string // "want …, got …"
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// maxText bounds a case's file, in bytes: a work tree's bound, each byte written as \x00.
const maxText = 4 * maxTree

// Load reads and parses the case file at path; the case's Name is path.
func Load(path string) (*Case, error) {
	st, err := os.Stat(path) // before it is opened: a pipe that nobody writes to would keep us waiting
	switch {
	case err != nil:
		return nil, fmt.Errorf("load case: open %s: %w", path, errors.Unwrap(err))
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("load case: %s is %s: want a file", path, Kind(st.Mode()))
	case st.Size() > maxText:
		return nil, fmt.Errorf("load case: %s has %d MiB: want a case file, of at most %d", path, st.Size()>>20, maxText>>20)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load case: %w", err)
	}
	return Parse(path, text)
}

// Kind names what is no file, for messages.
func Kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m.IsRegular():
		return "a file"
	}
	return "no file"
}

// Parse reads a case from text. The error is an *Error that names the line and
// what was expected there. Printing a parsed case gives its canonical text, and
// parsing that gives the same case again, lines apart.
func Parse(name string, text []byte) (*Case, error) {
	p := &parser{name: name, c: &Case{Name: name}}
	if err := p.archive(text); err != nil {
		return nil, err
	}
	return p.c, nil
}

type parser struct {
	name string
	line int
	c    *Case
}

func (p *parser) errorf(format string, args ...any) error {
	return &Error{File: p.name, Line: p.line, Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) archive(text []byte) error {
	a := txtar.Parse(text)
	p.line = 1
	if err := p.comment(a.Comment); err != nil {
		return err
	}
	for _, f := range a.Files {
		// A section's body is contiguous in the text, so its line follows from the bodies before it.
		header := p.line
		if err := p.section(f.Name, f.Data); err != nil {
			return err
		}
		p.line = header + 1 + bytes.Count(f.Data, []byte("\n"))
	}
	if f := p.c.File("nginx.conf"); f == nil {
		p.line = max(1, p.line-1)
		return p.errorf("want a section \"-- nginx.conf --\", got the end of the file")
	} else if f.Dir {
		return p.at(f.Line, "want a file nginx.conf, got a folder")
	}
	return p.whole()
}

func (p *parser) comment(text []byte) error {
	titled := false
	return p.lines(text, func(line string) error {
		if rest, ok := strings.CutPrefix(line, "#"); ok {
			rest = oneLine(rest)
			if !titled {
				p.c.Title, titled = rest, true
			} else {
				p.c.Prose = append(p.c.Prose, rest)
			}
			return nil
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || key == "" || strings.ContainsAny(key, " \t") {
			return p.errorf("want \"# text\" or \"key: value\", got %s%s", show(line), p.hint(line))
		}
		if value = oneLine(value); key == LanesKey && value != LanesUnits {
			return p.errorf("want \"lanes: units\", got %s", show(line))
		}
		p.c.Meta = append(p.c.Meta, Field{Key: key, Value: value})
		return nil
	})
}

// hint says what a comment's wrong line looks like.
func (p *parser) hint(line string) string {
	switch {
	case strings.HasPrefix(line, "\ufeff"):
		return ": take the byte order mark out"
	case nearly.MatchString(line):
		return ": a section's line begins with \"-- \" and ends with \" --\""
	case strings.ContainsRune(line, 0) || !utf8.ValidString(line):
		return ": is that a case file (text, in UTF-8)?"
	}
	return ""
}

// lines calls f with each non-blank line of text, trimmed, p.line set to it.
// On return p.line is the line after the text.
func (p *parser) lines(text []byte, f func(line string) error) error {
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		if s := strings.TrimSpace(string(line)); s != "" {
			if err := f(s); err != nil {
				return err
			}
		}
		text = rest
		p.line++
	}
	return nil
}

func (p *parser) section(name string, body []byte) error {
	w, rest, err := word(name)
	if err != nil {
		return p.errorf("%v", err)
	}
	if strings.HasPrefix(name, `"`) {
		return p.file(w, rest, body)
	}
	if meant := alike(w); meant != "" {
		return p.errorf("want a section such as %q (or, for a file of that name, the name in quotes), got %s", examples[meant], show(name))
	}
	switch w {
	case "origin":
		return p.origin(rest, body)
	case "client":
		return p.client(rest, body)
	case "do":
		if rest != "" {
			return p.errorf("want nothing after \"do\", got %s", show(rest))
		}
		s := Section{Line: p.line}
		p.line++
		s.Steps, err = p.steps(body, doSteps)
		p.c.Sections = append(p.c.Sections, s)
		return err
	}
	return p.file(w, rest, body)
}

func (p *parser) file(name, attrs string, body []byte) error {
	f := File{Line: p.line, Path: strings.TrimSuffix(name, "/"), Dir: strings.HasSuffix(name, "/")}
	if err := checkPath(f.Path); err != nil {
		return p.errorf("%v", err)
	}
	if p.c.File(f.Path) != nil {
		return p.errorf("want each path once, got a second %s", show(f.Path))
	}
	for attrs != "" {
		var err error
		if attrs, err = f.attribute(attrs); err != nil {
			return p.errorf("%v", err)
		}
	}
	if f.Dir && (f.Quoted || f.Link != "") {
		return p.errorf("want mode or mtime for a folder, got another attribute")
	}
	if f.Link != "" && (f.Quoted || f.Mode != 0 || !f.MTime.IsZero()) {
		return p.errorf("want no other attribute beside symlink=")
	}
	p.line++
	switch {
	case f.Dir || f.Link != "":
		if err := p.lines(body, func(line string) error {
			return p.errorf("want no content for a folder or a link, got %s", show(line))
		}); err != nil {
			return err
		}
	case f.Quoted:
		f.Data = []byte{}
		if err := p.lines(body, func(line string) error {
			parts, err := parseParts(line)
			if err != nil {
				return p.errorf("%v", err)
			}
			f.Data = append(f.Data, bytes.Join(parts, nil)...)
			return nil
		}); err != nil {
			return err
		}
	default:
		if line, n := nearlySection(body); line != "" {
			p.line += n
			return p.errorf("want a section's line to begin with \"-- \" and to end with \" --\", got %s (a file that holds this line must be quoted)", show(line))
		}
		f.Data = bytes.Clone(body)
		if f.Data == nil {
			f.Data = []byte{}
		}
		f.Quoted = !plain(f.Data)
	}
	p.c.Files = append(p.c.Files, f)
	return nil
}

// attribute reads one of mode= mtime= symlink= quoted from the front of s.
func (f *File) attribute(s string) (rest string, err error) {
	key, value := s, ""
	if i := strings.IndexAny(s, "= \t"); i >= 0 && s[i] == '=' {
		key = s[:i]
		if value, rest, err = word(s[i+1:]); err != nil {
			return "", err
		}
	} else if key, rest, err = word(s); err != nil {
		return "", err
	}
	switch key {
	case "mode":
		m, err := parseMode(value)
		if err != nil {
			return "", err
		}
		f.Mode = m
	case "mtime":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 || n > 1<<40 {
			return "", fmt.Errorf("want mtime= and seconds since 1970, got %s", show(value))
		}
		f.MTime = time.Unix(n, 0).UTC()
	case "symlink":
		if value == "" || strings.ContainsRune(value, 0) {
			return "", fmt.Errorf("want symlink= and its target, got %s", show(value))
		}
		f.Link = value
	case "quoted":
		if value != "" {
			return "", fmt.Errorf("want \"quoted\" alone, got %s", show(s))
		}
		f.Quoted = true
	default:
		return "", fmt.Errorf("want mode=, mtime=, symlink= or quoted, got %s", show(s))
	}
	return rest, nil
}

// parseMode reads permission bits in octal. 0 stands for the default in a File
// and is not a mode of its own.
func parseMode(s string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n == 0 || n > 0o777 {
		return 0, fmt.Errorf("want an octal mode from 0001 to 0777, got %s", show(s))
	}
	return fs.FileMode(n), nil
}

// checkPath accepts a clean path inside the work tree.
func checkPath(name string) error {
	switch {
	case name == "" || name == ".":
		return fmt.Errorf("want a path under /cell, got nothing")
	case path.IsAbs(name), name != path.Clean(name), name == "..", strings.HasPrefix(name, "../"),
		strings.ContainsRune(name, 0):
		return fmt.Errorf("want a clean path relative to /cell, got %s", show(name))
	case len(name) > maxPath || slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return len(part) > maxName }):
		return fmt.Errorf("want a path of at most %d bytes, each part of at most %d, got %s", maxPath, maxName, show(name))
	}
	return nil
}

// plain tells whether data can stand as text in the archive and come back
// unchanged and readable: UTF-8 without control characters, ending in a newline,
// and no line that txtar would take for a section.
func plain(data []byte) bool {
	if len(data) == 0 {
		return true
	}
	if data[len(data)-1] != '\n' || !utf8.Valid(data) {
		return false
	}
	for _, r := range string(data) {
		if r != '\n' && r != '\t' && r != ' ' && !unicode.IsPrint(r) {
			return false
		}
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if bytes.HasPrefix(line, []byte("-- ")) && bytes.HasSuffix(line, []byte(" --")) {
			return false
		}
	}
	line, _ := nearlySection(data)
	return line == ""
}

func (p *parser) origin(rest string, body []byte) error {
	o := Origin{Line: p.line}
	var err error
	if o.Addr, rest, err = word(rest); err != nil {
		return p.errorf("%v", err)
	}
	if rest != "" {
		return p.errorf("want the end of the line after the origin's address, got %s", show(rest))
	}
	if err := checkAddr(o.Addr); err != nil {
		return p.errorf("%v", err)
	}
	if slices.ContainsFunc(p.c.Origins, func(x Origin) bool { return sameAddr(x.Addr, o.Addr) }) {
		return p.errorf("want each origin once, got a second %s", o.Addr)
	}
	p.line++
	o.Conns, err = p.connections(body)
	p.c.Origins = append(p.c.Origins, o)
	return err
}

func (p *parser) client(rest string, body []byte) error {
	s := Section{Client: true, Line: p.line, Addr: DefaultAddr}
	w, rest, err := word(rest)
	if err != nil {
		return p.errorf("%v", err)
	}
	if s.ID, err = clientID(w); err != nil {
		return p.errorf("%v", err)
	}
	if rest != "" && !strings.HasPrefix(rest, "with ") {
		if s.Addr, rest, err = word(rest); err != nil {
			return p.errorf("%v", err)
		}
		if err := checkAddr(s.Addr); err != nil {
			return p.errorf("%v", err)
		}
	}
	if rest != "" {
		n, ok := strings.CutPrefix(rest, "with ")
		if !ok {
			return p.errorf("want \"with N\" or the end of the line, got %s", show(rest))
		}
		if s.With, err = clientID(strings.TrimSpace(n)); err != nil {
			return p.errorf("with: %v", err)
		}
	}
	if err := p.place(s); err != nil {
		return err
	}
	p.line++
	s.Steps, err = p.steps(body, clientSteps)
	p.c.Sections = append(p.c.Sections, s)
	return err
}

func clientID(w string) (int, error) {
	n, err := strconv.Atoi(w)
	if err != nil || n < 1 || n > 1e6 || w[0] == '+' {
		return 0, fmt.Errorf("want a client's number from 1, got %s", show(w))
	}
	return n, nil
}

// place checks a client's number, and that the client it runs with is in the
// group right before it: one that ran earlier cannot be joined any more.
func (p *parser) place(s Section) error {
	sections := p.c.Sections
	for _, x := range sections {
		if x.Client && x.ID == s.ID {
			return p.errorf("want each client's number once, got a second client %d", s.ID)
		}
	}
	if s.With == 0 {
		return nil
	}
	for i := len(sections) - 1; i >= 0 && sections[i].Client; i-- {
		if sections[i].ID == s.With {
			return nil
		}
		if sections[i].With == 0 {
			break
		}
	}
	return p.errorf("want \"with\" and a client of the group right before, got client %d", s.With)
}
