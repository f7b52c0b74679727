package treemap

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the map into README.md")

func TestReadmeHasTheMap(t *testing.T) {
	root := filepath.Join("..", "..")
	m, err := Map(root)
	if err != nil {
		t.Fatal(err)
	}
	old, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Replace(old, m)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, "README.md"), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != want {
		t.Error("the README's map of the tree is not the tree: go test ./tools/treemap -update")
	}
}

func TestAPackageWithoutACommentFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte("package x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if m, err := Map(dir); err == nil {
		t.Errorf("no error, map %q", m)
	}
}
