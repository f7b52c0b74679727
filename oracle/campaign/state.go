package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/minimize/conftree"
)

// State is what a campaign must not forget. It is written whole, to a temporary
// name that is synced and renamed.
type State struct {
	Targets        Targets
	Seed           uint64
	First          uint64 // batch number this run began with
	Next           uint64 // batch number that comes next
	Batches        int    // compared
	Cases          int
	Units          int // server groups compared
	Wrong          int // wrong configurations compared
	Exchanges      int // on each side
	Boots          int
	Timeouts       int // last-resort timeouts
	Dropped        int // units that the reference does not load
	Crashers       int // units that make a worker crash, of batches that were then played without them
	Spoiled        int // batches given up since no unit could be blamed
	Refused        int // batches that the candidate refused whole
	Differed       int // batches that differed
	Mismatches     int // differing units
	Repeats        int // of them, only counted
	Unstable       int
	Wavers         int // units that differ in some runs only, while the reference agrees with itself
	Company        int // units that differed in their batch and agree alone
	CompanyAgain   int // of them, those whose batch differs again
	Late           int // units with a short timer that differed while the machine held them up; they were played again
	RigFailed      int
	MadeGood       int  // of them, those that new cells gave a verdict
	Told           toll // what earlier runs of the campaign have counted and ended with
	Shrinks        int
	ShrinkTime     time.Duration
	Shrunk         []Shrunk // the latest shrunkMost of them
	SelfChecks     int
	AloneExchanges int
	AloneTook      time.Duration
	Spent          map[string]time.Duration // by stage, over all jobs
	Elapsed        time.Duration            // over all runs of the campaign
	Signals        map[string]int           // new things seen, by signal
	SeedsBy        map[string]int           // units kept as seeds, by signal
	FromSeed       map[string]int           // differing units, by the signal of the seed they were made of; "fresh" ones were not
	FoundBy        map[string]int           // findings, in the same way
	Blind          int                      // batches whose instrument showed nothing
	LastBlind      string
	Uncovered      string // why no coverage is read; "" when it is
	Cores          map[string]int
	Masks          map[string]int
	Known          map[string]int // catalogue entries met
	Refuses        []string       // directives that the candidate refuses
	Supported      []string       // directives that the candidate says it knows; empty when it does not say
	Findings       []Finding
	LastSpoiled    string
	LastUnstable   string
	LastWavers     string
	LastCompany    string
	LastRig        string
}

// Targets are what a campaign compares; one that goes on compares the same.
type Targets struct {
	Reference, Candidate string // as a person named them
	Self                 bool   // the reference with itself
}

func (t Targets) String() string {
	if t.Self {
		return t.Reference + " with itself"
	}
	return t.Reference + " with " + t.Candidate
}

// flags are those that ask for the targets.
func (t Targets) flags() string {
	s := "--reference " + t.Reference
	if t.Self {
		return s + " --reference-vs-reference"
	}
	return s + " --candidate " + t.Candidate
}

// toll is what a run's exit code is about. A run that was killed has told nobody: what it counted counts for the next.
type toll struct {
	Compared, Unstable, Wavers, Company, CompanyAgain, RigFailed, MadeGood, Settled, KnownNew int
}

func (s *State) toll() toll {
	return toll{Compared: s.Batches + s.Wrong, Unstable: s.Unstable, Wavers: s.Wavers, Company: s.Company, CompanyAgain: s.CompanyAgain,
		RigFailed: s.RigFailed, MadeGood: s.MadeGood, Settled: s.Shrinks, KnownNew: s.Signals["known-new"]}
}

// since is what was counted after old.
func (t toll) since(old toll) toll {
	return toll{t.Compared - old.Compared, t.Unstable - old.Unstable, t.Wavers - old.Wavers, t.Company - old.Company, t.CompanyAgain - old.CompanyAgain,
		t.RigFailed - old.RigFailed, t.MadeGood - old.MadeGood, t.Settled - old.Settled, t.KnownNew - old.KnownNew}
}

// Finding is one finding of this campaign.
type Finding struct {
	ID, File, Signature, Core, Shrink string
}

func (s *State) count(signal string) { s.Signals[signal]++ }

func (s *State) init() {
	if s.Spent == nil {
		s.Spent = map[string]time.Duration{}
	}
	for _, m := range []*map[string]int{&s.Signals, &s.SeedsBy, &s.FromSeed, &s.FoundBy, &s.Cores, &s.Masks, &s.Known} {
		if *m == nil {
			*m = map[string]int{}
		}
	}
}

// count changes counters under the lock.
func (c *Campaign) count(f func(*State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.state)
}

func (c *Campaign) mask(r diff.Result) {
	c.count(func(s *State) {
		for k, n := range r.Masks {
			s.Masks[k] += n
		}
	})
}

