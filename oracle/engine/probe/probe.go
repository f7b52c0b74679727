// Package probe asks the kernel whether the server in a cell is at rest. It works
// on two descriptors that belong to the cell, a /proc folder and a sock_diag
// socket, and can therefore be used by the agent inside as well as by the oracle
// outside, who then needs no round trip.
//
// Whose a socket is: every socket that the oracle uses inside a cell is made by
// the agent with the mark proto.Mark, and what such a listener accepts inherits the
// mark (ir_mark in the kernel's tcp_v4_conn_request); the server's sockets have no mark. Unix
// sockets have no marks; there the oracle's are known by inode and by the
// addresses on which it listens.
package probe

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine/proto"
)

// Prober asks about one cell. It is used by one goroutine at a time.
type Prober struct {
	proc, diag int
	softnet    int
	procs      map[int]*process
	buf        []byte
	small      [256]byte
	req        [128]byte
	row        socket
	seq        uint32
	stale      bool // a process or thread has ended since procs was listed
	looks      int  // at queues
	keeps      bool // the system does not let connections that are over be forgotten
	busy       busy
	doze       *Rest // what Doze has seen of the threads; nil when that says nothing any more
}

// busy is the thread that was awake when it was looked at last.
type busy struct {
	q *process
	i int
}

// New takes over the descriptors proc (/proc as the cell sees it, opened for this
// prober alone) and diag (see OpenDiag).
func New(proc, diag int) (*Prober, error) {
	softnet, err := unix.Open("/proc/net/softnet_stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(proc)
		unix.Close(diag)
		return nil, &fs.PathError{Op: "open", Path: "/proc/net/softnet_stat", Err: err}
	}
	return &Prober{softnet: softnet, proc: proc, diag: diag, procs: map[int]*process{}, buf: make([]byte, diagReceiveBytes)}, nil
}

// Close closes all that the prober has open.
func (p *Prober) Close() {
	for _, q := range p.procs {
		q.close()
	}
	p.procs = nil
	unix.Close(p.proc)
	unix.Close(p.diag)
	unix.Close(p.softnet)
}

// Mine says which Unix sockets are the oracle's own.
type Mine struct {
	Inodes map[uint32]bool
	Paths  map[string]bool // where the oracle listens
}

// Rest is what was found. Polling: at least one thread waits for sockets, which
// is how a server that has finished starting looks.
type Rest struct {
	proto.Probe
	Polling bool
}

// Rest asks whether the server, whose main process is master, is at rest.
//
// Asleep is a proof, not a sample: the threads' states and their counts of turns
// are read before and after the queues; when every thread slept both times and none
// had a turn in between, nothing of the server ran while the queues were read.
// Before the queues are read, no packet is on its way: loopback packets wait in the
// kernel's backlog of a processor (softnet_stat) and nowhere else. Unacknowledged
// bytes are therefore in the peer's queue already, whatever its delayed
// acknowledgement says. Queues are only read when all threads sleep; otherwise RecvQ and SendQ are 0.
func (p *Prober) Rest(master int, mine Mine) (Rest, error) {
	return p.look(master, mine, true)
}

// Glance is Rest for a caller who looks again and again while no process comes or goes: it
// counts no descriptors, and connections that wait to be accepted count as nothing. A server that
// sleeps with one waiting will not accept it before a timer of its own ends, which the threads tell. Unix sockets
// are not asked for: what is written to one is the reader's, and the reader is woken, before the write has returned
// (unix_stream_sendmsg in the kernel), so that nothing is on its way while everybody sleeps.
//
// Behind a Doze it goes on from there: nothing of the server has run since.
func (p *Prober) Glance(master int, mine Mine) (Rest, error) {
	return p.look(master, mine, false)
}

// Doze is the first half of a Glance, and costs a fraction of it: whether all threads sleep and no packet is on its
// way. Queues are not looked at.
func (p *Prober) Doze(master int) (Rest, error) {
	var r Rest
	p.doze = nil
	asleep, err := p.threads(master, &r, false)
	if err != nil || !asleep {
		return r, err
	}
	if r.Asleep, err = p.delivered(); err == nil && r.Asleep {
		seen := r
		p.doze = &seen
	}
	return r, err
}

// threads lists what is to be looked at, and does the first sweep.
func (p *Prober) threads(master int, r *Rest, list bool) (asleep bool, err error) {
	if list || p.stale || len(p.procs) == 0 {
		if err := p.list(); err != nil {
			return false, err
		}
		p.stale = false
	}
	r.Procs, r.Timer = len(p.procs), -1
	r.Alive = p.procs[master] != nil
	return p.sweep(r)
}

