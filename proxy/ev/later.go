package ev

// Later is a response that is ready and not yet sent.
type Later interface{ SendNow() }

// later is one that waits, and whose it is.
type later struct {
	c *Conn
	l Later
}

// laterMost is how many responses wait at most: what belongs to them stays in the processor's first caches.
const laterMost = 16

// SendLater lets a response wait while the loop only reads: the requests of one wait for events are worked on
// one after the other, and then their responses are sent, which costs less than to change between the two with
// every request. Nothing that can be seen changes its order: before any other send, and before a connection is made,
// accepted or closed, a log is written, a counter shown, a timer or a posted event handled, all that wait are sent, in
// the order in which they became ready.
func (l *Loop) SendLater(c *Conn, r Later) {
	if len(l.waiting) == laterMost {
		l.Flush()
	}
	l.waiting = append(l.waiting, later{c, r})
}

// Flush sends what waits.
func (l *Loop) Flush() {
	if len(l.waiting) != 0 && !l.flushing {
		l.flush()
	}
}

func (l *Loop) flush() {
	l.flushing = true
	for i := 0; i < len(l.waiting); i++ {
		l.sendNow(&l.waiting[i])
		l.waiting[i] = later{}
	}
	l.waiting, l.flushing = l.waiting[:0], false
}

func (l *Loop) sendNow(w *later) {
	defer l.rescue(w.c)
	w.l.SendNow()
}

// readAhead reads what has come on idle connections before any of it is worked on, so that the reads, too, stand
// together. Nobody sees from outside when a byte is read but by how a connection ends that is closed with bytes unread:
// not while idle connections may have to go (drain), nor when the worker has been told something.
func (l *Loop) readAhead(ready []Ready) {
	if len(ready) < 2 || l.Ahead == nil || l.table.free <= l.table.limit/16 {
		return
	}
	for i := range ready {
		if ready[i].Slot == WakeSlot {
			return
		}
	}
	for i := range ready {
		r := &ready[i]
		c := l.table.at(r.Slot)
		if !r.Read || c == nil || c.FD == -1 || c.gen != r.Gen || !c.Read.Active || !c.Read.Ahead {
			continue
		}
		l.readNow(c)
	}
}

func (l *Loop) readNow(c *Conn) {
	defer l.rescue(c)
	p := l.Ahead(c)
	c.aheadN, c.aheadErr = l.Sys.Read(c.FD, p)
	c.ahead = true
}
