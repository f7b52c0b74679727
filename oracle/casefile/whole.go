package casefile

import (
	"bytes"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Bounds of a work tree: a cell's file system (engine.DefaultTreeBytes) is several times as large, since logs and
// temporary files need room too, a hundred units' at once; a file takes whole pages.
const (
	maxTree  = 60 << 20
	page     = 4 << 10
	maxFiles = 4000
	maxName  = 255  // bytes of one part of a path, as Linux has it
	maxPath  = 1000 // bytes of a path
)

// whole checks what no section shows alone.
func (p *parser) whole() error {
	for _, check := range []func() error{p.tree, p.sockets, p.played} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// at is an error at another line than the parser's.
func (p *parser) at(line int, format string, args ...any) error {
	p.line = line
	return p.errorf(format, args...)
}

// tree checks that the files can all be there: none lies under another one, and they fit.
func (p *parser) tree() error {
	size := 0
	for i := range p.c.Files {
		f := &p.c.Files[i]
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if above := p.c.File(dir); above != nil && !above.Dir {
				return p.at(f.Line, "want a path below folders only, got %s below %s, which is a %s (line %d)", show(f.Path), show(dir), above.kind(), above.Line)
			}
		}
		if size += page + (len(f.Data)+page-1)/page*page; size > maxTree {
			return p.at(f.Line, "want files of at most %d MiB together, got more with %s", maxTree>>20, show(f.Path))
		}
		if i >= maxFiles {
			return p.at(f.Line, "want at most %d files, got one more", maxFiles)
		}
	}
	for _, s := range p.c.Sections {
		for i := range s.Steps {
			if st := &s.Steps[i]; st.Op == Write {
				for _, part := range st.Data {
					size += len(part)
				}
				if size > maxTree {
					return p.at(st.Line, "want files of at most %d MiB together, got more with what is written here", maxTree>>20)
				}
			}
		}
	}
	return nil
}

func (f *File) kind() string {
	if f.Link != "" {
		return "link"
	}
	return "file"
}

// sockets checks that nothing is where an origin's socket goes.
func (p *parser) sockets() error {
	for _, o := range p.c.Origins {
		rest, ok := strings.CutPrefix(o.Addr, "unix:/cell/")
		for name := rest; ok && name != "."; name = path.Dir(name) {
			if f := p.c.File(name); f != nil && !(f.Dir && name != rest) {
				return p.at(o.Line, "want a path that is free for the socket of %s, got that of a section (line %d)", o.Addr, f.Line)
			}
		}
	}
	return nil
}

// LanesKey is the comment's field that says how a case is played, and LanesUnits its only value.
const (
	LanesKey   = "lanes"
	LanesUnits = "units"
)

// played checks the way a case asks to be played in.
func (p *parser) played() error {
	if p.c.Get(LanesKey) != LanesUnits {
		return nil
	}
	for _, s := range p.c.Sections {
		if !s.Client {
			return p.at(s.Line, "want clients only in a case with \"lanes: units\", got \"do\": units that are played side by side have no moment in common")
		}
	}
	return nil
}

// checkAddr accepts loopback addresses, which are all that a cell has, with a port, and unix:/cell/PATH.
func checkAddr(addr string) error {
	if file, ok := strings.CutPrefix(addr, "unix:"); ok {
		if !strings.HasPrefix(file, "/cell/") || len(file) > 100 || strings.ContainsRune(file, 0) || file != path.Clean(file) {
			return fmt.Errorf("want unix:/cell/ and a clean path, at most 100 bytes, got %s", show(addr))
		}
		return nil
	}
	ap, err := netip.ParseAddrPort(addr)
	switch ip := ap.Addr(); {
	case err != nil || ap.Port() == 0:
		return fmt.Errorf("want an address such as 127.0.0.1:9001 or unix:/cell/up.sock, got %s", show(addr))
	case !ip.IsLoopback() || ip.Is4In6() || ip.Zone() != "":
		return fmt.Errorf("want an address of the cell's loopback (127.0.0.0/8 or [::1]), got %s: nothing else is in reach there", show(addr))
	}
	return nil
}

// sameAddr tells whether two addresses are one, however they are written.
func sameAddr(a, b string) bool {
	x, errA := netip.ParseAddrPort(a)
	y, errB := netip.ParseAddrPort(b)
	return a == b || errA == nil && errB == nil && x == y
}

// reserved are the section names that are no files.
var reserved = []string{"origin", "client", "do"}

// alike is the reserved name that a section's first word was perhaps meant to be ("clients", "client1", "Do:"); "" when none.
func alike(name string) string {
	s := strings.TrimRight(strings.ToLower(name), "0123456789:#_-=")
	for _, r := range reserved {
		if name != r && (s == r || s == r+"s" && r != "do") {
			return r
		}
	}
	return ""
}

// examples of each reserved section's line.
var examples = map[string]string{"origin": "-- origin 127.0.0.1:9001 --", "client": "-- client 1 --", "do": "-- do --"}

// nearly matches a line that was perhaps meant to begin a section, and does not: txtar wants "-- " and " --" to the byte.
var nearly = regexp.MustCompile(`^[ \t]*-+[ \t]*(client|origin|do|nginx\.conf)\b[^;{}]*-+[ \t\r]*$`)

// nearlySection is the first such line of a body, and its number from 0; "" when there is none.
func nearlySection(body []byte) (line string, n int) {
	if !bytes.Contains(body, []byte("-")) {
		return "", 0
	}
	for i, l := range bytes.Split(body, []byte("\n")) {
		if nearly.Match(l) {
			return string(l), i
		}
	}
	return "", 0
}

// bareName tells whether a file's name may stand without quotes.
func bareName(name string) bool { return !slices.Contains(reserved, name) && alike(name) == "" }
