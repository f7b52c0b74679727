package minimize

import (
	"context"
	"crypto/sha256"
	"slices"

	"nginxoracle/oracle/casefile"
)

// Screening. Most variations of a case do not hold, and trying one costs a boot of both targets. A Screen plays
// many of them side by side in one boot. One that does not show there what is looked for, while the case itself, played
// among them, does, counts as tried. One that does show it is still tried alone, where it can with others of its pass.

// Hint is what a variation showed among others.
type Hint int

const (
	Unknown Hint = iota // it could not be played there
	Likely
	Unlikely
)

// Screen plays variations of best among each other, and best itself beside them. nil says that this
// cannot be done with best, or that best did not show what is looked for there.
type Screen func(ctx context.Context, best *casefile.Case, list []*casefile.Case) []Hint

const (
	// ScreenMost is how many variations are played in one boot: with the case itself the hundred of a batch.
	ScreenMost = 99
	// fewScreened is how many are too few for a boot of their own.
	fewScreened = 3
	// blindMost is how often in a row a Screen may fail before the rest is tried one by one.
	blindMost = 2
)

// variation is a case with some items of a pass gone.
type variation struct {
	drop []bool
	c    *casefile.Case
	key  [32]byte
}

// walk goes through the variations of a pass on one case: runs of items, each time from the last to the first. Of a few
// items each by itself comes first, for what can go one by one mostly can go together; of many, the largest runs.
type walk struct {
	p     Pass
	base  *casefile.Case
	n     int
	sizes []int
	at    int
}

// fewItems is how many items are few: about as many as are screened at once.
const fewItems = 64

func newWalk(p Pass, base *casefile.Case) *walk {
	w := &walk{p: p, base: base, n: p.Items(base)}
	if w.n == 0 {
		return w
	}
	if !p.Single {
		for size := w.n; size > 1; size = (size + 1) / 2 {
			w.sizes = append(w.sizes, size)
		}
	}
	if w.n <= fewItems {
		w.sizes = slices.Insert(w.sizes, 0, 1)
	} else {
		w.sizes = append(w.sizes, 1)
	}
	w.at = w.n - w.sizes[0]
	return w
}

// next is the next variation, nil at the end.
func (w *walk) next() *variation {
	for len(w.sizes) > 0 {
		size := w.sizes[0]
		if w.at <= -size {
			if w.sizes = w.sizes[1:]; len(w.sizes) > 0 {
				w.at = w.n - w.sizes[0]
			}
			continue
		}
		drop := make([]bool, w.n)
		for i := max(w.at, 0); i < w.at+size; i++ {
			drop[i] = true
		}
		w.at -= size
		if c := w.p.Without(w.base, drop); c != nil {
			return &variation{drop: drop, c: c}
		}
	}
	return nil
}

// untried gives up to most of the variations that a walk still has and of which it is not known that they do not hold.
func (r *reducer) untried(w *walk, most int) (list []*variation) {
	for len(list) < most && r.ctx.Err() == nil {
		v := w.next()
		if v == nil {
			break
		}
		text := v.c.Print()
		v.key = sha256.Sum256(text)
		if ok, known := r.memo[v.key]; r.was[v.key] || known && !ok || slices.ContainsFunc(list, func(o *variation) bool { return o.key == v.key }) {
			continue
		}
		if !valid(text) || !Reachable(v.c) {
			r.stats.Unreachable++
			r.memo[v.key] = false
			continue
		}
		list = append(list, v)
	}
	return list
}

// bySight shrinks as far as screening goes, and tells whether it went to its end: what is left then is to look at
// single items once more, most of which is known.
func (r *reducer) bySight() bool {
	if r.opts.Screen == nil {
		return false
	}
	for level := range levels {
		for changed := true; changed; {
			changed = false
			for i, p := range r.opts.Passes {
				if r.stopped() || r.blind >= blindMost {
					return false
				}
				if p.Last || p.Level > level {
					continue
				}
				c, ok := r.screened(i, level)
				if !ok {
					c = r.pass(p, false) || c
				}
				changed = c || changed
			}
			changed, r.again = changed || r.again, false
		}
	}
	for _, p := range r.opts.Passes {
		if p.Last && !r.stopped() {
			r.rewrite(p)
		}
	}
	return true
}

