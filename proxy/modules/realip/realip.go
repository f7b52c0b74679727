// Package realip is ngx_http_realip_module: the client's address from what trusted proxies say
// (src/http/modules/ngx_http_realip_module.c).
package realip

import (
	"strconv"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/inet"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_realip_module.
var Module = &http.Module{
	Name: "ngx_http_realip_module",
	Directives: []module.Directive{
		{Name: "set_real_ip_from", Where: where, Args: module.Take1, Level: module.LocConf, Set: setFrom},
		{Name: "real_ip_header", Where: where, Args: module.Take1, Level: module.LocConf, Set: setHeader},
		{Name: "real_ip_recursive", Where: where, Args: module.Flag, Level: module.LocConf,
			Set: module.FlagSlot(func(c *conf) *int { return &c.recursive })},
	},
	CreateLoc: func(cf *module.Conf) any { return &conf{recursive: module.Unset} },
	MergeLoc:  merge,
}

func init() {
	Module.Preconf = addVariables
	Module.Postconf = addHandlers
}

const where = module.HTTPMain | module.HTTPSrv | module.HTTPLoc

type conf struct {
	from      []inet.CIDR
	set       bool
	header    string // in lower case
	exact     string // as it was written, for the names that are known
	recursive int
}

func merge(cf *module.Conf, prevAny, confAny any) error {
	prev, c := prevAny.(*conf), confAny.(*conf)
	module.MergeSlice(&c.from, prev.from)
	module.MergeInt(&c.recursive, prev.recursive, 0)
	if !c.set {
		c.set, c.exact = prev.set, prev.exact
		if !c.set {
			c.set, c.exact = true, "X-Real-IP"
		}
	}
	if c.header == "" { // by itself: "" is a name that is inherited, past a level with a name that is known
		c.header = prev.header
	}
	return nil
}

func setFrom(cf *module.Conf, cmd *module.Directive, confAny any) error {
	c := confAny.(*conf)
	v := cf.Args[1]
	if module.Is(v, "unix:") {
		c.from = append(c.from, inet.CIDR{Family: ev.UNIX})
		return nil
	}
	if net, lowBits, ok := inet.ParseCIDR(v); ok {
		if lowBits {
			cf.Warn("low address bits of %s are meaningless", v)
		}
		c.from = append(c.from, net)
		return nil
	}
	addrs, ok := inet.HostsFile(v)
	if !ok {
		return cf.Emerg(`host not found in set_real_ip_from "%s"`, v)
	}
	for _, a := range addrs {
		net, _, _ := inet.ParseCIDR(string(a.AppendIP(nil)))
		c.from = append(c.from, net)
	}
	return nil
}

func setHeader(cf *module.Conf, cmd *module.Directive, confAny any) error {
	c := confAny.(*conf)
	if c.set {
		return module.ErrDuplicate
	}
	if module.Is(cf.Args[1], "proxy_protocol") {
		return cf.NotSupported("real_ip_header proxy_protocol")
	}
	c.set, c.exact = true, cf.Args[1]
	if !module.Is(c.exact, "X-Real-IP") && !module.Is(c.exact, "X-Forwarded-For") {
		c.header = ascii.Lower(c.exact)
	}
	return nil
}

// original is the address of the connection, kept while another one stands for it.
type original struct {
	conn *ev.Conn
	addr ev.Addr
	text string
}

func (o *original) restore() { o.conn.Peer, o.conn.PeerText = o.addr, o.text }

// replaced gives the original of a request whose address has been replaced; after an internal
// redirect the request's own note of it is gone.
func replaced(r *http.Request) *original {
	if o, ok := r.Ctx(Module).(*original); ok {
		return o
	}
	if r.Internal || r.FilterFinalize {
		if o, ok := http.FindLast[*original](r); ok {
			return o
		}
	}
	return nil
}

func addHandlers(cf *module.Conf) error {
	cmcf := cf.Ctx.(*http.ConfCtx).Main[0].(*http.CoreMain)
	for _, p := range []http.Phase{http.PostReadPhase, http.PreaccessPhase} {
		cmcf.Phases[p] = append(cmcf.Phases[p], handler)
	}
	return nil
}

func handler(r *http.Request) http.Rc {
	c := r.LocConf[Module.Index].(*conf)
	if c.from == nil || replaced(r) != nil {
		return http.Declined
	}
	var lines *http.Header
	var value []byte
	switch module.CText(c.exact) {
	case "X-Real-IP":
		if r.HeadersIn.XRealIP == nil {
			return http.Declined
		}
		value = r.HeadersIn.XRealIP.Value
	case "X-Forwarded-For":
		if lines = r.HeadersIn.XForwardedFor; lines == nil {
			return http.Declined
		}
	default:
		h := find(r, c.header)
		if h == nil {
			return http.Declined
		}
		value = h.Value
	}
	a := r.Conn.Peer
	if r.ForwardedAddr(&a, lines, value, c.from, c.recursive == 1) == http.Declined {
		return http.Declined
	}
	o := &original{r.Conn, r.Conn.Peer, r.Conn.PeerText}
	r.AddLast(o, func(data any) { data.(*original).restore() })
	r.SetCtx(Module, o)
	r.Conn.Peer, r.Conn.PeerText = a, string(a.AppendIP(nil))
	return http.Declined
}

func find(r *http.Request, low string) *http.Header {
	for _, h := range r.HeadersIn.Headers {
		if string(h.Low) == low {
			return h
		}
	}
	return nil
}

func addVariables(cf *module.Conf) error {
	addr, err := http.AddVariable(cf, "realip_remote_addr", 0)
	if err != nil {
		return err
	}
	addr.Get = func(r *http.Request, v *http.VarValue, _ any) http.Rc {
		if o := replaced(r); o != nil {
			return v.Set([]byte(o.text))
		}
		return v.Set([]byte(r.Conn.PeerText))
	}
	port, err := http.AddVariable(cf, "realip_remote_port", 0)
	if err != nil {
		return err
	}
	port.Get = func(r *http.Request, v *http.VarValue, _ any) http.Rc {
		a := r.Conn.Peer
		if o := replaced(r); o != nil {
			a = o.addr
		}
		if a.Port <= 0 {
			return v.Set([]byte{})
		}
		return v.Set(strconv.AppendInt(nil, int64(a.Port), 10))
	}
	return nil
}
