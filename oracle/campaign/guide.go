package campaign

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
)

// guideEvery is the period of the two instruments: one batch of eight runs on the candidate's
// coverage build instead of the candidate, and one of eight writes the reference's debug log.
// Their verdicts count like any other's. On a shared 2-core machine the coverage build costs a
// batch about a third more time, and a debug log about as much.
const guideEvery = 8

// instruments says what looks at a batch beside the comparison.
type instruments struct{ cover, debug bool }

func (c *Campaign) instruments(n uint64, rig *cells) instruments {
	every := c.cfg.GuideEvery
	if every == 0 {
		every = guideEvery
	}
	if !c.cfg.Feedback && !c.cfg.Measure {
		return instruments{}
	}
	return instruments{cover: n%every == 0 && c.cfg.OpenCover != nil, debug: n%every == every/2}
}

// batchPair runs a batch on both sides, with its instruments.
func (c *Campaign) batchPair(ctx context.Context, rig *cells, cs *casefile.Case, n uint64) (ref, cand *observe.Observation, err error) {
	in := c.instruments(n, rig)
	opt := lanes(cs, run.Options{Test: n%testEvery == 0, Aside: in.cover || in.debug})
	refOpt := opt
	if in.debug {
		refOpt.Globals = debugGlobals
	}
	rig.useCover = in.cover
	defer func() { rig.useCover = false }()
	return rig.pairWith(ctx, cs, refOpt, opt)
}

// guide learns from a batch's instruments.
func (c *Campaign) guide(ctx context.Context, rig *cells, b *gen.Batch, ref, cand *observe.Observation, n uint64) error {
	in := c.instruments(n, rig)
	if in.debug {
		log := debugLogOf(ref.Aside)
		if log == nil {
			c.blind("the reference wrote no debug log")
		}
		for slot, shapes := range debugShapes(log, ref.Clients, len(b.Units)) {
			count, hash := c.unseen(sigDebug, shapes)
			if count > 0 && c.cfg.Feedback {
				c.seed(b.Units[slot], b.Head, sigDebug, hash, n)
			}
		}
	}
	if !in.cover {
		return nil
	}
	ran, err := blocks(cand.Aside)
	if err != nil {
		c.blind(err.Error())
		return nil
	}
	want := c.newBlocks(ran)
	if len(want) > 0 {
		if err := c.keepCoverage(cand.Aside); err != nil {
			return err
		}
	}
	if len(want) == 0 || len(want) > warmUp || !c.cfg.Feedback || !c.mayBlame() {
		return nil
	}
	h := &hunt{c: c, rig: rig, b: b, n: n, left: blameRuns}
	all := make([]int, len(b.Units))
	for i := range all {
		all[i] = i
	}
	begin := c.cfg.Now()
	err = h.blame(ctx, all, want)
	took := c.cfg.Now().Sub(begin)
	c.count(func(s *State) { s.Spent["blame"] += took; c.blaming += took })
	return err
}

// unseen counts the shapes that are new, and gives the first one's hash.
func (c *Campaign) unseen(signal string, shapes []string) (n int, hash uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range shapes {
		h := hashOf(signal, s)
		if c.seen[h] {
			continue
		}
		c.seen[h] = true
		c.state.Signals[signal]++
		if n++; n == 1 {
			hash = h
		}
	}
	return n, hash
}

// newBlocks notes blocks, and gives those that never ran before.
func (c *Campaign) newBlocks(ran []block) map[block]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	want := map[block]bool{}
	for _, b := range ran {
		if !c.blocks[b] {
			c.blocks[b] = true
			want[b] = true
		}
	}
	c.state.Signals[sigCoverage] += len(want)
	return want
}

// keepCoverage keeps what a coverage build left where a batch ran blocks that none had run before: a folder of the form that
// `go tool covdata` reads, which also knows the blocks that no batch has run.
func (c *Campaign) keepCoverage(aside []engine.File) error {
	for _, f := range aside {
		if name := path.Base(f.Path); strings.HasPrefix(name, "covmeta.") || strings.HasPrefix(f.Path, counterFile) {
			if err := catalog.WriteFile(c.path("coverage", name), f.Data); err != nil {
				return fmt.Errorf("keep the coverage: %w", err)
			}
		}
	}
	return nil
}

// blind counts a batch whose instrument showed nothing.
func (c *Campaign) blind(why string) {
	c.count(func(s *State) { s.Blind++; s.LastBlind = why })
}

// warmUp is how many new blocks in one batch are no unit's merit: a campaign begins with thousands.
const warmUp = 150

// blameShare is the most that blaming may take of a campaign's time, in percent.
const blameShare = 5

func (c *Campaign) mayBlame() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blaming*100 <= c.cfg.Now().Sub(c.start)*time.Duration(c.cfg.Jobs)*blameShare
}

// blameRuns bounds the runs of the coverage build that one batch may take to find out which of its
// units ran the new blocks. One unit among 48 is found in six runs of 24, 12, 6, 3, 2 and 1 units: no
// more than another batch on one side.
const blameRuns = 12

// hunt divides a batch until the units that ran new blocks are known.
type hunt struct {
	c    *Campaign
	rig  *cells
	b    *gen.Batch
	n    uint64
	left int
}

// blame makes seeds of those units of slots that ran the blocks of want. Only the first half is run;
// what it does not run is the other's. A block that runs by chance is some unit's in the end,
// which costs a place in the pool and no more.
func (h *hunt) blame(ctx context.Context, slots []int, want map[block]bool) error {
	if len(slots) == 1 {
		h.c.seed(h.b.Units[slots[0]], h.b.Head, sigCoverage, hashOf(sigCoverage, strconv.FormatUint(h.n, 10), strconv.Itoa(slots[0])), h.n)
		return nil
	}
	if h.left == 0 || ctx.Err() != nil {
		return nil
	}
	h.left--
	half := slots[:len(slots)/2]
	cs := h.b.Only(half...).Case()
	cs.Name = fmt.Sprintf("batch %d, %d units for coverage", h.n, len(half))
	o, err := h.rig.cover(ctx, cs)
	if errors.Is(err, errBroken) {
		return err
	}
	if err != nil {
		return nil // counted and kept by the rig
	}
	h.c.count(func(s *State) { s.Boots++ })
	ran, err := blocks(o.Aside)
	if err != nil {
		h.c.blind(err.Error())
		return nil
	}
	mine, others := map[block]bool{}, map[block]bool{}
	for b := range want {
		if slices.Contains(ran, b) {
			mine[b] = true
		} else {
			others[b] = true
		}
	}
	if len(mine) > 0 {
		if err := h.blame(ctx, half, mine); err != nil {
			return err
		}
	}
	if len(others) > 0 {
		return h.blame(ctx, slots[len(slots)/2:], others)
	}
	return nil
}
