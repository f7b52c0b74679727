package http

import (
	"nginxoracle/proxy/module"
)

// The engine's surface, by owner. A body that panics here is replaced by its owner's
// file: the owner deletes the line here when the real one lands.

func owed(who string) { panic("owed by " + who) }

// --- p3: configuration, locations, variables, scripts (core_*.go, location.go, variables.go, script.go, regex.go)

// MapURIToPath gives the file's name for the URI under root or alias (ngx_http_map_uri_to_path);
// rootLen is the length of the root part; reserve more bytes of capacity are kept.
func (r *Request) MapURIToPath(reserve int) (path []byte, rootLen int, ok bool) {
	owed("p3")
	return nil, 0, false
}

// FindConfig selects the location (ngx_http_core_find_location) — used by the find-config checker.
func (r *Request) FindLocation() Rc { owed("p3"); return 0 }

// UpdateLocationConfig applies the selected location's settings to the request (ngx_http_update_location_config).
func (r *Request) UpdateLocationConfig() { owed("p3") }

// SetVirtualServer chooses the server by host (ngx_http_set_virtual_server, ngx_http_find_virtual_server).
func (r *Request) SetVirtualServer(host []byte) Rc { owed("p3"); return 0 }

// ValidateHost checks and lower-cases a host (ngx_http_validate_host): Declined when it is bad.
func ValidateHost(host []byte) ([]byte, Rc) { owed("p3"); return nil, 0 }

// Regex is a compiled pattern with its named captures' variables (ngx_http_regex_t).
type Regex struct {
	Name      string
	re        any
	NCaptures int
	Vars      []any
}

// CompileRegex compiles a pattern of the configuration (ngx_http_regex_compile); errors are PCRE2's texts in nginx's wording.
func CompileRegex(cf *module.Conf, pattern string, caseless bool) (*Regex, error) {
	owed("p3")
	return nil, nil
}

// Exec matches s, sets r.Captures and the named variables: OK, Declined, Error (ngx_http_regex_exec).
func (re *Regex) Exec(r *Request, s []byte) Rc { owed("p3"); return 0 }

// ComplexValue is a text with variables, compiled (ngx_http_complex_value_t).
type ComplexValue struct {
	Text   string
	Static bool // no variables
	codes  any
}

func CompileComplexValue(cf *module.Conf, text string) (*ComplexValue, error) {
	owed("p3")
	return nil, nil
}

// Complex evaluates (ngx_http_complex_value). The bytes live as long as the request.
func (r *Request) Complex(v *ComplexValue) ([]byte, Rc) { owed("p3"); return nil, 0 }

// ScriptVariablesCount is the number of variables in a text.
func ScriptVariablesCount(text string) int { owed("p3"); return 0 }

// AddVariable declares one (ngx_http_add_variable); VariableIndex gives the index to read it by (ngx_http_get_variable_index).
func AddVariable(cf *module.Conf, name string, flags int) (*Variable, error) {
	owed("p3")
	return nil, nil
}
func VariableIndex(cf *module.Conf, name string) (int, error) { owed("p3"); return 0, nil }
func (r *Request) IndexedVariable(i int) *VarValue            { owed("p3"); return nil } // nil on error
func (r *Request) FlushedVariable(i int) *VarValue            { owed("p3"); return nil }
func (r *Request) NamedVariable(name string) *VarValue        { owed("p3"); return nil }

// ComplexSlot, PredicateSlot are the setters for values with variables (ngx_http_set_complex_value_slot).
// TestPredicates is ngx_http_test_predicates.

// Core of a configuration being read.
func ConfMain(cf *module.Conf, m *Module) any { return cf.Ctx.(*ConfCtx).Main[m.Index] }
func ConfSrv(cf *module.Conf, m *Module) any  { return cf.Ctx.(*ConfCtx).Srv[m.Index] }
func ConfLoc(cf *module.Conf, m *Module) any  { return cf.Ctx.(*ConfCtx).Loc[m.Index] }

// --- p3: what Block (block.go) builds a configuration with.
func initLocations(srv *CoreSrv, parent *CoreLoc)              { owed("p3") }
func initLocationTrees(cf *module.Conf, parent *CoreLoc) error { owed("p3"); return nil }
func initVariables(cf *module.Conf, cmcf *CoreMain) error      { owed("p3"); return nil }
func buildServerNames(cf *module.Conf, addr *ConfAddr) error   { owed("p3"); return nil }

// --- p3: LocNode is the tree of static locations (ngx_http_location_tree_node_t).
type LocNode struct {
	Left, Right, Tree *LocNode
	Exact, Inclusive  *CoreLoc
	AutoRedirect      bool
	Name              string
}
