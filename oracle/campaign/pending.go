package campaign

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/minimize"
	"nginxoracle/oracle/triage"
)

// pendingCase differed once and waits for triage. It is on disk before anything
// else is done with it.
type pendingCase struct {
	Case  *casefile.Case
	Core  string
	Label string
	From  string // see gen.Unit.From
	File  string
	best  *casefile.Case // how far an earlier run had shrunk it
	began time.Time      // when this run took it up
	// What was spent on it before the triage that runs, by an earlier run of the campaign, too.
	tookBefore time.Duration
	runsBefore int
	seen       time.Time // when it differed; the zero time where an earlier run has seen it
	crowd      *crowd    // the batch it was seen in, in case it does not differ alone; in memory only
}

// keep saves a differing case, unless the campaign has enough with the same core.
func (c *Campaign) keep(p *pendingCase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Mismatches++
	c.state.Cores[p.Core]++
	c.state.FromSeed[p.from()]++
	if c.cores[p.Core] >= sameCore {
		c.state.Repeats++
		return
	}
	c.cores[p.Core]++
	p.seen = c.cfg.Now()
	p.Case = p.Case.Clone()
	p.Case.Meta = []casefile.Field{{Key: "seed", Value: p.Label}, {Key: "core", Value: p.Core}, {Key: "from", Value: p.from()}}
	text := p.Case.Print()
	sum := sha256.Sum256(text)
	p.File = c.path("pending", hex.EncodeToString(sum[:6])+".txtar")
	if err := catalog.WriteFile(p.File, text); err != nil {
		c.failLocked(fmt.Errorf("campaign: save a differing case: %w", err))
	}
	c.pending = append(c.pending, p)
	slices.SortStableFunc(c.pending, func(a, b *pendingCase) int { return urgency(a.Core) - urgency(b.Core) })
}

// fresh is what a unit is from that no seed is behind.
const fresh = "fresh"

func (p *pendingCase) from() string { return cmp.Or(p.From, fresh) }

// urgency puts crashes before what differs, and what differs before what waits for nobody.
func urgency(core string) int {
	switch {
	case strings.HasPrefix(core, "process"), strings.Contains(core, "panic"):
		return 0
	case strings.HasPrefix(core, "error"), strings.HasPrefix(core, "access"), strings.HasPrefix(core, "tree"):
		return 2
	}
	return 1
}

// loadPending reads the cases that an earlier run of the campaign saved.
func (c *Campaign) loadPending() error {
	list, err := filepath.Glob(c.path("pending", "*.txtar"))
	if err != nil {
		return err
	}
	sort.Strings(list)
	for _, f := range list {
		cs, err := casefile.Load(f)
		if err != nil {
			return fmt.Errorf("campaign: resume: %w", err)
		}
		p := &pendingCase{Case: cs, File: f}
		// Without it, or with a broken one, shrinking begins again.
		if best, err := casefile.Load(f + ".best"); err == nil {
			p.goOn(best)
		}
		for _, m := range cs.Meta {
			switch m.Key {
			case "seed":
				p.Label = m.Value
			case "core":
				p.Core = m.Value
			case "from":
				p.From = m.Value
			}
		}
		c.cores[p.Core]++
		c.pending = append(c.pending, p)
	}
	return nil
}

// triageCase makes a finding of a pending case, or says why it is none.
func (c *Campaign) triageCase(ctx context.Context, rig *cells, p *pendingCase) error {
	p.began = time.Now()
	done := false
	defer func() {
		c.mu.Lock()
		c.triage += time.Since(p.began)
		c.mu.Unlock()
		if !done {
			c.giveBack(p)
		}
	}()
	first := p.Case
	if p.best != nil {
		first = p.best
	}
	// What belongs to no unit is looked for in the batch that it came in, played as it was.
	rep := triage.Report{Outcome: triage.Gone}
	if p.crowd == nil || p.crowd.slot != nobody {
		rep = c.bounded(ctx, rig, p, first)
	}
	if rep.Outcome != triage.Found && p.best != nil && ctx.Err() == nil {
		rep = c.bounded(ctx, rig, p, p.Case)
	}
	if (rep.Outcome == triage.Unstable || rep.Outcome == triage.Rigged || rep.Outcome == triage.Interrupted) && ctx.Err() == nil {
		// A server that something else has killed looks like a reference that wavers: one bad
		// moment of the machine must not cost a finding.
		rep = c.bounded(ctx, rig, p, p.Case)
	}
	if ctx.Err() != nil {
		return nil // it stays on disk, and is taken up by the next run
	}
	var fate string
	var err error
	ended := c.ends(p, rep)
	if ended {
		fate = "stopped here: " + rep.Signature.Core
	} else if rep.Outcome == triage.Gone && p.crowd != nil {
		fate, err = c.inCompany(ctx, rig, p)
	} else {
		fate, err = c.settle(p, rep)
	}
	if err != nil || fate == "" {
		return err
	}
	done = true
	if err := c.log(p, fate); err != nil {
		return err
	}
	if ended {
		return c.saveNow()
	}
	if err := os.Remove(p.File); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("campaign: %w", err)
	}
	return c.saveNow()
}

