// Package upstream_least_conn is ngx_http_upstream_least_conn_module: the server with the fewest
// active connections for its weight is chosen.
package upstream_least_conn

import (
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/upstream"
)

// Module is ngx_http_upstream_least_conn_module.
var Module = &http.Module{
	Name: "ngx_http_upstream_least_conn_module",
	Directives: []module.Directive{
		{Name: "least_conn", Where: module.HTTPUps, Args: module.NoArgs, Set: setLeastConn},
	},
}

func setLeastConn(cf *module.Conf, cmd *module.Directive, _ any) error {
	us := http.ConfSrv(cf, upstream.Module).(*upstream.SrvConf)
	if us.Init != nil {
		cf.Warn("load balancing method redefined")
	}
	us.Flags = upstream.AllButBackup | upstream.Backup
	us.Init = func(cf *module.Conf, us *upstream.SrvConf) error {
		err := upstream.InitRoundRobin(cf, us)
		us.PeerInit = func(r *http.Request, u *upstream.Upstream, us *upstream.SrvConf) http.Rc {
			rc := upstream.InitRoundRobinPeer(r, u, us)
			u.Peer.Get = get
			return rc
		}
		return err
	}
	return nil
}

// get is ngx_http_upstream_get_least_conn_peer.
func get(pc *upstream.Peer) int {
	peers := pc.RR.Peers
	if peers.Single {
		return upstream.GetRoundRobin(pc)
	}
	pc.Cached = false
	pc.Conn = nil
	now, _ := pc.Loop.Now()
	list := peers.List
	best, many := -1, false
	for i := range list {
		p := &list[i]
		if pc.Tried(i) || !p.Usable(now) {
			continue
		}
		switch {
		case best < 0 || p.Conns*list[best].Weight < list[best].Conns*p.Weight:
			best, many = i, false
		case p.Conns*list[best].Weight == list[best].Conns*p.Weight:
			many = true
		}
	}
	if best < 0 {
		if pc.UseBackup() {
			if rc := get(pc); rc != ev.Busy {
				return rc
			}
		}
		pc.Name = peers.Name
		return ev.Busy
	}
	total := 0
	if many {
		// round robin among the equals
		for i := best; i < len(list); i++ {
			p := &list[i]
			if pc.Tried(i) || p.Conns*list[best].Weight != list[best].Conns*p.Weight || !p.Usable(now) {
				continue
			}
			p.CurrentWeight += p.EffectiveWeight
			total += p.EffectiveWeight
			if p.EffectiveWeight < p.Weight {
				p.EffectiveWeight++
			}
			if p.CurrentWeight > list[best].CurrentWeight {
				best = i
			}
		}
	}
	p := &list[best]
	p.CurrentWeight -= total
	p.Check(now)
	pc.SetTried(best)
	return pc.Take(p)
}
