// Package evsim is the simulated twin of the kernel behind the event loop: virtual sockets and a
// virtual clock. A seed decides where reads and writes are cut short, in which order descriptors are
// reported, and which connections are reset or stall; the same seed gives the same run.
package evsim

import (
	"math/rand/v2"
	"sort"

	"nginxoracle/proxy/ev"
)

// Options bound what goes wrong; the zero value is a network without faults.
type Options struct {
	Seed     uint64
	Split    bool // reads and writes take a part of what they could
	Resets   int  // one of so many operations resets its connection, 0 = none
	Stalls   int  // one of so many readinesses is reported late, 0 = none
	Buffer   int  // bytes that a socket holds for its reader, 0 = 64 KiB
	StartSec int64
}

// Net is a kernel with sockets and no files. It implements ev.Sys. All of it belongs to one goroutine,
// but for Wake.
type Net struct {
	opt   Options
	rng   *rand.Rand
	clock int64 // ms since the start
	fds   map[int]*socket
	next  int
	port  int
	names map[string]*socket // listening sockets by address
	watch map[int]*watched
	alarm []alarm
	woken bool

	// Steps counts the system calls, and the same seed makes the same number of them.
	Steps int
}

// alarm is something that happens at a time: a client's next step, a late readiness.
type alarm struct {
	at, seq int64
	f       func()
}

type watched struct {
	slot, gen uint32
	mode      ev.Mode
	in, out   bool // to be reported: edges that have come
	hup       bool
	rdhup     bool
	late      bool
}

// socket is one end of a connection, or a listening socket.
type socket struct {
	fd        int // -1: held by the test, not by the loop
	addr      ev.Addr
	peer      *socket
	queue     []*socket // of a listening socket
	listening bool
	buf       []byte // what has come and was not read
	eof       bool   // the peer sends no more
	reset     bool
	closed    bool
	shut      bool // we send no more
}

// New makes an empty network.
func New(opt Options) *Net {
	if opt.Buffer == 0 {
		opt.Buffer = 1 << 16
	}
	if opt.StartSec == 0 {
		opt.StartSec = 1700000000
	}
	return &Net{
		opt: opt, rng: rand.New(rand.NewPCG(opt.Seed, 1)), fds: map[int]*socket{}, next: 3, port: 40000,
		names: map[string]*socket{}, watch: map[int]*watched{},
	}
}

// one tells whether a thing that happens once in n times happens now.
func (n *Net) one(in int) bool { return in > 0 && n.rng.IntN(in) == 0 }

// part is how much of max an operation does.
func (n *Net) part(max int) int {
	if !n.opt.Split || max <= 1 {
		return max
	}
	return 1 + n.rng.IntN(max)
}

func (n *Net) add(s *socket) int {
	// The lowest free number, as the kernel gives: a closed one comes back at once.
	fd := 3
	for n.fds[fd] != nil {
		fd++
	}
	s.fd = fd
	n.fds[fd] = s
	return fd
}

// After makes f run when the virtual clock has moved on by ms.
func (n *Net) After(ms int64, f func()) {
	n.next++
	n.alarm = append(n.alarm, alarm{n.clock + ms, int64(n.next), f})
	sort.SliceStable(n.alarm, func(i, j int) bool {
		a, b := n.alarm[i], n.alarm[j]
		return a.at < b.at || a.at == b.at && a.seq < b.seq
	})
}

// Sleeping says that nothing is left to happen by itself.
func (n *Net) Sleeping() bool { return len(n.alarm) == 0 }

// Open is how many descriptors the loop holds.
func (n *Net) Open() int { return len(n.fds) }

// notify marks an edge of the loop's end of a connection.
func (n *Net) notify(s *socket, in, out bool) {
	w := n.watch[s.fd]
	if w == nil || s.closed {
		return
	}
	if n.one(n.opt.Stalls) && !w.late {
		w.late = true
		n.After(1+int64(n.rng.IntN(50)), func() {
			w.late = false
			n.mark(s, w, in, out)
		})
		return
	}
	n.mark(s, w, in, out)
}

func (n *Net) mark(s *socket, w *watched, in, out bool) {
	w.in = w.in || in
	w.out = w.out || out
	w.rdhup = s.eof
	w.hup = s.reset || s.eof && s.shut
	if s.reset {
		w.in, w.out = true, true
	}
}

// breakConn resets a connection from outside.
func (n *Net) breakConn(s *socket) {
	for _, e := range []*socket{s, s.peer} {
		if e != nil && !e.closed {
			e.reset, e.buf = true, nil
			n.notify(e, true, true)
		}
	}
}