// FDs counts the descriptors that all processes have open now, and looks at nothing else.
func (p *Prober) FDs() (int, error) {
	if err := p.list(); err != nil {
		return 0, err
	}
	sum := 0
	for _, q := range p.procs {
		n, err := p.fds(q)
		if err != nil && !gone(err) {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func (p *Prober) look(master int, mine Mine, full bool) (Rest, error) {
	var r Rest
	asleep := true
	var err error
	if p.doze != nil && !full {
		r, p.doze = *p.doze, nil
		r.Asleep = false
	} else {
		p.doze = nil
		if asleep, err = p.threads(master, &r, full); err != nil {
			return r, err
		}
	}
	if full {
		for _, q := range p.procs {
			n, err := p.fds(q)
			if gone(err) {
				asleep = false
				continue
			}
			if err != nil {
				return r, err
			}
			r.FDs += n
		}
	}
	if !asleep {
		return r, nil
	}
	if quiet, err := p.delivered(); err != nil || !quiet {
		return r, err
	}
	if err := p.queues(&r, mine, full); err != nil {
		return r, err
	}
	if r.Asleep, err = p.still(); err == nil && r.Asleep {
		err = p.forgetBoth()
	}
	return r, err
}

// Asleep tells whether all threads sleep at this moment, of the processes that
// the last Rest has found. It costs one read a thread and looks at no queue: it is
// for a caller who knows by other means that the server has taken everything.
func (p *Prober) Asleep() (bool, error) {
	if len(p.procs) == 0 {
		if err := p.list(); err != nil {
			return false, err
		}
	}
	for _, q := range p.procs {
		if len(q.threads) == 0 {
			if err := p.forget(q); err != nil {
				return false, err
			}
		}
		for i := range q.threads {
			s, err := p.state(&q.threads[i])
			switch {
			case err != nil:
				return false, err
			case s == vanished: // a thread or its process has ended
				if err := p.list(); err != nil {
					return false, err
				}
				return false, p.forget(q)
			case s == awake:
				return false, nil
			}
		}
	}
	return true, nil
}

// sweep reads all threads and notes their counts of turns; asleep is false as soon as one is not. The one that was
// awake the last time is asked first. A thread that waited for others and has had no turn since still does: whether it
// has been woken meanwhile is what still asks of all threads.
func (p *Prober) sweep(r *Rest) (asleep bool, err error) {
	if q := p.busy.q; q != nil && p.procs[q.pid] == q && p.busy.i < len(q.threads) {
		if s, err := p.state(&q.threads[p.busy.i]); err != nil || s == awake {
			return false, err
		}
	}
	p.busy = busy{}
	for _, q := range p.procs {
		if err := p.refresh(q, false); gone(err) {
			p.stale = true
			return false, nil
		} else if err != nil {
			return false, err
		}
		for i := range q.threads {
			t := &q.threads[i]
			turns, err := p.turns(t)
			if gone(err) {
				return false, p.forget(q)
			}
			if err != nil {
				return false, fmt.Errorf("thread %d: read schedstat: %w", t.tid, err)
			}
			if t.idle && t.turns == turns && t.sched >= 0 {
				continue
			}
			t.turns, t.idle = turns, false
			s, err := p.state(t)
			switch {
			case err != nil:
				return false, err
			case s == vanished:
				return false, p.forget(q)
			case s == awake:
				p.busy = busy{q: q, i: i}
				return false, nil
			case s == idle:
				t.idle = true
			case s == polling:
				r.Polling = true
				if t.timer >= 0 && (r.Timer < 0 || t.timer < r.Timer) {
					r.Timer = t.timer
				}
			}
		}
	}
	return true, nil
}

// still tells whether all threads that slept at the last sweep have slept since: none has had a turn, and none
// is about to.
func (p *Prober) still() (bool, error) {
	for _, q := range p.procs {
		for i := range q.threads {
			t := &q.threads[i]
			turns, err := p.turns(t)
			if gone(err) {
				return false, p.forget(q)
			}
			if err != nil {
				return false, fmt.Errorf("thread %d: read schedstat: %w", t.tid, err)
			}
			if t.turns != turns {
				return false, nil
			}
			if t.sched < 0 { // without counts, its sleep is looked at again
				switch s, err := p.state(t); {
				case err != nil:
					return false, err
				case s == vanished:
					return false, p.forget(q)
				case s == awake:
					return false, nil
				}
			}
			if woken, err := p.woken(t); gone(err) {
				return false, p.forget(q)
			} else if err != nil {
				return false, fmt.Errorf("thread %d: read stat: %w", t.tid, err)
			} else if woken {
				return false, nil
			}
		}
	}
	return true, nil
}

// forget makes the next sweep read q's threads anew: one of them has ended.
func (p *Prober) forget(q *process) error {
	p.stale = true
	if err := p.refresh(q, true); err != nil && !gone(err) {
		return err
	}
	return nil
}

// delivered tells whether no packet waits in a processor's backlog. It counts the
// whole machine's: a busy neighbour makes it false for a moment, never true.
func (p *Prober) delivered() (bool, error) {
	n, err := read(p.softnet, p.buf)
	if err != nil {
		return false, fmt.Errorf("read softnet_stat: %w", err)
	}
	for line := range bytes.Lines(p.buf[:n]) {
		// The twelfth column, softnet_backlog_len in the kernel's net/core/net-procfs.c; columns are
		// hexadecimal and of equal width. A kernel older than 5.14 has none.
		const column, width = 11, 9
		if at := column * width; len(line) > at+width && !bytes.Equal(line[at:at+8], []byte("00000000")) {
			return false, nil
		}
	}
	return true, nil
}

// queues adds up what waits in the server's sockets, and in the oracle's own; in those that listen, and in Unix sockets, only
// if they are asked for. How much of what a socket holds has been sent is asked only where one holds
// anything: it makes the kernel's answer several times dearer.
func (p *Prober) queues(r *Rest, mine Mine, listeners bool) error {
	states := uint32(allButTimeWait)
	if !listeners {
		states &^= 1 << tcpListen
	}
	holds := false
	count := func(s *socket) {
		if s.mark == proto.Mark {
			r.Own += s.queued
			if s.inode == 0 && s.queued > 0 { // closed: nobody else can ask for it any more
				r.Flying++
			}
			return
		}
		if s.state != tcpListen && s.queued > 0 {
			holds = true
		}
		r.RecvQ += s.recv // of a listener: connections not accepted yet
		if s.recv > 0 && peerClosed(s.state) {
			r.RecvQ-- // the peer's FIN takes a sequence number and is never "read"
		}
	}
	if err := p.tcp(states, false, count); err != nil {
		return err
	}
	if holds {
		unread, unsent := map[ends]bool{}, map[ends]int{} // by the peer's ends
		if err := p.tcp(states, true, func(s *socket) {
			if s.recv > 0 && s.state != tcpListen {
				unread[ends{plain(s.addr), s.port, plain(s.peer), s.peerPort}] = true
			}
			if s.mark == proto.Mark {
				return
			}
			if s.state != tcpListen && s.queued > s.unsent {
				r.Flying += s.queued - s.unsent
			}
			r.SendQ += s.unsent
			if s.unsent > 0 {
				unsent[ends{plain(s.peer), s.peerPort, plain(s.addr), s.port}] += s.unsent
			}
		}); err != nil {
			return err
		}
		for peer, n := range unsent {
			if !unread[peer] {
				r.Corked += n
			}
		}
	}
	if !listeners {
		return nil
	}
	return p.unix(func(s *socket) {
		if !mine.Inodes[s.inode] && !mine.Paths[s.name] {
			r.RecvQ += s.recv // of a listener: connections not accepted yet
		}
	})
}

// ends are a connection's two ends, as one of them sees them.
type ends struct {
	addr     [16]byte
	port     uint16
	peer     [16]byte
	peerPort uint16
}

// plain is an IPv4 address as an IPv4 socket gives it: one of both families gives it mapped (RFC 4291 section 2.5.5.2).
func plain(a [16]byte) [16]byte {
	if mapped := [12]byte{10: 0xff, 11: 0xff}; [12]byte(a[:12]) == mapped {
		var v4 [16]byte
		copy(v4[:], a[12:])
		return v4
	}
	return a
}

// peerClosed tells whether a connection in this state has had the peer's FIN.
func peerClosed(state uint8) bool {
	return state == tcpCloseWait || state == tcpLastAck || state == tcpClosing
}

// Addr is an address on which a server may listen.
type Addr struct {
	Path string   // a Unix socket, or
	IP   [16]byte // an address as inet_diag gives it, and
	Port uint16
	Six  bool
}

// Listening tells whether sockets of the server listen on all of addrs. A
// wildcard address of the family, or [::] for IPv4, counts too.
func (p *Prober) Listening(addrs []Addr) (bool, error) {
	left := make(map[Addr]bool, len(addrs))
	for _, a := range addrs {
		left[a] = true
	}
	see := func(s *socket) {
		if s.state != tcpListen || s.mark == proto.Mark {
			return
		}
		six := s.family == unix.AF_INET6
		for a := range left {
			if a.Path == "" && a.Port == s.port && (a.Six == six && a.IP == s.addr || s.addr == [16]byte{} && (six || !a.Six)) {
				delete(left, a)
			}
		}
	}
	if err := p.tcp(1<<tcpListen, false, see); err != nil {
		return false, err
	}
	err := p.unix(func(s *socket) {
		if s.state == unixStateListen {
			delete(left, Addr{Path: s.name})
		}
	})
	return len(left) == 0, err
}

// AddrOf is an address as a dump shows it.
func AddrOf(ap netip.AddrPort) Addr {
	a := Addr{Port: ap.Port(), Six: ap.Addr().Is6() && !ap.Addr().Is4In6()}
	if a.Six {
		a.IP = ap.Addr().As16()
	} else {
		v4 := ap.Addr().Unmap().As4()
		copy(a.IP[:], v4[:])
	}
	return a
}

// ReadProc reads a file of the cell's /proc, at most 1 MiB of it.
func (p *Prober) ReadProc(name string) ([]byte, error) {
	fd, err := unix.Openat(p.proc, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: "/proc/" + name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<20))
}

// ReadLink reads a link of the cell's /proc.
func (p *Prober) ReadLink(name string) (string, error) {
	b := make([]byte, 4096)
	n, err := unix.Readlinkat(p.proc, name, b)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: "/proc/" + name, Err: err}
	}
	return string(b[:n]), nil
}
