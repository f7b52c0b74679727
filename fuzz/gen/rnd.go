// Package gen makes cases: configurations, document trees, origins and byte
// streams that hit them. Everything follows from one seed: the generator is a
// custom function of gofuzz, so that a seed (PCG) and the bytes of Go's own
// fuzz engine reach the same code.
package gen

import (
	randv1 "math/rand"
	"math/rand/v2"
	"strconv"

	fuzz "github.com/google/gofuzz"
)

// pcg gives gofuzz the PCG generator behind math/rand's older interface.
type pcg struct{ *rand.PCG }

func (p pcg) Int63() int64   { return int64(p.Uint64() >> 1) }
func (p pcg) Seed(int64)     {}
func (p pcg) Uint64() uint64 { return p.PCG.Uint64() }

// rnd is the source of every choice, with the few shapes of choice the
// generator makes.
type rnd struct {
	c fuzz.Continue
}

// seeded runs f on a generator that follows from (seed, index) alone.
func seeded(seed, index uint64, f func(r *rnd)) {
	run(fuzz.New().RandSource(pcg{rand.NewPCG(seed, index)}), f)
}

// fromBytes runs f on a generator driven by a fuzz engine's bytes.
func fromBytes(data []byte, f func(r *rnd)) {
	run(fuzz.NewFromGoFuzz(data), f)
}

// handle is the type whose gofuzz function is the generator itself.
type handle struct{ done bool }

func run(fz *fuzz.Fuzzer, f func(r *rnd)) {
	var h handle
	fz.Funcs(valueFuncs...).Funcs(func(h *handle, c fuzz.Continue) {
		h.done = true
		f(&rnd{c: c})
	}).Fuzz(&h)
}

func (r *rnd) rand() *randv1.Rand { return r.c.Rand }

// n is a number in [0,n).
func (r *rnd) n(n int) int {
	if n <= 1 {
		return 0
	}
	return r.c.Intn(n)
}

// in is a number in [lo,hi].
func (r *rnd) in(lo, hi int) int { return lo + r.n(hi-lo+1) }

// pct is true in p of 100 cases.
func (r *rnd) pct(p int) bool { return r.n(100) < p }

func (r *rnd) pick(list ...string) string { return list[r.n(len(list))] }

func pickOf[T any](r *rnd, list []T) T { return list[r.n(len(list))] }

// some picks between lo and hi different elements, in the list's order of chance.
func some[T any](r *rnd, list []T, lo, hi int) []T {
	k := min(r.in(lo, hi), len(list))
	idx := r.rand().Perm(len(list))[:k]
	out := make([]T, 0, k)
	for _, i := range idx {
		out = append(out, list[i])
	}
	return out
}

// deck deals cards so that rare ones do come: each card is in the deck as
// often as its weight says, and no card comes again before the deck is through.
type deck struct {
	cards []int
	left  []int
}

func newDeck(weights []int) *deck {
	d := &deck{}
	for i, w := range weights {
		for range w {
			d.cards = append(d.cards, i)
		}
	}
	return d
}

func (d *deck) deal(r *rnd) int {
	if len(d.left) == 0 {
		d.left = make([]int, len(d.cards))
		for i, j := range r.rand().Perm(len(d.cards)) {
			d.left[i] = d.cards[j]
		}
	}
	c := d.left[len(d.left)-1]
	d.left = d.left[:len(d.left)-1]
	return c
}

func itoa(n int) string { return strconv.Itoa(n) }
