package wire

import (
	"context"
	"testing"
	"time"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/engine"
)

// Waits for the server's rest that are short each, but together long since the client acted, may have met a timer.
func TestWaitsAreLateTogether(t *testing.T) {
	for script, late := range map[string]bool{
		"settle\n":                               false,
		"settle\nsettle\nsettle\nsettle\n":       true,
		"settle\nsettle\nsend \"x\"\nsettle\n":   false,
		"settle\nsettle\nrecv none\nrecv none\n": true,
	} {
		f := newFake(t, func(*peer) {})
		now := time.Unix(0, 0)
		slow := &slowly{fake: f, now: &now}
		p, err := NewPlayer(context.Background(), slow, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		p.now = func() time.Time { return now }
		c, err := casefile.Parse("case", []byte("-- nginx.conf --\n-- client 1 --\nsend \"x\"\n"+script+"close\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Play(context.Background(), c.Sections); err != nil {
			t.Fatal(err)
		}
		if p.record.Late != late {
			t.Errorf("%q: late %v, want %v", script, p.record.Late, late)
		}
	}
}

// slowly is a cell that takes 4 ms for every look.
type slowly struct {
	*fake
	now *time.Time
}

func (f *slowly) Probe(ctx context.Context) (engine.Rest, error) {
	*f.now = f.now.Add(4 * time.Millisecond)
	return f.fake.Probe(ctx)
}
