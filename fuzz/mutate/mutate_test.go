package mutate

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
)

func TestMutantsAreCasesAndFollowFromTheSeed(t *testing.T) {
	g, err := gen.New(gen.Options{Units: 8})
	if err != nil {
		t.Fatal(err)
	}
	b := g.Batch(1, 1)
	text := func(u *gen.Unit) []byte {
		return (&gen.Batch{Head: b.Head, Units: []*gen.Unit{u}}).Case().Print()
	}
	before := text(b.Units[0])
	changed := 0
	for i := range uint64(200) {
		u := i % 8
		x := Mutate(3, i, g, b.Units[u], b.Units[(u+1)%8])
		y := Mutate(3, i, g, b.Units[u], b.Units[(u+1)%8])
		if !bytes.Equal(text(x), text(y)) {
			t.Fatalf("mutant %d differs between two runs of one seed", i)
		}
		if _, err := casefile.Parse("mutant", text(x)); err != nil {
			t.Fatalf("mutant %d: %v", i, err)
		}
		if !bytes.Equal(text(x), text(b.Units[u])) {
			changed++
		}
	}
	if changed < 150 {
		t.Errorf("only %d of 200 mutants differ from their seed", changed)
	}
	if !bytes.Equal(text(b.Units[0]), before) {
		t.Error("mutating changed the seed itself")
	}
}

func TestEveryKindChangesSomething(t *testing.T) {
	g, err := gen.New(gen.Options{Units: 30})
	if err != nil {
		t.Fatal(err)
	}
	units := g.Batch(2, 2).Units
	for _, k := range kinds {
		worked := false
		for i := range units {
			m := &mutator{Rand: rand.New(rand.NewPCG(1, uint64(i))), g: g, u: units[i].Clone(), other: units[(i+1)%len(units)]}
			worked = k.do(m) || worked
		}
		if !worked {
			t.Errorf("%s never found anything to change", k.name)
		}
	}
}
