package campaign

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"sort"
	"strings"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/triage"
)

// Signals that make a unit a seed. The strongest is asymmetry: the two sides
// behaved in ways whose pairing is new, and that are not the same way.
const (
	sigAsymmetry = "asymmetry" // a new pair of unlike behaviours, masked or catalogued though the difference may be
	sigResponse  = "response"  // new status and header set, with how the connection ended
	sigUpstream  = "upstream"  // new shape of what reached an origin
	sigLog       = "log"       // new shape of an error-log message
	sigLoad      = "load"      // new shape of a diagnosis
	sigCoverage  = "coverage"  // a block of the candidate's source that never ran before
	sigDebug     = "debug"     // new shape of a message in the reference's debug log
)

// worth says how often a seed is picked beside others, by its signal. Nearly every unit that is
// generated afresh has a response that looks new; a block of source or a message that never came
// before is rarer, and asymmetry rarest.
var worth = map[string]int{sigAsymmetry: 8, sigCoverage: 6, sigDebug: 4, sigLog: 3, sigUpstream: 2, sigResponse: 1}

// behaviour is one thing that a side did, without the accidents of the case.
type behaviour struct{ signal, shape string }

// learn keeps the units of a batch that showed something new.
func (c *Campaign) learn(cs *casefile.Case, b *gen.Batch, ref, cand *observe.Observation, n uint64, differ []int) {
	if !c.cfg.Feedback && !c.cfg.Measure {
		return
	}
	x, y := behaviours(ref, len(b.Units)), behaviours(cand, len(b.Units))
	type gain struct {
		slot   int
		signal string
		hash   uint64
		worth  int
	}
	var gains []gain
	plain := 0
	for slot, u := range b.Units {
		// A unit that differs is triage's. Rewarded before it is confirmed, what only the machine's lateness
		// made unlike would be bred, and its kind come to fill the batches.
		if slices.Contains(differ, slot) {
			continue
		}
		signal, hash, worth := c.novel(x[slot], y[slot])
		c.gained(u, worth)
		if worth == 0 || signal == sigResponse && plain == plainSeeds {
			continue
		}
		if signal == sigResponse {
			plain++
		}
		gains = append(gains, gain{slot, signal, hash, worth})
	}
	if !c.cfg.Feedback {
		return
	}
	slices.SortStableFunc(gains, func(a, b gain) int { return b.worth - a.worth })
	for _, g := range gains[:min(len(gains), mostSeeds)] {
		c.seed(b.Units[g.slot], b.Head, g.signal, g.hash, n)
	}
}

// How many units of one batch are kept: those that brought most, and few for a response alone, which
// every second fresh unit has. Each seed is a file to write, and the pool is small.
const (
	mostSeeds  = 10
	plainSeeds = 4
)

// novel tells what is new in a unit's pairing: the signal that is worth most, its hash, and what
// all of them are worth together, 0 when nothing is.
func (c *Campaign) novel(ref, cand []behaviour) (best string, kept uint64, gain int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	note := func(signal string, hash uint64) {
		if c.seen[hash] {
			return
		}
		c.seen[hash] = true
		c.state.Signals[signal]++
		gain += max(worth[signal], 1)
		if best == "" || worth[signal] > worth[best] {
			best, kept = signal, hash
		}
	}
	for i := range max(len(ref), len(cand)) {
		var a, b behaviour
		if i < len(ref) {
			a = ref[i]
		}
		if i < len(cand) {
			b = cand[i]
		}
		if a != b {
			note(sigAsymmetry, hashOf(a.signal, a.shape, b.signal, b.shape))
			continue
		}
		note(a.signal, hashOf(a.signal, a.shape))
	}
	return best, kept, gain
}

// yield is what units of one making brought of late.
type yield struct{ units, gain float64 }

func (y yield) rate() float64 { return (y.gain + 1) / (y.units + 1) }

// forget is what is left of a yield after each batch: some ten batches count.
const forget = 0.9

// gained notes what a unit brought that was new.
func (c *Campaign) gained(u *gen.Unit, gain int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	y := &c.fresh
	if u.From != "" {
		y = &c.changed
	}
	y.units++
	y.gain += float64(gain)
}

