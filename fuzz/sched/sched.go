// Package sched keeps the units that showed something new, and says which one
// to change next: the less a seed was used for what it is worth and the newer it is,
// the likelier.
package sched

import (
	"math/rand/v2"

	"nginxoracle/fuzz/gen"
)

// maxSeeds bounds the pool: a campaign's memory is flat.
const maxSeeds = 256

// Seed is a unit that was kept.
type Seed struct {
	Unit   *gen.Unit
	Signal string // what it was kept for
	Worth  int    // how often it is picked, beside others: at least 1
	Picked int
	Born   uint64 // batch number
}

// Pool is the set of seeds. It is not safe for concurrent use.
type Pool struct {
	seeds []*Seed
}

// Len is the number of seeds.
func (p *Pool) Len() int { return len(p.seeds) }

// Add keeps a unit. When the pool is full, that one of the oldest half goes which was used most for what it
// is worth: a seed ages by being picked, and a cheap one never crowds out a dear one.
func (p *Pool) Add(u *gen.Unit, signal string, worth int, born uint64) {
	if len(p.seeds) >= maxSeeds {
		worst := 0
		for i, s := range p.seeds[:len(p.seeds)/2] {
			if p.seeds[worst].before(s) {
				worst = i
			}
		}
		p.seeds = append(p.seeds[:worst], p.seeds[worst+1:]...)
	}
	p.seeds = append(p.seeds, &Seed{Unit: u, Signal: signal, Worth: max(worth, 1), Born: born})
}

// before tells whether s has more left to give than o. One more pick is counted, so that worth
// tells between seeds that nobody used yet.
func (s *Seed) before(o *Seed) bool {
	a, b := (s.Picked+1)*o.Worth, (o.Picked+1)*s.Worth
	return a < b || a == b && s.Born > o.Born
}

// Pick chooses a seed, nil when there is none: the better of three drawn ones.
func (p *Pool) Pick(r *rand.Rand) *Seed {
	var best *Seed
	for range 3 {
		if len(p.seeds) == 0 {
			return nil
		}
		s := p.seeds[r.IntN(len(p.seeds))]
		if best == nil || s.before(best) {
			best = s
		}
	}
	best.Picked++
	return best
}

// Units lists the pool's units, oldest first.
func (p *Pool) Units() []*Seed { return p.seeds }
