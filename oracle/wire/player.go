// Package wire plays a case's clients and origins over raw descriptors that were
// opened inside a cell. One goroutine moves everything: clients take their steps
// one at a time in the written order, origins react to what reaches them, so the
// order of events is the script's and not the scheduler's.
//
// When a message is over is decided by its framing; that nothing more will come
// is decided by asking the kernel whether the server is at rest (see rest.go).
package wire

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/observe"
)

// Cell is the part of engine.Cell that playing needs.
type Cell interface {
	Dial(ctx context.Context, addr string, n int) ([]int, error)
	Listen(ctx context.Context, addr string) (int, error)
	Probe(ctx context.Context) (engine.Rest, error)
}

// sleeper is what a cell may have besides: a look at the server's threads alone,
// much cheaper than Probe.
type sleeper interface {
	Asleep(ctx context.Context) (bool, error)
}

// holder is what a cell may have besides: a look at the number of the server's descriptors alone.
type holder interface {
	FDs(ctx context.Context) (int, error)
}

// freezer is what a cell may have besides: the server stands still while something is done that it
// could otherwise see half of.
type freezer interface {
	Freeze(on bool) error
}

// glancer is what a cell may have besides: Probe without what does not change while many lanes play, and the first
// half of that, which looks at no queue.
type glancer interface {
	Doze(ctx context.Context) (engine.Rest, error)
	Glance(ctx context.Context) (engine.Rest, error)
}

// probe looks at the server. half tells that no queue was looked at: the next look does so, and says whether the server
// has slept in between.
func (p *Player) probe(ctx context.Context, first bool) (r engine.Rest, half bool, err error) {
	g, ok := p.cell.(glancer)
	switch {
	case ok && p.many && first:
		r, err = g.Doze(ctx)
		return r, true, err
	case ok && p.many:
		r, err = g.Glance(ctx)
		return r, false, err
	}
	r, err = p.cell.Probe(ctx)
	return r, false, err
}

// Player plays the scripts of one started server. It is used by one goroutine.
type Player struct {
	Hasty, Leaves bool // Play plays as in a lane that is so

	cell    Cell
	ep      int
	evs     [64]unix.EpollEvent
	buf     []byte
	room    int     // bytes that may still be kept of what comes
	slots   []*conn // by epoll slot; nil when free
	free    []int32
	origins []*origin
	cur     *lane   // the lane whose script runs now
	many    bool    // more than one lane plays
	crowd   bool    // more than one lane has been played
	played  bool    // clients have been played
	live    []*conn // origins' open connections, in accept order
	record  Record
	now     func() time.Time
	patient time.Duration // last resort: how long without any progress
	last    engine.Rest   // what the last look at the server showed
}

// origin is one listening upstream.
type origin struct {
	script casefile.Origin
	fd     int
	lane   int // the lane that it serves; -1: all of them
	leaves bool
	conns  []*conn
}

// Record is what was seen on the wire.
type Record struct {
	Clients  []observe.Conn // in the order of their sections
	Origins  []observe.Conn // origin by origin, each in accept order
	Timeouts int            // last-resort timeouts used
	Late     bool           // the machine stood still while a lane played that a short timer can end
	// LateLanes are those of the last PlayLanes for which Late was set, by index.
	LateLanes []int
	Slow      bool        // lanes of a crowd were played for longer than longPlay
	Rest      engine.Rest // at the end, origins' connections still open
}

// lastResort is how long the player waits for a server that neither rests nor
// moves a byte.
const lastResort = 5 * time.Second

// NewPlayer opens the origins' listeners. They exist before the server starts
// and until Close, so a peer that is named in the configuration answers from the
// first moment.
func NewPlayer(ctx context.Context, cell Cell, origins []casefile.Origin) (*Player, error) {
	ep, err := newEpoll()
	if err != nil {
		return nil, fmt.Errorf("play: %w", err)
	}
	p := &Player{cell: cell, ep: ep, buf: make([]byte, 64<<10), room: maxKept, now: time.Now, patient: lastResort}
	for i := range origins {
		fd, err := cell.Listen(ctx, origins[i].Addr)
		if err == nil {
			err = watch(ep, fd, int32(-1-i))
		}
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("play: origin %s: %w", origins[i].Addr, err)
		}
		p.origins = append(p.origins, &origin{script: origins[i], fd: fd, lane: -1})
	}
	return p, nil
}

// Close closes every descriptor that is left.
func (p *Player) Close() {
	for _, c := range p.slots {
		if c != nil {
			c.close(observe.EndOpen, false)
		}
	}
	for _, o := range p.origins {
		unix.Close(o.fd)
	}
	unix.Close(p.ep)
}

// Play runs one group of clients (a client and those that run with it): their
// steps are taken in turn, one step of each, until all scripts have ended. An
// error means that the rig broke; what targets do never is one.
func (p *Player) Play(ctx context.Context, group []casefile.Section) error {
	return p.PlayLanes(ctx, []Lane{{Groups: [][]casefile.Section{group}, Hasty: p.Hasty, Leaves: p.Leaves}})
}