// Bounds of the share of a batch's units that are changed seeds, in percent. Between them it is
// what the two ways of making units brought of late that tells: early, nearly everything fresh is
// new; later, only what goes on from where something was found.
const (
	leastChanged = 15
	mostChanged  = 80
)

// changedShare is how many of 100 units of the next batch are changed seeds; the lock is held.
func (c *Campaign) changedShare() int {
	c.fresh.units, c.fresh.gain = c.fresh.units*forget, c.fresh.gain*forget
	c.changed.units, c.changed.gain = c.changed.units*forget, c.changed.gain*forget
	share := int(100 * c.changed.rate() / (c.changed.rate() + c.fresh.rate()))
	return min(max(share, leastChanged), mostChanged)
}

func hashOf(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p)) // a hash takes everything: no error to look at
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// seed keeps a unit, in memory and on disk.
func (c *Campaign) seed(u *gen.Unit, head gen.Head, signal string, hash, n uint64) {
	text := (&gen.Batch{Head: head, Units: []*gen.Unit{u}}).Case().Print()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pool.Add(u, signal, worth[signal], n)
	c.state.SeedsBy[signal]++
	// Not synced: a campaign keeps hundreds in its first seconds, and a seed that a power cut loses is
	// found again. The rename keeps a kill from leaving half a file.
	name := c.path("seeds", fmt.Sprintf("%016x.txtar", hash))
	err := os.WriteFile(name+".part", text, 0o644)
	if err == nil {
		err = os.Rename(name+".part", name)
	}
	if err != nil {
		c.failLocked(fmt.Errorf("campaign: keep a seed: %w", err))
	}
}

// learnWrong only counts: a wrong configuration is too small to be a seed.
func (c *Campaign) learnWrong(ref, cand *observe.Observation) {
	if !c.cfg.Feedback && !c.cfg.Measure {
		return
	}
	c.novel([]behaviour{{sigLoad, triage.Shape(ref.Test.Text)}}, []behaviour{{sigLoad, triage.Shape(cand.Test.Text)}})
}

// behaviours lists what a side did, by slot, in a fixed order.
func behaviours(o *observe.Observation, slots int) [][]behaviour {
	out := make([][]behaviour, slots)
	add := func(slot int, b behaviour) {
		if slot < slots {
			out[slot] = append(out[slot], b)
		}
	}
	for _, cn := range o.Clients {
		add((cn.ID-1)/100, behaviour{sigResponse, shapeOf(cn.Recv) + " " + string(cn.End)})
	}
	for _, cn := range o.Origins {
		if s := slotsIn([]byte(cn.Addr)); len(s) == 1 {
			add(s[0], behaviour{sigUpstream, shapeOf(cn.Recv) + " " + string(cn.End)})
		}
	}
	for _, e := range o.Errors {
		if s := slotsIn([]byte(e.Text)); len(s) == 1 {
			add(s[0], behaviour{sigLog, triage.Shape(e.Text)})
		}
	}
	return out
}

// shapeOf is the shape of a stream of messages: start lines' classes and the
// sets of header names.
func shapeOf(stream []byte) string {
	var b strings.Builder
	messages := 0
	for len(stream) > 0 && messages < 4 {
		head, rest, whole := bytes.Cut(stream, []byte("\r\n\r\n"))
		lines := strings.Split(string(head), "\r\n")
		f := strings.Fields(lines[0])
		switch {
		case len(f) > 1 && strings.HasPrefix(f[0], "HTTP/"):
			b.WriteString(f[1])
		case len(f) > 2:
			b.WriteString(f[0] + " " + f[len(f)-1])
		default:
			return b.String() + fmt.Sprintf(" raw%d", min(len(stream)/64, 3))
		}
		names := map[string]bool{}
		for _, l := range lines[1:] {
			name, _, _ := strings.Cut(l, ":")
			names[strings.ToLower(name)] = true
		}
		list := make([]string, 0, len(names))
		for n := range names {
			list = append(list, n)
		}
		sort.Strings(list)
		b.WriteString("[" + strings.Join(list, ",") + "]")
		if !whole {
			return b.String() + " cut"
		}
		at := bytes.Index(rest, []byte("HTTP/1."))
		if at < 0 {
			break
		}
		stream = rest[at:]
		messages++
	}
	return b.String()
}
