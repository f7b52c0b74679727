package wire

import (
	"time"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/engine"
)

// kind is what a wait is for.
type kind int

const (
	forRecv    kind = iota // a framed message for c; given up at silence
	forAll                 // c's end; given up at silence, which is the usual outcome
	forNone                // silence, which c's end ends too
	forSend                // c's bytes taken by the kernel; given up when the server rests
	forTimers              // the server rests and none of its short timers runs; given up when c ends
	forLook                // the server rests; what c has to read is read
	forRest                // the server rests
	forSilence             // the server rests and no origin has steps due
	forFinish              // silence after which nothing is played
	forTime                // until has come
)

// goal is one wait.
type goal struct {
	kind  kind
	step  *casefile.Step // forRecv, forAll
	until time.Time      // forTime
}

// reads tells whether the waiting client's bytes are read meanwhile.
func (g goal) reads() bool { return g.kind <= forLook }

// met tells whether bytes alone have brought what c waits for.
func (g goal) met(c *conn) bool {
	switch g.kind {
	case forRecv:
		return c.satisfied(g.step)
	case forAll, forNone, forTimers, forLook:
		return c.ended
	case forSend:
		return len(c.out) == 0
	}
	return false
}

// Rest is told by the kernel, not by a clock: the server sleeps, its queues are
// empty and ours too, seen twice with nothing between.
//
// Bytes may rightly stay in a queue: a server does not read while it waits for an
// upstream, a script does not read while it pauses. Then the same picture must be
// seen more often and further apart, since bytes on their way through the kernel
// look the same for a moment. Bytes that the server has sent and that nobody keeps from
// being read are on their way for certain (Nagle's algorithm holds them back
// until ours acknowledges, RFC 896): an acknowledgement is sent at once, and
// they are waited for longer. What was sent and is not acknowledged is on its way even beside a connection that
// nobody reads: a packet that is being delivered stands in no queue, and a machine that is held up may take many
// milliseconds to deliver it. (One that was dropped for want of memory comes again later than that.) So are those that the kernel itself holds back (TCP_CORK).
const (
	looksEmpty  = 2
	looksQueued = 4
	looksFlying = 60
	looksOnWay  = 300
	lookApart   = time.Millisecond
	// A server that is awake is looked at again after awakeFirst, then twice that, up to lookApart.
	awakeFirst = 20 * time.Microsecond
	// How long a framed message is waited for before the kernel is asked: a server that
	// answers at once is never looked at.
	firstLook = 2 * time.Millisecond
)

// calm counts equal pictures of a server at rest in a row.
type calm struct {
	rest  engine.Rest
	looks int
	dozed bool          // before the first of them all threads slept, and have slept since
	awake time.Duration // the last pause for a server that is awake
}

// restart forgets what was seen.
func (k *calm) restart() { k.looks, k.dozed = 0, false }

// fresh tells whether nothing has been seen yet.
func (k *calm) fresh() bool { return k.looks == 0 && !k.dozed }

// add adds what a look has shown, and tells whether the server rests, and if it
// does not, how long to wait before the next look.
func (k *calm) add(r engine.Rest, ours queues) (atRest bool, pause time.Duration) {
	if r.Alive && !r.Asleep {
		k.restart()
		k.awake = min(max(awakeFirst, 2*k.awake), lookApart)
		return false, k.awake
	}
	if k.rest != r {
		k.looks = 0
	}
	k.rest = r
	k.looks++
	switch {
	case !r.Alive:
		return k.looks >= looksEmpty, 0
	case ours.onWay || r.Corked > 0 || r.SendQ+r.Flying > 0 && !ours.unread:
		return k.looks >= looksOnWay, min(awakeFirst<<min(k.looks, 10), lookApart)
	case r.Flying > 0:
		return k.looks >= looksFlying, lookApart
	case r.RecvQ+r.SendQ+r.Flying > 0:
		return k.looks >= looksQueued, lookApart
	}
	return k.looks >= looksEmpty || k.dozed, 0
}

// queues is what waits in the sockets of the oracle's own.
type queues struct {
	onWay  bool // written bytes are about to move
	unread bool // bytes have come that no script reads now
}

// queues looks at all open connections. Where the server waits for an
// acknowledgement, it gets one.
func (p *Player) queues(r engine.Rest) (q queues) {
	for _, c := range p.slots {
		if c == nil || c.fd < 0 {
			continue
		}
		q.unread = q.unread || c.readable && !c.ended
		q.onWay = q.onWay || r.Own > 0 && !c.stalled && !c.ended && onWay(c.fd)
		if r.SendQ+r.Flying > 0 {
			acknowledge(c.fd)
		}
	}
	return q
}

// A server that rests may be about to do more because a timer of its own ends:
// a rate limit, a timeout that the configuration sets short. Whether it ends before we
// look away would be chance, so what is due soon is waited for; what is due later
// (keep-alive, lingering close, read timeouts, by default 5 seconds and more) is not.
const (
	timerSoon     = 500 * time.Millisecond
	timerPatience = 3 * time.Second // a timer that comes again and again and moves nothing
)

// timers tells whether g waits for the server's timers too.
func (g goal) timers() bool { return g.kind == forRecv || g.kind == forAll || g.kind == forFinish }

// timerDue tells whether the server's next timer is worth waiting for, when nothing has moved for idle.
func (p *Player) timerDue(idle time.Duration) bool {
	t := time.Duration(p.last.Timer) * time.Millisecond
	return p.last.Alive && 0 <= t && t <= timerSoon && idle < timerPatience
}

// Configurations set timers of 50 ms for what is to be met in a run. A client that acts while another
// one's wait has taken up much of that time would act before or behind the timer's end by chance.
const (
	shortTimer = 60 * time.Millisecond
	longSince  = 25 * time.Millisecond
)

// shortTimerRuns tells whether the server sleeps no longer than a timer that is short.
func (p *Player) shortTimerRuns() bool {
	return p.last.Alive && 0 <= p.last.Timer && time.Duration(p.last.Timer)*time.Millisecond <= shortTimer
}

// firstPause is how long bytes are waited for before the kernel is asked.
func (g goal) firstPause() time.Duration {
	if g.kind == forRecv {
		return firstLook
	}
	return 0
}

// poll waits up to d for events and handles them, and lets origins go on whose
// pause is over. It tells whether anything moved: bytes, an end, a script.
func (p *Player) poll(d time.Duration) (moved bool, err error) {
	if 0 < d && d < time.Millisecond {
		if err := nap(p.ep, d); err != nil {
			return false, err
		}
	}
	n, err := epollWait(p.ep, p.evs[:], max(0, int(d/time.Millisecond)))
	if err != nil {
		return false, err
	}
	for _, ev := range p.evs[:n] {
		m, err := p.event(ev)
		if err != nil {
			return false, err
		}
		moved = moved || m
	}
	m, err := p.wakeUp()
	return moved || m, err
}

func (p *Player) event(ev unix.EpollEvent) (moved bool, err error) {
	if ev.Fd < 0 {
		return true, p.accept(int(-1 - ev.Fd))
	}
	c := p.slots[ev.Fd]
	if c == nil {
		return false, nil
	}
	c.readable = c.readable || ev.Events&^unix.EPOLLOUT != 0
	c.hup = c.hup || ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	switch {
	case c.origin != nil:
		return p.advance(c, false)
	case c.lane != nil && c.lane.conn == c && c.lane.goal.reads():
		before := len(c.out)
		c.flush()
		moved = c.read(p.buf)
		return moved || len(c.out) != before, nil
	}
	return false, nil
}
