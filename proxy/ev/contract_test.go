package ev_test

import (
	"strings"
	"syscall"
	"testing"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/ev/evsim"
)

// The contract of the loop, run on the kernel and on its simulated twin.

// peer is the far end of a connection; nothing of it blocks.
type peer interface {
	send(p string)
	recv() (got string, ended bool)
	shutdown()
	close()
	reset()
}

// rig is a loop that listens.
type rig struct {
	*ev.Loop
	dial func(t *testing.T) peer
	// later prepares a connection, so that its far end has a descriptor already when it is made.
	later func() (connect func(t *testing.T) peer)
	open  func() int // descriptors that the loop holds
	log   *lines
}

type lines []string

func (l *lines) WriteLine(b []byte) error { *l = append(*l, string(b)); return nil }

func logTo(l *lines) *elog.Log {
	list := &elog.List{}
	list.Insert(&elog.Target{Level: elog.Info, W: l})
	return &elog.Log{Sink: list}
}

// until turns the loop until done; a timer keeps a turn from waiting for ever.
func (r *rig) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := ev.Event{Handler: func(*ev.Event) {}}
	for i := 0; !done(); i++ {
		if i > 100000 {
			t.Fatalf("never: %s", what)
		}
		r.AddTimer(&tick, 1)
		r.Turn()
	}
	r.DelTimer(&tick)
}

// turns turns the loop n times without waiting.
func (r *rig) turns(n int) {
	for ; n > 0; n-- {
		r.AddTimer(&ev.Event{Handler: nothing}, 0)
		r.Turn()
	}
}

func onBoth(t *testing.T, conns int, handler func(*ev.Conn), f func(t *testing.T, r *rig)) {
	t.Run("kernel", func(t *testing.T) { f(t, kernelRig(t, conns, handler)) })
	t.Run("simulated", func(t *testing.T) { f(t, simRig(t, evsim.Options{Seed: 1}, conns, handler)) })
}

// --- the kernel

func kernelRig(t *testing.T, conns int, handler func(*ev.Conn)) *rig {
	t.Helper()
	sys, err := ev.NewEpoll(64)
	if err != nil {
		t.Fatal(err)
	}
	r := listening(t, sys, conns, handler)
	r.later = func() func(t *testing.T) peer {
		fd, err := sys.Socket(r.addr)
		return func(t *testing.T) peer {
			t.Helper()
			if err == nil {
				err = sys.Connect(fd, r.addr)
			}
			if err != nil && err != syscall.EINPROGRESS {
				t.Fatal(err)
			}
			return &kernelPeer{sys: sys, fd: fd}
		}
	}
	r.dial = func(t *testing.T) peer { t.Helper(); return r.later()(t) }
	t.Cleanup(sys.Free)
	return &r.rig
}

type listenRig struct {
	rig
	addr ev.Addr
}

func listening(t *testing.T, sys ev.Sys, conns int, handler func(*ev.Conn)) *listenRig {
	t.Helper()
	r := &listenRig{rig: rig{log: &lines{}}}
	r.Loop = ev.NewLoop(sys, conns, logTo(r.log))
	a := ev.Addr{Family: ev.INET, IP: [16]byte{127, 0, 0, 1}}
	fd, err := sys.Socket(a)
	if err == nil {
		err = sys.Bind(fd, a)
	}
	if err == nil {
		err = sys.Listen(fd, 16)
	}
	if err == nil {
		r.addr, err = sys.LocalAddr(fd)
	}
	if err == nil {
		err = r.Listen(&ev.Listener{FD: fd, Addr: r.addr, Handler: handler})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sys.Close(fd) })
	return r
}

type kernelPeer struct {
	sys  *ev.Epoll
	fd   int
	todo string
}

func (p *kernelPeer) send(s string) { p.todo += s }

func (p *kernelPeer) flush() {
	for p.todo != "" {
		n, err := p.sys.Write(p.fd, []byte(p.todo))
		if err != nil {
			if err != syscall.EAGAIN && err != syscall.ENOTCONN {
				p.todo = ""
			}
			return
		}
		p.todo = p.todo[n:]
	}
}

func (p *kernelPeer) recv() (string, bool) {
	p.flush()
	buf := make([]byte, 65536)
	n, err := p.sys.Read(p.fd, buf)
	switch {
	case err == syscall.EAGAIN || err == syscall.ENOTCONN:
		return "", false
	case err != nil || n == 0:
		return "", true
	}
	return string(buf[:n]), false
}

