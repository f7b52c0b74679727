package sched

import (
	"math/rand/v2"
	"testing"

	"nginxoracle/fuzz/gen"
)

func TestPoolIsBoundedAndSpreads(t *testing.T) {
	var p Pool
	r := rand.New(rand.NewPCG(1, 2))
	if p.Pick(r) != nil {
		t.Fatal("an empty pool gave a seed")
	}
	for i := range 3 * maxSeeds {
		p.Add(&gen.Unit{}, "x", uint64(i))
	}
	if p.Len() != maxSeeds {
		t.Fatalf("%d seeds, want %d", p.Len(), maxSeeds)
	}
	for range 2 * maxSeeds {
		p.Pick(r)
	}
	most := 0
	for _, s := range p.Units() {
		most = max(most, s.Picked)
	}
	if most > 8 {
		t.Errorf("one seed was picked %d times in %d picks of %d seeds", most, 2*maxSeeds, maxSeeds)
	}
}
