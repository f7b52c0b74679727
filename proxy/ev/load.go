package ev

import "time"

// load says how long a wait may be hidden from the Go scheduler. Telling the scheduler costs more than the
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

// hidden is in milliseconds, 0 for a wait that the scheduler has to know of.
func (l *load) hidden(now time.Time) int {
	if max(l.count, l.past) < loadMany {
		return 0
	}
	return max(int((loadWindow-now.Sub(l.last))/time.Millisecond), 0)
}