func (p *kernelPeer) shutdown() { p.flush(); p.sys.Shutdown(p.fd, ev.ShutWrite) }
func (p *kernelPeer) close()    { p.flush(); p.sys.Close(p.fd) }
func (p *kernelPeer) reset()    { p.sys.LingerReset(p.fd); p.sys.Close(p.fd) }

// --- the simulation

func simRig(t *testing.T, opt evsim.Options, conns int, handler func(*ev.Conn)) *rig {
	t.Helper()
	n := evsim.New(opt)
	r := listening(t, n, conns, handler)
	r.open = n.Open
	r.dial = func(t *testing.T) peer {
		t.Helper()
		c, err := n.Dial(r.addr)
		if err != nil {
			t.Fatal(err)
		}
		return &simPeer{c: c}
	}
	r.later = func() func(t *testing.T) peer { return r.dial }
	return &r.rig
}

type simPeer struct {
	c    *evsim.Client
	todo string
	fin  bool
}

func (p *simPeer) send(s string) { p.todo += s; p.flush() }

func (p *simPeer) flush() {
	p.todo = p.todo[p.c.Send([]byte(p.todo)):]
	if p.fin && p.todo == "" {
		p.fin = false
		p.c.Shutdown()
	}
}

func (p *simPeer) recv() (string, bool) {
	b, end := p.c.Recv()
	p.flush()
	return string(b), end != nil && len(b) == 0
}

func (p *simPeer) shutdown() { p.fin = true; p.flush() }
func (p *simPeer) close()    { p.c.Close() }
func (p *simPeer) reset()    { p.c.Reset() }

// --- servers

// echo answers what it reads, and closes at the end of the stream.
func echo(c *ev.Conn) {
	var pending []byte
	pump := func(*ev.Event) {
		for {
			for len(pending) > 0 {
				n := c.Send(pending)
				if n == ev.Again {
					return
				}
				if n < 0 {
					c.Loop.CloseConn(c)
					return
				}
				pending = pending[n:]
			}
			buf := make([]byte, 1000)
			n := c.Recv(buf)
			if n == ev.Again {
				return
			}
			if n <= 0 {
				c.Loop.CloseConn(c)
				return
			}
			pending = buf[:n]
		}
	}
	c.Read.Handler, c.Write.Handler = pump, pump
	if c.Loop.Add(c) != nil {
		c.Loop.CloseConn(c)
	}
}

func nothing(*ev.Event) {}

// hold only keeps a connection, reading nothing.
func hold(c *ev.Conn) {
	c.Read.Handler, c.Write.Handler = nothing, nothing
	c.Loop.Add(c)
}

// --- the contract

func TestBytesComeBackInOrder(t *testing.T) {
	onBoth(t, 8, echo, func(t *testing.T, r *rig) { echoes(t, r) })
}

func echoes(t *testing.T, r *rig) {
	t.Helper()
	text := strings.Repeat("0123456789abcdef", 20000)
	p := r.dial(t)
	p.send(text)
	var got strings.Builder
	r.until(t, "the text comes back", func() bool {
		s, _ := p.recv()
		got.WriteString(s)
		return got.Len() >= len(text)
	})
	p.shutdown()
	r.until(t, "the end comes back", func() bool { _, end := p.recv(); return end })
	if got.String() != text {
		t.Fatalf("other bytes came back")
	}
}

func TestResetIsAnError(t *testing.T) {
	var conn *ev.Conn
	rc := ev.OK
	server := func(c *ev.Conn) {
		conn = c
		c.Read.Handler = func(*ev.Event) { rc = c.Recv(make([]byte, 10)) }
		c.Write.Handler = nothing
		c.Loop.Add(c)
	}
	onBoth(t, 8, server, func(t *testing.T, r *rig) {
		conn, rc = nil, ev.OK
		p := r.dial(t)
		r.until(t, "accepted", func() bool { return conn != nil })
		p.reset()
		r.until(t, "told", func() bool { return rc == ev.Err })
		if conn.Errno != syscall.ECONNRESET || !conn.Read.Error {
			t.Errorf("errno %v, error %v", conn.Errno, conn.Read.Error)
		}
		if len(*r.log) != 1 || !strings.Contains((*r.log)[0], "[error]") || !strings.Contains((*r.log)[0], "recv() failed (104: Connection reset by peer)") {
			t.Errorf("logged %q", *r.log)
		}
	})
}