// log notes in DIR/settled what became of a differing case, one line each, before its file goes.
func (c *Campaign) log(p *pendingCase, fate string) error {
	f, err := os.OpenFile(c.path("settled"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("campaign: %w", err)
	}
	_, err = fmt.Fprintf(f, "%s\t%s\t%s\t%s\n", filepath.Base(p.File), p.Label, p.Core, firstLine(fate))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("campaign: note what became of %s: %w", p.File, err)
	}
	return nil
}

// triageSlack is what the runs around shrinking may take.
const triageSlack = 2 * time.Minute

// bounded is triage that ends: a case that hangs the rig must not hang the campaign.
func (c *Campaign) bounded(ctx context.Context, rig *cells, p *pendingCase, cs *casefile.Case) triage.Report {
	ctx, cancel := context.WithTimeout(ctx, c.budget(p).Time+triageSlack)
	defer cancel()
	// What -t says is compared where a diagnosis differed; elsewhere it would only double the time.
	rig.test = p.Core == "" || strings.HasPrefix(p.Core, string(diff.KindLoad))
	rep := triage.Triage(ctx, rig, cs, c.triageOptions(p))
	p.runsBefore += rep.Runs
	return rep
}

// likeDivergence is how many times the time of one case a case gets that looks like a recorded divergence: only what is left
// at the end of shrinking tells whether it is one.
const likeDivergence = 4

// budget is what shrinking a case may take.
func (c *Campaign) budget(p *pendingCase) minimize.Budget {
	b := c.cfg.Shrink
	if c.looksLikeDivergence(p.Core) {
		b.Time *= likeDivergence
	}
	return b
}

// looksLikeDivergence tells whether a recorded divergence has that core.
func (c *Campaign) looksLikeDivergence(core string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.catalog.Entries, func(e *catalog.Entry) bool {
		return e.Status() == catalog.Divergence && strings.HasPrefix(e.Signature(), core+" [")
	})
}

func (c *Campaign) triageOptions(p *pendingCase) triage.Options {
	best := p.File + ".best"
	return triage.Options{Budget: c.budget(p), Known: c.enough, Saved: func(s *casefile.Case, runs int) {
		// Where shrinking goes on when the campaign dies; without it, it begins again.
		_ = catalog.WriteFile(best, p.withSpent(s, runs).Print())
	}}
}

// enough tells triage not to shrink: the campaign ends at the first mismatch, and this one has
// nothing in common with a recorded divergence (which only its shrunk form would tell for certain).
func (c *Campaign) enough(s triage.Signature) bool {
	if !c.cfg.StopAtFirst || c.cfg.Self {
		return false
	}
	return !c.looksLikeDivergence(s.Core)
}

// ends tells whether a triaged case ends the campaign, and ends it.
func (c *Campaign) ends(p *pendingCase, rep triage.Report) bool {
	if rep.Outcome != triage.Found || !c.enough(rep.Signature) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped == nil {
		c.pending = append([]*pendingCase{p}, c.pending...)
		c.stopAt(p, p.File)
	}
	return true
}

// stopAt ends a campaign that ends at its first mismatch; the lock is held.
func (c *Campaign) stopAt(p *pendingCase, file string) {
	c.stopped = &Stop{Seen: p.seen.Sub(c.start), Sure: c.cfg.Now().Sub(c.start), Unit: p.Label, Core: p.Core, File: file}
	c.stop()
}

