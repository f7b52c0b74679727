package wire

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/observe"
)

// maxRecv bounds what is kept of one connection, and maxKept what is kept of all connections of a
// run, so that a target that floods cannot take the oracle's memory. Going over it is noted on the
// connection.
const (
	maxRecv = 64 << 20
	maxKept = 256 << 20
)

// conn is one connection being played, a client's or an origin's.
type conn struct {
	fd     int // -1 once closed here
	slot   int32
	rec    observe.Conn
	origin *origin // an origin's; nil for a client's
	lane   *lane   // a client's: the lane that plays it
	room   *int    // bytes that the run may still keep

	steps   []casefile.Step
	pc      int
	started bool      // the current step has begun
	acted   bool      // the server may still be busy with what the last steps did
	waits   bool      // origin: the current step waits for the server to rest
	whole   bool      // origin: the request has been received to its end
	had     int       // origin: the bytes that were there when the last send began
	early   bool      // origin: the last send came before that: what is received next does not answer it
	asked   time.Time // origin: since when a step may wait for that
	since   time.Time // client: when it sent or was waited for last; a pause that the script says so is not counted
	touched time.Time // client: when it sent or received last; its own pauses are not counted
	frame   framer
	until   int       // recv N: where it ends
	wake    time.Time // pause: when it ends

	pos      int    // rec.Recv up to here was consumed by recv steps
	out      []byte // bytes of the current send that the kernel has not taken yet
	stalled  bool   // the peer does not read what was sent
	readable bool   // a read may give something
	hup      bool   // the end is on its way: a short read is not the last
	armed    bool   // watched for writing too
	ended    bool   // FIN or RST came: rec.End says which
}

// read takes what is there into rec.Recv. It returns whether anything came
// (bytes, or the end).
func (c *conn) read(buf []byte) bool {
	came := false
	for c.readable && !c.ended && c.fd >= 0 {
		n, again, err := recvSome(c.fd, buf)
		switch {
		case again:
			c.readable = false
			return came
		case err != nil:
			c.ended, c.rec.End = true, observe.EndReset
			if err != unix.ECONNRESET {
				c.note("read failed: " + err.Error())
			}
		case n == 0:
			c.ended, c.rec.End = true, observe.EndClosed
		case len(c.rec.Recv)+n > maxRecv:
			c.note(fmt.Sprintf("more than %d bytes came: the rest was not read", maxRecv))
			c.ended, c.rec.End = true, observe.EndLocal
		case n > *c.room:
			c.note(fmt.Sprintf("more than %d bytes came on all connections: the rest was not read", maxKept))
			c.ended, c.rec.End = true, observe.EndLocal
		default:
			*c.room -= n
			c.rec.Recv = append(c.rec.Recv, buf[:n]...)
			// What comes after a short read, the end too, makes a new event.
			c.readable = n == len(buf) || c.hup
		}
		came = true
	}
	return came
}

// flush writes what the kernel takes of out; a failure ends the send and is noted.
func (c *conn) flush() {
	for len(c.out) > 0 && c.fd >= 0 {
		n, err := sendSome(c.fd, c.out)
		if err != nil {
			c.note("send failed: " + err.Error())
			c.out = nil
			return
		}
		if n == 0 {
			return
		}
		c.out = c.out[n:]
	}
}

// oneSegment is how many bytes loopback surely carries at once (a Unix socket takes no more than some 35 KiB in one piece): of more, the
// server can be awake, and see a part, before the rest has been written. How much it finds at its first read would be chance.
const oneSegment = 32 << 10

// first writes what a send begins with: all that the kernel takes, in one piece for the server.
func (p *Player) first(c *conn) (err error) {
	cell, ok := p.cell.(freezer)
	if len(c.out) <= oneSegment || !ok {
		c.flush()
		return nil
	}
	if err := cell.Freeze(true); err != nil {
		return fmt.Errorf("write %d bytes at once: %w", len(c.out), err)
	}
	c.flush()
	return cell.Freeze(false)
}

// note adds to what is worth showing of the connection, each thing once.
func (c *conn) note(s string) {
	if strings.Contains(c.rec.Note, s) {
		return
	}
	if c.rec.Note != "" {
		c.rec.Note += "; "
	}
	c.rec.Note += s
}

// begin prepares a recv step.
func (c *conn) begin(s *casefile.Step) {
	c.started = true
	switch s.What {
	case casefile.Bytes:
		c.until = c.pos + s.N
	case casefile.Response, casefile.Head, casefile.Request, casefile.Headers:
		c.frame = framer{
			request: s.What == casefile.Request || s.What == casefile.Headers,
			noBody:  s.What == casefile.Head,
			head:    s.What == casefile.Headers,
		}
		c.frame.start(c.pos)
	}
}

// satisfied tells whether the recv step has what it waits for, and consumes it.
// A connection that has ended satisfies every recv with what came.
func (c *conn) satisfied(s *casefile.Step) bool {
	switch s.What {
	case casefile.Bytes:
		if len(c.rec.Recv) >= c.until {
			c.pos = c.until
			return true
		}
	case casefile.Response, casefile.Head, casefile.Request, casefile.Headers:
		if end, ok := c.frame.end(c.rec.Recv); ok {
			c.pos = end
			return true
		}
	}
	if c.ended {
		c.pos = len(c.rec.Recv)
		return true
	}
	return false
}

// finish ends a recv step: its mark is set and the script goes on.
func (c *conn) finish() {
	c.rec.Marks = append(c.rec.Marks, c.pos)
	c.started = false
	c.pc++
}

// silent ends a recv step when nothing more will come: it has consumed what
// came. A recv none consumes nothing, so that what came is there for the next step.
func (c *conn) silent(s *casefile.Step) {
	if s.What != casefile.None {
		c.pos = len(c.rec.Recv)
	}
	c.finish()
}

// close closes the descriptor; end says how the connection ended when the peer
// has not ended it before.
func (c *conn) close(end observe.End, reset bool) {
	if !c.ended {
		c.rec.End = end
	}
	c.ended = true
	if c.fd < 0 {
		return
	}
	var err error
	if reset {
		err = resetClose(c.fd)
	} else {
		err = unix.Close(c.fd)
	}
	if err != nil {
		c.note("close failed: " + err.Error())
	}
	c.fd = -1
}
