package ascii

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestOnlyLettersOfASCIIFold(t *testing.T) {
	for s, want := range map[string]string{"": "", "abc-1": "abc-1", "Ab\xffC": "ab\xffc", "\u212a\u00c4Z": "\u212a\u00c4z", "@[`{": "@[`{"} {
		if got := Lower(s); got != want {
			t.Errorf("Lower(%q) = %q, want %q", s, got, want)
		}
		if !EqualFold(s, []byte(want)) {
			t.Errorf("EqualFold(%q, %q) = false", s, want)
		}
	}
	for _, p := range [][2]string{{"k", "\u212a"}, {"\xe4", "\xc4"}, {"@", "`"}, {"[", "{"}, {"a", "ab"}} {
		if EqualFold(p[0], p[1]) {
			t.Errorf("EqualFold(%q, %q) = true", p[0], p[1])
		}
	}
}

// The proxy folds letters here only: Go's functions would change bytes that nginx leaves alone.
func TestTheProxyFoldsHereOnly(t *testing.T) {
	folds := regexp.MustCompile(`\b(strings|bytes)\.(ToLower|EqualFold)\(`)
	seen := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		seen++
		text, err := os.ReadFile(path)
		if m := folds.Find(text); m != nil {
			t.Errorf("%s: %s…): use this package", path, m)
		}
		return err
	})
	if err != nil || seen < 100 {
		t.Fatalf("%d files read: %v", seen, err)
	}
}
