package ev

// lazyDelay: a timer that is set again to a time this near (in ms) to the one it has is left alone
// (ngx_event_timer.h, NGX_TIMER_LAZY_DELAY).
const lazyDelay = 300

// timers is a heap by time; timers of one instant keep the order in which they were set.
type timers struct {
	heap []*Event
	seq  uint64
}

func (t *timers) less(i, j int) bool {
	a, b := t.heap[i], t.heap[j]
	return a.timerKey < b.timerKey || a.timerKey == b.timerKey && a.timerSeq < b.timerSeq
}

func (t *timers) swap(i, j int) {
	h := t.heap
	h[i], h[j] = h[j], h[i]
	h[i].heapIdx, h[j].heapIdx = i, j
}

func (t *timers) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !t.less(i, p) {
			return
		}
		t.swap(i, p)
		i = p
	}
}

func (t *timers) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(t.heap) {
			return
		}
		if c+1 < len(t.heap) && t.less(c+1, c) {
			c++
		}
		if !t.less(c, i) {
			return
		}
		t.swap(i, c)
		i = c
	}
}

func (t *timers) add(e *Event, key int64) {
	t.seq++
	e.timerKey, e.timerSeq, e.heapIdx = key, t.seq, len(t.heap)
	t.heap = append(t.heap, e)
	t.up(e.heapIdx)
	e.TimerSet = true
}

func (t *timers) del(e *Event) {
	i, last := e.heapIdx, len(t.heap)-1
	if i != last {
		t.swap(i, last)
	}
	t.heap[last] = nil
	t.heap = t.heap[:last]
	if i != last {
		t.down(i)
		t.up(i)
	}
	e.TimerSet = false
}

// AddTimer makes e.Handler be called in ms milliseconds, with TimedOut set.
func (l *Loop) AddTimer(e *Event, ms int64) {
	key := l.mono + ms
	if e.TimerSet {
		if d := key - e.timerKey; d > -lazyDelay && d < lazyDelay {
			return
		}
		l.timers.del(e)
	}
	l.timers.add(e, key)
}

// DelTimer forgets a timer; one that is not set is no fault.
func (l *Loop) DelTimer(e *Event) {
	if e.TimerSet {
		l.timers.del(e)
	}
}

// nextTimer is how long to wait, in ms: -1 without timers.
func (l *Loop) nextTimer() int {
	if len(l.timers.heap) == 0 {
		return -1
	}
	d := l.timers.heap[0].timerKey - l.mono
	return int(min(max(d, 0), 1<<31-1))
}

func (l *Loop) expireTimers() {
	for {
		l.Flush()
		if len(l.timers.heap) == 0 || l.timers.heap[0].timerKey > l.mono {
			return
		}
		e := l.timers.heap[0]
		l.timers.del(e)
		e.TimedOut = true
		l.invoke(e)
	}
}

// NoTimersLeft says that only timers that may be dropped are set (ngx_event_no_timers_left).
func (l *Loop) NoTimersLeft() bool {
	for _, e := range l.timers.heap {
		if !e.Cancelable {
			return false
		}
	}
	return true
}
