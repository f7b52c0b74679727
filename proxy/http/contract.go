package http

import (
	"nginxoracle/proxy/module"
)

// The engine's surface, by owner. A body that panics here is replaced by its owner's
// file: the owner deletes the line here when the real one lands.

func owed(who string) { panic("owed by " + who) }

// LastModified/ETag helpers used by static and others.
func (r *Request) SetETag() Rc        { owed("p4"); return 0 } // ngx_http_set_etag
func (r *Request) SetContentType() Rc { owed("p4"); return 0 } // ngx_http_set_content_type
func (r *Request) SetExten()          { owed("p4") }           // ngx_http_set_exten

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
