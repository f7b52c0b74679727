// Package catalog keeps findings: one case file each under corpus/, with what
// is known of it in its comment, and FINDINGS.md, which is generated from them.
package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/casefile"
)

// A finding's life.
const (
	New        = "new"        // nobody has looked at it
	Fixed      = "fixed"      // it agrees now, and stays as a test
	Divergence = "divergence" // it will stay, for a reason that is written down
)

// Entry is one finding's file.
type Entry struct {
	ID   string // F-0012
	Path string
	Case *casefile.Case
}

// Get is the value of a field of the entry's comment, "" when it has none.
func (e *Entry) Get(key string) string {
	for _, f := range e.Case.Meta {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}

func (e *Entry) Status() string    { return e.Get("status") }
func (e *Entry) Signature() string { return e.Get("signature") }

// Build is the beginning of the SHA-256 of the reference's program with which the entry was recorded; "" where
// any build shows the same. Some things hang on how nginx was compiled, such as memory that it reads and never sets.
func (e *Entry) Build() string { return e.Get("build") }

// Covers are the directives that a case may have besides those of the entry's signature, and be the same divergence;
// only a divergence has some.
func (e *Entry) Covers() []string { return strings.Fields(e.Get("covers")) }

// Catalog is a corpus folder.
type Catalog struct {
	Dir     string
	Entries []*Entry
}

var buildForm = regexp.MustCompile(`^[0-9a-f]{12,64}$`)

var nameForm = regexp.MustCompile(`^F-(\d{4,9})-[a-z0-9-]+\.txtar$`)

// Open reads a corpus folder; a missing one is empty.
func Open(dir string) (*Catalog, error) {
	c := &Catalog{Dir: dir}
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	for _, f := range list {
		m := nameForm.FindStringSubmatch(f.Name())
		path := filepath.Join(dir, f.Name())
		if m == nil && filepath.Ext(path) == ".txtar" { // it would never be looked at
			return nil, fmt.Errorf("catalog: %s: want a name such as F-0012-what-differs.txtar (small letters, digits and -)", path)
		}
		if m == nil {
			continue
		}
		cs, err := casefile.Load(path)
		if err != nil {
			return nil, fmt.Errorf("catalog: %w", err)
		}
		e := &Entry{ID: "F-" + m[1], Path: path, Case: cs}
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("catalog: %s: %w", path, err)
		}
		for _, x := range c.Entries {
			if x.ID == e.ID {
				return nil, fmt.Errorf("catalog: %s and %s have one number: give one of them another (file and field finding)", x.Path, path)
			}
		}
		c.Entries = append(c.Entries, e)
	}
	sort.Slice(c.Entries, func(i, j int) bool { return c.Entries[i].ID < c.Entries[j].ID })
	return c, nil
}

func (e *Entry) check() error {
	if id := e.Get("finding"); id != e.ID {
		return fmt.Errorf("field finding: want %s as in the file's name, got %q", e.ID, id)
	}
	switch e.Status() {
	case New, Fixed:
	case Divergence:
		for _, key := range []string{"reason", "decision"} {
			if e.Get(key) == "" {
				return fmt.Errorf("a divergence wants a field %q", key)
			}
		}
	default:
		return fmt.Errorf("field status: want new, fixed or divergence, got %q", e.Status())
	}
	if b := e.Build(); b != "" && !buildForm.MatchString(b) {
		return fmt.Errorf("field build: want the first 12 to 64 hexadecimal digits of the reference's SHA-256, got %q", b)
	}
	for i, f := range e.Case.Meta {
		if slices.ContainsFunc(e.Case.Meta[:i], func(g casefile.Field) bool { return g.Key == f.Key }) {
			return fmt.Errorf("field %s: given twice, and only the first would count", f.Key)
		}
	}
	if e.Signature() == "" {
		return errors.New("want a field signature")
	}
	if len(e.Covers()) > 0 && e.Status() != Divergence {
		return errors.New("field covers: only a divergence stands for more than its signature")
	}
	if !strings.HasSuffix(e.Signature(), "]") && len(e.Covers()) > 0 {
		return errors.New("field covers: the signature names no directives")
	}
	return nil
}

// Find is the entry with a signature; nil when there is none.
func (c *Catalog) Find(signature string) *Entry {
	for _, e := range c.Entries {
		if e.Signature() == signature {
			return e
		}
	}
	return nil
}

// Covering is the divergence that a shrunk difference with core and these directives is an instance of: one with the same
// core, all of whose directives are there, and which says of each further one that it may be (covers). nil: there is none.
func (c *Catalog) Covering(core string, directives []string) *Entry {
	for _, e := range c.Entries {
		own, list, ok := strings.Cut(strings.TrimSuffix(e.Signature(), "]"), " [")
		if !ok || e.Status() != Divergence || own != core {
			continue
		}
		want, may := strings.Fields(list), e.Covers()
		lacks := slices.ContainsFunc(want, func(d string) bool { return !slices.Contains(directives, d) })
		other := slices.ContainsFunc(directives, func(d string) bool { return !slices.Contains(want, d) && !slices.Contains(may, d) })
		if !lacks && !other {
			return e
		}
	}
	return nil
}

// Fresh is what a campaign knows of a new finding.
type Fresh struct {
	Signature string
	Slug      string
	Title     string
	Seed      string // where the generator made it
	Flaky     bool
	Case      *casefile.Case
}

// next is the first number that no file has, be it another campaign's.
func (c *Catalog) next() (int, error) {
	list, err := os.ReadDir(c.Dir)
	if err != nil {
		return 0, err
	}
	next := 1
	for _, f := range list {
		if m := nameForm.FindStringSubmatch(f.Name()); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				return 0, fmt.Errorf("%s: %w", f.Name(), err)
			}
			next = max(next, n+1)
		}
	}
	return next, nil
}

// lock takes a folder until unlock is called or the process ends, and makes it if need be.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
		d.Close() // only read
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { d.Close() }, nil // the lock goes with it
}

// Add files a finding with status new, under the next free number. The file is
// written to a temporary name, synced and renamed, so that it is there whole or not at all.
func (c *Catalog) Add(f Fresh) (*Entry, error) {
	unlock, err := lock(c.Dir) // another campaign may file there, too
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	defer unlock()
	next, err := c.next()
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	e := &Entry{ID: fmt.Sprintf("F-%04d", next)}
	e.Path = filepath.Join(c.Dir, e.ID+"-"+f.Slug+".txtar")
	e.Case = f.Case.Clone()
	e.Case.Name, e.Case.Title, e.Case.Prose = e.Path, f.Title, nil
	e.Case.Meta = []casefile.Field{{Key: "finding", Value: e.ID}, {Key: "status", Value: New}, {Key: "signature", Value: f.Signature}}
	if f.Seed != "" {
		e.Case.Meta = append(e.Case.Meta, casefile.Field{Key: "seed", Value: f.Seed})
	}
	if how := f.Case.Get("lanes"); how != "" {
		e.Case.Meta = append(e.Case.Meta, casefile.Field{Key: "lanes", Value: how})
	}
	if f.Flaky {
		e.Case.Meta = append(e.Case.Meta, casefile.Field{Key: "flaky", Value: "the candidate shows it in some runs only"})
	}
	if err := WriteFile(e.Path, e.Case.Print()); err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	c.Entries = append(c.Entries, e)
	return e, nil
}
