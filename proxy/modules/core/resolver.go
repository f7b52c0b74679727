package core

import (
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/upstream"
)

// setResolver is the resolver directive (ngx_http_core_resolver).
func setResolver(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.Resolver != nil {
		return module.ErrDuplicate
	}
	r, err := upstream.NewResolver(cf, cf.Args[1:])
	if err != nil {
		return err
	}
	c.Resolver = r
	return nil
}
