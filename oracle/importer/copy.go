package importer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// unread is a file that could not be read.
type unread struct{ err error }

func (e *unread) Error() string { return e.err.Error() }
func (e *unread) Unwrap() error { return e.err }

// load reads a file, and nothing that is none or that is larger than all that a cell takes.
func load(name string) ([]byte, error) {
	st, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, &unread{fmt.Errorf("open %s: %w", name, errors.Unwrap(err))}
	case st.IsDir():
		return nil, &unread{fmt.Errorf("%s is a folder: give the nginx.conf in it", name)}
	case !st.Mode().IsRegular():
		return nil, &unread{fmt.Errorf("%s is %s: want a file", name, casefile.Kind(st.Mode()))}
	case st.Size() > maxFiles:
		return nil, &unread{fmt.Errorf("%s has %d MB: want at most %d", name, st.Size()>>20, maxFiles>>20)}
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, &unread{err}
	}
	return b, nil
}

// file copies a file that a directive names; without it there is no such server.
func (m *importer) file(n *conftree.Node, arg int, name string) error {
	value := conftree.Value(n.Words[arg])
	if strings.Contains(value, "$") || value == "off" || strings.HasPrefix(value, "data:") {
		return nil
	}
	src := m.absolute(value)
	in, ok := m.copied[src]
	if !ok {
		b, err := load(src)
		if err != nil {
			return &Refusal{File: name, Line: n.Line, Why: fmt.Sprintf("%s: %v: put the file there (a test one will do), or take the line out", n.Name(), err)}
		}
		in = "files" + src
		if err := m.put(in, b, n, name); err != nil {
			return err
		}
		m.copied[src] = in
	}
	n.Words[arg] = conftree.Quote("/cell/" + in)
	return nil
}

func (m *importer) put(in string, b []byte, n *conftree.Node, name string) error {
	if m.size += len(b); m.size > maxFiles {
		return &Refusal{File: name, Line: n.Line, Why: fmt.Sprintf("%s: more than %d MB would go into the cell: give a smaller folder", n.Name(), maxFiles>>20)}
	}
	if m.res.Case.File(in) == nil {
		m.res.Case.Files = append(m.res.Case.Files, casefile.File{Path: in, Data: b, Quoted: true})
	}
	return nil
}

// folder copies a folder of documents.
func (m *importer) folder(n *conftree.Node, name string) error {
	value := conftree.Value(n.Words[1])
	if strings.Contains(value, "$") {
		m.note("left as it is: %s %s names variables; its files are not in the cell", n.Name(), value)
		return nil
	}
	src := m.absolute(value)
	in := path.Join("files", src)
	if m.copied[src] == "" {
		m.copied[src] = in
		count, err := m.documents(n, src, name)
		if r := (*Refusal)(nil); errors.As(err, &r) {
			return err
		}
		if err != nil {
			return &Refusal{File: name, Line: n.Line, Why: fmt.Sprintf("%s %s: %v", n.Name(), src, err)}
		}
		if count == 0 && m.res.Case.File(in) == nil {
			m.res.Case.Files = append(m.res.Case.Files, casefile.File{Path: in, Dir: true})
		}
	}
	slash := ""
	if strings.HasSuffix(value, "/") {
		slash = "/"
	}
	n.Words[1] = conftree.Quote("/cell/" + in + slash)
	return nil
}

// documents copies what lies below src, links' targets too, up to the bounds, and counts it.
func (m *importer) documents(n *conftree.Node, src, name string) (count int, err error) {
	real, err := filepath.EvalSymlinks(src) // a site's root is often a link to its release
	if errors.Is(err, fs.ErrNotExist) {
		m.note("%s %s is not there: an empty folder stands for it", n.Name(), src)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return count, filepath.WalkDir(real, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) {
			m.note("left out: what may not be read below %s", src)
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(p) // of a link's target, as the server does
		if err != nil || !info.Mode().IsRegular() {
			m.note("left out: links to folders or to nothing, and what is no file, below %s", src)
			return nil
		}
		if count++; count > maxEach {
			m.note("left out: some files of %s (at most %d, of at most %d bytes, are copied)", src, maxEach, maxFile)
			return fs.SkipAll
		}
		if info.Size() > maxFile {
			m.note("left out: some files of %s (at most %d, of at most %d bytes, are copied)", src, maxEach, maxFile)
			return nil
		}
		b, err := readUpTo(p, info.Size())
		if errors.Is(err, fs.ErrPermission) {
			m.note("left out: what may not be read below %s", src)
			return nil
		}
		if err != nil {
			return err
		}
		return m.put("files"+src+strings.TrimPrefix(p, real), b, n, name)
	})
}

// readUpTo reads as many bytes as a file says that it has: those of /proc say none, and may never end.
func readUpTo(name string, size int64) ([]byte, error) {
	if size == 0 {
		return []byte{}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, size))
}

// writable moves a log or a temporary folder below the cell's logs.
func (m *importer) writable(n *conftree.Node) {
	value := conftree.Value(n.Words[1])
	if value == "off" || strings.Contains(value, "$") || strings.HasPrefix(value, "syslog:") {
		return
	}
	n.Words[1] = conftree.Quote("/cell/logs/" + strings.Trim(strings.ReplaceAll(value, "/", "-"), "-"))
}
