package ev

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"nginxoracle/proxy/elog"
)

// connectionCounter numbers connections over all workers (ngx_connection_counter).
var connectionCounter atomic.Uint64

// Counters of all workers, as stub_status shows them.
var Stats struct{ Accepted, Handled, Active, Requests, Reading, Writing, Waiting atomic.Int64 }

// NextNumber gives the next connection's number: upstream connections are numbered too.
func NextNumber() uint64 { return connectionCounter.Add(1) }

// Listen begins to accept on an open listening socket; it takes a slot of the table.
func (l *Loop) Listen(ls *Listener) error {
	c := l.NewConn(ls.FD)
	if c == nil {
		return syscall.ENFILE
	}
	c.Listener = ls
	c.Shared = true
	if ls.Log != nil {
		c.Log = ls.Log
	}
	c.Read.accept = true
	c.Read.Handler = l.accept
	ls.conn = c
	l.listeners = append(l.listeners, ls)
	return l.watch(ls)
}

func (l *Loop) watch(ls *Listener) error {
	mode := Accept
	if l.Exclusive {
		mode = AcceptExclusive
	}
	c := ls.conn
	if err := l.Sys.EpollAdd(c.FD, c.slot, c.gen, mode); err != nil {
		c.Log.Err(elog.Alert, err, "epoll_ctl(1, %d) failed", c.FD)
		return err
	}
	c.Read.Active = true
	return nil
}

// StopListening forgets the listening sockets, which stay open for others.
func (l *Loop) StopListening() {
	for _, ls := range l.listeners {
		if ls.conn.Read.Active {
			l.Sys.EpollDel(ls.FD)
		}
		l.release(ls.conn)
	}
	l.listeners = nil
}

// pause takes the listening sockets out of epoll while there are no descriptors
// (ngx_event_accept.c, ngx_disable_accept_events).
func (l *Loop) pause() {
	for _, ls := range l.listeners {
		if ls.conn.Read.Active {
			l.Sys.EpollDel(ls.FD)
			ls.conn.Read.Active = false
		}
	}
}

func (l *Loop) resume() bool {
	for _, ls := range l.listeners {
		if !ls.conn.Read.Active && l.watch(ls) != nil {
			return false
		}
	}
	return true
}

// accept takes waiting connections (ngx_event_accept.c, ngx_event_accept).
func (l *Loop) accept(e *Event) {
	if e.TimedOut {
		if !l.resume() {
			return
		}
		e.TimedOut = false
	}
	l.Flush()
	ls := e.Conn.Listener
	log := e.Conn.Log
	e.Ready = false
	for {
		fd, peer, err := l.Sys.Accept(ls.FD)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			if !l.acceptFailed(e, log, err) {
				return
			}
			continue
		}
		Stats.Accepted.Add(1)
		c := l.NewConn(fd)
		if c == nil {
			if err := l.Sys.Close(fd); err != nil {
				log.Err(elog.Alert, err, "close() socket failed")
			}
			return
		}
		Stats.Active.Add(1)
		l.admit(c, ls, peer, log)
		if !l.MultiAccept {
			return
		}
	}
}

// acceptFailed logs; true means to go on.
func (l *Loop) acceptFailed(e *Event, log *elog.Log, err error) bool {
	level := elog.Alert
	switch err {
	case syscall.EAGAIN:
		return false
	case syscall.ECONNABORTED:
		level = elog.Error
	case syscall.EMFILE, syscall.ENFILE:
		level = elog.Crit
	}
	log.Err(level, err, "accept4() failed")
	if err == syscall.ECONNABORTED {
		return l.MultiAccept
	}
	if err == syscall.EMFILE || err == syscall.ENFILE {
		l.pause()
		l.AddTimer(e, l.AcceptDelay)
	}
	return false
}

func (l *Loop) admit(c *Conn, ls *Listener, peer Addr, log *elog.Log) {
	c.log = elog.Log{Sink: log.Sink}
	c.Log = &c.log
	c.Listener = ls
	c.Peer = peer
	if peer.Family == UNIX {
		c.TCPNopush, c.TCPNodelay = TCPDisabled, TCPDisabled
	}
	if !ls.Wildcard {
		c.Local, c.bound = ls.Addr, true
	}
	c.Write.Ready = true
	c.Read.Ready, c.Read.deferred, c.Read.Unwatched = ls.Deferred, ls.Deferred, ls.Deferred
	c.Number = NextNumber()
	c.StartMs = l.mono
	Stats.Handled.Add(1)
	c.SetPeerText(c.Peer.AppendIP(c.text[:0]))
	defer l.rescue(c)
	if l.Accepted != nil {
		l.Accepted(c)
	}
	ls.Handler(c)
}

// SetPeerText sets PeerText from bytes that live in the connection when they fit.
func (c *Conn) SetPeerText(b []byte) {
	if len(b) > len(c.text) {
		c.PeerText = string(b)
		return
	}
	n := copy(c.text[:], b)
	c.PeerText = unsafe.String(&c.text[0], n)
}

// LocalAddr is the address that the connection was made to, asked of the kernel when the listener
// stands for many (ngx_connection_local_sockaddr).
func (c *Conn) LocalAddr() (*Addr, error) {
	if !c.bound {
		a, err := c.Loop.Sys.LocalAddr(c.FD)
		if err != nil {
			c.Fault(err, "getsockname() failed")
			return nil, err
		}
		c.Local, c.bound = a, true
	}
	return &c.Local, nil
}
