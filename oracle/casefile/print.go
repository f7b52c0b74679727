package casefile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// lineWidth is where a long send goes on in a new line.
const lineWidth = 100

// Print returns the canonical text of c: title, prose, fields, files, origins,
// sections, each in its order. A file that cannot stand as text (binary, no
// newline at its end, a line like "-- x --") is printed as quoted strings.
func (c *Case) Print() []byte {
	var b bytes.Buffer
	if c.Title != "" || len(c.Prose) > 0 {
		printComment(&b, c.Title)
	}
	for _, p := range c.Prose {
		printComment(&b, p)
	}
	for _, f := range c.Meta {
		b.WriteString(strings.TrimRight(f.Key+": "+oneLine(f.Value), " ") + "\n")
	}
	for i := range c.Files {
		c.Files[i].print(&b)
	}
	for _, o := range c.Origins {
		fmt.Fprintf(&b, "-- origin %s --\n", quoteWord(o.Addr))
		for _, steps := range o.Conns {
			if len(o.Conns) > 1 {
				b.WriteString("connection\n")
			}
			printSteps(&b, steps)
		}
	}
	for _, s := range c.Sections {
		b.WriteString(s.header())
		printSteps(&b, s.Steps)
	}
	return b.Bytes()
}

func printComment(b *bytes.Buffer, text string) {
	b.WriteString(strings.TrimRight("# "+oneLine(text), " ") + "\n")
}

func oneLine(s string) string {
	return strings.TrimSpace(strings.NewReplacer("\r", " ", "\n", " ").Replace(s))
}

// header is the section's marker line.
func (s Section) header() string {
	if !s.Client {
		return "-- do --\n"
	}
	h := fmt.Sprintf("-- client %d", s.ID)
	if s.Addr != "" && s.Addr != DefaultAddr {
		h += " " + quoteWord(s.Addr)
	}
	if s.With != 0 {
		h += fmt.Sprintf(" with %d", s.With)
	}
	return h + " --\n"
}

func (f *File) print(b *bytes.Buffer) {
	name := f.Path
	if f.Dir {
		name += "/"
	}
	if bareName(name) {
		name = quoteWord(name)
	} else {
		name = Quote([]byte(name))
	}
	b.WriteString("-- " + name)
	if f.Mode != 0 {
		fmt.Fprintf(b, " mode=%04o", f.Mode)
	}
	if !f.MTime.IsZero() {
		fmt.Fprintf(b, " mtime=%d", f.MTime.Unix())
	}
	switch {
	case f.Dir:
		b.WriteString(" --\n")
	case f.Link != "":
		fmt.Fprintf(b, " symlink=%s --\n", quoteWord(f.Link))
	case f.Quoted || !plain(f.Data):
		b.WriteString(" quoted --\n")
		printQuoted(b, f.Data)
	default:
		b.WriteString(" --\n")
		b.Write(f.Data)
	}
}

// printQuoted writes data as quoted strings, one a line: a line of text, a run of
// one byte, or 64 bytes each.
func printQuoted(b *bytes.Buffer, data []byte) {
	const chunk, run = 64, 64
	if _, n := repetition(data); n > 1 {
		b.WriteString(quotePart(data) + "\n")
		return
	}
	for len(data) > 0 {
		n := runLen(data)
		if n < run {
			for n = 0; n < len(data) && n < chunk; n++ {
				if n > 0 && runLen(data[n:min(len(data), n+run)]) >= run {
					break
				}
				if data[n] == '\n' {
					n++
					break
				}
			}
		}
		b.WriteString(quotePart(data[:n]) + "\n")
		data = data[n:]
	}
}

// runLen counts the equal bytes at the front.
func runLen(b []byte) int {
	n := 0
	for n < len(b) && b[n] == b[0] {
		n++
	}
	return n
}

func printSteps(b *bytes.Buffer, steps []Step) {
	for i := range steps {
		steps[i].print(b)
	}
}

// String is the step as its line in a script.
func (s Step) String() string {
	var b bytes.Buffer
	s.print(&b)
	return strings.TrimSuffix(b.String(), "\n")
}

func (s *Step) print(b *bytes.Buffer) {
	line := string(s.Op)
	switch s.Op {
	case Recv:
		if s.What == Bytes {
			line += fmt.Sprintf(" %d", s.N)
		} else {
			line += " " + s.What
		}
	case Pause:
		line += " " + s.Dur.String()
	}
	for _, a := range s.Args {
		line += " " + quoteWord(a)
	}
	onLine := 0 // strings on the current line
	for _, part := range s.Data {
		q := quotePart(part)
		if onLine > 0 && len(line)+1+len(q) > lineWidth {
			b.WriteString(line + "\n")
			line, onLine = strings.Repeat(" ", len(s.Op)), 0
		}
		line += " " + q
		onLine++
	}
	b.WriteString(line + "\n")
}

// Clone returns a deep copy of c.
func (c *Case) Clone() *Case {
	d := *c
	d.Prose = slices.Clone(c.Prose)
	d.Meta = slices.Clone(c.Meta)
	d.Files = slices.Clone(c.Files)
	for i := range d.Files {
		d.Files[i].Data = bytes.Clone(d.Files[i].Data)
	}
	d.Origins = slices.Clone(c.Origins)
	for i := range d.Origins {
		d.Origins[i].Conns = slices.Clone(d.Origins[i].Conns)
		for j, steps := range d.Origins[i].Conns {
			d.Origins[i].Conns[j] = cloneSteps(steps)
		}
	}
	d.Sections = slices.Clone(c.Sections)
	for i := range d.Sections {
		d.Sections[i].Steps = cloneSteps(d.Sections[i].Steps)
	}
	return &d
}

func cloneSteps(steps []Step) []Step {
	out := slices.Clone(steps)
	for i := range out {
		out[i].Args = slices.Clone(out[i].Args)
		out[i].Data = slices.Clone(out[i].Data)
		for j := range out[i].Data {
			out[i].Data[j] = bytes.Clone(out[i].Data[j])
		}
	}
	return out
}

// File returns the file at path (relative to /cell), nil when there is none. The
// pointer is into c.
func (c *Case) File(path string) *File {
	for i := range c.Files {
		if c.Files[i].Path == path {
			return &c.Files[i]
		}
	}
	return nil
}

// Get returns the value of the first field named key, "" when there is none.
func (c *Case) Get(key string) string {
	for _, f := range c.Meta {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}

// Set gives the first field named key the value, adding the field when there is none.
func (c *Case) Set(key, value string) {
	for i := range c.Meta {
		if c.Meta[i].Key == key {
			c.Meta[i].Value = value
			return
		}
	}
	c.Meta = append(c.Meta, Field{Key: key, Value: value})
}
