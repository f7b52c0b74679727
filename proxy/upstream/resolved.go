package upstream

import (
	"syscall"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
)

// initResolved finds the upstream that a proxy_pass with variables named: an upstream{} of that name,
// a numeric address, or a name for the resolver (ngx_http_upstream_init_request).
func (u *Upstream) initResolved(r *http.Request) {
	res := u.Resolved
	for _, us := range r.MainConf[Module.Index].(*MainConf).Upstreams {
		if ascii.EqualFold(us.Host, res.Host) &&
			(us.Port == 0 && res.NoPort || us.Port == res.Port) {
			u.useUpstream(r, us)
			return
		}
	}
	log := r.Conn.Log
	if res.Addr != nil {
		if res.Port == 0 && res.Addr.Addr.Family != syscall.AF_UNIX {
			log.Err(elog.Error, nil, "no port in upstream \"%s\"", res.Host)
			u.finalize(r, codeInternal)
			return
		}
		u.Peer.usePeers(resolvedPeers(res.Host, []NamedAddr{*res.Addr}))
		u.connect(r)
		return
	}
	if res.Port == 0 {
		log.Err(elog.Error, nil, "no port in upstream \"%s\"", res.Host)
		u.finalize(r, codeInternal)
		return
	}
	u.resolve(r)
}