// carried is what was seen of a pass beside another one's, on a case that has been shrunk by the latter since.
type carried struct {
	base   *casefile.Case
	likely []*variation
	part   bool // not all of the pass was seen
}

// screened is a pass whose variations are screened. It goes no further than to the first that hold: what was seen
// of the other passes on the same case comes before what could be seen of this one on the next. false in ok: they
// cannot be screened.
func (r *reducer) screened(i, level int) (changed, ok bool) {
	p := r.opts.Passes[i]
	old, carry := r.carry[i]
	delete(r.carry, i)
	if carry && old.base != r.best {
		var list []*variation
		for _, v := range old.likely {
			if len(v.drop) == p.Items(r.best) {
				list = append(list, v)
			}
		}
		if r.take(p, list) {
			return true, true
		}
		if !old.part && len(list) == len(old.likely) {
			r.again = true
			return false, true
		}
	}
	for w := newWalk(p, r.best); !r.stopped(); {
		list := r.untried(w, ScreenMost)
		if len(list) == 0 {
			break
		}
		if !r.screen(i, level, list) {
			return changed, false
		}
		var likely, unknown []*variation
		for _, v := range list {
			if known, tried := r.memo[v.key]; tried && !known {
				continue
			}
			if r.hints[v.key] == Likely {
				likely = append(likely, v)
			} else {
				unknown = append(unknown, v)
			}
		}
		if r.takeEverywhere(i, likely) || r.take(p, likely) || r.take(p, unknown) {
			return true, true
		}
	}
	return changed, true
}

// takeEverywhere tries at once all that was seen to hold of pass i, and of the passes that were looked at beside it.
func (r *reducer) takeEverywhere(i int, likely []*variation) bool {
	next, several := r.best, 0
	for k, p := range r.opts.Passes {
		list := likely
		if c, ok := r.carry[k]; k != i {
			if !ok || c.base != r.best {
				continue
			}
			list = c.likely
		}
		if len(list) == 0 || p.Single && !p.Many {
			continue
		}
		drop := list[0].drop
		for _, v := range list {
			drop = union(drop, v.drop)
		}
		if p.Items(next) != len(drop) { // what went before has taken some of it along
			continue
		}
		if c := p.Without(next, drop); c != nil {
			next, several = c, several+1
		}
	}
	return several > 1 && valid(next.Print()) && Reachable(next) && r.accept(r.opts.Passes[i], next)
}

// screen plays what is not known yet of some variations of pass i, and with them what the next passes of
// the level would try on the same case. false: it cannot be done.
func (r *reducer) screen(i, level int, list []*variation) bool {
	var play []*variation
	add := func(list []*variation) (all bool) {
		all = true
		for _, v := range list {
			if _, known := r.hints[v.key]; known {
				continue
			}
			if len(play) == ScreenMost {
				all = false
				break
			}
			play = append(play, v)
		}
		return all
	}
	add(list)
	if len(play) == 0 {
		return true
	}
	beside := map[int][]*variation{}
	for k := 1; k < len(r.opts.Passes) && len(play) < ScreenMost; k++ {
		n := (i + k) % len(r.opts.Passes)
		if p := r.opts.Passes[n]; !p.Last && p.Level <= level {
			more := r.untried(newWalk(p, r.best), ScreenMost)
			r.carry[n] = carried{base: r.best, part: !add(more)}
			beside[n] = more
		}
	}
	if len(play) < fewScreened {
		return true // without a hint they are tried
	}
	cases := make([]*casefile.Case, len(play))
	for i, v := range play {
		cases[i] = v.c
	}
	r.stats.Attempts++
	r.stats.Boots++
	hints := r.opts.Screen(r.ctx, r.best, cases)
	if hints == nil {
		r.blind++
		clear(r.carry)
		return false
	}
	r.blind = 0
	r.stats.Screened += len(play)
	for i, v := range play {
		r.hints[v.key] = hints[i]
		if hints[i] == Unlikely {
			r.memo[v.key] = false
		}
	}
	for n, list := range beside {
		c := r.carry[n]
		for _, v := range list {
			if r.hints[v.key] == Likely {
				c.likely = append(c.likely, v)
			}
		}
		r.carry[n] = c
	}
	return true
}

