// Package addition puts the answers of subrequests before and behind a response
// (nginx: src/http/modules/ngx_http_addition_filter_module.c).
package addition

import (
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

type conf struct {
	before, after module.Str
	types         *http.TypeSet
}

type ctx struct{ beforeSent bool }

// Module is ngx_http_addition_filter_module.
var Module = &http.Module{}

func init() {
	const where = http.InHTTPSrvLoc
	*Module = http.Module{
		Name: "ngx_http_addition_filter_module",
		Directives: []module.Directive{
			{Name: "add_before_body", Where: where, Args: module.Take1, Level: module.LocConf,
				Set: module.StrSlot(func(c *conf) *module.Str { return &c.before })},
			{Name: "add_after_body", Where: where, Args: module.Take1, Level: module.LocConf,
				Set: module.StrSlot(func(c *conf) *module.Str { return &c.after })},
			{Name: "addition_types", Where: where, Args: module.OneMore, Level: module.LocConf,
				Set: http.TypesSlot(func(c *conf) **http.TypeSet { return &c.types }, "text/html")},
		},
		CreateLoc: func(*module.Conf) any { return &conf{} },
		MergeLoc: func(cf *module.Conf, prev, c any) error {
			p, ac := prev.(*conf), c.(*conf)
			module.MergeStr(&ac.before, p.before, "")
			module.MergeStr(&ac.after, p.after, "")
			return http.MergeTypes(cf, &ac.types, p.types, "text/html")
		},
		HeaderFilter: func(next http.HeaderFilter) http.HeaderFilter {
			return func(r *http.Request) http.Rc { return headerFilter(r, next) }
		},
		BodyFilter: func(next http.BodyFilter) http.BodyFilter {
			return func(r *http.Request, in *http.Chain) http.Rc { return bodyFilter(r, in, next) }
		},
	}
}

func headerFilter(r *http.Request, next http.HeaderFilter) http.Rc {
	if r.HeadersOut.Status != 200 || r != r.Main {
		return next(r)
	}
	ac := r.LocConf[Module.Index].(*conf)
	if ac.before.V == "" && ac.after.V == "" || !ac.types.Has(r) {
		return next(r)
	}
	r.SetCtx(Module, &ctx{})
	r.ClearContentLength()
	r.ClearAcceptRanges()
	r.WeakETag()
	r.PreserveBody = true
	return next(r)
}

func bodyFilter(r *http.Request, in *http.Chain, next http.BodyFilter) http.Rc {
	if in == nil || r.HeaderOnly {
		return next(r, in)
	}
	c, _ := r.Ctx(Module).(*ctx)
	if c == nil {
		return next(r, in)
	}
	ac := r.LocConf[Module.Index].(*conf)
	if !c.beforeSent {
		c.beforeSent = true
		if ac.before.V != "" {
			if _, rc := r.Subrequest([]byte(ac.before.V), nil, nil, 0); rc != http.OK {
				return http.Error
			}
		}
	}
	if ac.after.V == "" {
		r.SetCtx(Module, nil)
		return next(r, in)
	}

	last := false
	for cl := in; cl != nil; cl = cl.Next {
		if b := cl.Buf; b.LastBuf {
			b.LastBuf, b.LastInChain, b.Sync = false, true, true
			last = true
		}
	}
	rc := next(r, in)
	if rc == http.Error || !last {
		return rc
	}
	if _, rc := r.Subrequest([]byte(ac.after.V), nil, nil, 0); rc != http.OK {
		return http.Error
	}
	r.SetCtx(Module, nil)
	return r.SendSpecial(true, false)
}
