package campaign

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/count"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/report"
)

// Snapshot is where a campaign stands.
type Snapshot struct {
	State
	Took    time.Duration // of this run
	Pending int
	Seeds   int
	Memory  [2]int64 // resident bytes: at the start, now
	Doing   []string `json:",omitempty"` // what the jobs are at
}

// Summary is a campaign's end.
type Summary struct {
	Snapshot
	Minima  Minima // of State.Shrunk
	Code    exit.Code
	Why     string
	Dir     string
	Open    []Finding // those of this campaign that nobody has dealt with
	Replay  string    // what the lines to paste begin with: "oracle replay" and the flags that name the targets
	Waiting []string  // pending cases that nobody looked at yet
	Stopped *Stop     `json:",omitempty"` // what ended a campaign that ends at the first mismatch
}

// Stop is the mismatch that ended a campaign: when its unit differed, counted from the campaign's start, and when
// it was sure that it does so again.
type Stop struct {
	Seen, Sure       time.Duration
	Unit, Core, File string
}

func (c *Campaign) snapshot() Snapshot {
	s := Snapshot{State: c.state, Took: c.cfg.Now().Sub(c.start), Pending: len(c.pending), Seeds: c.pool.Len(), Memory: [2]int64{c.memory[0], resident()}, Doing: c.doing()}
	s.Signals, s.SeedsBy, s.FromSeed, s.FoundBy = clone(s.Signals), clone(s.SeedsBy), clone(s.FromSeed), clone(s.FoundBy)
	s.Shrunk = slices.Clone(s.Shrunk)
	s.Cores, s.Masks, s.Known = clone(s.Cores), clone(s.Masks), clone(s.Known)
	return s
}

func clone(m map[string]int) map[string]int {
	n := make(map[string]int, len(m))
	for k, v := range m {
		n[k] = v
	}
	return n
}

func (c *Campaign) summary() Summary {
	s := Summary{Snapshot: c.snapshot(), Dir: c.cfg.Dir, Stopped: c.stopped, Minima: minimaOf(c.state.Shrunk)}
	for _, p := range c.pending {
		s.Waiting = append(s.Waiting, p.File)
	}
	s.Open = c.open()
	open, now := len(s.Open), s.toll().since(s.Told)
	none := now.Compared == 0 && now.Settled == 0 // what was left of an earlier run may be all that is settled
	lost := now.RigFailed - now.MadeGood
	switch {
	case none && s.Spoiled+s.Dropped == 0 && s.Refused > 0:
		s.Code, s.Why = exit.Refused, "the candidate refuses everything: nothing compared"
	case none || len(c.errs) > 0:
		s.Code, s.Why = exit.Rig, "the rig broke"
		switch {
		case len(c.errs) > 0:
			s.Why += ": " + firstLine(c.errs[0].Error())
		case c.interrupted:
			s.Why = "nothing compared"
		}
	case c.stopped != nil:
		s.Code, s.Why = exit.Differ, "stopped at the first mismatch: "+c.stopped.Core
	case now.CompanyAgain > 0:
		s.Code, s.Why = exit.Differ, fmt.Sprintf("%s; %s in company only, again and again", count.Of(open, "finding"), count.Of(now.CompanyAgain, "unit differs", "units differ"))
	case now.Wavers > 0:
		s.Code, s.Why = exit.Differ, fmt.Sprintf("%s; on %s the candidate wavers and the reference does not", count.Of(open, "finding"), count.Of(now.Wavers, "unit"))
	case open > 0 || len(s.Waiting) > 0 || now.KnownNew > 0 && c.anyNew():
		s.Code, s.Why = exit.Differ, fmt.Sprintf("%s, %s for triage", count.Of(open, "finding"), count.Of(len(s.Waiting), "case waits", "cases wait"))
	case now.RigFailed*100 > now.Compared:
		s.Code, s.Why = exit.Rig, fmt.Sprintf("%s gave no verdict, the last: %s", count.Of(now.RigFailed, "run"), firstLine(s.LastRig))
	case now.Unstable > 0 && c.cfg.Self:
		s.Code, s.Why = exit.Unstable, count.Of(now.Unstable, "case")+" on which the reference wavers"
	case now.Unstable+now.Company+lost > 0:
		s.Code, s.Why = exit.Unstable, "all else agrees; "+count.Of(now.Unstable+now.Company+lost, "unit")+" without a verdict kept in "+s.Dir+" (see above)"
	default:
		s.Code, s.Why = exit.Agree, "all agree"
	}
	if c.interrupted {
		if s.Code == exit.Agree {
			s.Code = exit.Rig // what was not played is not known to agree (D-142)
		}
		s.Why = "interrupted; so far: " + s.Why
	}
	return s
}

