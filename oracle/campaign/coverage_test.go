package campaign

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nginxoracle/oracle/engine"
)

// The file was left by a program of three functions: both (ran, but for its branch, which Go counts last), never,
// and main (ran, but for its branch). `go tool covdata textfmt` tells the same of it.
func TestBlocks(t *testing.T) {
	data, err := os.ReadFile("testdata/covcounters.bin")
	if err != nil {
		t.Fatal(err)
	}
	aside := []engine.File{{Path: "/tmp/covmeta.1"}, {Path: "/tmp/covcounters.1.2.3", Data: data}}
	got, err := blocks(aside)
	if err != nil {
		t.Fatal(err)
	}
	want := []block{blockOf(0, 0, 0), blockOf(0, 0, 1), blockOf(0, 2, 0), blockOf(0, 2, 1)}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for n := range data { // a program that was killed while it wrote
		if _, err := counters32(nil, data[:n]); err == nil {
			t.Fatalf("%d of %d bytes are taken for a whole file", n, len(data))
		}
	}
	if _, err := blocks(aside[:1]); err == nil {
		t.Error("no counters at all look like a program that ran nothing")
	}
}

// What a coverage build left is kept as it was, and nothing else of the folder that instruments write to.
func TestKeepCoverage(t *testing.T) {
	c := &Campaign{cfg: Config{Dir: t.TempDir()}}
	aside := []engine.File{
		{Path: "/tmp/covmeta.1", Data: []byte("meta")},
		{Path: "/tmp/covcounters.1.2.3", Data: []byte("counters")},
		{Path: "/tmp/debug.log", Data: []byte("log")},
	}
	if err := c.keepCoverage(aside); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	list, err := os.ReadDir(c.path("coverage"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		data, err := os.ReadFile(c.path("coverage", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(data)
	}
	if d := cmp.Diff(map[string]string{"covmeta.1": "meta", "covcounters.1.2.3": "counters"}, got); d != "" {
		t.Error(d)
	}
}
