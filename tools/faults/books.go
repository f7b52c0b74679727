package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
)

// books remembers everything that a campaign has ever had on disk.
type books struct {
	campaign, corpus, tmp string
	cases                 map[string]seen   // differing cases, by file
	findings              map[string]string // number -> signature
}

// seen is what a differing case says of itself.
type seen struct{ core, label string }

func newBooks(dir string) books {
	return books{campaign: filepath.Join(dir, "campaign"), corpus: filepath.Join(dir, "corpus"), tmp: filepath.Join(dir, "tmp"),
		cases: map[string]seen{}, findings: map[string]string{}}
}

// look reads the disk at any moment: every file is whole, no finding has gone, and none is there twice.
func (b *books) look() error {
	list, err := filepath.Glob(filepath.Join(b.campaign, "pending", "*.txtar"))
	if err != nil {
		return err
	}
	for _, f := range list {
		c, err := casefile.Load(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // settled in this moment
		}
		if err != nil {
			return fmt.Errorf("a differing case is not whole: %w", err)
		}
		b.cases[filepath.Base(f)] = seen{core: c.Get("core"), label: c.Get("seed")}
	}
	c, err := catalog.Open(b.corpus)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a finding is not whole: %w", err)
	}
	now := map[string]string{}
	if c != nil {
		where := map[string]string{}
		for _, e := range c.Entries {
			now[e.ID] = e.Signature()
			if other := where[e.Signature()]; other != "" {
				return fmt.Errorf("%s and %s are one finding, filed twice: %s", other, e.ID, e.Signature())
			}
			where[e.Signature()] = e.ID
		}
	}
	for id, sig := range b.findings {
		if now[id] != sig {
			return fmt.Errorf("finding %s (%s) is lost: now %q", id, sig, now[id])
		}
	}
	b.findings = now
	return nil
}

// close reads the disk after the campaign's end: every differing case that was ever seen has become
// a finding or was set aside with a reason, every finding has its original, and no file is left
// over from a kill.
func (b *books) close() error {
	if err := b.look(); err != nil {
		return err
	}
	if len(b.findings) == 0 {
		return errors.New("the campaign has found nothing: nothing is proven")
	}
	for id := range b.findings {
		if _, err := os.Stat(filepath.Join(b.campaign, "originals", id+".txtar")); err != nil {
			return fmt.Errorf("finding %s: %w", id, err)
		}
	}
	fates, err := b.fates()
	if err != nil {
		return err
	}
	for f, s := range b.cases {
		if _, err := os.Stat(filepath.Join(b.campaign, "pending", f)); err == nil {
			return fmt.Errorf("%s (%s) still waits", f, s.core)
		}
		fate, ok := fates[f]
		if !ok {
			return fmt.Errorf("%s (%s, %s) is lost: nobody knows what became of it", f, s.core, s.label)
		}
		if id, _, _ := strings.Cut(fate, " "); strings.HasPrefix(id, "F-") && b.findings[id] == "" {
			return fmt.Errorf("%s (%s) became finding %s, which is not there", f, s.core, id)
		}
		for _, t := range spoiled { // what certainly differs must not be set aside
			if strings.Contains(s.core, "first line of "+t[0][:3]) && !strings.HasPrefix(fate, "F-") {
				return fmt.Errorf("%s (%s) is lost: %s", f, s.core, fate)
			}
		}
	}
	return b.litter()
}

// fates are what became of differing cases, by file.
func (b *books) fates() (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(b.campaign, "settled"))
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
		if len(f) != 4 {
			return nil, fmt.Errorf("settled: line %q is not whole", line)
		}
		all[f[0]] = f[3]
	}
	return all, nil
}

// litter finds temporary files and folders.
func (b *books) litter() error {
	left, err := os.ReadDir(b.tmp)
	if err != nil {
		return err
	}
	var names []string
	for _, d := range left {
		names = append(names, filepath.Join(b.tmp, d.Name()))
	}
	for _, root := range []string{b.campaign, b.corpus} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && (strings.HasPrefix(d.Name(), ".tmp-") || strings.HasSuffix(d.Name(), ".best") && !d.IsDir()) {
				names = append(names, path)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("left over: %s", strings.Join(names, ", "))
	}
	return nil
}