// open are the findings of this campaign that nobody has dealt with: what was fixed since, or is recorded as
// a divergence, does not fail the next run. What the catalogue has no word of stays open.
func (c *Campaign) open() (list []Finding) {
	for _, f := range c.state.Findings {
		i := slices.IndexFunc(c.catalog.Entries, func(e *catalog.Entry) bool { return e.Path == f.File })
		if i < 0 {
			i = slices.IndexFunc(c.catalog.Entries, func(e *catalog.Entry) bool { return e.Signature() == f.Signature })
		}
		if i < 0 || c.catalog.Entries[i].Status() == catalog.New {
			list = append(list, f)
		}
	}
	return list
}

// anyNew tells whether one of the catalogue's findings that were met is new.
func (c *Campaign) anyNew() bool {
	return slices.ContainsFunc(c.catalog.Entries, func(e *catalog.Entry) bool { return e.Status() == catalog.New && c.state.Known[e.ID] > 0 })
}

// Line is the state as key=value pairs.
func (s Snapshot) Line() string {
	sec := (s.Elapsed + s.Took).Seconds()
	rate := func(n int) string { return strconv.FormatFloat(float64(n)/max(sec, 0.001), 'f', 0, 64) }
	var b strings.Builder
	kv := func(k string, v any) { fmt.Fprintf(&b, "%s=%v ", k, v) }
	kv("t", s.Took.Round(time.Second))
	kv("cases", s.Cases)
	kv("batches", s.Batches)
	kv("blocks", s.Units)
	kv("wrong", s.Wrong)
	kv("exchanges", s.Exchanges)
	kv("findings", len(s.Findings))
	kv("pending", s.Pending)
	kv("mismatches", s.Mismatches)
	kv("repeats", s.Repeats)
	kv("unstable", s.Unstable)
	kv("wavers", s.Wavers)
	kv("company", s.Company)
	kv("late", s.Late)
	kv("refused", s.Refused)
	kv("rig", s.RigFailed)
	kv("timeouts", s.Timeouts)
	kv("seeds", s.Seeds)
	kv("exchanges/s", rate(s.Exchanges))
	kv("blocks/s", rate(s.Units))
	kv("boots/s", rate(s.Boots))
	kv("memory", fmt.Sprintf("%dM", s.Memory[1]>>20))
	kv("doing", strings.Join(s.Doing, ","))
	return strings.TrimSpace(b.String())
}

