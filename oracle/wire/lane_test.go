package wire

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/engine"
)

// dozer is a cell whose server always seems to sleep at half a look, and has run since at most whole ones.
type dozer struct {
	*fake
	looks int
}

func (d *dozer) Doze(context.Context) (engine.Rest, error) {
	return engine.Rest{Alive: true, Asleep: true, Timer: -1}, nil
}

func (d *dozer) Glance(ctx context.Context) (engine.Rest, error) {
	if d.looks++; d.looks%4 != 0 {
		return engine.Rest{Alive: true, Timer: -1}, nil
	}
	return d.fake.Probe(ctx)
}

// lanesOf plays a case's clients in a lane each, with the origins that serve them.
func lanesOf(t *testing.T, cell Cell, text string, serves map[int]string) Record {
	t.Helper()
	c, err := casefile.Parse("case", []byte("-- nginx.conf --\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlayer(t.Context(), cell, c.Origins)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var lanes []Lane
	for i := range c.Sections {
		l := Lane{Groups: [][]casefile.Section{c.Sections[i : i+1]}}
		if o := serves[i]; o != "" {
			l.Origins = []string{o}
		}
		lanes = append(lanes, l)
	}
	if err := p.PlayLanes(t.Context(), lanes); err != nil {
		t.Fatal(err)
	}
	r, err := p.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Half a look is no rest: only the other half tells that the server has slept in between.
func TestDozeIsNoRest(t *testing.T) {
	d := &dozer{fake: newFake(t, answerEach)}
	r := lanesOf(t, d, `-- client 1 --
send "GET / HTTP/1.1\r\n\r\n"
recv none
reset
-- client 2 --
send "GET / HTTP/1.1\r\n\r\n"
settle
reset
`, nil)
	wantEnds(t, "clients", r.Clients, "local "+ok, "local "+ok)
}

// At one rest an origin of one lane goes on, and the client of another; a client waits for the origins of its own lane.
func TestLanesRestTogether(t *testing.T) {
	const addr = "127.0.0.1:9001"
	f := newFake(t, nil)
	var seen []string
	f.serve = func(p *peer) {
		for len(p.in) > 0 {
			line := string(p.in[:1])
			p.in = p.in[1:]
			if seen = append(seen, line); line == "a" { // the client of the origin's lane
				up := f.upstream(addr)
				up.send("request")
			}
		}
	}
	r := lanesOf(t, &dozer{fake: f}, `-- origin 127.0.0.1:9001 --
recv 7
settle
send "o"
settle
send "p"
-- client 1 --
send "a"
settle
send "b"
-- client 2 --
send "1"
settle
send "2"
settle
send "3"
settle
send "4"
`, map[int]string{0: addr})
	wantEnds(t, "origin", r.Origins, "open request")
	at := map[string]int{}
	for i, s := range seen {
		at[s] = i
	}
	for _, order := range []string{"op", "pb", "2p", "3b"} {
		x, y := order[:1], order[1:]
		if i, ok := at[x]; !ok || i > at[y] {
			t.Errorf("the server saw %q, want %s before %s", seen, x, y)
		}
	}
}

// At the end of all lanes, what an origin of any of them still has to say is over before the next connection is closed.
func TestFinishWaitsForOriginsOfAllLanes(t *testing.T) {
	const addr = "127.0.0.1:9001"
	var seen []string
	f := newFake(t, nil)
	f.serve = func(p *peer) {
		name, _ := p.data.(string)
		switch {
		case name == "" && string(p.in) != "x":
			for ; len(p.in) > 0; p.in = p.in[1:] { // of the client
				up := f.upstream(addr)
				up.data = string(p.in[:1])
				up.send("request")
			}
		case name == "" || len(p.in) > 0:
			seen = append(seen, name+string(p.in))
			p.in = nil
		case p.eof:
			seen = append(seen, name+" gone")
			if name == "1" {
				next := f.upstream(addr)
				next.data = "next"
				next.send("request")
			}
			p.close()
		}
	}
	lanesOf(t, &dozer{fake: f}, `-- origin 127.0.0.1:9001 --
connection
recv 7
connection
recv 7
connection
recv 7
settle
send " answered"
-- client 1 --
send "x"
-- client 2 --
send "12"
`, map[int]string{1: addr})
	want := []string{"x", "1 gone", "next answered", "2 gone", "next gone"}
	if d := cmp.Diff(want, seen); d != "" {
		t.Errorf("the server saw (-want +got):\n%s", d)
	}
}
