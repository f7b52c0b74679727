// Package upstream gives ngx_http_upstream_module its directives, upstream {} and the server lines
// inside, and its variables; the engine is nginxoracle/proxy/upstream.
package upstream

import (
	"strings"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	engine "nginxoracle/proxy/upstream"
)

// Module is ngx_http_upstream_module.
var Module = engine.Module

func init() {
	Module.Preconf = engine.AddVariables
	Module.Directives = []module.Directive{
		{Name: "upstream", Where: module.HTTPMain, Args: module.Block | module.Take1, Set: setUpstream},
		{Name: "server", Where: module.HTTPUps, Args: module.OneMore, Level: module.SrvConf, Set: setServer},
	}
}

// setUpstream is upstream NAME { … } (ngx_http_upstream).
func setUpstream(cf *module.Conf, cmd *module.Directive, _ any) error {
	u := engine.URL{Host: cf.Args[1], NoPort: true}
	us, err := engine.Add(cf, &u, engine.AllButBackup|engine.Backup)
	if err != nil {
		return err
	}
	ctx := http.NewConfCtx()
	ctx.Main = cf.Ctx.(*http.ConfCtx).Main
	ctx.Srv[Module.Index] = us
	us.Srv = ctx.Srv
	for _, m := range http.Modules {
		if m.CreateSrv != nil {
			ctx.Srv[m.Index] = m.CreateSrv(cf)
		}
		if m.CreateLoc != nil {
			ctx.Loc[m.Index] = m.CreateLoc(cf)
		}
	}
	us.HasSrvs = true
	us.Servers = nil

	saved := *cf
	cf.Ctx = ctx
	cf.Where = module.HTTPUps
	err = cf.ReadBlock()
	*cf = saved
	if err != nil {
		return err
	}
	if len(us.Servers) == 0 {
		return cf.Emerg("no servers are inside upstream")
	}
	return nil
}

// setServer is a server line (ngx_http_upstream_server).
func setServer(cf *module.Conf, cmd *module.Directive, conf any) error {
	us := conf.(*engine.SrvConf)
	s := &engine.Server{Weight: 1, MaxFails: 1, FailTimeout: 10}
	for _, arg := range cf.Args[2:] {
		allowed, ok := setParam(s, arg)
		switch {
		case allowed != 0 && us.Flags&allowed == 0:
			return cf.Emerg("balancing method does not support parameter \"%s\"", arg)
		case !ok:
			return cf.Emerg("invalid parameter \"%s\"", arg)
		}
	}
	u := engine.URL{Text: cf.Args[1], DefaultPort: 80}
	if err := engine.ParseURL(&u); err != nil {
		return cf.Emerg("%s in upstream \"%s\"", err, u.Text)
	}
	s.Name = u.Text
	s.Addrs = u.Addrs
	us.Servers = append(us.Servers, s)
	return nil
}

// setParam reads one parameter: which flag of the balancing method allows it (0 = it is no
// parameter at all), and whether it is well formed.
func setParam(s *engine.Server, arg string) (flag int, ok bool) {
	switch module.CText(arg) {
	case "backup":
		s.Backup = true
		return engine.Backup, true
	case "down":
		s.Down = true
		return engine.Down, true
	}
	name, value, found := strings.Cut(arg, "=")
	if !found {
		return 0, false
	}
	switch name {
	case "weight":
		s.Weight, ok = module.Atoi(value)
		return engine.Weight, ok && s.Weight != 0
	case "max_conns":
		s.MaxConns, ok = module.Atoi(value)
		return engine.MaxConns, ok
	case "max_fails":
		s.MaxFails, ok = module.Atoi(value)
		return engine.MaxFails, ok
	case "fail_timeout":
		s.FailTimeout, ok = module.ParseTime(value, true)
		return engine.FailTimeout, ok
	}
	return 0, false
}
