package ev_test

import (
	"slices"
	"strings"
	"testing"

	"nginxoracle/proxy/ev"
)

type laterFunc func()

func (f laterFunc) SendNow() { f() }

// pump lets the far ends send what they still have to.
func pump(peers []peer) {
	for _, p := range peers {
		p.recv()
	}
}

// What is sent later is sent before whatever comes after it can be seen.
func TestSendLaterKeepsOrder(t *testing.T) {
	for name, act := range map[string]func(c *ev.Conn, done func()){
		"send":  func(c *ev.Conn, done func()) { c.Send([]byte("x")); done() },
		"close": func(c *ev.Conn, done func()) { c.Loop.CloseConn(c); done() },
		"timer": func(c *ev.Conn, done func()) {
			c.Loop.AddTimer(&ev.Event{Handler: func(*ev.Event) { done() }}, 0)
		},
		"post": func(c *ev.Conn, done func()) { c.Loop.Post(&ev.Event{Handler: func(*ev.Event) { done() }}) },
	} {
		t.Run(name, func(t *testing.T) {
			var ready, seen []string
			waited := false
			handler := func(c *ev.Conn) {
				c.Write.Handler = nothing
				c.Read.Handler = func(*ev.Event) {
					buf := make([]byte, 100)
					n := c.Recv(buf)
					if n <= 0 {
						return
					}
					s := string(buf[:n])
					ready = append(ready, s)
					done := func() { seen = append(seen, s) }
					if !strings.HasPrefix(s, "later") {
						act(c, done)
						return
					}
					c.Loop.SendLater(c, laterFunc(func() { c.Send([]byte("x")); done() }))
					waited = waited || !slices.Contains(seen, s)
				}
				if err := c.Loop.Add(c); err != nil {
					t.Error(err)
				}
			}
			onBoth(t, 64, handler, func(t *testing.T, r *rig) {
				ready, seen, waited = nil, nil, false
				var peers []peer
				for range 12 {
					peers = append(peers, r.dial(t))
				}
				r.turns(30)
				for i, p := range peers {
					if i%3 == 1 {
						p.send("now " + string(rune('a'+i)))
					} else {
						p.send("later " + string(rune('a'+i)))
					}
				}
				r.until(t, "all are seen", func() bool { pump(peers); return len(seen) == len(peers) })
				if !waited {
					t.Error("nothing waited")
				}
				// A timer and a posted event are handled when their turn's reports are.
				if name == "send" || name == "close" {
					if !slices.Equal(ready, seen) {
						t.Errorf("ready in the order %q, seen as %q", ready, seen)
					}
				}
			})
		})
	}
}

// A handler that panics while its response is sent costs its own connection, and the others' are sent.
func TestSendLaterSurvivesPanic(t *testing.T) {
	sent := 0
	handler := func(c *ev.Conn) {
		c.Read.Handler = func(*ev.Event) {
			var buf [10]byte
			if c.Recv(buf[:]) != 1 {
				return
			}
			bad := buf[0] == 'b'
			c.Loop.SendLater(c, laterFunc(func() {
				if bad {
					panic("bad")
				}
				sent++
			}))
		}
		if err := c.Loop.Add(c); err != nil {
			t.Error(err)
		}
	}
	onBoth(t, 64, handler, func(t *testing.T, r *rig) {
		sent = 0
		free := r.Free()
		var peers []peer
		for _, s := range []string{"g", "b", "g"} {
			p := r.dial(t)
			p.send(s)
			peers = append(peers, p)
		}
		r.until(t, "both good ones are sent and the bad one is gone", func() bool { pump(peers); return sent == 2 && r.Free() == free-2 })
	})
}

// What was read ahead is what the handler reads, and once.
func TestReadAheadIsReadOnce(t *testing.T) {
	var got []string
	bufs := map[*ev.Conn][]byte{}
	handler := func(c *ev.Conn) {
		bufs[c] = make([]byte, 100)
		c.Read.Ahead = true
		c.Read.Handler = func(*ev.Event) {
			for {
				n := c.Recv(bufs[c])
				if n <= 0 {
					return
				}
				got = append(got, string(bufs[c][:n]))
			}
		}
		if err := c.Loop.Add(c); err != nil {
			t.Error(err)
		}
	}
	onBoth(t, 64, handler, func(t *testing.T, r *rig) {
		got = nil
		asked := 0
		r.Loop.Ahead = func(c *ev.Conn) []byte { asked++; return bufs[c] }
		var peers []peer
		for range 3 {
			peers = append(peers, r.dial(t))
		}
		r.turns(10)
		for i, p := range peers {
			p.send(string(rune('a' + i)))
		}
		r.until(t, "all is read", func() bool { pump(peers); return len(got) >= 3 })
		r.turns(3)
		slices.Sort(got)
		if !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("read %q", got)
		}
		if asked == 0 {
			t.Error("nothing was read ahead")
		}
	})
}
