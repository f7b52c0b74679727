// Package upstream_zone is ngx_http_upstream_zone_module: the workers share what they know of an
// upstream's servers.
package upstream_zone

import (
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/upstream"
)

// Module is ngx_http_upstream_zone_module.
var Module = &http.Module{
	Name: "ngx_http_upstream_zone_module",
	Directives: []module.Directive{
		{Name: "zone", Where: module.HTTPUps, Args: module.Take12, Set: setZone},
	},
}

// minSize is eight pages.
const minSize = 8 * 4096

func setZone(cf *module.Conf, cmd *module.Directive, _ any) error {
	us := http.ConfSrv(cf, upstream.Module).(*upstream.SrvConf)
	mc := http.ConfMain(cf, upstream.Module).(*upstream.MainConf)
	name := cf.Args[1]
	if name == "" {
		return cf.Emerg("invalid zone name \"%s\"", name)
	}
	var size int64
	if len(cf.Args) == 3 {
		var ok bool
		if size, ok = module.ParseSize(cf.Args[2]); !ok {
			return cf.Emerg("invalid zone size \"%s\"", cf.Args[2])
		}
		if size < minSize {
			return cf.Emerg("zone \"%s\" is too small", name)
		}
	}
	z, err := cf.SharedZone(name, size, upstream.Module)
	if err != nil {
		return err
	}
	z.NoReuse = true
	z.Init = func(z *module.Zone, old any) error {
		mc.Share(z, old)
		return nil
	}
	us.Zone = z
	return nil
}
