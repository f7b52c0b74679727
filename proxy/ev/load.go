package ev

import "time"

// load says whether a wait may be hidden from the Go scheduler. Telling the scheduler costs more than the
// wait itself: each time, its watchdog (sysmon) starts over with waking every 20 µs, which took a fifth of
// a busy worker's time. A hidden wait looks like work: the watchdog interrupts it every 10 ms, and a collection
// does when there is one. So only a worker with much to do hides its waits, and an idle process sleeps.
type load struct {
	begin, last time.Time // of the window that is counted; of the last report
	count, past int       // reports in this window and the one before
	got         int       // reports since the clock was read
}

const (
	loadWindow = 100 * time.Millisecond
	loadMany   = 40 // reports in a window that are much to do

	// hiddenMost bounds a hidden wait, in milliseconds. The watchdog ends it long before; the bound is for a process in which
	// it may not (GODEBUG=asyncpreemptoff=1). Who looks at the process from outside takes it for a timer's: it
	// must not look like one that ends soon.
	hiddenMost = 1000
)

func (l *load) add(n int) { l.got += n }

// at counts what came since the last reading of the clock.
func (l *load) at(now time.Time) {
	if d := now.Sub(l.begin); d >= loadWindow {
		l.past = l.count
		if d >= 2*loadWindow {
			l.past = 0
		}
		l.begin, l.count = now, 0
	}
	if l.got > 0 {
		l.count += l.got
		l.got, l.last = 0, now
	}
}

// hidden tells whether the next wait may be hidden.
func (l *load) hidden(now time.Time) bool {
	return max(l.count, l.past) >= loadMany && now.Sub(l.last) < loadWindow
}
