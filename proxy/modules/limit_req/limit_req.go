// Package limit_req is ngx_http_limit_req_module: a leaky bucket for each value of a key
// (src/http/modules/ngx_http_limit_req_module.c).
package limit_req

import (
	"math"
	"strings"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_limit_req_module.
var Module = &http.Module{
	Name: "ngx_http_limit_req_module",
	Directives: []module.Directive{
		{Name: "limit_req_zone", Where: module.HTTPMain, Args: module.Take3, Set: setZone},
		{Name: "limit_req", Where: where, Args: module.Take123, Level: module.LocConf, Set: setLimit},
		{Name: "limit_req_log_level", Where: where, Args: module.Take1, Level: module.LocConf,
			Set: module.EnumSlot(func(c *conf) *int { return &c.level }, levels)},
		{Name: "limit_req_status", Where: where, Args: module.Take1, Level: module.LocConf,
			Set: module.NumSlot(func(c *conf) *int { return &c.status }), Post: module.Bounds{Low: 400, High: 599}},
		{Name: "limit_req_dry_run", Where: where, Args: module.Flag, Level: module.LocConf,
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

// conf is a location's. Excess and rates are in thousandths of a request (a second).
type conf struct {
	limits                []limit
	level, status, dryRun int
}

type limit struct {
	zone         *module.Zone
	burst, delay uint64
}

// delayLevel is one step less grave than that of refusals.
func (c *conf) delayLevel() elog.Level { return min(elog.Level(c.level)+1, elog.Info) }

func setZone(cf *module.Conf, cmd *module.Directive, _ any) error {
	key, err := http.CompileComplexValue(cf, cf.Args[1])
	if err != nil {
		return err
	}
	var size int64
	name := ""
	rate, scale := 1, 1
	for _, v := range cf.Args[2:] {
		switch {
		case strings.HasPrefix(v, "zone="):
			if name, size, err = cf.ZoneParam(v); err != nil {
				return err
			}
		case strings.HasPrefix(v, "rate="):
			digits := v[5:]
			if d, ok := strings.CutSuffix(digits, "r/s"); ok {
				digits, scale = d, 1
			} else if d, ok := strings.CutSuffix(digits, "r/m"); ok {
				digits, scale = d, 60
			}
			var ok bool
			if rate, ok = module.Atoi(digits); !ok || rate <= 0 {
				return cf.Emerg(`invalid rate "%s"`, v)
			}
		default:
			return cf.Emerg(`invalid parameter "%s"`, v)
		}
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
	own := &zone{name: name, key: key, rate: uint64(rate * 1000 / scale)}
	z.Data = own
	z.Init = func(z *module.Zone, old any) error { return own.init(cf.Cycle, z, old) }
	return nil
}

func setLimit(cf *module.Conf, cmd *module.Directive, confAny any) error {
	c := confAny.(*conf)
	var l limit
	for _, v := range cf.Args[1:] {
		switch {
		case strings.HasPrefix(v, "zone="):
			z, err := cf.SharedZone(v[5:], 0, tag)
			if err != nil {
				return err
			}
			l.zone = z
		case strings.HasPrefix(v, "burst="):
			n, ok := module.Atoi(v[6:])
			if !ok || n <= 0 {
				return cf.Emerg(`invalid burst value "%s"`, v)
			}
			l.burst = uint64(n) * 1000
		case strings.HasPrefix(v, "delay="):
			n, ok := module.Atoi(v[6:])
			if !ok || n <= 0 {
				return cf.Emerg(`invalid delay value "%s"`, v)
			}
			l.delay = uint64(n) * 1000
		case module.Is(v, "nodelay"):
			l.delay = math.MaxInt64 / 1000 * 1000
		default:
			return cf.Emerg(`invalid parameter "%s"`, v)
		}
	}
	if l.zone == nil {
		return cf.Emerg(`"%s" must have "zone" parameter`, cmd.Name)
	}
	for i := range c.limits {
		if c.limits[i].zone == l.zone {
			return module.ErrDuplicate
		}
	}
	c.limits = append(c.limits, l)
	return nil
}

// What became of a request, in Request.LimitReqStatus; 0 is a request that no key was found for.
const (
	passed = iota + 1
	delayed
	rejected
	delayedDryRun
	rejectedDryRun
)

var statusNames = [...][]byte{
	passed: []byte("PASSED"), delayed: []byte("DELAYED"), rejected: []byte("REJECTED"),
	delayedDryRun: []byte("DELAYED_DRY_RUN"), rejectedDryRun: []byte("REJECTED_DRY_RUN"),
}

func addVariable(cf *module.Conf) error {
	v, err := http.AddVariable(cf, "limit_req_status", http.VarNoCacheable)
	if err != nil {
		return err
	}
	v.Get = func(r *http.Request, to *http.VarValue, _ any) http.Rc {
		if s := r.Main.LimitReqStatus; s != 0 {
			return to.Set(statusNames[s])
		}
		return to.Missing()
	}
	return nil
}
