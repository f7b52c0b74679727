// Package campaign is the fuzz loop: it makes batches, runs them on pairs of
// cells, saves what differs before it looks closer, files findings, steers by
// what it saw, and can be killed at any moment and resumed.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"nginxoracle/fuzz/gen"
	"nginxoracle/fuzz/sched"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/minimize"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
)

// Runner runs a case in one cell; run.RunWith but in tests.
type Runner func(ctx context.Context, cell engine.Cell, c *casefile.Case, opt run.Options) (*observe.Observation, error)

// Config is what a campaign is started with.
type Config struct {
	Dir        string        // state, pending cases, seeds
	Corpus     string        // findings
	Targets    Targets       // zero: not said, and not compared with the state's
	Seed       uint64        // taken from the state when Dir has one
	Duration   time.Duration // 0: no bound
	Batches    uint64        // 0: no bound
	Jobs       int           // pairs of cells
	Units      int           // server groups in a batch
	Wrong      int           // wrong configurations beside each batch
	Feedback   bool
	Measure    bool   // count what the signals show, Feedback or not; for comparing the two
	GuideEvery uint64 // period of the instruments in batches; 0: guideEvery
	NoTriage   bool   // only count what differs
	// StopAtFirst ends the campaign at the first mismatch that comes again and is no recorded
	// divergence; it is neither shrunk nor filed, and stays among the pending cases.
	StopAtFirst bool
	Self        bool // the candidate is the reference too: every mismatch is the rig's or the reference's
	Shrink      minimize.Budget
	Drain       time.Duration // how long to go on with pending cases after the end
	Grace       time.Duration // how long jobs may take beyond that; 0: grace
	MemoryMost  int64         // resident bytes of this process that end the campaign; 0: no bound

	OpenRef, OpenCand func(ctx context.Context) (engine.Cell, error)
	OpenCover         func(ctx context.Context) (engine.Cell, error) // the candidate's coverage build; nil: there is none
	Uncovered         string                                         // and why
	Run               Runner
	Compare           func(ref, cand *observe.Observation) diff.Result
	Progress          func(Snapshot) // called about once a second
	Now               func() time.Time
}

// sameCore is how many findings of one core a campaign files before it only
// counts further ones: a young candidate fails in a hundred configurations for
// one reason, and shrinking each would eat the campaign.
const sameCore = 3

// Campaign is one run of the loop.
type Campaign struct {
	cfg         Config
	start       time.Time
	ended       time.Time  // when no new batch was started any more
	mu          sync.Mutex // guards all below
	state       State
	pool        sched.Pool
	seen        map[uint64]bool // novelty: paired behaviour
	blocks      map[block]bool  // novelty: blocks of the candidate that ran
	fresh       yield           // of units that no seed is behind
	changed     yield           // of changed seeds
	blaming     time.Duration   // spent finding out which unit ran a block
	pending     []*pendingCase
	cores       map[string]int // findings and pending cases of this campaign, by core
	catalog     *catalog.Catalog
	taken       int       // batches in a row of which the candidate has refused nothing
	saved       time.Time // when a batch saved the state last
	stop        func()    // ends the campaign
	interrupted bool      // by who called Run
	stopped     *Stop     // by a confirmed mismatch, see Config.StopAtFirst
	cut         bool      // jobs were told to end since they took too long
	jobs        []job
	quiet       sync.RWMutex  // held for writing by a job that wants no other to run
	triage      time.Duration // spent shrinking
	memory      [2]int64      // resident bytes at start, now
	errs        []error
	locked      *os.File // holds Dir for this process
}

// New prepares a campaign: it takes Dir for this process (an error when another campaign runs there) and
// reads the state that an earlier one left.
func New(cfg Config) (*Campaign, error) {
	if cfg.Run == nil {
		cfg.Run = run.RunWith
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Compare == nil || cfg.OpenRef == nil || cfg.OpenCand == nil {
		return nil, errors.New("campaign: want Compare, OpenRef and OpenCand")
	}
	if cfg.Jobs < 1 || cfg.Units < 1 || cfg.Units > gen.MaxUnits {
		return nil, fmt.Errorf("campaign: want at least one job and 1 to %d units, got %d and %d", gen.MaxUnits, cfg.Jobs, cfg.Units)
	}
	c := &Campaign{cfg: cfg, seen: map[uint64]bool{}, blocks: map[block]bool{}, cores: map[string]int{}, jobs: make([]job, cfg.Jobs)}
	if err := os.MkdirAll(c.path(), 0o755); err != nil {
		return nil, fmt.Errorf("campaign: %w", err)
	}
	var err error
	if c.locked, err = lock(c.path("lock")); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.locked.Close() // nothing was written there: the lock goes with it
		}
	}()
	for _, dir := range []string{cfg.Corpus, c.path(), c.path("pending"), c.path("seeds"), c.path("originals"), c.path("unstable"), c.path("wavers"), c.path("company"), c.path("rig")} {
		if err = catalog.Sweep(dir); err != nil {
			return nil, fmt.Errorf("campaign: clean up after a kill: %w", err)
		}
	}
	if err = c.load(); err != nil {
		return nil, err
	}
	c.state.Uncovered = cfg.Uncovered
	if c.catalog, err = catalog.Open(cfg.Corpus); err != nil {
		return nil, err
	}
	return c, nil
}

