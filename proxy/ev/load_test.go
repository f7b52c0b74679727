package ev

import (
	"testing"
	"time"
)

// A worker hides its waits while much comes, and stops when nothing has come for a window.
func TestLoad(t *testing.T) {
	var l load
	now := time.Unix(1000, 0)
	turn := func(after time.Duration, n int) bool {
		now = now.Add(after)
		l.add(n)
		l.at(now)
		return l.hidden(now)
	}
	if turn(0, 1) {
		t.Error("one report: hidden")
	}
	for range 2 * loadMany {
		turn(time.Millisecond/2, 1)
	}
	if !turn(time.Millisecond, 1) {
		t.Error("two reports a millisecond: not hidden")
	}
	if !turn(30*time.Millisecond, 0) {
		t.Error("silent for 30 ms: not hidden")
	}
	if turn(70*time.Millisecond, 0) {
		t.Error("silent for a window: hidden")
	}
	if turn(time.Second, 1) {
		t.Error("one report after a second: hidden")
	}
}
