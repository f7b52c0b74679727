package upstream

import (
	"testing"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/ev/evsim"
)

// chooser makes requests' choices among servers of the given weights.
type chooser struct {
	peers *Peers
	loop  *ev.Loop
}

func newChooser(t *testing.T, weights ...int) *chooser {
	t.Helper()
	p := &Peers{Name: []byte("up"), Single: len(weights) == 1}
	for i, w := range weights {
		p.List = append(p.List, PeerServer{
			Name: []byte{byte('a' + i)}, Weight: w, EffectiveWeight: w, MaxFails: 1, FailTimeout: 10,
		})
		p.TotalWeight += w
		p.Tries++
	}
	return &chooser{p, ev.NewLoop(evsim.New(evsim.Options{}), 8, &elog.Log{})}
}

func (c *chooser) request() *Peer {
	pc := &Peer{Loop: c.loop, Log: &elog.Log{}}
	pc.usePeers(c.peers)
	return pc
}

func (c *chooser) rounds(n int) string {
	out := ""
	for range n {
		pc := c.request()
		if pc.Get(pc) != ev.OK {
			out += "-"
			continue
		}
		out += string(pc.Name)
		pc.Free(pc, PeerOK)
	}
	return out
}

func TestRoundRobinIsSmooth(t *testing.T) {
	if got := newChooser(t, 5, 1, 1).rounds(14); got != "aabacaaaabacaa" {
		t.Errorf("weights 5, 1, 1: %s", got)
	}
}

func TestFailedServerIsLeftOut(t *testing.T) {
	c := newChooser(t, 1, 1)
	pc := c.request()
	pc.Get(pc)
	pc.Free(pc, PeerFailed)
	if pc.Tries != 1 {
		t.Errorf("tries left = %d, want 1", pc.Tries)
	}
	pc.Get(pc)
	if string(pc.Name) != "b" {
		t.Errorf("the second try goes to %s, want b", pc.Name)
	}
	pc.Free(pc, PeerOK)
	if got := c.rounds(3); got != "bbb" {
		t.Errorf("after a failure of a: %s, want bbb", got)
	}
}

func TestMaxConns(t *testing.T) {
	c := newChooser(t, 1, 1)
	c.peers.List[0].MaxConns = 1
	first := c.request()
	first.Get(first)
	if got := c.rounds(2); got != "bb" {
		t.Errorf("while a is full: %s, want bb", got)
	}
	first.Free(first, PeerOK)
	if c.peers.List[0].Conns != 0 {
		t.Errorf("connections of a = %d after the end, want 0", c.peers.List[0].Conns)
	}
}

func TestBackupOnlyWhenNeeded(t *testing.T) {
	c := newChooser(t, 1, 1)
	c.peers.Backup = &Peers{List: []PeerServer{{Name: []byte("z"), Weight: 1, EffectiveWeight: 1}}, Tries: 1, TotalWeight: 1}
	if got := c.rounds(2); got != "ab" {
		t.Errorf("with servers up: %s, want ab", got)
	}
	c.peers.List[0].Down, c.peers.List[1].Down = true, true
	if got := c.rounds(2); got != "zz" {
		t.Errorf("with servers down: %s, want zz", got)
	}
	c.peers.Backup.List[0].Down = true
	if got := c.rounds(1); got != "-" {
		t.Errorf("with all down: %s, want none", got)
	}
}
