// Package catalog keeps findings: one case file each under corpus/, with what
// is known of it in its comment, and FINDINGS.md, which is generated from them.
package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

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

// Catalog is a corpus folder.
type Catalog struct {
	Dir     string
	Entries []*Entry
}

var buildForm = regexp.MustCompile(`^[0-9a-f]{12,64}$`)

var nameForm = regexp.MustCompile(`^F-(\d{4,})-[a-z0-9-]+\.txtar$`)

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
		if m == nil {
			continue
		}
		path := filepath.Join(dir, f.Name())
		cs, err := casefile.Load(path)
		if err != nil {
			return nil, fmt.Errorf("catalog: %w", err)
		}
		e := &Entry{ID: "F-" + m[1], Path: path, Case: cs}
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("catalog: %s: %w", path, err)
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
	if e.Signature() == "" {
		return errors.New("want a field signature")
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

// Fresh is what a campaign knows of a new finding.
type Fresh struct {
	Signature string
	Slug      string
	Title     string
	Seed      string // where the generator made it
	Flaky     bool
	Case      *casefile.Case
}

// Add files a finding with status new, under the next free number. The file is
// written to a temporary name, synced and renamed, so that it is there whole or not at all.
func (c *Catalog) Add(f Fresh) (*Entry, error) {
	next := 1
	for _, e := range c.Entries {
		if n, err := strconv.Atoi(strings.TrimPrefix(e.ID, "F-")); err == nil && n >= next {
			next = n + 1
		}
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

// WriteFile puts a file in place whole or not at all: temporary name, sync,
// rename, sync of the folder.
func WriteFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, temporary+strconv.Itoa(os.Getpid())+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", path, errors.Unwrap(err)) // without the temporary name
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return fmt.Errorf("sync %s: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// temporary begins the names under which WriteFile writes; the writer's process id follows.
const temporary = ".tmp-"

// Sweep removes what writers that were killed have left in a folder. A folder that is not there has nothing.
func Sweep(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range list {
		rest, ok := strings.CutPrefix(f.Name(), temporary)
		if !ok {
			continue
		}
		pid, _, _ := strings.Cut(rest, "-")
		if _, err := os.Stat("/proc/" + pid); err == nil && pid != strconv.Itoa(os.Getpid()) {
			continue // another campaign is writing it
		}
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