// Print writes the summary for people.
func (s Summary) Print(w io.Writer, jobs int) {
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	all := s.Elapsed + s.Took // the counts are of all runs on this folder
	sec := max(all.Seconds(), 0.001)
	p("campaign  seed %d, batches %d to %d, %s", s.Seed, s.First, s.Next, all.Round(time.Second))
	p("compared  %s, %s, %s, %s", count.Of(s.Batches, "batch"), count.Of(s.Units, "server block"), count.Of(s.Wrong, "wrong configuration"), count.Of(s.Exchanges, "exchange"))
	p("speed     %.0f exchanges/s, %.0f server blocks/s, %.1f boots/s (both targets, %s)", float64(s.Exchanges)/sec, float64(s.Units)/sec, float64(s.Boots)/sec, count.Of(jobs, "job"))
	if s.AloneTook > 0 {
		alone := float64(s.AloneExchanges) / s.AloneTook.Seconds() * float64(jobs)
		p("ceiling   %.0f exchanges/s: the same streams on nginx alone, in this run (%s; %.2f of it reached)", alone, count.Of(s.SelfChecks, "batch"), float64(s.Exchanges)/sec/alone)
	}
	p("set aside %s that nginx does not load, %s spoiled, %d refused by the candidate, %d unstable, %s", count.Of(s.Dropped, "unit"), count.Of(s.Spoiled, "batch"), s.Refused, s.Unstable, count.Of(s.RigFailed, "run without verdict", "runs without verdict"))
	if s.Company > 0 {
		p("company   %s only in company and agreed alone; %d there again", count.Of(s.Company, "unit differed", "units differed"), s.CompanyAgain)
		p("company   the last: %s", s.LastCompany)
	}
	if s.Late > 0 {
		p("held up   %s while the machine held them up, and had another verdict when played again", count.Of(s.Late, "unit differed", "units differed"))
	}
	if s.LastUnstable != "" {
		p("unstable  the last: %s", s.LastUnstable)
	}
	if s.Wavers > 0 {
		p("wavers    %s in some runs only, while the reference agrees with itself; the last: %s", count.Of(s.Wavers, "unit differs", "units differ"), s.LastWavers)
	}
	if s.Crashers > 0 {
		p("crashes   %s a worker crash; the others of the batch were played again without it", count.Of(s.Crashers, "unit made", "units made"))
	}
	if s.LastSpoiled != "" {
		p("spoiled   the last: %s", s.LastSpoiled)
	}
	if s.LastRig != "" {
		p("rig       the last: %s", firstLine(s.LastRig))
	}
	p("timeouts  %s, %.2f in 1,000 exchanges", count.Of(s.Timeouts, "last-resort timeout"), 1000*float64(s.Timeouts)/float64(max(2*s.Exchanges, 1)))
	p("signals   new things seen: %s", sorted(s.Signals))
	p("seeds     %d in the pool; kept for: %s", s.Seeds, sorted(s.SeedsBy))
	if len(s.FromSeed) > 0 {
		p("brought   units that differ, by the seed they were made of: %s; findings: %s", sorted(s.FromSeed), sorted(s.FoundBy))
	}
	if s.Uncovered != "" {
		p("coverage  none: %s", s.Uncovered)
	}
	if s.Blind > 0 {
		p("blind     %s whose instrument showed nothing, the last: %s", count.Of(s.Blind, "batch"), s.LastBlind)
	}
	if len(s.Masks) > 0 {
		p("masks     %s", sorted(s.Masks))
	}
	if len(s.Refuses) > 0 {
		p("refuses   %s", strings.Join(s.Refuses, " "))
	}
	p("memory    %d MB at the start, %d MB at the end", s.Memory[0]>>20, s.Memory[1]>>20)
	if s.Shrinks > 0 {
		p("triage    %s, %s each; %s in all, %d only counted", count.Of(s.Shrinks, "case"), (s.ShrinkTime / time.Duration(s.Shrinks)).Round(10*time.Millisecond), count.Of(s.Mismatches, "mismatching unit"), s.Repeats)
	}
	for i, l := range s.Minima.lines() {
		p("%-9s %s", []string{"shrunk", "minimum", "small"}[i], l)
	}
	if len(s.Spent) > 0 {
		p("time      %s", s.spentLine())
	}
	if len(s.Known) > 0 {
		p("known     %s", sorted(s.Known))
	}
	if n := len(s.Findings) - len(s.Open); n > 0 {
		p("settled   %s of this campaign fixed or recorded since", count.Of(n, "finding"))
	}
	for _, f := range s.Open {
		p("finding   %s  %s", f.ID, f.Signature)
		p("          %s %s", s.Replay, report.Word(f.File))
	}
	for i, f := range s.Waiting {
		if i == 5 {
			p("waiting   and %d more", len(s.Waiting)-i)
			break
		}
		p("waiting   %s %s", s.Replay, report.Word(f))
	}
	for _, k := range s.aside() {
		p("%s  %s", k.word, k.what)
		p("          %s %s", s.Replay, report.Word(filepath.Join(s.Dir, k.dir)))
	}
}

// kept is a folder of cases without a verdict: nobody was told of them, so somebody may want to look.
type kept struct{ word, what, dir string }

func (s Summary) aside() (list []kept) {
	if s.Unstable > 0 {
		list = append(list, kept{"unstable", count.Of(s.Unstable, "unit that differed did", "units that differed did") + " not come again, or the reference wavers; kept, to look again:", "unstable"})
	}
	if s.Wavers > 0 {
		list = append(list, kept{"wavers  ", count.Of(s.Wavers, "unit") + " on which the candidate wavers; kept, to look again:", "wavers"})
	}
	if s.Company > 0 {
		list = append(list, kept{"company ", count.Of(s.Company, "unit") + " agreed alone; kept, to look again:", "company"})
	}
	if s.RigFailed > 0 {
		list = append(list, kept{"rig     ", count.Of(s.RigFailed, "run") + " without verdict; kept, to look again:", "rig"})
	}
	return list
}

func sorted(m map[string]int) string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return m[keys[i]] > m[keys[j]] || m[keys[i]] == m[keys[j]] && keys[i] < keys[j] })
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s %d", k, m[k])
	}
	if len(keys) == 0 {
		return "none"
	}
	return strings.Join(keys, ", ")
}

// progressLoop calls Progress once a second until the returned function is called.
func (c *Campaign) progressLoop() func() {
	if c.cfg.Progress == nil {
		return func() {}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				c.mu.Lock()
				s := c.snapshot()
				c.mu.Unlock()
				c.cfg.Progress(s)
			}
		}
	}()
	return func() { close(stop); <-done }
}

// resident is this process's resident memory in bytes, from /proc/self/statm.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text))
	if len(f) < 2 {
		return 0
	}
	n, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return 0
	}
	return n * int64(os.Getpagesize())
}

// spentLine says where the jobs' time went, most first.
func (s Summary) spentLine() string {
	names := slices.SortedFunc(maps.Keys(s.Spent), func(a, b string) int { return cmp.Or(cmp.Compare(s.Spent[b], s.Spent[a]), cmp.Compare(a, b)) })
	for i, n := range names {
		names[i] = fmt.Sprintf("%s %.1fs", n, s.Spent[n].Seconds())
	}
	return strings.Join(names, ", ")
}
