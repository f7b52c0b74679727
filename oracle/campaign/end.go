package campaign

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"nginxoracle/oracle/catalog"
)

// grace is what a campaign whose time is over grants: to the runs around shrinking of the case that
// was begun with last, and to jobs that were told to end.
const grace = 30 * time.Second

// watchEvery is how often the jobs are looked at from outside.
const watchEvery = 100 * time.Millisecond

// A campaign ends, whatever its jobs do. Once no new batch is started, cases wait to be triaged
// for Drain; the last one begun with then has the time of one shrinking, and the grace. Then, or when
// the process has become too large, all jobs are told to end: what they worked on goes back to the
// pending cases. A job that does not even do that is the oracle's own fault: it is left behind, what
// every goroutine did is written to DIR/stuck, and the campaign ends without a verdict.
func (c *Campaign) await(ctx context.Context, finished <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	extra := cmp.Or(c.cfg.Grace, grace)
	var told time.Time
	for {
		select {
		case <-finished:
			return
		case <-tick.C:
		}
		now := c.cfg.Now()
		c.mu.Lock()
		if c.ended.IsZero() && c.over() {
			c.ended = now
		}
		late := !c.ended.IsZero() && now.Sub(c.ended) > c.cfg.Drain+c.cfg.Shrink.Time+extra
		large := c.cfg.MemoryMost > 0 && resident() > c.cfg.MemoryMost
		if told.IsZero() && large {
			c.stuck(fmt.Sprintf("the oracle uses more than %d MB", c.cfg.MemoryMost>>20))
		}
		c.cut = c.cut || late
		if late || large {
			c.stop()
		}
		if told.IsZero() && ctx.Err() != nil {
			told = now
		}
		if !told.IsZero() && now.Sub(told) > extra {
			c.stuck("jobs do not end")
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

// stacksMost bounds what is written of the goroutines' stacks.
const stacksMost = 4 << 20

// stuck notes that the oracle itself is at fault, and what it did; the lock is held.
func (c *Campaign) stuck(why string) {
	buf := make([]byte, stacksMost)
	buf = buf[:runtime.Stack(buf, true)]
	err := fmt.Errorf("campaign: %s (%s): see %s", why, strings.Join(c.doing(), ", "), c.path("stuck"))
	if werr := catalog.WriteFile(c.path("stuck"), append([]byte(err.Error()+"\n\n"), buf...)); werr != nil {
		err = fmt.Errorf("%w: %w", err, werr)
	}
	c.errs = append(c.errs, err)
}

// giveBack puts a case that triage was not done with back to those that wait.
func (c *Campaign) giveBack(p *pendingCase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case slices.Contains(c.pending, p):
	case c.stopped != nil: // the first is the one that stopped the campaign
		c.pending = append(c.pending, p)
	default:
		c.pending = append([]*pendingCase{p}, c.pending...)
	}
}

// job is what one pair of cells does now.
type job struct {
	what  string // "" between two tasks
	since time.Time
	runs  *atomic.Int64 // of cases on a pair of cells, since
}

// begin notes what a job does now.
func (c *Campaign) begin(n int, rig *cells, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rig.runs.Store(0)
	c.jobs[n] = job{what: what, since: c.cfg.Now(), runs: &rig.runs}
}

// doing says what the jobs do, for how long, and in how many runs so far; the lock is held.
func (c *Campaign) doing() (out []string) {
	for _, j := range c.jobs {
		if j.what != "" {
			out = append(out, fmt.Sprintf("%s/%s/%druns", j.what, c.cfg.Now().Sub(j.since).Round(time.Second), j.runs.Load()))
		}
	}
	return out
}
