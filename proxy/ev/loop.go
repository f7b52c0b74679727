package ev

import (
	"runtime/debug"
	"sync"
	"syscall"

	"nginxoracle/proxy/elog"
)

// Loop is the event loop of one worker. Only its own goroutine may call it, but for Call and Stop.
type Loop struct {
	Sys Sys
	Log *elog.Log

	// MultiAccept: take all waiting connections at once. AcceptDelay, in ms, is how long accepting
	// pauses when there are no more descriptors. PostEvents: accept first, then timers, then the
	// rest (nginx with accept_mutex); otherwise events are handled in the kernel's order.
	MultiAccept bool
	AcceptDelay int64
	PostEvents  bool
	Exclusive   bool // listening sockets wake one worker only

	// Resolution, in ms, is how often the clocks are read; 0 is after every wait (timer_resolution).
	Resolution int64
	Exiting    bool // the worker shuts down gracefully: no connection is kept alive (ngx_exiting)

	// Panicked is told of a panic in a handler, with the stack in the text; the connection of the
	// event, if any, is closed after it.
	Panicked func(c *Conn)
	// Accepted may look at a new connection before its handler does (debug_connection).
	Accepted func(c *Conn)

	// Ahead gives the memory for what comes on a connection whose Read.Ahead is set.
	Ahead func(c *Conn) []byte

	// Scratch is the owner's memory for use within one call.
	Scratch any

	mono int64
	sec  int64
	msec int

	timers                           timers
	posted, postedNext, postedAccept queue
	ready                            []Ready
	waiting                          []later // responses that are sent before anything else is done
	flushing                         bool
	table                            table
	listeners                        []*Listener
	dates                            dates
	stop                             bool
	tick                             int64 // when the clocks are read next

	mu    sync.Mutex
	calls []func()
	spare []func()
}

// NewLoop makes a loop with a table of so many connections (worker_connections).
func NewLoop(sys Sys, connections int, log *elog.Log) *Loop {
	l := &Loop{Sys: sys, Log: log, AcceptDelay: 500, ready: make([]Ready, 512)}
	l.table.limit = connections
	l.table.free = connections
	l.table.more()
	l.updateTime()
	return l
}

func (l *Loop) updateTime() {
	l.sec, l.msec = l.Sys.Now()
	l.mono = l.Sys.Mono()
}

func (l *Loop) keepTime() {
	if l.Resolution == 0 {
		l.updateTime()
		return
	}
	sec, msec := l.Sys.Now()
	if mono := l.Sys.Mono(); mono >= l.tick {
		l.sec, l.msec, l.mono, l.tick = sec, msec, mono, mono+l.Resolution
	}
}

// Now is the wall clock at the last return from the kernel (ngx_time, ngx_timeofday).
func (l *Loop) Now() (sec int64, msec int) { return l.sec, l.msec }

// Mono is the monotonic clock in ms at the last return from the kernel (ngx_current_msec).
func (l *Loop) Mono() int64 { return l.mono }

// UpdateTime reads the clocks in the middle of a turn (ngx_time_update).
func (l *Loop) UpdateTime() { l.updateTime() }

// Shutdown begins the graceful end: it stops accepting and closes idle connections; it is over when
// NoTimersLeft (ngx_worker_process_cycle).
func (l *Loop) Shutdown() {
	if l.Exiting {
		return
	}
	l.Exiting = true
	l.StopListening()
	l.CloseIdle()
	l.runPosted(&l.posted)
}

// Call runs f on the loop, soon. It may be called from any goroutine.
func (l *Loop) Call(f func()) {
	l.mu.Lock()
	l.calls = append(l.calls, f)
	l.mu.Unlock()
	l.Sys.Wake()
}

// Stop ends Run after the present turn.
func (l *Loop) Stop() { l.Call(func() { l.stop = true }) }

func (l *Loop) runCalls() {
	l.Flush()
	l.mu.Lock()
	l.calls, l.spare = l.spare[:0], l.calls
	calls := l.spare
	l.mu.Unlock()
	for i, f := range calls {
		f()
		calls[i] = nil
	}
}

// Run turns until Stop.
func (l *Loop) Run() {
	for !l.stop {
		l.Turn()
	}
}

// Turn is one round: wait, then what the kernel reports, timers, and posted events
// (ngx_event.c, ngx_process_events_and_timers).
func (l *Loop) Turn() {
	timeout := l.nextTimer()
	if l.movePostedNext() || l.posted.head != nil {
		timeout = 0
	}
	if l.Resolution > 0 && (timeout < 0 || int64(timeout) > l.Resolution) {
		timeout = int(l.Resolution)
	}
	n, err := l.Sys.EpollWait(l.ready, timeout)
	l.keepTime()
	if err != nil && err != syscall.EINTR {
		l.Log.Err(elog.Alert, err, "epoll_wait() failed")
	}
	l.readAhead(l.ready[:n])
	for i := 0; i < n; i++ {
		l.report(&l.ready[i])
	}
	l.Flush()
	l.runPosted(&l.postedAccept)
	l.expireTimers()
	l.runPosted(&l.posted)
}

// report hands one descriptor's news to its events. A report for a connection that has been closed
// in this batch names a generation that is no more.
func (l *Loop) report(r *Ready) {
	if r.Slot == WakeSlot {
		l.runCalls()
		return
	}
	c := l.table.at(r.Slot)
	if c == nil || c.FD == -1 || c.gen != r.Gen {
		return
	}
	if r.Error || r.Hup {
		r.Read, r.Write = true, true
	}
	rev, wev := &c.Read, &c.Write
	if r.Read && rev.Active {
		if r.RdHup {
			rev.PendingEOF = true
		}
		rev.Ready, rev.drained, rev.deferred = true, false, false
		switch {
		case !l.PostEvents:
			l.invoke(rev)
		case rev.accept:
			l.postedAccept.push(rev)
		default:
			l.posted.push(rev)
		}
	}
	if r.Write && wev.Active {
		if c.FD == -1 || c.gen != r.Gen {
			return
		}
		wev.Ready = true
		if l.PostEvents {
			l.posted.push(wev)
		} else {
			l.invoke(wev)
		}
	}
}

// invoke calls a handler; a panic in it costs that connection only.
func (l *Loop) invoke(e *Event) {
	if e.Handler == nil {
		return
	}
	defer l.rescue(e.Conn)
	e.Handler(e)
}

func (l *Loop) rescue(c *Conn) {
	v := recover()
	if v == nil {
		return
	}
	if n, ok := v.(NoMemory); ok && c != nil && c.FD != -1 {
		c.Log.Err(elog.Emerg, syscall.ENOMEM, "%s", n.Error())
	} else {
		l.Log.Err(elog.Alert, nil, "panic in an event handler: %v: %s", v, debug.Stack())
	}
	if c == nil || c.FD == -1 || c.Read.accept {
		return
	}
	if l.Panicked != nil {
		func() {
			defer func() {
				if v := recover(); v != nil {
					l.Log.Err(elog.Alert, nil, "panic while closing a connection: %v", v)
				}
			}()
			l.Panicked(c)
		}()
	}
	if c.FD != -1 {
		l.CloseConn(c)
	}
}
