package upstream

import (
	"sync"

	"nginxoracle/proxy/module"
)

// shared is what a zone holds: the peers of its upstreams by name, and what guards them.
type shared struct {
	mu    sync.Mutex
	peers map[string]*Peers
}

// Share puts the peers of a zone's upstreams where all workers find them: the first worker's reading
// of the configuration fills the zone, the others take what is there
// (ngx_http_upstream_init_zone).
func (mc *MainConf) Share(z *module.Zone, old any) {
	s, ok := old.(*shared)
	if !ok {
		s = &shared{peers: map[string]*Peers{}}
	}
	z.Data = s
	for _, us := range mc.Upstreams {
		if us.Zone != z {
			continue
		}
		if p := s.peers[us.Host]; p != nil {
			us.Peers = p
		} else {
			s.peers[us.Host] = us.Peers
		}
		us.shared = s
	}
}

// get and free call the balancing method, under the zone's lock when the servers are shared.
func (pc *Peer) get() int {
	if s := pc.shared; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	return pc.Get(pc)
}

func (pc *Peer) free(state int) {
	if s := pc.shared; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	pc.Free(pc, state)
	pc.Addr = nil
}
