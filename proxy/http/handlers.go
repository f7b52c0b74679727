package http

import "nginxoracle/proxy/module"

// AddHandler puts a module's handler into a phase; it is called by Postconf.
func AddHandler(cf *module.Conf, phase Phase, h Handler) {
	cm := cf.Ctx.(*ConfCtx).Main[0].(*CoreMain)
	cm.Phases[phase] = append(cm.Phases[phase], h)
}

// Location contexts of most directives.
const (
	InHTTPSrvLoc    = module.HTTPMain | module.HTTPSrv | module.HTTPLoc
	InHTTPSrvLocLif = InHTTPSrvLoc | module.HTTPLif
)

// FlushVariable forgets an indexed variable's value when that may have changed
// (ngx_http_script_flush_no_cacheable_variables).
func (r *Request) FlushVariable(i int) { r.flush(i) }

// SetHandler makes h answer for the location that is being read; it is called by a directive.
func SetHandler(cf *module.Conf, h Handler) { cf.Ctx.(*ConfCtx).Loc[0].(*CoreLoc).Handler = h }

// URIEndsInSlash tells a folder's URI. try_files can redirect to an empty one (see RedirectBehind).
func (r *Request) URIEndsInSlash() bool {
	if len(r.URI) == 0 {
		return r.emptyIsFolder
	}
	return r.URI[len(r.URI)-1] == '/'
}