// An end that was read is reported once more when nginx asks about writing for the first time, and not the second.
func TestAskWriteAgain(t *testing.T) {
	var conn *ev.Conn
	ends := 0
	server := func(c *ev.Conn) {
		conn = c
		c.Read.Handler = func(*ev.Event) {
			if c.Recv(make([]byte, 10)) == 0 {
				ends++
			}
		}
		c.Write.Handler = nothing
		c.Loop.Add(c)
	}
	onBoth(t, 8, server, func(t *testing.T, r *rig) {
		conn, ends = nil, 0
		p := r.dial(t)
		r.until(t, "accepted", func() bool { return conn != nil })
		p.shutdown()
		r.until(t, "ended", func() bool { return ends == 1 })
		r.turns(3)
		if ends != 1 {
			t.Fatalf("%d ends without asking", ends)
		}
		r.AskWrite(conn, true)
		r.until(t, "ended again", func() bool { return ends == 2 })
		r.AskWrite(conn, true)
		r.turns(3)
		if ends != 2 {
			t.Errorf("asked twice: %d ends", ends)
		}
	})
}

// TestStaleReport: in one batch a handler closes another connection that is also reported, and a third
// one is accepted between the two and gets the closed one's descriptor and slot. What was reported of
// the old one must not reach the new one.
func TestStaleReport(t *testing.T) {
	t.Run("kernel", func(t *testing.T) {
		if !staleReport(t, func(f func(*ev.Conn)) *rig { return kernelRig(t, 8, f) }) {
			t.Error("the third connection did not get the closed one's place in the batch")
		}
	})
	t.Run("simulated", func(t *testing.T) {
		hits := 0
		for seed := uint64(1); seed <= 40; seed++ {
			if staleReport(t, func(f func(*ev.Conn)) *rig {
				return simRig(t, evsim.Options{Seed: seed, Split: true}, 8, f)
			}) {
				hits++
			}
		}
		if hits == 0 {
			t.Error("no seed put the accepting between the two reports")
		}
	})
}

// staleReport tells whether the third connection took the closed one's place while that one's report
// was still to come.
func staleReport(t *testing.T, make func(func(*ev.Conn)) *rig) (hit bool) {
	t.Helper()
	var conns []*ev.Conn
	var closed, fd int
	r := make(func(c *ev.Conn) {
		me := len(conns)
		conns = append(conns, c)
		c.Write.Handler = nothing
		c.Read.Handler = func(*ev.Event) {
			if me == 2 {
				t.Errorf("a stale report reached the new connection")
				return
			}
			if other := conns[1-me]; closed == 0 {
				closed, fd = 1+other.Slot(), other.FD
				c.Loop.CloseConn(other)
			}
		}
		if me == 2 {
			hit = c.Slot() == closed-1 && c.FD == fd
		}
		c.Loop.Add(c)
	})
	a, b := r.dial(t), r.dial(t)
	r.until(t, "two accepted", func() bool { return len(conns) == 2 })
	r.turns(2) // until the kernel has seen that nobody else waits to be accepted
	third := r.later()
	a.send("x")
	flush(a)
	third(t)
	b.send("x")
	flush(b)
	r.until(t, "the third accepted", func() bool { return len(conns) == 3 })
	r.turns(3)
	return hit
}

func flush(ps ...peer) {
	for _, p := range ps {
		if k, ok := p.(*kernelPeer); ok {
			k.flush()
		}
	}
}

func TestTimersComeInOrder(t *testing.T) {
	onBoth(t, 8, hold, func(t *testing.T, r *rig) {
		var order []string
		at := func(name string) *ev.Event {
			return &ev.Event{Handler: func(e *ev.Event) {
				if !e.TimedOut || e.TimerSet {
					t.Errorf("%s: timed out %v, set %v", name, e.TimedOut, e.TimerSet)
				}
				order = append(order, name)
			}}
		}
		never := at("never")
		r.AddTimer(at("c"), 9)
		r.AddTimer(never, 2)
		r.AddTimer(at("a"), 3)
		r.AddTimer(at("b"), 3)
		r.DelTimer(never)
		lazy := at("d")
		r.AddTimer(lazy, 12)
		r.AddTimer(lazy, 200) // too near to the first to be worth moving
		r.until(t, "four timers", func() bool { return len(order) == 4 })
		if got := strings.Join(order, ""); got != "abcd" {
			t.Errorf("order %s", got)
		}
		if !r.NoTimersLeft() {
			t.Error("timers are left")
		}
		r.AddTimer(&ev.Event{Cancelable: true}, 1000000)
		if !r.NoTimersLeft() {
			t.Error("a timer that may be dropped keeps the worker")
		}
	})
}