// take tries variations of the best case, as many at once as can be.
func (r *reducer) take(p Pass, list []*variation) (changed bool) {
	if p.Single && !p.Many {
		for _, v := range list { // from the last to the first: those in front stay what they are
			drop := make([]bool, p.Items(r.best))
			if copy(drop, v.drop); r.accept(p, p.Without(r.best, drop)) {
				changed = true
			}
		}
		return changed
	}
	base, gone := r.best, make([]bool, p.Items(r.best))
	for len(list) > 0 && !r.stopped() {
		var now, later []*variation
		chosen := make([]bool, len(gone))
		for _, v := range list {
			left, clash := false, false
			for i, d := range v.drop {
				left = left || d && !gone[i]
				clash = clash || d && chosen[i]
			}
			switch {
			case !left: // it went with a larger one
			case clash:
				later = append(later, v)
			default:
				now = append(now, v)
				chosen = union(chosen, v.drop)
			}
		}
		if r.takeAll(p, base, gone, now) {
			changed = true
		}
		list = later
	}
	return changed
}

// takeAll tries all of a list at once, or halves of it. gone is what has gone from base.
func (r *reducer) takeAll(p Pass, base *casefile.Case, gone []bool, list []*variation) bool {
	if len(list) == 0 || r.stopped() {
		return false
	}
	drop := gone
	for _, v := range list {
		drop = union(drop, v.drop)
	}
	if r.accept(p, p.Without(base, drop)) {
		copy(gone, drop)
		return true
	}
	if len(list) == 1 {
		return false
	}
	a := r.takeAll(p, base, gone, list[:len(list)/2])
	b := r.takeAll(p, base, gone, list[len(list)/2:])
	return a || b
}

// accept makes a case that holds the best one.
func (r *reducer) accept(p Pass, next *casefile.Case) bool {
	if next == nil || r.stopped() || !r.holds(p.Name, next) {
		return false
	}
	r.best = next
	if r.opts.Saved != nil {
		r.opts.Saved(next)
	}
	return true
}

func union(a, b []bool) []bool {
	out := make([]bool, len(a))
	for i := range a {
		out[i] = a[i] || b[i]
	}
	return out
}

// rewrite is one of those passes that come last: nothing goes by it, the case is only written in another way, and
// what is known of its variations stays true.
func (r *reducer) rewrite(p Pass) (changed bool) {
	n := p.Items(r.best)
	try := func(which ...int) bool {
		to := func(c *casefile.Case) *casefile.Case {
			for _, i := range which {
				drop := make([]bool, n)
				drop[i] = true
				if next := p.Without(c, drop); next != nil {
					c = next
				}
			}
			return c
		}
		old := r.best
		if !r.accept(p, to(old)) {
			return false
		}
		for _, q := range r.opts.Passes {
			if q.Last {
				continue
			}
			for w := newWalk(q, old); ; {
				v := w.next()
				if v == nil {
					break
				}
				if ok, known := r.memo[sha256.Sum256(v.c.Print())]; known && !ok {
					r.memo[sha256.Sum256(to(v.c).Print())] = false
				}
			}
		}
		return true
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	if try(all...) {
		return true
	}
	for _, i := range all {
		changed = try(i) || changed
	}
	return changed
}
