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
		p.Add(&gen.Unit{}, "x", 1, uint64(i))
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

func TestWorthIsKeptAndPicked(t *testing.T) {
	var p Pool
	r := rand.New(rand.NewPCG(1, 2))
	for i := range maxSeeds / 8 {
		p.Add(&gen.Unit{}, "dear", 8, uint64(i))
	}
	for i := range 2 * maxSeeds {
		p.Add(&gen.Unit{}, "cheap", 1, uint64(i))
	}
	picked, kept := map[string]int{}, 0
	for range maxSeeds {
		picked[p.Pick(r).Signal]++
	}
	for _, s := range p.Units() {
		if s.Signal == "dear" {
			kept++
		}
	}
	if kept != maxSeeds/8 {
		t.Errorf("%d of %d dear seeds are left", kept, maxSeeds/8)
	}
	if share := picked["dear"] * 100 / maxSeeds; share < 25 {
		t.Errorf("an eighth of the seeds is worth eight times the others, and was picked in %d%%", share)
	}
}