// Run runs the campaign to its end (time, batches, or ctx) and returns its
// summary. The error is set when no verdict is possible. It lets go of Dir at its end.
func (c *Campaign) Run(ctx context.Context) (Summary, error) {
	defer c.locked.Close() // nothing was written there: the lock goes with it
	c.start = c.cfg.Now()
	c.memory[0] = resident()
	outside := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.stop = cancel
	stopProgress := c.progressLoop()
	var wg sync.WaitGroup
	for i := range c.cfg.Jobs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := c.work(ctx, i); err != nil && ctx.Err() == nil {
				c.mu.Lock()
				c.failLocked(err)
				c.mu.Unlock()
				cancel() // a rig that cannot be opened again will not do better in another job
			}
		}()
	}
	finished := make(chan struct{})
	go func() {
		wg.Wait()
		close(finished)
	}()
	c.await(ctx, finished)
	stopProgress()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory[1] = resident()
	c.interrupted = outside.Err() != nil
	sum := c.summary()
	c.state.Told = c.state.toll()
	if err := c.save(); err != nil {
		c.failLocked(err)
		c.state.Told = sum.Told
		sum = c.summary()
	}
	return sum, errors.Join(c.errs...)
}

// failLocked remembers why there is no verdict. One full disk fails everything that writes: of errors of
// the system with one number only the first is kept.
func (c *Campaign) failLocked(err error) {
	var errno syscall.Errno
	if errors.As(err, &errno) && slices.ContainsFunc(c.errs, func(e error) bool { return errors.Is(e, errno) }) {
		return
	}
	c.errs = append(c.errs, err)
}

// over tells whether new batches are still to be started.
func (c *Campaign) over() bool {
	if c.cfg.Duration > 0 && c.cfg.Now().Sub(c.start) >= c.cfg.Duration {
		return true
	}
	return c.cfg.Batches > 0 && c.state.Next-c.state.First >= c.cfg.Batches
}

// task is what a job does next.
type task struct {
	batch   uint64
	pending *pendingCase
	end     bool
}

// next chooses: cases that differed wait until shrinking has had its share of
// the time, and go first once the campaign is over.
func (c *Campaign) next() task {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := c.cfg.Now().Sub(c.start)
	over := c.over()
	if over && c.ended.IsZero() {
		c.ended = c.cfg.Now()
	}
	if len(c.pending) > 0 && !c.cfg.NoTriage {
		fair := c.triage < elapsed*time.Duration(c.cfg.Jobs)*4/10
		drain := over && c.cfg.Now().Sub(c.ended) < c.cfg.Drain
		if (fair || c.cfg.StopAtFirst) && !over || drain {
			p := c.pending[0]
			c.pending = c.pending[1:]
			return task{pending: p}
		}
	}
	if over {
		return task{end: true}
	}
	t := task{batch: c.state.Next}
	c.state.Next++
	return t
}

// generator makes what the candidate is known to support.
func (c *Campaign) generator() (*gen.Generator, error) {
	return gen.New(gen.Options{Units: c.cfg.Units, Known: c.knows()})
}

// work is one job: one pair of cells, used until the end.
func (c *Campaign) work(ctx context.Context, job int) error {
	rig := &cells{cfg: &c.cfg, note: c.rigFailed, good: func() { c.count(func(s *State) { s.MadeGood++ }) }}
	defer rig.close()
	if err := rig.open(ctx); err != nil {
		return err
	}
	if job == 0 {
		c.askDirectives(ctx, rig)
	}
	var g *gen.Generator
	var known int
	for ctx.Err() == nil {
		c.begin(job, rig, "")
		t := c.next()
		if t.end {
			return nil
		}
		if t.pending != nil {
			if err := c.triageInTurn(ctx, rig, job, t.pending); err != nil {
				return err
			}
			continue
		}
		if n := c.learned(); g == nil || n != known {
			var err error
			if g, err = c.generator(); err != nil {
				return err
			}
			known = n
		}
		c.quiet.RLock()
		c.begin(job, rig, fmt.Sprintf("batch-%d", t.batch))
		err := c.runBatch(ctx, rig, g, t.batch)
		c.quiet.RUnlock()
		if err != nil {
			return err
		}
		if err := c.saveSometimes(); err != nil {
			return err
		}
		c.mu.Lock()
		cut := c.cut
		c.mu.Unlock()
		if cut {
			c.rigFailed(nil, fmt.Errorf("batch %d was cut short: it did not end in time", t.batch))
		}
	}
	return nil
}

// triageInTurn triages a case. One with short timers has the machine to itself: what it shows while other jobs keep a
// processor from it would be theirs. That a process dies is no timer's doing.
func (c *Campaign) triageInTurn(ctx context.Context, rig *cells, job int, p *pendingCase) error {
	dies := strings.HasPrefix(p.Core, string(diff.KindProcess)+":")
	if short := timed(p.Case); short != nil && !dies && (short(0) || p.crowd != nil && p.crowd.slot == nobody) {
		c.quiet.Lock()
		defer c.quiet.Unlock()
	} else {
		c.quiet.RLock()
		defer c.quiet.RUnlock()
	}
	c.begin(job, rig, "triage-"+strings.TrimSuffix(filepath.Base(p.File), ".txtar"))
	return c.triageCase(ctx, rig, p)
}

func (c *Campaign) path(parts ...string) string {
	return filepath.Join(append([]string{c.cfg.Dir}, parts...)...)
}

// rigFailed counts a run that gave no verdict, and keeps its case.
func (c *Campaign) rigFailed(cs *casefile.Case, err error) {
	c.mu.Lock()
	c.state.RigFailed++
	n := c.state.RigFailed
	c.state.LastRig = err.Error()
	c.mu.Unlock()
	if cs != nil && n <= 50 {
		text := append([]byte("# rig failed: "+firstLine(err.Error())+"\n"), cs.Print()...)
		_ = catalog.WriteFile(c.path("rig", fmt.Sprintf("%04d.txtar", n)), text) // the count stands even when the disk is full
	}
}

func firstLine(s string) string {
	for i := range len(s) {
		if s[i] == '\n' {
			return s[:i]
		}
	}
	return s
}
