// Package limit_conn is ngx_http_limit_conn_module: how many requests with the same value of a key may be
// worked on at a time (src/http/modules/ngx_http_limit_conn_module.c).
package limit_conn

import (
	"strings"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_limit_conn_module.
var Module = &http.Module{
	Name: "ngx_http_limit_conn_module",
	Directives: []module.Directive{
		{Name: "limit_conn_zone", Where: module.HTTPMain, Args: module.Take2, Set: setZone},
		{Name: "limit_conn", Where: where, Args: module.Take2, Level: module.LocConf, Set: setLimit},
		{Name: "limit_conn_log_level", Where: where, Args: module.Take1, Level: module.LocConf,
			Set: module.EnumSlot(func(c *conf) *int { return &c.level }, levels)},
		{Name: "limit_conn_status", Where: where, Args: module.Take1, Level: module.LocConf,
			Set: module.NumSlot(func(c *conf) *int { return &c.status }), Post: module.Bounds{Low: 400, High: 599}},
		{Name: "limit_conn_dry_run", Where: where, Args: module.Flag, Level: module.LocConf,
			Set: module.FlagSlot(func(c *conf) *int { return &c.dryRun })},
	},
	Preconf: addVariable,
	CreateLoc: func(*module.Conf) any {
		return &conf{level: module.Unset, status: module.Unset, dryRun: module.Unset}
	},
	MergeLoc: func(_ *module.Conf, prev, own any) error {
		p, c := prev.(*conf), own.(*conf)
		if c.limits == nil {
			c.limits = p.limits
		}
		module.MergeInt(&c.level, p.level, int(elog.Error))
		module.MergeInt(&c.status, p.status, 503)
		module.MergeInt(&c.dryRun, p.dryRun, 0)
		return nil
	},
}

// tag says whose a zone is: the module itself, which its own table cannot name.
var tag any

func init() {
	tag = Module
	Module.Postconf = func(cf *module.Conf) error {
		cmcf := cf.Ctx.(*http.ConfCtx).Main[0].(*http.CoreMain)
		cmcf.Phases[http.PreaccessPhase] = append(cmcf.Phases[http.PreaccessPhase], handler)
		return nil
	}
}

const where = module.HTTPMain | module.HTTPSrv | module.HTTPLoc

var levels = []module.Enum{
	{Name: "info", Value: int(elog.Info)}, {Name: "notice", Value: int(elog.Notice)},
	{Name: "warn", Value: int(elog.Warn)}, {Name: "error", Value: int(elog.Error)},
}

type conf struct {
	limits                []limit
	level, status, dryRun int
}

type limit struct {
	zone *module.Zone
	max  int
}

func setZone(cf *module.Conf, cmd *module.Directive, _ any) error {
	key, err := http.CompileComplexValue(cf, cf.Args[1])
	if err != nil {
		return err
	}
	v := cf.Args[2]
	if !strings.HasPrefix(v, "zone=") {
		return cf.Emerg(`invalid parameter "%s"`, v)
	}
	name, size, err := cf.ZoneParam(v)
	if err != nil {
		return err
	}
	if name == "" {
		return cf.Emerg(`"%s" must have "zone" parameter`, cmd.Name)
	}
	z, err := cf.SharedZone(name, size, tag)
	if err != nil {
		return err
	}
	if old, ok := z.Data.(*zone); ok {
		return cf.Emerg(`%s "%s" is already bound to key "%s"`, cmd.Name, name, old.key.Text)
	}
	own := &zone{name: name, key: key}
	z.Data = own
	z.Init = func(z *module.Zone, old any) error { return own.init(cf.Cycle, z, old) }
	return nil
}

func setLimit(cf *module.Conf, _ *module.Directive, confAny any) error {
	c := confAny.(*conf)
	z, err := cf.SharedZone(cf.Args[1], 0, tag)
	if err != nil {
		return err
	}
	for i := range c.limits {
		if c.limits[i].zone == z {
			return module.ErrDuplicate
		}
	}
	n, ok := module.Atoi(cf.Args[2])
	if !ok || n <= 0 {
		return cf.Emerg(`invalid number of connections "%s"`, cf.Args[2])
	}
	if n > 65535 {
		return cf.Emerg("connection limit must be less 65536")
	}
	c.limits = append(c.limits, limit{z, n})
	return nil
}

// What became of a request, in Request.LimitConnStatus; 0 is a request that no key was found for.
const (
	passed = iota + 1
	rejected
	rejectedDryRun
)

var statusNames = [...][]byte{
	passed: []byte("PASSED"), rejected: []byte("REJECTED"), rejectedDryRun: []byte("REJECTED_DRY_RUN"),
}

func addVariable(cf *module.Conf) error {
	v, err := http.AddVariable(cf, "limit_conn_status", http.VarNoCacheable)
	if err != nil {
		return err
	}
	v.Get = func(r *http.Request, to *http.VarValue, _ any) http.Rc {
		if s := r.Main.LimitConnStatus; s != 0 {
			return to.Set(statusNames[s])
		}
		return to.Missing()
	}
	return nil
}