func TestPostedAfterTimers(t *testing.T) {
	onBoth(t, 8, hold, func(t *testing.T, r *rig) {
		var order []string
		say := func(name string) func(*ev.Event) { return func(*ev.Event) { order = append(order, name) } }
		posted := &ev.Event{Handler: say("posted")}
		next := &ev.Event{Handler: say("next")}
		taken := &ev.Event{Handler: say("taken")}
		r.Post(posted)
		r.Post(posted) // once is enough
		r.Post(taken)
		r.DelPosted(taken)
		r.AddTimer(&ev.Event{Handler: func(*ev.Event) { order = append(order, "timer"); r.PostNext(next) }}, 0)
		r.Turn()
		r.AddTimer(&ev.Event{Handler: say("second timer")}, 0)
		r.Turn()
		if got := strings.Join(order, ","); got != "timer,posted,second timer,next" {
			t.Errorf("order %s", got)
		}
		if !next.Ready {
			t.Error("PostNext did not make the event ready")
		}
	})
}

func TestTableIsLimited(t *testing.T) {
	var n int
	server := func(c *ev.Conn) { n++; hold(c) }
	onBoth(t, 3, server, func(t *testing.T, r *rig) {
		n = 0
		r.dial(t)
		r.dial(t)
		p := r.dial(t)
		r.until(t, "the third is closed", func() bool { _, end := p.recv(); return end })
		if n != 2 || r.Free() != 0 {
			t.Errorf("%d accepted, %d free", n, r.Free())
		}
		if len(*r.log) != 1 || !strings.Contains((*r.log)[0], "[alert]") || !strings.Contains((*r.log)[0], "3 worker_connections are not enough") {
			t.Errorf("logged %q", *r.log)
		}
	})
}

func TestIdleGivesWay(t *testing.T) {
	var conns []*ev.Conn
	server := func(c *ev.Conn) {
		conns = append(conns, c)
		c.Write.Handler = nothing
		c.Read.Handler = func(*ev.Event) {
			if c.Close {
				c.Loop.CloseConn(c)
			}
		}
		c.Loop.Add(c)
		c.Loop.Reusable(c, true)
	}
	onBoth(t, 3, server, func(t *testing.T, r *rig) {
		conns = nil
		first := r.dial(t)
		r.dial(t)
		r.until(t, "two accepted", func() bool { return len(conns) == 2 })
		r.dial(t)
		r.until(t, "three accepted", func() bool { return len(conns) == 3 })
		r.until(t, "the one that was idle longest is closed", func() bool { _, end := first.recv(); return end })
		if len(*r.log) != 1 || !strings.Contains((*r.log)[0], "[warn]") || !strings.Contains((*r.log)[0], "3 worker_connections are not enough, reusing connections") {
			t.Errorf("logged %q", *r.log)
		}
	})
}

func TestPanicCostsOne(t *testing.T) {
	first := true
	server := func(c *ev.Conn) {
		if first {
			first = false
			panic("oops")
		}
		echo(c)
	}
	onBoth(t, 8, server, func(t *testing.T, r *rig) {
		first = true
		free := r.Free()
		p := r.dial(t)
		r.until(t, "the first is closed", func() bool { _, end := p.recv(); return end })
		if r.Free() != free {
			t.Errorf("%d free, want %d", r.Free(), free)
		}
		if len(*r.log) != 1 || !strings.Contains((*r.log)[0], "[alert]") || !strings.Contains((*r.log)[0], "oops") {
			t.Errorf("logged %q", *r.log)
		}
		echoes(t, r)
	})
}

func TestCallRunsOnTheLoop(t *testing.T) {
	onBoth(t, 8, hold, func(t *testing.T, r *rig) {
		ran := false
		r.Call(func() { ran = true; r.Call(func() { r.Stop() }) })
		r.Run()
		if !ran {
			t.Error("Run ended without the call")
		}
	})
}

func TestShutdownClosesIdle(t *testing.T) {
	var n int
	server := func(c *ev.Conn) {
		n++
		c.Idle = true
		c.Write.Handler = nothing
		c.Read.Handler = func(*ev.Event) {
			if c.Close {
				c.Loop.CloseConn(c)
			}
		}
		c.Loop.Add(c)
	}
	onBoth(t, 8, server, func(t *testing.T, r *rig) {
		n = 0
		p := r.dial(t)
		r.until(t, "accepted", func() bool { return n == 1 })
		r.Shutdown()
		r.until(t, "closed", func() bool { _, end := p.recv(); return end })
		if r.Free() != 8 {
			t.Errorf("%d of 8 slots are free", r.Free())
		}
	})
}
