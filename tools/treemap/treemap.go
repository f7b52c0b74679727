// Package treemap writes the map of the tree that the README shows: one line a
// package, from the package's own comment, so that it cannot go stale.
package treemap

import (
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The lines of the README between which the map stands.
const (
	Begin = "<!-- map: go test ./tools/treemap -update -->"
	End   = "<!-- end of map -->"
)

// Map lists the packages below root, each with the first sentence of its comment. A package
// without one is an error.
func Map(root string) (string, error) {
	synopsis := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		if s := (&doc.Package{}).Synopsis(f.Doc.Text()); s != "" {
			synopsis[dir] = s
		} else if _, ok := synopsis[dir]; !ok {
			synopsis[dir] = ""
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	dirs := make([]string, 0, len(synopsis))
	for d := range synopsis {
		dirs = append(dirs, d)
	}
	slices.Sort(dirs)
	var b strings.Builder
	for _, d := range dirs {
		s := synopsis[d]
		if s == "" {
			return "", fmt.Errorf("package %s has no comment", d)
		}
		_, rest, ok := strings.Cut(s, " "+filepath.Base(d)+" ")
		if !ok {
			f := strings.SplitN(s, " ", 3)
			rest = f[len(f)-1]
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", d, strings.TrimSuffix(rest, "."))
	}
	return b.String(), nil
}

// Replace puts the map into the README's text.
func Replace(readme, m string) (string, error) {
	before, rest, ok1 := strings.Cut(readme, Begin+"\n")
	_, after, ok2 := strings.Cut(rest, End)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("README.md: the lines %q and %q are not there", Begin, End)
	}
	return before + Begin + "\n\n| folder | holds |\n|---|---|\n" + m + "\n" + End + after, nil
}

// Read gives the README below root.
func Read(root string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, "README.md"))
	return string(b), err
}
