// Package httptest gives fuzz targets what the cases of corpus/ and scenarios/ send, as seeds.
package httptest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Seen lists the different texts that stand behind a word in the case files of the tree at root, each up
// to the first of the bytes end.
func Seen(tb testing.TB, root, word, end string) (texts []string) {
	tb.Helper()
	for _, dir := range []string{"corpus", "scenarios"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".txtar") {
				return err
			}
			b, err := os.ReadFile(path)
			for _, behind := range strings.Split(string(b), word)[1:] {
				if i := strings.IndexAny(behind, end); i >= 0 {
					texts = append(texts, behind[:i])
				}
			}
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	if len(texts) == 0 {
		tb.Fatalf("no case has %q", word)
	}
	return texts
}
