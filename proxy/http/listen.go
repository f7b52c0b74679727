package http

import (
	"sort"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
)

// AddListen adds what a listen directive says to the ports of the configuration
// (src/http/ngx_http.c, ngx_http_add_listen). opt is of this directive alone; opt.Default is srv.
func AddListen(cf *module.Conf, srv *CoreSrv, opt ConfAddr) error {
	cmcf := cf.Ctx.(*ConfCtx).Main[0].(*CoreMain)
	opt.Default = srv
	opt.Servers = nil
	for _, port := range cmcf.Ports {
		if port.Port == opt.Addr.Port && port.Family == opt.Addr.Family {
			return port.add(cf, srv, opt)
		}
	}
	port := &ConfPort{Family: opt.Addr.Family, Port: opt.Addr.Port}
	cmcf.Ports = append(cmcf.Ports, port)
	return port.add(cf, srv, opt)
}

func (port *ConfPort) add(cf *module.Conf, srv *CoreSrv, opt ConfAddr) error {
	for _, addr := range port.Addrs {
		if addr.Addr.IP == opt.Addr.IP && addr.Addr.Path == opt.Addr.Path {
			return addr.again(cf, srv, opt)
		}
	}
	addr := &opt
	port.Addrs = append(port.Addrs, addr)
	return addr.serve(cf, srv)
}

// protocols as bits, to compare the options of two listen directives.
func (a *ConfAddr) protocols() (bits int) {
	for i, on := range []bool{a.ProxyProtocol, a.SSL, a.HTTP2} {
		if on {
			bits |= 1 << i
		}
	}
	return bits
}

// again adds a further listen directive to an address that is known (ngx_http_add_addresses).
func (a *ConfAddr) again(cf *module.Conf, srv *CoreSrv, opt ConfAddr) error {
	if err := a.serve(cf, srv); err != nil {
		return err
	}
	keep := *a
	bits, prev := opt.protocols(), a.protocols()
	if opt.Set {
		if a.Set {
			return cf.Emerg("duplicate listen options for %s", a.Text)
		}
		*a = opt
		a.Default, a.Servers, a.Names = keep.Default, keep.Servers, keep.Names
		a.lastBits, a.bitsSet, a.bitsChanged = keep.lastBits, keep.bitsSet, keep.bitsChanged
	}
	a.DefaultSet = keep.DefaultSet
	if opt.DefaultSet {
		if keep.DefaultSet {
			return cf.Emerg("a duplicate default server for %s", a.Text)
		}
		a.DefaultSet = true
		a.Default = srv
	}
	warn := false
	switch {
	case bits|prev != prev: // options added
		warn = a.Set && !opt.Set || a.bitsChanged || bits|prev != bits
		a.lastBits, a.bitsChanged = prev, true
	case prev|bits != bits: // options removed
		warn = opt.Set || a.bitsSet && bits != a.lastBits
		a.lastBits, a.bitsChanged = bits, true
	default:
		warn = opt.Set && a.bitsChanged || a.bitsSet && bits != a.lastBits
		a.lastBits = bits
	}
	if warn {
		cf.Warn("protocol options redefined for %s", a.Text)
	}
	a.bitsSet = true
	a.ProxyProtocol = opt.ProxyProtocol || keep.ProxyProtocol
	a.SSL = opt.SSL || keep.SSL
	a.HTTP2 = opt.HTTP2 || keep.HTTP2
	return nil
}

// serve puts a server on an address (ngx_http_add_server).
func (a *ConfAddr) serve(cf *module.Conf, srv *CoreSrv) error {
	for _, s := range a.Servers {
		if s == srv {
			return cf.Emerg("a duplicate listen %s", a.Text)
		}
	}
	a.Servers = append(a.Servers, srv)
	return nil
}

// optimizeServers sorts the addresses of each port, makes the tables of names and asks for the
// listening sockets (ngx_http_optimize_servers, ngx_http_init_listening).
func optimizeServers(cf *module.Conf, cmcf *CoreMain) error {
	for _, port := range cmcf.Ports {
		sort.SliceStable(port.Addrs, func(i, j int) bool { return port.Addrs[i].rank() < port.Addrs[j].rank() })
		for _, addr := range port.Addrs {
			if err := buildServerNames(cf, addr); err != nil {
				return err
			}
		}
		port.listen(cf)
	}
	return nil
}

// rank: sockets of their own first, the wildcard last.
func (a *ConfAddr) rank() int {
	switch {
	case a.Wildcard:
		return 2
	case a.Bind:
		return 0
	}
	return 1
}

// listen asks for the sockets of a port: an address that a wildcard covers needs none of its own, and
// is told apart by where the client came to.
func (port *ConfPort) listen(cf *module.Conf) {
	addrs := port.Addrs
	wild := addrs[len(addrs)-1].Wildcard
	if wild {
		addrs[len(addrs)-1].Bind = true
	}
	from := 0
	for i, addr := range addrs {
		if wild && !addr.Bind {
			continue
		}
		cf.Cycle.Listen = append(cf.Cycle.Listen, addr.listening(&ConfPort{Family: port.Family, Port: port.Port, Addrs: addrs[from : i+1]}))
		from = i + 1
	}
}

func (a *ConfAddr) listening(port *ConfPort) *module.Listening {
	loc := a.Default.Ctx.Loc[0].(*CoreLoc)
	return &module.Listening{
		Addr:     a.Addr,
		Text:     a.Text,
		Backlog:  a.Backlog,
		Rcvbuf:   a.Rcvbuf,
		Sndbuf:   a.Sndbuf,
		FastOpen: a.FastOpen,

		Keepalive: a.KeepaliveOpts[0], KeepIdle: a.KeepaliveOpts[1], KeepIntvl: a.KeepaliveOpts[2], KeepCnt: a.KeepaliveOpts[3],

		Deferred: a.Deferred, Reuseport: a.Reuseport, IPv6Only: a.IPv6Only != 0,
		Wildcard: a.Wildcard && len(port.Addrs) > 0,
		Servers:  port,
		Handler:  func(c *ev.Conn) { InitConnection(c) },
		ErrorLog: loc.ErrorLog,
		FD:       -1,
	}
}
