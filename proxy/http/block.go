package http

import "nginxoracle/proxy/module"

// Block reads http { … }: creates every module's configurations, reads, merges the levels, and builds
// what requests are served by. It returns the context of the main level
// (src/http/ngx_http.c, ngx_http_block).
func Block(cf *module.Conf) (*ConfCtx, error) {
	ctx := NewConfCtx()
	for _, m := range Modules {
		if m.CreateMain != nil {
			ctx.Main[m.Index] = m.CreateMain(cf)
		}
		if m.CreateSrv != nil {
			ctx.Srv[m.Index] = m.CreateSrv(cf)
		}
		if m.CreateLoc != nil {
			ctx.Loc[m.Index] = m.CreateLoc(cf)
		}
	}
	saved := *cf
	err := readBlock(cf, ctx)
	*cf = saved
	if err != nil {
		return nil, err
	}
	cmcf := ctx.Main[0].(*CoreMain)
	CompilePhases(cmcf)
	return ctx, optimizeServers(cf, cmcf)
}

// NewConfCtx makes a context with room for every module; server and location blocks share the
// Main of the level above, and locations its Srv.
func NewConfCtx() *ConfCtx {
	n := len(Modules)
	return &ConfCtx{Main: make([]any, n), Srv: make([]any, n), Loc: make([]any, n)}
}

func readBlock(cf *module.Conf, ctx *ConfCtx) error {
	cf.Ctx = ctx
	for _, m := range Modules {
		if m.Preconf != nil {
			if err := m.Preconf(cf); err != nil {
				return err
			}
		}
	}
	if err := addAbsentVariables(cf); err != nil {
		return err
	}
	cf.Type = module.HTTPModule
	cf.Where = module.HTTPMain
	if err := cf.ReadBlock(); err != nil {
		return err
	}
	cmcf := ctx.Main[0].(*CoreMain)
	for _, m := range Modules {
		if m.InitMain != nil {
			if err := m.InitMain(cf, ctx.Main[m.Index]); err != nil {
				return err
			}
		}
		if err := mergeServers(cf, cmcf, m); err != nil {
			return err
		}
	}
	for _, srv := range cmcf.Servers {
		loc := srv.Ctx.Loc[0].(*CoreLoc)
		initLocations(srv, loc)
		if err := initLocationTrees(cf, loc); err != nil {
			return err
		}
	}
	for _, m := range Modules {
		if m.Postconf != nil {
			if err := m.Postconf(cf); err != nil {
				return err
			}
		}
	}
	if err := initVariables(cf, cmcf); err != nil {
		return err
	}
	return checkVariables(cf, cmcf)
}

func mergeServers(cf *module.Conf, cmcf *CoreMain, m *Module) error {
	ctx := cf.Ctx.(*ConfCtx)
	saved := *ctx
	defer func() { *ctx = saved }()
	for _, srv := range cmcf.Servers {
		ctx.Srv = srv.Ctx.Srv
		if m.MergeSrv != nil {
			if err := m.MergeSrv(cf, saved.Srv[m.Index], srv.Ctx.Srv[m.Index]); err != nil {
				return err
			}
		}
		if m.MergeLoc == nil {
			continue
		}
		ctx.Loc = srv.Ctx.Loc
		if err := m.MergeLoc(cf, saved.Loc[m.Index], srv.Ctx.Loc[m.Index]); err != nil {
			return err
		}
		if err := mergeLocations(cf, srv.Ctx.Loc[0].(*CoreLoc), srv.Ctx.Loc, m); err != nil {
			return err
		}
	}
	return nil
}

// mergeLocations merges what is nested in a level, from the outside in.
func mergeLocations(cf *module.Conf, parent *CoreLoc, above []any, m *Module) error {
	ctx := cf.Ctx.(*ConfCtx)
	saved := *ctx
	for _, loc := range parent.Locations {
		ctx.Loc = loc.Ctx.Loc
		if err := m.MergeLoc(cf, above[m.Index], loc.Ctx.Loc[m.Index]); err != nil {
			return err
		}
		if err := mergeLocations(cf, loc, loc.Ctx.Loc, m); err != nil {
			return err
		}
	}
	*ctx = saved
	return nil
}

// IndexModules numbers Modules, the places in a ConfCtx.
func IndexModules() {
	for i, m := range Modules {
		m.Index = i
	}
}
