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
		p := playAt(t, &slowly{fake: f, now: &now}, &now, script+"close\n")
		if p.record.Late != late {
			t.Errorf("%q: late %v, want %v", script, p.record.Late, late)
		}
	}
}

// playAt plays one client that sends "x" and goes on with script, by the clock that now shows.
func playAt(t *testing.T, cell Cell, now *time.Time, script string) *Player {
	t.Helper()
	p, err := NewPlayer(context.Background(), cell, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.now = func() time.Time { return *now }
	c, err := casefile.Parse("case", []byte("-- nginx.conf --\n-- client 1 --\nsend \"x\"\n"+script))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Play(context.Background(), c.Sections); err != nil {
		t.Fatal(err)
	}
	return p
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

// A client that acts late in the time of a short timer waits for the timer's end; one that acts early does not.
func TestActsBehindShortTimer(t *testing.T) {
	for script, want := range map[string]string{
		"settle\n":                         "xy",
		"settle\nsettle\nsettle\nsettle\n": "x",
	} {
		f := newFake(t, func(*peer) {})
		f.timer = 50
		now := time.Unix(0, 0)
		cell := &expires{slowly{fake: f, now: &now}, now.Add(60 * time.Millisecond)}
		playAt(t, cell, &now, script+"send \"y\"\nclose\n")
		if got := string(f.conns[0].in); got != want {
			t.Errorf("%q: the server has received %q, want %q", script, got, want)
		}
	}
}

// expires is a slow cell whose server closes its connections when a timer ends.
type expires struct {
	slowly
	at time.Time
}

func (e *expires) Probe(ctx context.Context) (engine.Rest, error) {
	r, err := e.slowly.Probe(ctx)
	if e.timer >= 0 && e.now.After(e.at) {
		e.timer = -1
		for _, p := range e.conns {
			p.close()
		}
	}
	return r, err
}

// A crowd that plays for longer than a server that has failed is left alone is slow; a shorter one, and one client, are not.
func TestLongCrowdIsSlow(t *testing.T) {
	for _, x := range []struct {
		tick  time.Duration
		lanes int
		want  bool
	}{{4 * time.Millisecond, 2, false}, {2 * time.Second, 2, true}, {2 * time.Second, 1, false}} {
		now := time.Unix(0, 0)
		f := newFake(t, func(*peer) {})
		p, err := NewPlayer(context.Background(), f, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		p.patient = time.Hour
		p.now = func() time.Time { now = now.Add(x.tick); return now }
		lanes := make([]Lane, x.lanes)
		for i := range lanes {
			lanes[i].Groups = [][]casefile.Section{{{Client: true, ID: i + 1}}}
		}
		if err := p.PlayLanes(context.Background(), lanes); err != nil {
			t.Fatal(err)
		}
		if p.record.Slow != x.want {
			t.Errorf("%d lanes, %v a look at the clock: slow %v, want %v", x.lanes, x.tick, p.record.Slow, x.want)
		}
	}
}
