package gen

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

func generator(t testing.TB, units int) *Generator {
	t.Helper()
	g, err := New(Options{Units: units})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestSameSeedSameBytes(t *testing.T) {
	a, b := generator(t, 20), generator(t, 20)
	b.Batch(5, 5) // what was made before must not matter
	for i := range uint64(5) {
		x, y := a.Batch(7, i).Case().Print(), b.Batch(7, i).Case().Print()
		if !bytes.Equal(x, y) {
			t.Fatalf("batch %d differs between two runs of one seed", i)
		}
		if bytes.Equal(x, a.Batch(8, i).Case().Print()) {
			t.Fatalf("batch %d does not depend on the seed", i)
		}
		if !bytes.Equal(a.Wrong(7, i).Print(), b.Wrong(7, i).Print()) {
			t.Fatalf("wrong configuration %d differs between two runs of one seed", i)
		}
	}
}

// A batch prints, parses back to the same text, and its configuration is one
// that the reader of configurations can take apart and put together again.
func TestBatchIsACase(t *testing.T) {
	g := generator(t, 30)
	for i := range uint64(10) {
		c := g.Batch(1, i).Case()
		text := c.Print()
		back, err := casefile.Parse("batch", text)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back.Print(), text) {
			t.Fatal("case does not round-trip")
		}
		if _, err := conftree.Parse(c.File("nginx.conf").Data); err != nil {
			t.Fatal(err)
		}
	}
}

// A unit means the same in any slot: the case of unit n alone, renamed, is what
// stands in the batch, and splitting it gives the unit back.
func TestSlots(t *testing.T) {
	g := generator(t, 12)
	b := g.Batch(3, 0)
	for i := range b.Units {
		one := b.Only(i).Case()
		s, err := Split(one)
		if err != nil {
			t.Fatal(err)
		}
		if again := s.Case().Print(); !bytes.Equal(again, one.Print()) {
			t.Fatalf("unit %d changes when it is split and written again", i)
		}
	}
	conf := b.Case().File("nginx.conf").Data
	for n, line := range bytes.Split(conf, []byte("\n")) {
		var want int
		if k := bytes.Index(line, []byte("listen 127.0.0.1:20")); k >= 0 {
			fmt.Sscanf(string(line[k+len("listen 127.0.0.1:20"):]), "%02d", &want)
			if got, ok := SlotOfLine(conf, n+1); !ok || got != want {
				t.Errorf("line %d: slot %d %v, want %d", n+1, got, ok, want)
			}
		}
	}
	if _, ok := SlotOfLine(conf, 1); ok {
		t.Error("line 1 is no unit's")
	}
}

// Every card of the deck and every kind of damage does come, within few batches.
func TestDeckReachesEverything(t *testing.T) {
	seen := map[string]bool{}
	g := generator(t, 64)
	for i := range uint64(5) {
		for _, u := range g.Batch(11, i).Units {
			conftree.Walk(u.Body, "http", func(n *conftree.Node, _ string) bool {
				seen[n.Name()] = true
				return true
			})
		}
	}
	tab := g.w.t
	for _, r := range tab.Rows {
		if r.Weight > 0 && tab.HTTP(r.Name, "location") && !seen[r.Name] {
			t.Errorf("%s never came in 5 batches", r.Name)
		}
	}
	for _, name := range []string{"map", "upstream", "keepalive", "proxy_pass", "try_files", "if", "rewrite", "limit_except", "alias", "types", "satisfy"} {
		if !seen[name] {
			t.Errorf("%s never came in 5 batches", name)
		}
	}
}

// Every kind of wrong configuration can be made: no seed makes the generator stumble.
func TestWrongOnesNeverStumble(t *testing.T) {
	g := generator(t, 1)
	for i := range uint64(3000) {
		text := g.Wrong(1, i).Print()
		if _, err := casefile.Parse("wrong", text); err != nil {
			t.Fatalf("wrong configuration %d: %v", i, err)
		}
	}
}

func FuzzGenerator(f *testing.F) {
	f.Add([]byte("seed"))
	g, err := New(Options{Units: 2})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text := g.FromBytes(data).Case().Print()
		if _, err := casefile.Parse("fuzz", text); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWriteOut writes cases for looking at by hand: GEN_OUT=dir go test -run WriteOut
func TestWriteOut(t *testing.T) {
	dir := os.Getenv("GEN_OUT")
	if dir == "" {
		t.Skip("GEN_OUT names no folder")
	}
	g := generator(t, 64)
	for i := range uint64(5) {
		b := g.Batch(1, i)
		if err := os.WriteFile(fmt.Sprintf("%s/b%d.txtar", dir, i), b.Case().Print(), 0o644); err != nil {
			t.Fatal(err)
		}
		for j := range b.Units {
			if err := os.WriteFile(fmt.Sprintf("%s/b%d-u%02d.txtar", dir, i, j), b.Only(j).Case().Print(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range uint64(50) {
		if err := os.WriteFile(fmt.Sprintf("%s/w%d.conf", dir, i), g.Wrong(1, i).File("nginx.conf").Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
