// Package mirror repeats requests to other locations, in the background
// (nginx: src/http/modules/ngx_http_mirror_module.c).
package mirror

import (
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

type conf struct {
	set         bool
	uris        [][]byte // nil with set: off
	requestBody int
}

// ctx is there while the body is read.
type ctx struct{ status http.Rc }

// Module is ngx_http_mirror_module.
var Module = &http.Module{}

func init() {
	*Module = http.Module{
		Name: "ngx_http_mirror_module",
		Directives: []module.Directive{
			{Name: "mirror", Where: http.InHTTPSrvLoc, Args: module.Take1, Level: module.LocConf, Set: set},
			{Name: "mirror_request_body", Where: http.InHTTPSrvLoc, Args: module.Flag, Level: module.LocConf,
				Set: module.FlagSlot(func(c *conf) *int { return &c.requestBody })},
		},
		CreateLoc: func(*module.Conf) any { return &conf{requestBody: module.Unset} },
		MergeLoc: func(_ *module.Conf, prev, c any) error {
			p, mc := prev.(*conf), c.(*conf)
			if !mc.set {
				mc.set, mc.uris = p.set, p.uris
			}
			module.MergeInt(&mc.requestBody, p.requestBody, 1)
			return nil
		},
		Postconf: func(cf *module.Conf) error {
			http.AddHandler(cf, http.PrecontentPhase, handler)
			return nil
		},
	}
}

func set(cf *module.Conf, _ *module.Directive, c any) error {
	mc := c.(*conf)
	off := module.Is(cf.Args[1], "off")
	if off && mc.set || mc.set && mc.uris == nil {
		return module.ErrDuplicate
	}
	mc.set = true
	if !off {
		mc.uris = append(mc.uris, []byte(cf.Args[1]))
	}
	return nil
}

func handler(r *http.Request) http.Rc {
	if r != r.Main {
		return http.Declined
	}
	mc := r.LocConf[Module.Index].(*conf)
	if mc.uris == nil {
		return http.Declined
	}
	if mc.requestBody == 0 {
		return start(r, mc)
	}
	if c, _ := r.Ctx(Module).(*ctx); c != nil {
		return c.status
	}
	r.SetCtx(Module, &ctx{status: http.Done})
	if rc := r.ReadBody(bodyRead); rc >= 300 {
		return rc
	}
	r.Finalize(http.Done)
	return http.Done
}

func bodyRead(r *http.Request) {
	c := r.Ctx(Module).(*ctx)
	c.status = start(r, r.LocConf[Module.Index].(*conf))
	r.PreserveBody = true
	r.WriteHandler = (*http.Request).RunPhases
	r.RunPhases()
}

// start sends the copies on their way.
func start(r *http.Request, mc *conf) http.Rc {
	for _, uri := range mc.uris {
		sr, rc := r.Subrequest(uri, r.Args, nil, http.SubBackground)
		if rc != http.OK {
			return 500
		}
		sr.HeaderOnly = true
		sr.Method, sr.MethodName = r.Method, r.MethodName
	}
	return http.Declined
}
