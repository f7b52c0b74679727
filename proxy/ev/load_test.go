package ev

import (
	"testing"
	"time"
)

// A worker hides its waits while much comes, and stops when nothing has come for a window.
func TestLoad(t *testing.T) {
	var l load
	now := time.Unix(1000, 0)
	turn := func(after time.Duration, n int) int {
		now = now.Add(after)
		l.add(n)
		l.at(now)
		return l.hidden(now)
	}
	if h := turn(0, 1); h != 0 {
		t.Errorf("one report: hidden for %d ms", h)
	}
	for range 2 * loadMany {
		turn(time.Millisecond/2, 1)
	}
	if h := turn(time.Millisecond, 1); h != 100 {
		t.Errorf("two reports a millisecond: hidden for %d ms, want 100", h)
	}
	if h := turn(30*time.Millisecond, 0); h != 70 {
		t.Errorf("silent for 30 ms: hidden for %d ms, want 70", h)
	}
	if h := turn(70*time.Millisecond, 0); h != 0 {
		t.Errorf("silent for a window: hidden for %d ms", h)
	}
	if h := turn(time.Second, 1); h != 0 {
		t.Errorf("one report after a second: hidden for %d ms", h)
	}
}
