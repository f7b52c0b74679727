// Package access is ngx_http_access_module: allow and deny by the client's address
// (src/http/modules/ngx_http_access_module.c).
package access

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/inet"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_access_module.
var Module = &http.Module{
	Name: "ngx_http_access_module",
	Directives: []module.Directive{
		{Name: "allow", Where: where, Args: module.Take1, Level: module.LocConf, Set: setRule},
		{Name: "deny", Where: where, Args: module.Take1, Level: module.LocConf, Set: setRule},
	},
	CreateLoc: func(cf *module.Conf) any { return &conf{} },
	MergeLoc: func(cf *module.Conf, prev, c any) error {
		if p, c := prev.(*conf), c.(*conf); c.v4 == nil && c.v6 == nil && c.unix == nil {
			*c = *p
		}
		return nil
	},
}

func init() { Module.Postconf = addHandler }

func addHandler(cf *module.Conf) error {
	cmcf := cf.Ctx.(*http.ConfCtx).Main[0].(*http.CoreMain)
	cmcf.Phases[http.AccessPhase] = append(cmcf.Phases[http.AccessPhase], handler)
	return nil
}

const where = module.HTTPMain | module.HTTPSrv | module.HTTPLoc | module.HTTPLmt

// rule is an address range of one family; the first that matches decides.
type rule struct {
	net  inet.CIDR
	deny bool
}

type conf struct{ v4, v6, unix []rule }

func setRule(cf *module.Conf, cmd *module.Directive, confAny any) error {
	c := confAny.(*conf)
	deny := cmd.Name == "deny"
	add := func(family int, net inet.CIDR) {
		net.Family = family
		list := map[int]*[]rule{ev.INET: &c.v4, ev.INET6: &c.v6, ev.UNIX: &c.unix}[family]
		*list = append(*list, rule{net, deny})
	}
	switch v := cf.Args[1]; v {
	case "all":
		for _, family := range []int{ev.INET, ev.INET6, ev.UNIX} {
			add(family, inet.CIDR{})
		}
	case "unix:":
		add(ev.UNIX, inet.CIDR{})
	default:
		net, lowBits, ok := inet.ParseCIDR(v)
		if !ok {
			return cf.Emerg(`invalid parameter "%s"`, v)
		}
		if lowBits {
			cf.Warn("low address bits of %s are meaningless", v)
		}
		add(net.Family, net)
	}
	return nil
}

func handler(r *http.Request) http.Rc {
	c := r.LocConf[Module.Index].(*conf)
	a := r.Conn.Peer
	rules := c.v4
	switch a.Family {
	case ev.INET6:
		// An IPv4 address inside IPv6 is looked for among IPv4's rules, if there are any.
		if _, mapped := inet.Mapped(a); !mapped || c.v4 == nil {
			return check(r, c.v6, a, true)
		}
	case ev.UNIX:
		rules = c.unix
	}
	return check(r, rules, a, false)
}

// check finds the first rule for an address; own says that an IPv4 address inside IPv6 is
// to be taken as IPv6.
func check(r *http.Request, rules []rule, a ev.Addr, own bool) http.Rc {
	for i := range rules {
		m := rules[i].net.Match
		if own {
			m = rules[i].net.Match6
		}
		if !m(a) {
			continue
		}
		if !rules[i].deny {
			return http.OK
		}
		if r.Core.Satisfy == http.SatisfyAll {
			r.Conn.Log.Err(elog.Error, nil, "access forbidden by rule")
		}
		return 403
	}
	return http.Declined
}
