package ev

import (
	"syscall"

	"nginxoracle/proxy/elog"
)

// table is the connections of a worker: slots that are made beforehand, as nginx does, up to slotPart of them,
// and used again; more are made in parts (ngx_cycle_t.connections).
type table struct {
	slots    []*Conn
	freeList *Conn
	limit    int
	free     int // how many more there may be

	reuseHead, reuseTail *Conn // idle ones; the head was idle last
	reusable             int
	reuseWarned          int64
}

const slotPart = 16384

// more makes slots for the free list, the lowest first.
func (t *table) more() {
	part := make([]Conn, min(slotPart, t.limit-len(t.slots)))
	for i := range part {
		part[i].slot = uint32(len(t.slots))
		t.slots = append(t.slots, &part[i])
	}
	for i := len(part) - 1; i >= 0; i-- {
		part[i].FD = -1
		part[i].next, t.freeList = t.freeList, &part[i]
	}
}

func (t *table) at(slot uint32) *Conn {
	if int(slot) >= len(t.slots) {
		return nil
	}
	return t.slots[slot]
}

// NewConn takes a slot for a descriptor; nothing is registered. It is nil, and logged, when
// worker_connections are not enough (ngx_get_connection).
func (l *Loop) NewConn(fd int) *Conn {
	l.Flush()
	l.drain()
	t := &l.table
	if t.free == 0 {
		l.Log.Err(elog.Alert, nil, "%d worker_connections are not enough", t.limit)
		return nil
	}
	t.free--
	if t.freeList == nil {
		t.more()
	}
	c := t.freeList
	t.freeList = c.next
	*c = Conn{FD: fd, Loop: l, IO: Plain, Log: l.Log, slot: c.slot, gen: c.gen + 1}
	c.Read.Conn, c.Write.Conn = c, c
	c.Write.Write = true
	return c
}

// Reserve takes a slot for good, for what nginx keeps a connection for: its channel to the master.
func (l *Loop) Reserve() { l.table.free-- }

// Limit and Free are worker_connections and how many of them are left.
func (l *Loop) Limit() int { return l.table.limit }
func (l *Loop) Free() int  { return l.table.free }

// Slot numbers a connection's place: two that are open have different ones.
func (c *Conn) Slot() int { return int(c.slot) }

// Add registers a connection's both directions, once; a second call is no fault
// (ngx_epoll_module.c, ngx_epoll_add_connection).
func (l *Loop) Add(c *Conn) error {
	if c.Read.Active {
		return nil
	}
	if err := l.Sys.EpollAdd(c.FD, c.slot, c.gen, Both); err != nil {
		c.Log.Err(elog.Alert, err, "epoll_ctl(1, %d) failed", c.FD)
		return err
	}
	c.Read.Active, c.Write.Active = true, true
	return nil
}

// AskWrite says that nginx asks the kernel about writing from here on: the loop has from the start. Where again, what nginx's
// second registration brings comes here too: what is there to read, and the end of it, is reported once more.
func (l *Loop) AskWrite(c *Conn, again bool) {
	if c.Write.Asked {
		return
	}
	c.Write.Asked = true
	if !again || !c.Read.Active {
		return
	}
	err := l.Sys.EpollDel(c.FD)
	if err == nil {
		err = l.Sys.EpollAdd(c.FD, c.slot, c.gen, Both)
	}
	if err != nil {
		c.Log.Err(elog.Alert, err, "epoll_ctl(3, %d) failed", c.FD)
	}
}

// CloseConn forgets a connection's timers and posted events, closes its descriptor and frees its slot
// (ngx_close_connection).
func (l *Loop) CloseConn(c *Conn) {
	l.Flush()
	if c.FD == -1 {
		c.Log.Err(elog.Alert, nil, "connection already closed")
		return
	}
	fd := l.release(c)
	if c.Shared {
		return
	}
	if err := l.Sys.Close(fd); err != nil {
		level := elog.Crit
		if err == syscall.ECONNRESET || err == syscall.ENOTCONN {
			switch c.LogError {
			case ErrorInfo:
				level = elog.Info
			case ErrorErr:
				level = elog.Error
			}
		}
		c.Log.Err(level, err, "close() socket %d failed", fd)
	}
}

// FreeConn gives a slot back and leaves its descriptor, which the kernel forgets to watch only when
// it is closed, to the caller (ngx_free_connection).
func (l *Loop) FreeConn(c *Conn) int { return l.release(c) }

func (l *Loop) release(c *Conn) int {
	l.Flush()
	l.DelTimer(&c.Read)
	l.DelTimer(&c.Write)
	l.DelPosted(&c.Read)
	l.DelPosted(&c.Write)
	l.Reusable(c, false)
	fd := c.FD
	c.FD = -1
	c.Read.Active, c.Write.Active = false, false
	c.next = l.table.freeList
	l.table.freeList = c
	l.table.free++
	return fd
}

// Reusable puts a connection among those that may be closed when more are needed, or takes it out
// (ngx_reusable_connection).
func (l *Loop) Reusable(c *Conn, on bool) {
	t := &l.table
	if c.Reusable {
		if c.reusePrev == nil {
			t.reuseHead = c.reuseNext
		} else {
			c.reusePrev.reuseNext = c.reuseNext
		}
		if c.reuseNext == nil {
			t.reuseTail = c.reusePrev
		} else {
			c.reuseNext.reusePrev = c.reusePrev
		}
		c.reusePrev, c.reuseNext = nil, nil
		t.reusable--
		Stats.Waiting.Add(-1)
	}
	c.Reusable = on
	if on {
		c.reuseNext = t.reuseHead
		if t.reuseHead == nil {
			t.reuseTail = c
		} else {
			t.reuseHead.reusePrev = c
		}
		t.reuseHead = c
		t.reusable++
		Stats.Waiting.Add(1)
	}
}

// ReusableCount is how many connections wait (stub_status' Waiting).
func (l *Loop) ReusableCount() int { return l.table.reusable }

// drain closes some idle connections when few slots are left (ngx_drain_connections).
func (l *Loop) drain() {
	t := &l.table
	if t.free > t.limit/16 || t.reusable == 0 {
		return
	}
	if t.reuseWarned != l.sec {
		t.reuseWarned = l.sec
		l.Log.Err(elog.Warn, nil, "%d worker_connections are not enough, reusing connections", t.limit)
	}
	var c *Conn
	for n := max(min(32, t.reusable/8), 1); n > 0 && t.reuseTail != nil; n-- {
		c = t.reuseTail
		c.Close = true
		l.invoke(&c.Read)
	}
	if t.free == 0 && c != nil && c.Reusable {
		c.Close = true
		l.invoke(&c.Read)
	}
}

// CloseIdle tells every idle connection to close, for a worker that is shutting down
// (ngx_close_idle_connections).
func (l *Loop) CloseIdle() {
	l.Flush()
	for _, c := range l.table.slots {
		if c.FD != -1 && c.Idle {
			c.Close = true
			l.invoke(&c.Read)
		}
	}
}

// Each calls f for every open connection but the listening ones.
func (l *Loop) Each(f func(c *Conn)) {
	for _, c := range l.table.slots {
		if c.FD != -1 && !c.Read.accept {
			f(c)
		}
	}
}
