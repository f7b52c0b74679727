package wire

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/observe"
)

const okResponse = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// answerEach answers every complete request with okResponse.
func answerEach(p *peer) {
	for {
		i := bytes.Index(p.in, []byte("\r\n\r\n"))
		if i < 0 {
			break
		}
		p.in = p.in[i+4:]
		p.send(okResponse)
	}
	if p.eof {
		p.close()
	}
}

// ends is what matters of the connections, in a line each.
func ends(list []observe.Conn) (out []string) {
	for _, c := range list {
		s := string(c.End) + " " + string(casefile.AppendEscaped(nil, c.Recv))
		if c.Note != "" {
			s += " (" + c.Note + ")"
		}
		out = append(out, s)
	}
	return out
}

func wantEnds(t *testing.T, what string, list []observe.Conn, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, ends(list)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

const ok = `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`

func TestResponsesAndMarks(t *testing.T) {
	r := play(t, newFake(t, answerEach), `-- client 1 --
send "GET / HTTP/1.1\r\n\r\n" "GET / HTTP/1.1\r\n\r\n"
recv response
recv 10
recv all
close
`)
	wantEnds(t, "client", r.Clients, "open "+ok+ok)
	if d := cmp.Diff([]int{40, 50, 80}, r.Clients[0].Marks); d != "" {
		t.Errorf("marks: %s", d)
	}
	if r.Timeouts != 0 {
		t.Errorf("last-resort timeouts: %d", r.Timeouts)
	}
}

// What comes behind the response is part of the observation: close looks for it.
func TestCloseBehindRecvSeesStrayBytes(t *testing.T) {
	f := newFake(t, func(p *peer) {
		if len(p.in) > 0 && p.data == nil {
			p.data = true
			p.send(okResponse)
			p.send("stray")
		}
	})
	r := play(t, f, `-- client 1 --
send "x"
recv response
close
`)
	wantEnds(t, "client", r.Clients, "open "+ok+"stray")
}

// A close waits until the server has finished, and reads what no step has read:
// what is observed does not depend on what came in time.
func TestCloseLooksFirst(t *testing.T) {
	for _, end := range []string{"close", "reset"} {
		r := play(t, newFake(t, answerEach), `-- client 1 --
send "GET / HTTP/1.1\r\n\r\n" "GET / HTTP/1.1\r\n\r\n"
recv response
send "GET"
`+end+"\n")
		want := map[string]string{"close": "open ", "reset": "local "}[end]
		wantEnds(t, end, r.Clients, want+ok+ok)
	}
}

// Two sends, and a send and a half-close, reach the server one after the other.
func TestStepsAreSeenOneByOne(t *testing.T) {
	var seen []string
	f := newFake(t, func(p *peer) {
		if len(p.in) > 0 || p.eof {
			seen = append(seen, fmt.Sprintf("%s %v", p.in, p.eof))
			p.in = nil
		}
	})
	play(t, f, "-- client 1 --\nsend \"one\"\nsend \"two\"\nshutdown\n")
	if d := cmp.Diff([]string{"one false", "two false", " true"}, seen); d != "" {
		t.Errorf("the server saw: %s", d)
	}
}

// The same holds for what an origin does.
func TestOriginsStepsAreSeenOneByOne(t *testing.T) {
	var seen []string
	f := newFake(t, nil)
	proxy := proxyTo(f, "127.0.0.1:9001")
	f.serve = func(p *peer) {
		if len(f.conns) == 2 && p == f.conns[1] {
			seen = append(seen, fmt.Sprintf("%s %v", p.in, p.eof))
		}
		proxy(p)
	}
	play(t, f, `-- origin 127.0.0.1:9001 --
recv all
send "one"
send "two"
close
-- client 1 --
send "x"
recv all
`)
	if d := cmp.Diff([]string{"one false", "two false", " true"}, seen); d != "" {
		t.Errorf("the server saw: %s", d)
	}
}

// What an origin sends before it has taken the request is noticed by the server before it goes on: the
// request that it takes then has come already, and answers nothing.
func TestOriginsEarlyAnswerIsSeenBeforeItsEnd(t *testing.T) {
	for _, take := range []string{"recv request", "recv headers", "recv 5"} {
		var seen []string
		f := newFake(t, nil)
		proxy := proxyTo(f, "127.0.0.1:9001")
		f.serve = func(p *peer) {
			if len(f.conns) == 2 && p == f.conns[1] {
				seen = append(seen, fmt.Sprintf("%s %v", p.in, p.eof))
			}
			proxy(p)
		}
		play(t, f, "-- origin 127.0.0.1:9001 --\nconnection\nsend \"one\"\n"+take+`
close
-- client 1 --
send "GET / HTTP/1.1\r\n\r\n"
recv all
`)
		if d := cmp.Diff([]string{"one false", " true"}, seen); d != "" {
			t.Errorf("%s: the server saw: %s", take, d)
		}
	}
}

// Behind a response that says "close" the end is there before the next step.
func TestAnnouncedEndIsWaitedFor(t *testing.T) {
	f := newFake(t, func(p *peer) {
		switch {
		case len(p.in) > 0 && p.data == nil:
			p.data = true
			p.send("HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n")
			p.in = nil
		case p.data != nil:
			p.close()
		}
	})
	// The server closes one turn after its answer.
	turns := &turning{fake: f}
	ctx := context.Background()
	p, err := NewPlayer(ctx, turns, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c, err := casefile.Parse("case", []byte("-- nginx.conf --\n-- client 1 --\nsend \"a\"\nrecv response\nsend \"b\"\nrecv response\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Play(ctx, c.Sections); err != nil {
		t.Fatal(err)
	}
	wantEnds(t, "client", p.record.Clients, `closed HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n`)
}

// turning lets the server have a turn with each connection whenever nothing else
// happens, and says that it was awake when that changed something.
type turning struct{ *fake }

func (f *turning) Probe(ctx context.Context) (engine.Rest, error) {
	r, err := f.fake.Probe(ctx)
	for _, p := range f.conns {
		if r.Asleep && !p.closed && p.data != nil {
			f.serve(p)
			r.Asleep = false
		}
	}
	return r, err
}

func TestEnds(t *testing.T) {
	do := func(what func(*peer)) func(*peer) {
		return func(p *peer) {
			if len(p.in) > 0 && !p.closed {
				what(p)
			}
		}
	}
	for _, tt := range []struct {
		name  string
		serve func(*peer)
		want  string
	}{
		{"closed", do(func(p *peer) { p.send("bye"); p.close() }), "closed bye"},
		{"reset", do(func(p *peer) { p.reset() }), "reset "},
		{"open", do(func(p *peer) { p.send("still here") }), "open still here"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := play(t, newFake(t, tt.serve), "-- client 1 --\nsend \"x\"\n")
			wantEnds(t, "client", r.Clients, tt.want)
			if len(r.Clients[0].Marks) != 0 {
				t.Errorf("the implied recv has left a mark: %v", r.Clients[0].Marks)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		f := newFake(t, answerEach)
		f.down = true
		r := play(t, f, "-- client 1 --\nsend \"x\"\nrecv all\n")
		wantEnds(t, "client", r.Clients, "refused ")
	})
	t.Run("died", func(t *testing.T) {
		f := newFake(t, func(*peer) {})
		f.serve = func(p *peer) { f.dead = len(p.in) > 0 }
		r := play(t, f, "-- client 1 --\nsend \"x\"\nrecv all\n")
		wantEnds(t, "client", r.Clients, "died ")
	})
}

func TestSendAfterTheEndIsNoted(t *testing.T) {
	f := newFake(t, func(p *peer) {
		if len(p.in) > 0 {
			p.reset()
		}
	})
	r := play(t, f, `-- client 1 --
send "a"
recv all
send "b"
recv all
`)
	wantEnds(t, "client", r.Clients, "reset  (send failed: broken pipe)")
}

// A server that stops reading makes a big send stall: noted, and not a timeout.
func TestSendStalls(t *testing.T) {
	f := newFake(t, func(*peer) {})
	f.serve = func(p *peer) { p.eof = true } // never reads
	r := play(t, f, "-- client 1 --\nsend \"x\"*20000000\nreset\n")
	wantEnds(t, "client", r.Clients, "local  (send stalled: the server has stopped reading)")
	if r.Timeouts != 0 {
		t.Errorf("last-resort timeouts: %d", r.Timeouts)
	}
}

func TestSettleSplitsAtTheByte(t *testing.T) {
	var seen []string
	f := newFake(t, func(p *peer) {
		if len(p.in) > 0 {
			seen = append(seen, string(p.in))
			p.in = nil
		}
	})
	play(t, f, `-- client 1 --
send "one"
settle
send "two"
recv none
send "three"
close
`)
	if d := cmp.Diff([]string{"one", "two"}, seen[:2]); d != "" {
		t.Errorf("the server read: %s", d)
	}
}

func TestRecvNoneConsumesNothing(t *testing.T) {
	r := play(t, newFake(t, answerEach), `-- client 1 --
send "GET / HTTP/1.1\r\n\r\n"
recv none
recv response
close
`)
	if d := cmp.Diff([]int{0, 40}, r.Clients[0].Marks); d != "" {
		t.Errorf("marks: %s", d)
	}
}

// Clients that run together take their steps in turn.
func TestTogetherInTurn(t *testing.T) {
	var order []string
	f := newFake(t, func(p *peer) {
		if len(p.in) > 0 {
			order = append(order, string(p.in))
			p.in = nil
		}
	})
	play(t, f, `-- client 1 --
send "a1"
settle
send "a2"
settle
-- client 2 with 1 --
send "b1"
settle
send "b2"
settle
`)
	if d := cmp.Diff([]string{"a1", "b1", "a2", "b2"}, order); d != "" {
		t.Errorf("order: %s", d)
	}
}

// proxyTo passes what a client sends on to an origin, and back.
func proxyTo(f *fake, addr string) func(*peer) {
	return func(p *peer) {
		if p.data == nil {
			if len(p.in) == 0 {
				return
			}
			up := f.upstream(addr)
			p.data, up.data = up, p
		}
		other := p.data.(*peer)
		other.send(string(p.in))
		p.in = nil
		if p.eof {
			p.close()
			other.close()
		}
	}
}

func playProxied(t *testing.T, text string, tune ...func(*Player)) Record {
	t.Helper()
	f := newFake(t, nil)
	f.serve = proxyTo(f, "127.0.0.1:9001")
	return play(t, f, text, tune...)
}

func TestOriginScripts(t *testing.T) {
	r := playProxied(t, `-- origin 127.0.0.1:9001 --
connection
recv request
send "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
settle
send "ok"
again
connection
recv headers
send "second"
close
-- client 1 --
send "GET /1 HTTP/1.1\r\n\r\n"
recv response
send "GET /2 HTTP/1.1\r\n\r\n"
recv response
shutdown
-- client 2 --
send "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n" "abc"
-- client 3 --
send "GET /3 HTTP/1.1\r\n\r\n"
`)
	wantEnds(t, "clients", r.Clients, "closed "+ok+ok, "closed second", "closed second")
	wantEnds(t, "origins", r.Origins,
		`closed GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n`,
		`local POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc`,
		`local GET /3 HTTP/1.1\r\n\r\n`)
	if d := cmp.Diff([]int{19, 38}, r.Origins[0].Marks); d != "" {
		t.Errorf("marks of the first origin connection: %s", d)
	}
	if r.Origins[0].ID != 1 || r.Origins[2].ID != 3 {
		t.Errorf("accept order: %d, %d", r.Origins[0].ID, r.Origins[2].ID)
	}
}

// An origin that takes its time is waited for; the clock is the test's.
func TestOriginPauses(t *testing.T) {
	now := time.Unix(0, 0)
	slow := func(p *Player) {
		p.now = func() time.Time { now = now.Add(100 * time.Millisecond); return now }
	}
	r := playProxied(t, `-- origin 127.0.0.1:9001 --
recv request
pause 300ms
send "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
-- client 1 --
send "GET / HTTP/1.1\r\n\r\n"
recv response
close
`, slow)
	wantEnds(t, "client", r.Clients, "open "+ok)
	if now.Before(time.Unix(0, 0).Add(300 * time.Millisecond)) {
		t.Errorf("the origin did not pause: it is %s", now.Sub(time.Unix(0, 0)))
	}
}

// recv all of an origin ends when nothing more will come.
func TestOriginRecvAll(t *testing.T) {
	r := playProxied(t, `-- origin 127.0.0.1:9001 --
recv all
send "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
reset
-- client 1 --
send "any bytes"
recv response
`)
	wantEnds(t, "origin", r.Origins, "local any bytes")
	wantEnds(t, "client", r.Clients, "closed "+ok)
}

// Two origins that wait for the same rest go on one after another.
func TestOriginsRestOneByOne(t *testing.T) {
	f := newFake(t, nil)
	at := map[string]int{} // the turns in which the server saw what
	f.serve = func(p *peer) {
		s := string(p.in)
		p.in = nil
		if at[s] = f.probes; s == "a" {
			for _, addr := range []string{"127.0.0.1:9001", "127.0.0.1:9002", "127.0.0.1:9002"} {
				f.upstream(addr).send("request")
			}
		}
	}
	play(t, f, `-- origin 127.0.0.1:9001 --
recv 7
settle
send "o"
-- origin 127.0.0.1:9002 --
connection
recv 7
settle
send "p"
connection
recv 7
settle
send "q"
-- client 1 --
send "a"
settle
send "b"
`)
	if !(at["a"] < at["o"] && at["o"] < at["p"] && at["p"] < at["q"] && at["q"] < at["b"]) {
		t.Errorf("seen in turns %v, want a, o, p, q, b in five", at)
	}
}

// An origin's connection that nobody ends is recorded as left open.
func TestOriginLeftOpen(t *testing.T) {
	f := newFake(t, nil)
	f.serve = func(p *peer) {
		if len(p.in) > 0 && p.data == nil {
			p.data = f.upstream("127.0.0.1:9001")
			p.data.(*peer).send("hello")
		}
	}
	r := play(t, f, "-- origin 127.0.0.1:9001 --\n-- client 1 --\nsend \"x\"\n")
	wantEnds(t, "origin", r.Origins, "open hello")
}

func TestLastResortIsCounted(t *testing.T) {
	f := newFake(t, func(*peer) {})
	f.awake = true
	now := time.Unix(0, 0)
	r := play(t, f, "-- client 1 --\nsend \"x\"\nrecv response\nclose\n", func(p *Player) {
		p.patient = lastResort
		p.now = func() time.Time { now = now.Add(100 * time.Millisecond); return now }
	})
	// The recv, the rest and the timers before the close and the look behind them, the rest behind the client and at the end.
	if r.Timeouts != 6 {
		t.Errorf("last-resort timeouts: %d, want 6", r.Timeouts)
	}
	wantEnds(t, "client", r.Clients, "open ")
}

// A timer of the server's that is due soon is waited for, one that is due later
// is not.
func TestServersTimers(t *testing.T) {
	for _, tt := range []struct {
		timer int
		want  string
	}{{20, "closed late"}, {5000, "open "}} {
		f := newFake(t, func(*peer) {})
		f.timer = tt.timer
		now := time.Unix(0, 0)
		due := now.Add(100 * time.Millisecond)
		late := &onTime{fake: f, due: func() bool { return !now.Before(due) }}
		ctx := context.Background()
		p, err := NewPlayer(ctx, late, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		p.now = func() time.Time { now = now.Add(5 * time.Millisecond); return now }
		if err := p.Play(ctx, []casefile.Section{{Client: true, ID: 1}}); err != nil {
			t.Fatal(err)
		}
		wantEnds(t, "client", p.record.Clients, tt.want)
	}
}

// onTime answers when its time has come, and has no timer afterwards.
type onTime struct {
	*fake
	due func() bool
}

func (f *onTime) Probe(ctx context.Context) (engine.Rest, error) {
	r, err := f.fake.Probe(ctx)
	for _, p := range f.conns {
		if !p.closed && f.due() {
			p.send("late")
			p.close()
			r.Asleep, f.timer = false, -1
		}
	}
	return r, err
}

func TestFloodIsCut(t *testing.T) {
	flood := strings.Repeat("x", 1<<20)
	f := newFake(t, func(*peer) {})
	f.serve = func(p *peer) { f.awake = true }
	probe := &flooding{fake: f, text: flood}
	ctx := context.Background()
	p, err := NewPlayer(ctx, probe, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.patient = 300 * time.Millisecond // the server never rests
	now := time.Unix(0, 0)
	p.now = func() time.Time { now = now.Add(100 * time.Microsecond); return now }
	err = p.Play(ctx, []casefile.Section{{Client: true, ID: 1, Steps: []casefile.Step{{Op: casefile.Recv, What: casefile.All}}}})
	if err != nil {
		t.Fatal(err)
	}
	c := p.record.Clients[0]
	if len(c.Recv) > maxRecv || !strings.Contains(c.Note, "the rest was not read") {
		t.Errorf("%d bytes kept, note %q", len(c.Recv), c.Note)
	}
}

// What is kept of all connections together is bounded too.
func TestFloodOnManyConnectionsIsCut(t *testing.T) {
	f := newFake(t, func(p *peer) { p.send(strings.Repeat("x", 1000)) })
	p, err := NewPlayer(t.Context(), f, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.room = 2500
	var group []casefile.Section
	for id := range 4 {
		group = append(group, casefile.Section{Client: true, ID: id + 1, Steps: []casefile.Step{{Op: casefile.Recv, What: casefile.All}}})
	}
	for _, s := range group {
		if err := p.Play(t.Context(), []casefile.Section{s}); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range p.record.Clients {
		if cut := strings.Contains(c.Note, "on all connections"); cut != (i > 1) || cut != (len(c.Recv) == 0) {
			t.Errorf("client %d: %d bytes kept, note %q", c.ID, len(c.Recv), c.Note)
		}
	}
}

// flooding sends as much as fits with every probe.
type flooding struct {
	*fake
	text string
}

func (f *flooding) Probe(ctx context.Context) (engine.Rest, error) {
	r, err := f.fake.Probe(ctx)
	for _, p := range f.conns {
		p.send(f.text)
	}
	return r, err
}

func TestBrokenCellIsAnError(t *testing.T) {
	ctx := context.Background()
	p, err := NewPlayer(ctx, brokenCell{newFake(t, answerEach)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	err = p.Play(ctx, []casefile.Section{{Client: true, ID: 7, Steps: []casefile.Step{{Op: casefile.Settle, Line: 3}}}})
	if err == nil || !strings.Contains(err.Error(), "play client 7, line 3: look at the server: the cell is broken") {
		t.Errorf("error: %v", err)
	}
}

type brokenCell struct{ *fake }

func (brokenCell) Probe(context.Context) (engine.Rest, error) { return engine.Rest{}, errBroken }

func TestStopsWithItsContext(t *testing.T) {
	f := newFake(t, func(*peer) {})
	f.awake = true
	ctx, cancel := context.WithCancel(context.Background())
	p, err := NewPlayer(ctx, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	cancel()
	if _, err := p.Settle(ctx); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("error: %v", err)
	}
}

// What the server does when an origin goes at the end is seen, and is over before the next origin goes.
func TestFinishHangsUpOneByOne(t *testing.T) {
	const addr = "127.0.0.1:9001"
	var seen []string
	f := newFake(t, nil)
	f.serve = func(p *peer) {
		name, _ := p.data.(string)
		switch {
		case name == "" && len(p.in) > 0:
			up := f.upstream(addr)
			up.data = string(p.in)
			up.send(string(p.in))
			p.in = nil
		case name != "" && p.eof:
			seen = append(seen, name+" gone")
			if !strings.HasPrefix(name, "next") {
				next := f.upstream(addr)
				next.data = "next after " + name
				next.send("next after " + name)
			}
			p.close()
		}
	}
	r := play(t, f, `-- origin 127.0.0.1:9001 --
-- client 1 --
send "one"
-- client 2 --
send "two"
`)
	wantEnds(t, "origin", r.Origins, "open one", "open two", "open next after one", "open next after two")
	want := []string{"one gone", "two gone", "next after one gone", "next after two gone"}
	if d := cmp.Diff(want, seen); d != "" {
		t.Errorf("the server saw (-want +got):\n%s", d)
	}
}

// Where the server may leave as soon as it has asked, an origin answers at the server's rest; elsewhere at once.
func TestOriginAnswersWhoMayLeave(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		f, at := newFake(t, nil), map[string]int{}
		f.serve = func(p *peer) {
			s := string(p.in)
			p.in = nil
			if at[s] = f.probes; s == "a" {
				f.upstream("127.0.0.1:9001").send("GET / HTTP/1.0\r\n\r\n")
			}
		}
		play(t, f, "-- origin 127.0.0.1:9001 --\nrecv request\nsend \"o\"\n-- client 1 --\nsend \"a\"\nsettle\n", func(p *Player) { p.Leaves = leaves })
		if _, ok := at["o"]; !ok || (at["o"] > at["a"]+1) != leaves {
			t.Errorf("leaves %v: asked at look %d, answered at %d", leaves, at["a"], at["o"])
		}
	}
}

// A request that has come before an origin's last word is no sign that the server has noticed that: the answer waits for the
// server's rest. One that comes behind it is answered at once.
func TestOriginAnswersWhatCameBefore(t *testing.T) {
	for _, before := range []bool{false, true} {
		f, at := newFake(t, nil), map[string]int{}
		f.serve = func(p *peer) {
			s := string(p.in)
			p.in = nil
			if s == "" {
				return
			}
			switch at[s] = f.probes; {
			case s == "a":
				up := f.upstream("127.0.0.1:9001")
				up.send("GET / HTTP/1.0\r\n\r\n")
			case s == "one" && before, s == "more" && !before:
				p.send("GET /2 HTTP/1.0\r\n\r\n")
			}
		}
		play(t, f, "-- origin 127.0.0.1:9001 --\nrecv request\nsend \"one\"\nsettle\nsend \"more\"\nrecv request\nsend \"two\"\n-- client 1 --\nsend \"a\"\nsettle\n")
		if _, ok := at["two"]; !ok || (at["two"] > at["more"]+1) != before {
			t.Errorf("asked before the last word %v: that was seen at look %d, the answer at %d", before, at["more"], at["two"])
		}
	}
}
