package wire

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/observe"
)

// clientStep takes one step of a client, to its end. Past the last step it does
// what a script without close does: read until the end or until nothing comes.
func (p *Player) clientStep(ctx context.Context, c *conn) error {
	if c.pc >= len(c.steps) {
		if err := p.recv(ctx, c, &casefile.Step{Op: casefile.Recv, What: casefile.All}); err != nil {
			return err
		}
		c.rec.Marks = c.rec.Marks[:len(c.rec.Marks)-1] // the script has no such step
		if err := p.calmOthers(ctx, c); err != nil {
			return err
		}
		p.drop(c, p.openEnd(), false)
		c.did(casefile.Close)
		return nil
	}
	s := &c.steps[c.pc]
	if err := p.calm(ctx, c, s.Op); err != nil {
		return err
	}
	switch s.Op {
	case casefile.Recv:
		return p.recv(ctx, c, s)
	case casefile.Send:
		if err := p.send(ctx, c, s); err != nil {
			return err
		}
	case casefile.Settle:
		if err := p.wait(nil, goal{kind: forRest}); err != nil {
			return err
		}
	case casefile.Pause:
		began := p.now()
		if err := p.wait(nil, goal{kind: forTime, until: began.Add(s.Dur)}); err != nil {
			return err
		}
		c.touched = c.touched.Add(p.now().Sub(began))
	case casefile.Shutdown:
		c.shutdown()
	case casefile.Close:
		p.drop(c, p.openEnd(), false)
	case casefile.Reset:
		p.drop(c, observe.EndLocal, true)
	default:
		return fmt.Errorf("%q is no step of a client", s.Op)
	}
	if s.Op == casefile.Send || s.Op == casefile.Shutdown {
		c.since = p.now()
		c.touched = c.since
	}
	c.did(s.Op)
	c.pc++
	return nil
}

// did notes what a step has done to the server.
func (c *conn) did(op casefile.Op) {
	switch op {
	case casefile.Send, casefile.Shutdown, casefile.Close, casefile.Reset:
		c.acted = true // a server that lingers writes its log only now that the client has gone
	case casefile.Settle:
		c.acted = false
	}
}

// calm waits before a step that the server will notice until it has finished
// with what came before: whether two sends reach it as one, whether it closes
// before or after the next one, would otherwise be chance. The end of a client
// is preceded by a look at what there is still to read.
func (p *Player) calm(ctx context.Context, c *conn, op casefile.Op) error {
	switch op {
	case casefile.Close, casefile.Reset, casefile.Send, casefile.Shutdown:
		if err := p.calmOthers(ctx, c); err != nil {
			return err
		}
		if err := p.calmTimers(c); err != nil {
			return err
		}
	}
	switch op {
	case casefile.Close, casefile.Reset:
		if c.read(p.buf); c.ended {
			return nil
		}
		return p.wait(c, goal{kind: forLook})
	case casefile.Send, casefile.Shutdown:
		switch {
		case c.ended:
			return nil
		case c.acted:
			return p.wait(nil, goal{kind: forRest})
		case c.pc > 0 && c.steps[c.pc-1].Op == casefile.Recv:
			return p.decided(ctx)
		}
	}
	return nil
}

// calmTimers waits until the server's short timers have ended, if so much time has gone by beside c since its
// last word, with an origin or in another client's wait, that one of them may be about to.
func (p *Player) calmTimers(c *conn) error {
	now := p.now()
	if !c.lane.timed || c.ended || now.Sub(c.touched) < longSince {
		return nil
	}
	if now.Sub(c.since) > lateLimit { // neither a timer nor the script took that time
		c.lane.late, p.record.Late = true, true
	}
	return p.wait(c, goal{kind: forTimers})
}

// calmOthers waits until the server has finished with what the clients that run
// beside c did last.
func (p *Player) calmOthers(ctx context.Context, c *conn) error {
	busy := func(x *conn) bool { return x != c && x.acted }
	if !slices.ContainsFunc(c.lane.group, busy) {
		return nil
	}
	for _, x := range c.lane.group {
		x.acted = false
	}
	return p.wait(nil, goal{kind: forRest})
}

func (p *Player) send(ctx context.Context, c *conn, s *casefile.Step) error {
	c.out = bytes.Join(s.Data, nil)
	if err := p.first(c); err != nil {
		return err
	}
	if len(c.out) == 0 {
		return nil
	}
	// A server that answers before it has read everything may wait for its answer to be
	// read: a blocked send reads too.
	c.stalled = true // until all is taken, bytes of its are not on their way
	if err := p.wait(c, goal{kind: forSend}); err != nil {
		return err
	}
	if len(c.out) > 0 {
		c.note("send stalled: the server has stopped reading")
		c.out = nil
		return nil
	}
	c.stalled = false
	return nil
}

// decided waits until the server has done what it does behind a response: a
// server that closes the connection (nginx does so even behind some responses that
// say keep-alive) has closed it then, and the next send meets a closed connection
// always, not by chance.
func (p *Player) decided(ctx context.Context) error {
	cell, ok := p.cell.(sleeper)
	if !ok || p.many || p.wantRest() { // what an origin does at rest comes before what the client does then
		return p.wait(nil, goal{kind: forRest})
	}
	for began := p.now(); ; {
		asleep, err := cell.Asleep(ctx)
		if err != nil {
			return fmt.Errorf("look at the server: %w", err)
		}
		if asleep {
			return nil
		}
		if p.now().Sub(began) > awakeLimit {
			return p.wait(nil, goal{kind: forRest})
		}
		if err := nap(p.ep, awakeNap); err != nil {
			return err
		}
	}
}

// A server that answers is asleep again microseconds later. One that is awake
// for longer has other work, which the full look knows to wait for.
const (
	awakeNap   = 10 * time.Microsecond
	awakeLimit = 2 * time.Millisecond
)

// recv takes a recv step. Behind a response that announces the connection's end,
// that end is waited for: whether a further send meets a closed connection or one
// that is about to be closed would be chance.
func (p *Player) recv(ctx context.Context, c *conn, s *casefile.Step) error {
	if err := p.recvStep(ctx, c, s); err != nil {
		return err
	}
	c.acted = false
	if c.frame.closing && !c.ended {
		c.frame.closing = false
		return p.wait(c, goal{kind: forLook})
	}
	return nil
}

func (p *Player) recvStep(ctx context.Context, c *conn, s *casefile.Step) error {
	c.begin(s)
	c.read(p.buf)
	if c.satisfied(s) {
		c.finish()
		return nil
	}
	kind := forRecv
	switch s.What {
	case casefile.All:
		kind = forAll
	case casefile.None:
		kind = forNone
	}
	if err := p.wait(c, goal{kind: kind, step: s}); err != nil {
		return err
	}
	if c.satisfied(s) {
		c.finish()
	} else {
		c.silent(s)
	}
	return nil
}

func (c *conn) shutdown() {
	if err := unix.Shutdown(c.fd, unix.SHUT_WR); err != nil {
		c.note("shutdown failed: " + err.Error())
	}
}
