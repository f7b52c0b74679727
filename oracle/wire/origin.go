package wire

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/observe"
)

// accept takes every connection that waits at origin i and starts its script.
func (p *Player) accept(i int) error {
	o := p.origins[i]
	for {
		fd, err := accept(o.fd)
		if err != nil {
			return fmt.Errorf("origin %s: %w", o.script.Addr, err)
		}
		if fd < 0 {
			return nil
		}
		// The server has acted by connecting: an origin that speaks without having read waits until
		// the server has sent its request, for whether the answer overtakes it would be chance.
		c := &conn{fd: fd, origin: o, readable: true, acted: true, rec: observe.Conn{ID: len(o.conns) + 1, Addr: o.script.Addr}}
		if n := len(o.script.Conns); n > 0 {
			c.steps = o.script.Conns[min(len(o.conns), n-1)]
		}
		o.conns = append(o.conns, c)
		p.live = append(p.live, c)
		if err := p.add(c); err != nil {
			return fmt.Errorf("origin %s: %w", o.script.Addr, err)
		}
		if _, err := p.advance(c, false); err != nil {
			return err
		}
	}
}

// advance takes the steps of an origin's connection until one must wait, and
// tells whether anything moved. atRest says that the server rests: it releases a
// step that waits for that.
func (p *Player) advance(c *conn, atRest bool) (moved bool, err error) {
	defer func() {
		if moved || c.asked.IsZero() {
			c.asked = p.now()
		}
	}()
	for c.fd >= 0 && c.pc < len(c.steps) {
		s := &c.steps[c.pc]
		switch s.Op {
		case casefile.Send, casefile.Shutdown, casefile.Close, casefile.Reset:
			// As with clients: one thing at a time (see Player.calm).
			if c.acted && !c.started {
				if c.waits = !atRest; c.waits {
					return c.drain(p.buf) || moved, nil
				}
				atRest, c.acted = false, false
				c.read(p.buf) // an end that has come is seen before what is sent now can make a reset of it
			}
		}
		switch s.Op {
		case casefile.Recv:
			if !c.started {
				c.begin(s)
			}
			moved = c.read(p.buf) || moved
			switch {
			case c.ended && c.pos == len(c.rec.Recv):
				c.pc = len(c.steps) // the peer has gone: nobody is there to answer
			case c.satisfied(s):
				c.finish()
				// Bytes show that the server has noticed what was sent, but not if they were on their way before, or here.
				c.acted = c.acted && (c.early || c.pos <= c.had) || c.origin.leaves
				c.whole = s.What == casefile.Request
			case atRest && s.What == casefile.All:
				c.silent(s)
				atRest, c.acted = false, false
			default:
				return moved, nil
			}
			moved = true
			continue
		case casefile.Send:
			if !c.started {
				c.out, c.started, c.early, c.had = bytes.Join(s.Data, nil), true, !c.whole, len(c.rec.Recv)
				if err := p.first(c); err != nil {
					return moved, err
				}
			}
			c.flush()
			if c.stalled = len(c.out) > 0; c.stalled {
				return moved, p.arm(c)
			}
		case casefile.Pause:
			if !c.started {
				c.wake, c.started = p.now().Add(s.Dur), true
			}
			if p.now().Before(c.wake) {
				return moved, nil
			}
			c.wake = time.Time{}
		case casefile.Settle:
			if !atRest {
				c.started = true
				return c.drain(p.buf) || moved, nil
			}
			atRest = false
		case casefile.Again:
			c.pc = -1
		case casefile.Shutdown:
			c.shutdown()
		case casefile.Close:
			c.read(p.buf)
			p.drop(c, observe.EndLocal, false)
		case casefile.Reset:
			p.drop(c, observe.EndLocal, true)
		default:
			return moved, fmt.Errorf("line %d: %q is no step of an origin", s.Line, s.Op)
		}
		c.did(s.Op)
		c.started = false
		c.pc++
		moved = true
	}
	if c.fd >= 0 {
		// The script is over: read on until the peer closes.
		moved = c.read(p.buf) || moved
		if c.ended {
			p.drop(c, observe.EndLocal, false)
		}
	}
	return moved, nil
}

// drain reads what comes while the script waits for the server's rest: how much of a message came along
// with its first part would otherwise be chance, and with it how much a server can write that is not read from.
func (c *conn) drain(buf []byte) bool { return c.read(buf) }

// wantsRest tells whether c waits for the server to rest.
func (c *conn) wantsRest() bool {
	if c.fd < 0 || c.pc >= len(c.steps) || !c.started && !c.waits {
		return false
	}
	s := &c.steps[c.pc]
	return c.waits || s.Op == casefile.Settle || s.Op == casefile.Recv && s.What == casefile.All
}

// arm has c watched for writing, once.
func (p *Player) arm(c *conn) error {
	if c.armed {
		return nil
	}
	c.armed = true
	return watchWrite(p.ep, c.fd, c.slot)
}

// release lets the origins' connections that wait for rest go on, one of each lane: what a second one does the server
// would meet before or after it has dealt with the first. It tells whether one moved, and whose lanes those serve: an
// origin that serves no lane alone is every lane's.
func (p *Player) release() (moved bool, serve func(*lane) bool, err error) {
	lanes := map[int]bool{}
	serve = func(l *lane) bool { return lanes[-1] || lanes[l.index] || l.index == everyLane && moved }
	for _, c := range slices.Clone(p.live) { // advancing may close c and take it off the list
		if !c.wantsRest() || lanes[-1] || lanes[c.origin.lane] || moved && c.origin.lane < 0 {
			continue
		}
		m, err := p.advance(c, true)
		if err != nil {
			return false, serve, err
		}
		if m {
			moved, lanes[c.origin.lane] = true, true
		}
	}
	return moved, serve, nil
}

// wantRest tells whether any origin waits for the server to rest.
func (p *Player) wantRest() bool { return slices.ContainsFunc(p.live, (*conn).wantsRest) }

// wakeUp lets origins whose pause is over go on, and tells whether one did.
func (p *Player) wakeUp() (moved bool, err error) {
	if p.nextWake(nil).IsZero() {
		return false, nil
	}
	now := p.now()
	for _, c := range slices.Clone(p.live) {
		if c.wake.IsZero() || now.Before(c.wake) {
			continue
		}
		m, err := p.advance(c, false)
		if err != nil {
			return false, err
		}
		moved = moved || m
	}
	return moved, nil
}

// nextWake is when the first pausing origin of l's goes on (nil: any lane's);
// zero when none pauses.
func (p *Player) nextWake(l *lane) time.Time { return p.wakeOf(l, time.Hour) }

// wakeOf is nextWake of the pauses that are no longer than most.
func (p *Player) wakeOf(l *lane, most time.Duration) time.Time {
	var first time.Time
	for _, c := range p.live {
		if l != nil && l.index != everyLane && c.origin.lane >= 0 && c.origin.lane != l.index {
			continue
		}
		if !c.wake.IsZero() && c.steps[c.pc].Dur <= most && (first.IsZero() || c.wake.Before(first)) {
			first = c.wake
		}
	}
	return first
}
