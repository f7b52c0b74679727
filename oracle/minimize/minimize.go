// Package minimize shrinks a case while a predicate holds. The reducer knows
// nothing of comparing: it calls the try function it was handed, remembers by
// hash what was tried, counts every attempt by pass, and stops at a fixpoint
// or at its budget. It never touches the case it was given.
package minimize

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sort"
	"strings"
	"time"

	"nginxoracle/oracle/casefile"
)

// Try tells whether a case still shows what is looked for. An error means that
// there was no verdict; too many end the shrinking, and what was reached is kept.
type Try func(ctx context.Context, c *casefile.Case) (bool, error)

// Budget bounds the work. Zero fields mean no bound.
type Budget struct {
	Attempts int
	Time     time.Duration
}

// Count is how often a pass was tried and how often it shrank the case.
type Count struct{ Tried, Kept int }

// Stats says what shrinking did.
type Stats struct {
	Passes   map[string]Count
	Attempts int // calls of the try function
	Memo     int // attempts that were answered from memory
	Screened int // variations that were played among others, in Boots of the attempts
	Boots    int
	Errors   int // attempts without a verdict: they do not hold
	// Unreachable counts cases that were not tried: those that are no case files
	// (an origin that repeats without reading), and those with a client whose address is
	// nowhere listened on (a server that never answers there is waited for in vain).
	Unreachable int
	Done        bool
	Why         string // why it stopped before the fixpoint
	Took        time.Duration
}

func (s Stats) String() string {
	names := make([]string, 0, len(s.Passes))
	for n := range s.Passes {
		names = append(names, n)
	}
	sort.Strings(names)
	var b strings.Builder
	fmt.Fprintf(&b, "%d attempts, %d from memory", s.Attempts, s.Memo)
	if s.Boots > 0 {
		fmt.Fprintf(&b, ", %d variations in %d of the attempts", s.Screened, s.Boots)
	}
	for _, n := range names {
		if c := s.Passes[n]; c.Kept > 0 {
			fmt.Fprintf(&b, ", %s %d/%d", n, c.Kept, c.Tried)
		}
	}
	if !s.Done {
		b.WriteString("; stopped: " + s.Why)
	}
	return b.String()
}

// Pass is one way to take things off a case. Items counts what could go;
// Without gives a copy with some of them gone (drop[i]), or nil where that
// makes no case.
type Pass struct {
	Name    string
	Items   func(c *casefile.Case) int
	Without func(c *casefile.Case, drop []bool) *casefile.Case
	// Single passes try their items one by one only: their items stand for
	// changes that exclude each other, or, with Many, of which only those that each shrink the
	// case may be made at once.
	Single, Many bool
	// Level is when a pass is screened: a pass of a higher level once nothing goes by those of lower ones.
	Level int
	// Last passes only write the case in another way. A Screen could not tell the result apart.
	Last bool
}

// maxErrors is how many attempts may give no verdict before shrinking ends: one
// may be the odd case that the rig cannot run, three are the rig.
const maxErrors = 3

// Options of one shrinking.
type Options struct {
	Budget Budget
	Passes []Pass               // nil: Passes()
	Screen Screen               // nil: every variation is tried alone
	Saved  func(*casefile.Case) // called with every smaller case that holds, for resuming
	Now    func() time.Time
}

type reducer struct {
	ctx   context.Context
	try   Try
	opts  Options
	start time.Time
	memo  map[[32]byte]bool
	hints map[[32]byte]Hint // of variations that were screened
	carry map[int]carried   // by pass
	again bool              // a pass was passed over for what was carried
	blind int               // how often in a row nothing could be screened
	was   map[[32]byte]bool // texts that were the best one once
	stats Stats
	err   error
	best  *casefile.Case
}

// Shrink returns the smallest case it reached for which try holds; c itself is
// taken to hold. The error is that of the rig; the case is good all the same.
func Shrink(ctx context.Context, c *casefile.Case, try Try, o Options) (*casefile.Case, Stats, error) {
	if o.Passes == nil {
		o.Passes = Passes()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &reducer{ctx: ctx, try: try, opts: o, start: o.Now(), memo: map[[32]byte]bool{}, hints: map[[32]byte]Hint{}, carry: map[int]carried{}, was: map[[32]byte]bool{sha256.Sum256(c.Print()): true}, best: c}
	r.stats.Passes = map[string]Count{}
	singly := r.bySight()
	for changed := true; changed && !r.stopped(); {
		changed = false
		for _, p := range o.Passes {
			if r.stopped() {
				break
			}
			if r.pass(p, singly) {
				changed = true
			}
		}
	}
	r.stats.Done = !r.stopped()
	r.stats.Took = o.Now().Sub(r.start)
	return r.best, r.stats, r.err
}

func (r *reducer) stopped() bool {
	switch {
	case r.err != nil:
		r.stats.Why = "the rig broke: " + r.err.Error()
	case r.ctx.Err() != nil:
		r.stats.Why = "interrupted"
	case r.opts.Budget.Attempts > 0 && r.stats.Attempts >= r.opts.Budget.Attempts:
		r.stats.Why = fmt.Sprintf("budget of %d attempts spent", r.opts.Budget.Attempts)
	case r.opts.Budget.Time > 0 && r.opts.Now().Sub(r.start) >= r.opts.Budget.Time:
		r.stats.Why = fmt.Sprintf("budget of %s spent", r.opts.Budget.Time)
	default:
		return false
	}
	return true
}

// pass tries to drop ever smaller runs of items (delta debugging), from the
// last to the first so that what is used is not dropped before its users.
func (r *reducer) pass(p Pass, singly bool) (changed bool) {
	n := p.Items(r.best)
	size := n
	if p.Single || singly {
		size = min(1, n)
	}
	for size > 0 && !r.stopped() {
		for at := n - size; at > -size && n > 0 && !r.stopped(); at -= size {
			drop := make([]bool, n)
			for i := max(at, 0); i < at+size; i++ {
				drop[i] = true
			}
			next := p.Without(r.best, drop)
			if next == nil || !r.holds(p.Name, next) {
				continue
			}
			changed = true
			r.best = next
			if r.opts.Saved != nil {
				r.opts.Saved(next)
			}
			n = p.Items(r.best)
			at = min(at, n)
		}
		if size == 1 {
			break
		}
		size = (min(size, n) + 1) / 2
	}
	return changed
}

// valid tells whether a text is a case file: the result of shrinking must be one.
func valid(text []byte) bool {
	_, err := casefile.Parse("shrunk", text)
	return err == nil
}

func (r *reducer) holds(pass string, c *casefile.Case) bool {
	text := c.Print()
	key := sha256.Sum256(text)
	if r.was[key] { // nothing went, or what went has come back: no step forward
		return false
	}
	count := r.stats.Passes[pass]
	count.Tried++
	ok, known := r.memo[key]
	if known {
		r.stats.Memo++
	} else if !valid(text) || !Reachable(c) {
		r.stats.Unreachable++
		r.memo[key] = false
	} else {
		r.stats.Attempts++
		var err error
		ok, err = r.try(r.ctx, c)
		if err != nil {
			r.stats.Errors++
			if r.ctx.Err() == nil && r.stats.Errors >= maxErrors {
				r.err = err
			}
			ok = false
		} else {
			r.memo[key] = ok
		}
	}
	if ok {
		count.Kept++
		r.was[key] = true
	}
	r.stats.Passes[pass] = count
	return ok
}
