package campaign

import (
	"os"
	"strings"
	"testing"
	"time"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize"
)

func TestMinimaArePrinted(t *testing.T) {
	of := func(lines, requests, bytes int, took time.Duration, runs int, done bool) Shrunk {
		return Shrunk{Size: minimize.Size{Lines: lines, Requests: requests, Bytes: bytes}, Took: took, Runs: runs, Done: done}
	}
	s := Summary{}
	s.Batches, s.Shrinks = 1, 3
	s.Minima = minimaOf([]Shrunk{of(30, 1, 900, 20*time.Second, 300, false), of(10, 1, 300, 2*time.Second, 60, true), of(12, 2, 200, 1500*time.Millisecond, 50, true)})
	var b strings.Builder
	s.Print(&b, 1)
	const want = `
shrunk    3 differences, median 2.0 s, at most 20.0 s; 60 runs of both targets, at most 300; 1 stopped before the end
minimum   median 12 lines of configuration, at most 30; 1 request, at most 2; 300 bytes, at most 900
small     1 of 3 (33 %) under 25 lines of configuration and of one request
`
	if !strings.Contains(b.String(), want) {
		t.Errorf("printed\n%s\nwithout%s", b.String(), want)
	}
	if got := minimaOf(nil).lines(); got != nil {
		t.Errorf("nothing was shrunk, and it is said all the same: %q", got)
	}
}

// A campaign counts what its findings took, and goes on counting when it is resumed.
func TestShrunkIsCounted(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: busiest(t)}
	sum := r.campaign(nil)
	m := sum.Minima
	if m.Shrunk == 0 || m.Shrunk != m.Done || m.Runs.Median < 6 || m.Took.Max <= 0 || m.Lines.Median == 0 || m.Requests.Median != 1 {
		t.Errorf("%+v", m)
	}
	if again := r.campaign(nil); again.Minima.Shrunk <= m.Shrunk {
		t.Errorf("%d shrunk after resuming, %d before", again.Minima.Shrunk, m.Shrunk)
	}
}

// What a run that was killed has spent on a case counts, and leaves no trace in the case.
func TestSpentSurvives(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: busiest(t)}
	died := r.campaign(func(c *Config) { c.Drain = 0; c.Batches = 1; c.Jobs = 1; c.Wrong = 0 })
	for _, f := range died.Waiting {
		cs, err := casefile.Load(f)
		if err != nil {
			t.Fatal(err)
		}
		p := &pendingCase{began: time.Now()}
		p.goOn(p.withSpent(p.withSpent(cs, 7), 500))
		if p.runsBefore != 500 || p.best.Get(spentKey) != "" {
			t.Errorf("%d runs taken up of 500: %v", p.runsBefore, p.best.Meta)
		}
		p = &pendingCase{began: time.Now().Add(-time.Hour)}
		if err := os.WriteFile(f+".best", p.withSpent(cs, 7000).Print(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sum := r.campaign(func(c *Config) { c.Batches = 1; c.Jobs = 1; c.Wrong = 0 })
	if m := sum.Minima; m.Took.Max < time.Hour || m.Runs.Max < 7000 {
		t.Errorf("what was spent before is lost: %+v", m)
	}
}
