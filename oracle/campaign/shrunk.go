package campaign

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/count"
	"nginxoracle/oracle/minimize"
	"nginxoracle/oracle/triage"
)

// Shrunk is what bringing one difference to its minimum took, and how large that is. Whether the minimum
// turned out to be new, or one that the catalogue has, it took the same.
type Shrunk struct {
	minimize.Size
	Took time.Duration // from the case's first run in triage to its last one, killed runs of the campaign included
	Runs int           // boots of both targets
	Done bool          // false: the time for shrinking was over before the minimum
}

// shrunkMost bounds how many the state keeps, the latest: it is written whole, and often.
const shrunkMost = 1000

// shrunk notes what became of a case that was found again; the lock is held.
func (c *Campaign) shrunk(p *pendingCase, rep triage.Report) {
	s := &c.state
	took, runs := p.spentSoFar(0)
	s.Shrunk = append(s.Shrunk, Shrunk{Size: minimize.Measure(rep.Case), Took: took, Runs: runs, Done: rep.Shrink.Done})
	s.Shrunk = s.Shrunk[max(0, len(s.Shrunk)-shrunkMost):]
}

// spentKey is the field of a half-shrunk case that says what was spent on it: the next run of a campaign that
// was killed goes on counting there.
const spentKey = "spent"

func (p *pendingCase) spentSoFar(runs int) (time.Duration, int) {
	return p.tookBefore + time.Since(p.began), p.runsBefore + runs
}

// withSpent is a half-shrunk case with the field.
func (p *pendingCase) withSpent(cs *casefile.Case, runs int) *casefile.Case {
	n := cs.Clone()
	took, runs := p.spentSoFar(runs)
	n.Meta = append(withoutSpent(n.Meta), casefile.Field{Key: spentKey, Value: fmt.Sprintf("%s %d", took.Round(time.Millisecond), runs)})
	return n
}

// goOn takes up a half-shrunk case.
func (p *pendingCase) goOn(best *casefile.Case) {
	p.best = best
	took, runs, _ := strings.Cut(best.Get(spentKey), " ")
	d, errTook := time.ParseDuration(took)
	n, errRuns := strconv.Atoi(runs)
	if errTook == nil && errRuns == nil { // a file without the field, or whose field someone has changed, counts from here
		p.tookBefore, p.runsBefore = d, n
	}
	best.Meta = withoutSpent(best.Meta)
}

func withoutSpent(meta []casefile.Field) []casefile.Field {
	return slices.DeleteFunc(slices.Clone(meta), func(f casefile.Field) bool { return f.Key == spentKey })
}

// Minima are the figures of all that was shrunk.
type Minima struct {
	Shrunk, Done, Few            int // how many; of them, those that came to their end; those that are as small as a minimum should be
	Took                         Spread[time.Duration]
	Lines, Requests, Bytes, Runs Spread[int]
}

// Spread is the middle one and the largest of some figures.
type Spread[T cmp.Ordered] struct{ Median, Max T }

func spreadOf[T cmp.Ordered](list []Shrunk, of func(Shrunk) T) (s Spread[T]) {
	if len(list) == 0 {
		return s
	}
	v := make([]T, len(list))
	for i, x := range list {
		v[i] = of(x)
	}
	slices.Sort(v)
	return Spread[T]{Median: v[len(v)/2], Max: v[len(v)-1]} // of an even number the larger of the two in the middle
}

func minimaOf(list []Shrunk) (m Minima) {
	m.Shrunk = len(list)
	for _, x := range list {
		if x.Done {
			m.Done++
		}
		if x.Few() {
			m.Few++
		}
	}
	m.Took = spreadOf(list, func(x Shrunk) time.Duration { return x.Took })
	m.Lines = spreadOf(list, func(x Shrunk) int { return x.Lines })
	m.Requests = spreadOf(list, func(x Shrunk) int { return x.Requests })
	m.Bytes = spreadOf(list, func(x Shrunk) int { return x.Bytes })
	m.Runs = spreadOf(list, func(x Shrunk) int { return x.Runs })
	return m
}

// lines are the figures for people.
func (m Minima) lines() []string {
	if m.Shrunk == 0 {
		return nil
	}
	sec := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	ended := ""
	if n := m.Shrunk - m.Done; n > 0 {
		ended = fmt.Sprintf("; %d stopped before the end", n)
	}
	return []string{
		fmt.Sprintf("%s, median %s, at most %s; %d runs of both targets, at most %d%s", count.Of(m.Shrunk, "difference"), sec(m.Took.Median), sec(m.Took.Max), m.Runs.Median, m.Runs.Max, ended),
		fmt.Sprintf("median %s of configuration, at most %d; %s, at most %d; %s, at most %d", count.Of(m.Lines.Median, "line"), m.Lines.Max,
			count.Of(m.Requests.Median, "request"), m.Requests.Max, count.Of(m.Bytes.Median, "byte"), m.Bytes.Max),
		fmt.Sprintf("%d of %d (%d %%) under %d lines of configuration and of one request", m.Few, m.Shrunk, 100*m.Few/m.Shrunk, minimize.FewLines),
	}
}
