// Package header_count bounds the number of header fields of a request. The module is not in nginx's own
// 1.26.3; Debian's build, which is the reference, adds it with its security fixes
// (ngx_http_header_count_module; found in the binary and measured there).
package header_count

import (
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// conf is max_headers of a level.
type conf struct{ max int }

// Module is ngx_http_header_count_module. The engine reads the bound from the core module's configuration.
var Module = &http.Module{
	Name: "ngx_http_header_count_module",
	Directives: []module.Directive{{
		Name: "max_headers", Where: module.HTTPMain | module.HTTPSrv, Args: module.Take1, Level: module.SrvConf,
		Set: module.NumSlot(func(c *conf) *int { return &c.max }),
	}},
	CreateSrv: func(*module.Conf) any { return &conf{max: module.Unset} },
	MergeSrv: func(cf *module.Conf, prev, own any) error {
		c := own.(*conf)
		module.MergeInt(&c.max, prev.(*conf).max, http.DefaultMaxHeaders)
		cf.Ctx.(*http.ConfCtx).Srv[0].(*http.CoreSrv).MaxHeaders = c.max
		return nil
	},
}
