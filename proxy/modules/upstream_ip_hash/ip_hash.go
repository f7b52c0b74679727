// Package upstream_ip_hash is ngx_http_upstream_ip_hash_module: a client's network is always sent
// to the same server.
package upstream_ip_hash

import (
	"syscall"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/upstream"
)

// Module is ngx_http_upstream_ip_hash_module.
var Module = &http.Module{
	Name: "ngx_http_upstream_ip_hash_module",
	Directives: []module.Directive{
		{Name: "ip_hash", Where: module.HTTPUps, Args: module.NoArgs, Set: setIPHash},
	},
}

const (
	maxTries = 20
	seed     = 89
)

func setIPHash(cf *module.Conf, cmd *module.Directive, _ any) error {
	us := http.ConfSrv(cf, upstream.Module).(*upstream.SrvConf)
	if us.Init != nil {
		cf.Warn("load balancing method redefined")
	}
	us.Flags = upstream.AllButBackup
	us.Init = func(cf *module.Conf, us *upstream.SrvConf) error {
		err := upstream.InitRoundRobin(cf, us)
		us.PeerInit = initPeer
		return err
	}
	return nil
}

// noAddr stands for a client of a unix socket.
var noAddr [3]byte

func initPeer(r *http.Request, u *upstream.Upstream, us *upstream.SrvConf) http.Rc {
	if rc := upstream.InitRoundRobinPeer(r, u, us); rc != http.OK {
		return rc
	}
	m := &u.Peer.Method
	switch r.Conn.Peer.Family {
	case syscall.AF_INET:
		m.Addr = r.Conn.Peer.IP[:3] // the network, not the host
	case syscall.AF_INET6:
		m.Addr = r.Conn.Peer.IP[:]
	default:
		m.Addr = noAddr[:]
	}
	m.Hash, m.Tries = seed, 0
	u.Peer.Get = get
	return http.OK
}

// get is ngx_http_upstream_get_ip_hash_peer.
func get(pc *upstream.Peer) int {
	m := &pc.Method
	peers := pc.RR.Peers
	if m.Tries > maxTries || peers.Single {
		return upstream.GetRoundRobin(pc)
	}
	now, _ := pc.Loop.Now()
	pc.Cached = false
	pc.Conn = nil
	hash := m.Hash
	for {
		for _, b := range m.Addr {
			hash = (hash*113 + uint32(b)) % 6271
		}
		i := peers.ByWeight(int(hash) % peers.TotalWeight)
		p := &peers.List[i]
		if !pc.Tried(i) && p.Usable(now) {
			p.Check(now)
			pc.SetTried(i)
			m.Hash = hash
			return pc.Take(p)
		}
		if m.Tries++; m.Tries > maxTries {
			return upstream.GetRoundRobin(pc)
		}
	}
}