// playGroup is Play inside a lane.
func (p *Player) playGroup(ctx context.Context, l *lane, group []casefile.Section) error {
	conns := make([]*conn, len(group))
	defer func() { l.group = nil }()
	for turn, left := 0, len(group); left > 0; turn++ {
		left = 0
		for i := range group {
			if turn == 0 {
				c, err := p.dial(ctx, l, &group[i])
				if err != nil {
					return fmt.Errorf("play client %d: %w", group[i].ID, err)
				}
				conns[i] = c
				l.group = conns[:i+1]
				if l.hasty && c.fd >= 0 {
					if err := p.wait(nil, goal{kind: forRest}); err != nil {
						return fmt.Errorf("play client %d: %w", group[i].ID, err)
					}
				}
			}
			c := conns[i]
			if c.fd < 0 {
				continue
			}
			left++
			if err := p.clientStep(ctx, c); err != nil {
				return fmt.Errorf("play client %d, line %d: %w", group[i].ID, c.lineNow(), err)
			}
		}
	}
	for _, c := range conns {
		l.clients = append(l.clients, c.rec)
	}
	// The next clients find a server that has nothing left to do of these: the order of
	// log lines and of origins' connections is then the script's.
	if err := p.wait(nil, goal{kind: forFinish}); err != nil {
		return fmt.Errorf("play: rest behind client %d: %w", group[0].ID, err)
	}
	return nil
}

func (c *conn) lineNow() int {
	if c.pc < len(c.steps) {
		return c.steps[c.pc].Line
	}
	return 0
}

func (p *Player) dial(ctx context.Context, l *lane, s *casefile.Section) (*conn, error) {
	c := &conn{fd: -1, lane: l, steps: s.Steps, rec: observe.Conn{ID: s.ID, Addr: s.Addr}}
	if err := p.calmOthers(ctx, c); err != nil {
		return nil, err
	}
	fds, err := p.cell.Dial(ctx, s.Addr, 1)
	switch {
	case isRefused(err):
		c.ended, c.rec.End = true, observe.EndRefused
		return c, nil
	case err != nil:
		return nil, err
	case len(fds) != 1:
		return nil, fmt.Errorf("dial %s: want one descriptor, got %d", s.Addr, len(fds))
	}
	c.fd, c.rec.Port, c.since = fds[0], localPort(fds[0]), p.now()
	c.touched = c.since
	return c, p.add(c)
}

// add gives c a slot and watches it.
func (p *Player) add(c *conn) error {
	c.room = &p.room
	noDelay(c.fd)
	if n := len(p.free); n > 0 {
		c.slot, p.free = p.free[n-1], p.free[:n-1]
		p.slots[c.slot] = c
	} else {
		c.slot = int32(len(p.slots))
		p.slots = append(p.slots, c)
	}
	return watch(p.ep, c.fd, c.slot)
}

// drop closes c and gives its slot back. A stale event that hits a slot's next
// connection does no harm: it only means "have a look".
func (p *Player) drop(c *conn, end observe.End, reset bool) {
	if c.fd >= 0 {
		p.slots[c.slot] = nil
		p.free = append(p.free, c.slot)
		if i := slices.Index(p.live, c); i >= 0 {
			p.live = slices.Delete(p.live, i, i+1)
		}
	}
	c.close(end, reset)
}

// Pause waits d while origins are served.
func (p *Player) Pause(ctx context.Context, d time.Duration) error {
	return p.alone(ctx, goal{kind: forTime, until: p.now().Add(d)}, false)
}

// Settle waits until the server rests, with nothing more to come but by a timer
// and no origin's script with steps due. It returns what the kernel said last.
func (p *Player) Settle(ctx context.Context) (engine.Rest, error) {
	err := p.alone(ctx, goal{kind: forSilence}, false)
	return p.last, err
}

// Open counts the origins' connections that are open.
func (p *Player) Open() int { return len(p.live) }

// Held counts the descriptors that the server has open now, at rest or not.
func (p *Player) Held(ctx context.Context) (int, error) {
	if h, ok := p.cell.(holder); ok {
		return h.FDs(ctx)
	}
	r, err := p.cell.Probe(ctx)
	return r.FDs, err
}

// Finish settles, closes every connection that is left, and returns what was
// recorded. An origin's connection that the server has left open is recorded so.
func (p *Player) Finish(ctx context.Context) (Record, error) {
	if err := p.alone(ctx, goal{kind: forFinish}, false); err != nil {
		return Record{}, fmt.Errorf("play: rest at the end: %w", err)
	}
	rest := p.last
	if err := p.leave(ctx); err != nil {
		return Record{}, fmt.Errorf("play: leave the server: %w", err)
	}
	r := p.record
	r.Rest = rest
	p.record = Record{}
	for i := range p.origins {
		for _, c := range p.origins[i].conns {
			r.Origins = append(r.Origins, c.rec)
		}
		p.origins[i].conns = nil
	}
	return r, nil
}

// leaveRounds bounds how often origins' connections are closed: a server that loses one may try the next.
const leaveRounds = 5

// leave closes the origins' connections, and waits until the server has done what it does then: it
// logs the request that waited for an origin, and takes up the next one. Whether it does so before it is
// told to stop would be chance. So would be the order of two such requests' log lines: in a lane one
// connection goes at a time.
func (p *Player) leave(ctx context.Context) error {
	for range leaveRounds {
		open := slices.Clone(p.live)
		for len(open) > 0 && p.last.Alive {
			gone := map[int]bool{}
			open = slices.DeleteFunc(open, func(c *conn) bool {
				first := c.fd >= 0 && !gone[c.origin.lane]
				if first {
					gone[c.origin.lane] = true
					p.drop(c, p.openEnd(), false)
				}
				return first || c.fd < 0
			})
			if err := p.alone(ctx, goal{kind: forSilence}, p.crowd); err != nil {
				return err
			}
		}
	}
	for _, c := range slices.Clone(p.live) {
		p.drop(c, p.openEnd(), false)
	}
	return nil
}

// openEnd is the end of a connection that nobody has closed: left open, unless
// there is no server any more.
func (p *Player) openEnd() observe.End {
	if p.last.Alive {
		return observe.EndOpen
	}
	return observe.EndDied
}
