// Package upstream_random is ngx_http_upstream_random_module: a server is drawn by weight, or two are
// and the one with fewer connections is taken.
package upstream_random

import (
	"math/rand/v2"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/upstream"
)

// Module is ngx_http_upstream_random_module.
var Module = &http.Module{
	Name: "ngx_http_upstream_random_module",
	Directives: []module.Directive{
		{Name: "random", Where: module.HTTPUps, Args: module.NoArgs | module.Take12, Level: module.SrvConf, Set: setRandom},
	},
	CreateSrv: func(*module.Conf) any { return &srvConf{} },
}

type srvConf struct{ two bool }

const maxTries = 20

func setRandom(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*srvConf)
	us := http.ConfSrv(cf, upstream.Module).(*upstream.SrvConf)
	if us.Init != nil {
		cf.Warn("load balancing method redefined")
	}
	us.Init = func(cf *module.Conf, us *upstream.SrvConf) error {
		err := upstream.InitRoundRobin(cf, us)
		us.PeerInit = c.initPeer
		return err
	}
	us.Flags = upstream.AllButBackup
	if len(cf.Args) == 1 {
		return nil
	}
	if !module.Is(cf.Args[1], "two") {
		return cf.Emerg("invalid parameter \"%s\"", cf.Args[1])
	}
	c.two = true
	if len(cf.Args) == 3 && !module.Is(cf.Args[2], "least_conn") {
		return cf.Emerg("invalid parameter \"%s\"", cf.Args[2])
	}
	return nil
}

func (c *srvConf) initPeer(r *http.Request, u *upstream.Upstream, us *upstream.SrvConf) http.Rc {
	if rc := upstream.InitRoundRobinPeer(r, u, us); rc != http.OK {
		return rc
	}
	u.Peer.Method.Tries = 0
	u.Peer.Get = getOne
	if c.two {
		u.Peer.Get = getTwo
	}
	return http.OK
}

func draw(peers *upstream.Peers) int { return peers.ByWeight(rand.IntN(peers.TotalWeight)) }

// getOne is ngx_http_upstream_get_random_peer.
func getOne(pc *upstream.Peer) int { return get(pc, false) }

// getTwo is ngx_http_upstream_get_random2_peer.
func getTwo(pc *upstream.Peer) int { return get(pc, true) }

func get(pc *upstream.Peer, two bool) int {
	m := &pc.Method
	peers := pc.RR.Peers
	if m.Tries > maxTries || peers.Single {
		return upstream.GetRoundRobin(pc)
	}
	pc.Cached = false
	pc.Conn = nil
	now, _ := pc.Loop.Now()
	prev := -1
	for {
		i := draw(peers)
		p := &peers.List[i]
		if i != prev && !pc.Tried(i) && p.Usable(now) {
			if !two || prev >= 0 {
				if two && p.Conns*peers.List[prev].Weight > peers.List[prev].Conns*p.Weight {
					i, p = prev, &peers.List[prev]
				}
				p.Check(now)
				pc.SetTried(i)
				return pc.Take(p)
			}
			prev = i
		}
		if m.Tries++; m.Tries > maxTries {
			return upstream.GetRoundRobin(pc)
		}
	}
}
