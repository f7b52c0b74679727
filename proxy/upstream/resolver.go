package upstream

import (
	"strings"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/resolver"
)

// NewResolver reads the words of a resolver directive (ngx_resolver_create).
func NewResolver(cf *module.Conf, words []string) (*resolver.Resolver, error) {
	r := &resolver.Resolver{IPv4: true, IPv6: true}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "valid":
			v, ok := module.ParseTime(value, true)
			if !ok {
				return nil, cf.Emerg("invalid parameter: %s", w)
			}
			r.Valid = v
			continue
		case "ipv4", "ipv6":
			at := &r.IPv4
			if name == "ipv6" {
				at = &r.IPv6
			}
			if !module.Is(value, "on") && !module.Is(value, "off") {
				return nil, cf.Emerg("invalid parameter: %s", w)
			}
			*at = module.Is(value, "on")
			continue
		}
		u := URL{Text: w, DefaultPort: 53}
		if err := ParseURL(&u); err != nil {
			return nil, cf.Emerg("%s in resolver \"%s\"", err, u.Text)
		}
		for _, a := range u.Addrs {
			r.Servers = append(r.Servers, resolver.Server{Addr: a.Addr, Name: a.Name})
		}
	}
	if !r.IPv4 && !r.IPv6 {
		return nil, cf.Emerg("\"ipv4\" and \"ipv6\" cannot both be \"off\"")
	}
	if len(r.Servers) == 0 {
		return nil, cf.Emerg("no name servers defined")
	}
	return r, nil
}

// resolve asks the location's resolver for the addresses of the name.
func (u *Upstream) resolve(r *http.Request) {
	res, _ := r.Core.Resolver.(*resolver.Resolver)
	host := u.Resolved.Host
	if res == nil {
		r.Conn.Log.Err(elog.Error, nil, "no resolver defined to resolve %s", host)
		u.finalize(r, codeBadGateway)
		return
	}
	now := true
	q := res.Resolve(r.Conn.Loop, host, r.Core.ResolverTimeout, func(q *resolver.Query) {
		u.Resolved.cancel = nil
		c := r.Conn
		r.SetLogRequest()
		u.resolved(r, q)
		if !now {
			http.RunPosted(c)
		}
	})
	now = false
	if q != nil {
		u.Resolved.cancel = q.Cancel
	}
}

// resolved goes on with the answer (ngx_http_upstream_resolve_handler).
func (u *Upstream) resolved(r *http.Request, q *resolver.Query) {
	if q.Code != 0 {
		r.Conn.Log.Err(elog.Error, nil, "%s could not be resolved (%d: %s)", u.Resolved.Host, q.Code, resolver.Strerror(q.Code))
		u.finalize(r, codeBadGateway)
		return
	}
	addrs := make([]NamedAddr, 0, len(q.Addrs))
	for _, a := range q.Addrs {
		addrs = append(addrs, named(a, u.Resolved.Port))
	}
	u.Peer.usePeers(resolvedPeers(u.Resolved.Host, addrs))
	u.start(r)
}
