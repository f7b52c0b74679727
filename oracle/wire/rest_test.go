package wire

import (
	"testing"

	"nginxoracle/oracle/engine"
)

// A packet that is being delivered is waited for, whatever other connections do.
func TestFlyingBytesAreWaitedFor(t *testing.T) {
	var k calm
	for n := 1; n < looksFlying; n++ {
		if atRest, _ := k.add(engine.Rest{Alive: true, Asleep: true, Flying: 1}, queues{unread: true}); atRest {
			t.Fatalf("at rest after %d looks", n)
		}
	}
	if atRest, _ := k.add(engine.Rest{Alive: true, Asleep: true, Flying: 1}, queues{unread: true}); !atRest {
		t.Error("never at rest")
	}
}

// Bytes behind a full window stay where they are; those that the kernel holds back come, whatever other connections do.
func TestCorkedBytesAreWaitedFor(t *testing.T) {
	looks := func(corked int, ours queues) (n int) {
		var k calm
		for n = 1; n <= 10*looksOnWay; n++ {
			if atRest, _ := k.add(engine.Rest{Alive: true, Asleep: true, SendQ: 10, Corked: corked}, ours); atRest {
				break
			}
		}
		return n
	}
	if got := looks(0, queues{unread: true}); got != looksQueued {
		t.Errorf("behind a full window: at rest after %d looks, want %d", got, looksQueued)
	}
	if got := looks(10, queues{unread: true}); got != looksOnWay {
		t.Errorf("held back, with another connection unread: at rest after %d looks, want %d", got, looksOnWay)
	}
}