func (c *Campaign) load() error {
	if err := os.MkdirAll(c.path("seeds"), 0o755); err != nil {
		return fmt.Errorf("campaign: %w", err)
	}
	c.state.Seed = c.cfg.Seed
	text, err := os.ReadFile(c.path("state.json"))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("campaign: %w", err)
	default:
		if err := json.Unmarshal(text, &c.state); err != nil {
			return fmt.Errorf("campaign: %s: %w (it is no campaign's state, or a part of one: remove it to begin anew, or give another --dir)", c.path("state.json"), err)
		}
		if had := c.state.Targets; had != (Targets{}) && c.cfg.Targets != (Targets{}) && had != c.cfg.Targets {
			return fmt.Errorf("campaign: %s compares %s, not %s: give another --dir, or go on with %s", c.cfg.Dir, had, c.cfg.Targets, had.flags())
		}
		if c.cfg.Seed != 0 && c.cfg.Seed != c.state.Seed {
			return fmt.Errorf("campaign: %s is of seed %d, not %d: give another --dir", c.cfg.Dir, c.state.Seed, c.cfg.Seed)
		}
	}
	if c.cfg.Targets != (Targets{}) {
		c.state.Targets = c.cfg.Targets
	}
	c.state.init()
	c.state.First = c.state.Next
	for _, f := range c.state.Findings {
		c.cores[f.Core]++
	}
	if err := c.loadPending(); err != nil {
		return err
	}
	return c.loadSeeds()
}

// save writes the state; the lock is held.
func (c *Campaign) save() error {
	s := c.state
	s.Elapsed += c.cfg.Now().Sub(c.start)
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return catalog.WriteFile(c.path("state.json"), append(text, '\n'))
}

// saveEvery is how often batches save the state: its sync waits for the disk, and what a kill
// loses is run again from the same numbers.
const saveEvery = 2 * time.Second

// saveSometimes writes the state unless that was done a moment ago.
func (c *Campaign) saveSometimes() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.cfg.Now(); now.Sub(c.saved) >= saveEvery {
		c.saved = now
		return c.save()
	}
	return nil
}

// saveNow writes the state.
func (c *Campaign) saveNow() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.save()
}

// loadSeeds reads the seeds that earlier runs kept.
func (c *Campaign) loadSeeds() error {
	if !c.cfg.Feedback {
		return nil
	}
	list, err := os.ReadDir(c.path("seeds"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("campaign: %w", err)
	}
	for _, f := range list {
		hash, err := strconv.ParseUint(strings.TrimSuffix(f.Name(), ".txtar"), 16, 64)
		if err != nil {
			continue // a temporary name that a kill left behind
		}
		cs, err := casefile.Load(c.path("seeds", f.Name()))
		if err != nil { // half of it, after a power cut: it is found again
			if err := os.Remove(c.path("seeds", f.Name())); err != nil {
				return fmt.Errorf("campaign: %w", err)
			}
			continue
		}
		b, err := gen.Split(cs)
		if err != nil {
			return fmt.Errorf("campaign: %s: %w", f.Name(), err)
		}
		c.seen[hash] = true
		c.pool.Add(b.Units[0], "resumed", 1, 0)
	}
	return nil
}

// learned grows with what is known of the candidate's directives.
func (c *Campaign) learned() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.state.Refuses) + len(c.state.Supported)
}

// refuse remembers what the candidate does not support: a directive, or one with its arguments.
func (c *Campaign) refuse(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = 0
	if !slices.Contains(c.state.Refuses, what) {
		c.state.Refuses = append(c.state.Refuses, what)
	}
}

// knows gives what tells whether the generator may use a directive, alone or with its arguments, as far as it is known
// now. It takes no lock: it is asked while units are mutated, which is done under one.
func (c *Campaign) knows() func(what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	refuses, supported := map[string]bool{}, map[string]bool{}
	for _, s := range c.state.Refuses {
		refuses[s] = true
	}
	for _, s := range c.state.Supported {
		supported[s] = true
	}
	return func(what string) bool {
		name, _, _ := strings.Cut(what, " ")
		return !refuses[what] && !refuses[name] && (len(supported) == 0 || supported[name])
	}
}

func uses(u *gen.Unit, what string) bool {
	found := false
	conftree.Walk(u.Body, "http", func(n *conftree.Node, parent string) bool {
		found = found || is(n, what) && parent != "types" && parent != "map"
		return !found
	})
	return found
}

// is tells whether a directive has that name, or that name and those arguments.
func is(n *conftree.Node, what string) bool {
	return n.Name() == what || strings.Contains(what, " ") && strings.Join(n.Words, " ") == what
}
