package observe

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"nginxoracle/oracle/casefile"
)

// Text writes the observation for a person: every connection with its bytes
// quoted, line by line, then the logs, the tree and the processes. What is as
// it should be (an empty log, a clean exit) is left out.
func (o *Observation) Text(w io.Writer) {
	fmt.Fprintf(w, "%s (%s cell): %s\n", o.Info.Target, o.Info.Kind, o.Info.Version)
	command(w, "nginx -t", o.Test)
	if !o.Process.Started {
		command(w, "start", o.Start)
	}
	for _, c := range o.Clients {
		c.Text(w, fmt.Sprintf("client %d to %s", c.ID, c.Addr))
	}
	for _, c := range o.Origins {
		c.Text(w, fmt.Sprintf("origin %s, connection %d", c.Addr, c.ID))
	}
	for _, name := range sortedKeys(o.Access) {
		fmt.Fprintf(w, "  %s\n", name)
		quoteLines(w, o.Access[name])
	}
	for i, e := range o.Errors {
		if i == 0 || o.Errors[i-1].File != e.File {
			fmt.Fprintf(w, "  %s\n", e.Where())
		}
		fmt.Fprintf(w, "    %s\n", casefile.AppendEscaped(nil, []byte(e.Text)))
	}
	for _, f := range o.Tree {
		if f.New {
			fmt.Fprintf(w, "  %s: %s\n", f.Path, f.Kind())
			quoteLines(w, f.Data)
		}
	}
	for _, u := range o.Undone {
		fmt.Fprintf(w, "  not done: line %d: %s\n", u.Line, u.Text)
	}
	p := o.Process
	if p.Started && (p.Exit.Code != 0 || p.Exit.Signal != 0) {
		fmt.Fprintf(w, "  exit: code %d, signal %d\n", p.Exit.Code, p.Exit.Signal)
	}
	if p.Worker != "" {
		fmt.Fprintf(w, "  a worker %s\n", p.Worker)
	}
	for _, l := range p.Left {
		fmt.Fprintf(w, "  left running: %s\n", l)
	}
	if p.FDAfter != p.FDBefore {
		fmt.Fprintf(w, "  descriptors: %d at the start, %d at the end\n", p.FDBefore, p.FDAfter)
	}
	if o.Timeouts > 0 {
		fmt.Fprintf(w, "  last-resort timeouts: %d\n", o.Timeouts)
	}
}

// Where names the log that the entry is in.
func (e LogEntry) Where() string {
	if e.File == "" {
		return "standard error"
	}
	return e.File
}

// Kind says what f is: "file, mode 0644", "folder, …", "link to …".
func (f *FileState) Kind() string {
	const kind, socket, fifo = 0o170000, 0o140000, 0o010000
	switch {
	case f.Link != "":
		return "link to " + f.Link
	case f.Dir:
		return fmt.Sprintf("folder, mode %04o", f.Mode)
	case f.Mode&kind == socket:
		return fmt.Sprintf("socket, mode %04o", f.Mode&^kind)
	case f.Mode&kind == fifo:
		return fmt.Sprintf("fifo, mode %04o", f.Mode&^kind)
	}
	return fmt.Sprintf("file, mode %04o", f.Mode)
}

func command(w io.Writer, name string, c Command) {
	if c.Code == 0 && c.Signal == 0 && !strings.Contains(c.Text, "[") {
		return
	}
	fmt.Fprintf(w, "  %s: code %d", name, c.Code)
	if c.Signal != 0 {
		fmt.Fprintf(w, ", signal %d", c.Signal)
	}
	fmt.Fprintln(w)
	quoteLines(w, []byte(c.Text))
}

// Text writes one connection: its bytes, a line each, with marks where a recv
// step ended, and its end.
func (c *Conn) Text(w io.Writer, name string) {
	fmt.Fprintf(w, "  %s: %d bytes, %s\n", name, len(c.Recv), c.End)
	from := 0
	for i, m := range c.Marks {
		quoteLines(w, c.Recv[from:max(from, m)])
		from = max(from, m)
		if i < len(c.Marks)-1 || from < len(c.Recv) {
			fmt.Fprintf(w, "    ── recv %d ends at byte %d\n", i+1, m)
		}
	}
	quoteLines(w, c.Recv[from:])
	if c.Note != "" {
		fmt.Fprintf(w, "    (%s)\n", c.Note)
	}
}

// quoteLines writes b escaped, one line of it a line, long lines cut.
func quoteLines(w io.Writer, b []byte) {
	const longest = 300
	for line := range strings.Lines(string(b)) {
		cut := ""
		if n := len(line); n > longest {
			line, cut = line[:longest], fmt.Sprintf("… (%d bytes)", n)
		}
		fmt.Fprintf(w, "    %s%s\n", casefile.AppendEscaped(nil, []byte(line)), cut)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
