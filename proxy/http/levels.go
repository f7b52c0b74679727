package http

import (
	"os"
	"syscall"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
)

// The blocks inside http: each makes its level's configurations and reads what is inside
// with them (ngx_http_core_module.c).

func newLevel(cf *module.Conf, main, srv []any) *ConfCtx {
	ctx := NewConfCtx()
	ctx.Main = main
	for _, m := range Modules {
		if srv == nil && m.CreateSrv != nil {
			ctx.Srv[m.Index] = m.CreateSrv(cf)
		}
		if m.CreateLoc != nil {
			ctx.Loc[m.Index] = m.CreateLoc(cf)
		}
	}
	if srv != nil {
		ctx.Srv = srv
	}
	return ctx
}

// NewLocation makes the configurations of a block inside the one that is read: location,
// limit_except, if. They are the block's once AddLocation has put it among its parent's.
func NewLocation(cf *module.Conf) (ctx *ConfCtx, loc, parent *CoreLoc) {
	up := cf.Ctx.(*ConfCtx)
	ctx = newLevel(cf, up.Main, up.Srv)
	loc = ctx.Loc[0].(*CoreLoc)
	loc.Ctx = ctx
	return ctx, loc, up.Loc[0].(*CoreLoc)
}

// ReadInside reads a block with its own configurations.
func ReadInside(cf *module.Conf, ctx *ConfCtx, where module.Where) error {
	saved := *cf
	cf.Ctx, cf.Where = ctx, where
	err := cf.ReadBlock()
	*cf = saved
	return err
}

// ListenBacklog is the queue of a listening socket without backlog= (NGX_LISTEN_BACKLOG on Linux).
const ListenBacklog = 511

// ServerBlock is the setter of server (ngx_http_core_server).
func ServerBlock(cf *module.Conf, cmd *module.Directive, conf any) error {
	cmcf := coreMainOf(cf)
	ctx := newLevel(cf, cf.Ctx.(*ConfCtx).Main, nil)
	srv := ctx.Srv[0].(*CoreSrv)
	srv.Ctx = ctx
	ctx.Loc[0].(*CoreLoc).Ctx = ctx
	cmcf.Servers = append(cmcf.Servers, srv)
	if err := ReadInside(cf, ctx, module.HTTPSrv); err != nil || srv.Listen {
		return err
	}
	a := ev.Addr{Family: syscall.AF_INET, Port: 80}
	if os.Getuid() != 0 {
		a.Port = 8000
	}
	return AddListen(cf, srv, ConfAddr{
		Addr: a, Text: a.Text(), Wildcard: true, Backlog: ListenBacklog,
		Rcvbuf: module.Unset, Sndbuf: module.Unset, FastOpen: module.Unset,
	})
}
