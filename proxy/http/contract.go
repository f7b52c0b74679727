package http

import (
	"nginxoracle/proxy/module"
)

// The engine's surface, by owner. A body that panics here is replaced by its owner's
// file: the owner deletes the line here when the real one lands.

func owed(who string) { panic("owed by " + who) }

// Core of a configuration being read.
func ConfMain(cf *module.Conf, m *Module) any { return cf.Ctx.(*ConfCtx).Main[m.Index] }
func ConfSrv(cf *module.Conf, m *Module) any  { return cf.Ctx.(*ConfCtx).Srv[m.Index] }
func ConfLoc(cf *module.Conf, m *Module) any  { return cf.Ctx.(*ConfCtx).Loc[m.Index] }

// LocNode is the tree of static locations (ngx_http_location_tree_node_t).
type LocNode struct {
	Left, Right, Tree *LocNode
	Exact, Inclusive  *CoreLoc
	AutoRedirect      bool
	Name              string
}