// settle files what triage found. fate says in a few words what became of the case: a finding's
// number first, if it is one.
func (c *Campaign) settle(p *pendingCase, rep triage.Report) (fate string, err error) {
	_ = os.Remove(p.File + ".best") // one that is left is only where shrinking the same case would go on
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.state
	s.Shrinks++
	s.ShrinkTime += rep.Took
	switch rep.Outcome {
	case triage.Gone, triage.Unstable:
		c.cores[p.Core]--
		fate = rep.Outcome.String() + ": " + rep.Why
		return fate, c.unstableLocked(p.Case, fate, p.differed(rep)...)
	case triage.Rigged, triage.Wrong, triage.Interrupted: // the latter by the bound of one case: the campaign's own end is looked at before
		c.cores[p.Core]--
		s.RigFailed++
		s.LastRig = rep.Why
		return "rig failed: " + firstLine(rep.Why), catalog.WriteFile(c.path("rig", filepath.Base(p.File)), p.Case.Print())
	case triage.Found:
	default:
		return "", fmt.Errorf("campaign: triage of %s gave no outcome", p.File)
	}
	c.shrunk(p, rep)
	if c.cfg.Self { // nothing to file: what differs here is the rig's or the reference's own wavering
		fate = "reference against reference: " + rep.Signature.String()
		return fate, c.unstableLocked(rep.Case, fate, p.differed(rep)...)
	}
	if rep.Flaky && !rep.Shrink.Done {
		// It comes in some runs only, and could not be shrunk: nobody could do anything with
		// such a file. It is counted, shown and kept, and its core may be found again.
		c.cores[p.Core]--
		fate = "the candidate wavers: " + rep.Signature.Core
		s.Wavers++
		s.LastWavers = fate
		return fate, c.keepAside("wavers", s.Wavers, rep.Case, fate, p.differed(rep)...)
	}
	sig := rep.Signature.String()
	if e := c.catalog.Find(sig); e != nil {
		switch e.Status() {
		case catalog.Divergence:
			s.Known[e.ID]++
			c.cores[p.Core]-- // another reason with the same look must not hide behind it
			return e.ID + " divergence", nil
		case catalog.New:
			return e.ID + " known", c.metNew(e, p)
		}
		sig += " again" // it was fixed, and is back
	}
	// What shrinking has not brought to its end has directives that it does not need; where the entry speaks of those that
	// are left, fewer would be the entry's too.
	if e := c.catalog.Covering(rep.Signature.Core, rep.Signature.Directives); e != nil {
		s.Known[e.ID]++
		c.cores[p.Core]--
		return e.ID + " divergence", nil
	}
	if e := c.within(rep); e != nil { // not shrunk to the end, and likely the same
		return e.ID + " known", c.metNew(e, p)
	}
	e, err := c.catalog.Add(catalog.Fresh{Signature: sig, Slug: rep.Signature.Slug(), Title: rep.Signature.Describe(), Seed: p.Label, Flaky: rep.Flaky, Case: rep.Case})
	if err != nil {
		return "", err
	}
	if err := catalog.WriteFile(c.path("originals", e.ID+".txtar"), p.Case.Print()); err != nil {
		return "", err
	}
	if c.cfg.StopAtFirst && c.stopped == nil { // one that had to be shrunk to be told from a recorded divergence
		c.stopAt(p, e.Path)
	}
	s.FoundBy[p.from()]++
	s.Findings = append(s.Findings, Finding{ID: e.ID, File: e.Path, Signature: sig, Core: p.Core, Shrink: rep.Shrink.String()})
	return e.ID + " " + sig, nil
}

// differed is what was seen of a case's difference: in triage, and when it was found.
func (p *pendingCase) differed(rep triage.Report) []string {
	out := excerpts(rep.Result.Mismatches)
	if p.crowd != nil && len(p.crowd.seen) > 0 {
		out = append(append(out, "when it was found:"), p.crowd.seen...)
	}
	return out
}

// metNew counts a finding that is new in the catalogue already. Where a kill came between filing it
// and writing the books, what was left undone is done now: its original is kept, and it is this
// campaign's own.
func (c *Campaign) metNew(e *catalog.Entry, p *pendingCase) error {
	s := &c.state
	if e.Get("seed") == p.Label && !slices.ContainsFunc(s.Findings, func(f Finding) bool { return f.ID == e.ID }) {
		s.Findings = append(s.Findings, Finding{ID: e.ID, File: e.Path, Signature: e.Signature(), Core: p.Core})
		return catalog.WriteFile(c.path("originals", e.ID+".txtar"), p.Case.Print())
	}
	s.Known[e.ID]++
	s.count("known-new")
	return nil
}

// within is the new finding that a case which was not shrunk to the end is
// likely to be: one with the same core and no directive that the case has not.
// Divergences and fixed findings are only met by their whole signature.
func (c *Campaign) within(rep triage.Report) *catalog.Entry {
	if rep.Shrink.Done {
		return nil
	}
	for _, e := range c.catalog.Entries {
		core, list, ok := strings.Cut(strings.TrimSuffix(e.Signature(), "]"), " [")
		if e.Status() != catalog.New || !ok || core != rep.Signature.Core {
			continue
		}
		all := true
		for _, d := range strings.Fields(list) {
			all = all && slices.Contains(rep.Signature.Directives, d)
		}
		if all {
			return e
		}
	}
	return nil
}

// unstable keeps a case on which the reference wavers.
func (c *Campaign) unstable(cs *casefile.Case, why string, seen ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.unstableLocked(cs, why, seen...); err != nil {
		c.failLocked(err)
	}
}

// unstableLocked keeps a case without a verdict, with what differed in it.
func (c *Campaign) unstableLocked(cs *casefile.Case, why string, seen ...string) error {
	c.state.Unstable++
	c.state.LastUnstable = why
	return c.keepAside("unstable", c.state.Unstable, cs, why, seen...)
}

// keepAside keeps a case that is no finding, with what differed in it.
func (c *Campaign) keepAside(folder string, n int, cs *casefile.Case, why string, seen ...string) error {
	if n > 100 { // enough to look at
		return nil
	}
	k := cs.Clone()
	k.Prose = append(append(k.Prose, why), seen...)
	return catalog.WriteFile(c.path(folder, fmt.Sprintf("%04d.txtar", n)), k.Print())
}
