package http

import (
	"sort"
	"strings"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http/parse"
	"nginxoracle/proxy/module"
)

// Locations: collected while the configuration is read, sorted into a tree of the literal
// ones and a list of the regular expressions, and searched by a request's URI
// (ngx_http.c, ngx_http_core_find_location).

// AddLocation puts a location among those of its parent; its place is where the
// configuration is being read (ngx_http_add_location).
func AddLocation(cf *module.Conf, parent, loc *CoreLoc) {
	loc.file, loc.line = cf.File(), cf.Line()
	loc.EscapedName = loc.Name
	if parse.EscapeCount([]byte(loc.Name), parse.EscapeURI) > 0 {
		loc.EscapedName = string(parse.Escape(nil, []byte(loc.Name), parse.EscapeURI))
	}
	parent.Locations = append(parent.Locations, loc)
}

// rank is the group a location is sorted into: literals, regular expressions, named, and
// last the blocks of if and limit_except, which no URI leads to.
func (l *CoreLoc) rank() int {
	switch {
	case l.Noname:
		return 3
	case l.Named:
		return 2
	case l.Regex != nil:
		return 1
	}
	return 0
}

// before orders locations (ngx_http_cmp_locations): literals by name with an exact one
// before the same prefix, named by name; the others keep their order.
func (l *CoreLoc) before(m *CoreLoc) bool {
	a, b := l.rank(), m.rank()
	if a != b {
		return a < b
	}
	switch a {
	case 2:
		return l.Name < m.Name
	case 0:
		if c := compareNames(l.Name, m.Name); c != 0 {
			return c < 0
		}
		return l.Exact && !m.Exact
	}
	return false
}

// initLocations sorts a level's locations and hands out the regular expressions and the
// named ones; what is left are the literals (ngx_http_init_locations).
func initLocations(srv *CoreSrv, parent *CoreLoc) {
	locs := parent.Locations
	sort.SliceStable(locs, func(i, j int) bool { return locs[i].before(locs[j]) })
	var literals []*CoreLoc
	for _, l := range locs {
		initLocations(nil, l)
		switch l.rank() {
		case 1:
			parent.Regexes = append(parent.Regexes, l)
		case 2:
			srv.NamedLocs = append(srv.NamedLocs, l)
		case 0:
			literals = append(literals, l)
		}
	}
	parent.literals = literals
}

// literal is one name among the literals of a level with its exact and prefix location,
// and the names that it is a prefix of (ngx_http_location_queue_t).
type literal struct {
	name             string
	exact, inclusive *CoreLoc
	list             []*literal
}

// initLocationTrees builds the trees of a level and of the literals below it; literals
// inside a regular expression get none, so that nginx never finds them
// (ngx_http_init_static_location_trees).
func initLocationTrees(cf *module.Conf, parent *CoreLoc) error {
	if len(parent.literals) == 0 {
		return nil
	}
	for _, l := range parent.literals {
		if err := initLocationTrees(cf, l); err != nil {
			return err
		}
	}
	var names []*literal
	for _, l := range parent.literals {
		q := &literal{name: l.Name}
		if l.Exact {
			q.exact = l
		} else {
			q.inclusive = l
		}
		if n := len(names); n > 0 && names[n-1].name == q.name {
			last := names[n-1]
			if last.exact != nil && q.exact != nil || last.inclusive != nil && q.inclusive != nil {
				cf.Log().Err(elog.Emerg, nil, `duplicate location "%s" in %s:%d`, l.Name, l.file, l.line)
				return module.ErrReported
			}
			last.inclusive = q.inclusive
			continue
		}
		names = append(names, q)
	}
	parent.Tree = locationTree(nestLocations(names), 0)
	return nil
}

// nestLocations puts the names that begin with another prefix location's under it
// (ngx_http_create_locations_list).
func nestLocations(names []*literal) []*literal {
	var out []*literal
	for i := 0; i < len(names); {
		q, j := names[i], i+1
		if q.inclusive != nil {
			for j < len(names) && strings.HasPrefix(names[j].name, q.name) {
				j++
			}
			q.list = nestLocations(names[i+1 : j])
		}
		out = append(out, q)
		i = j
	}
	return out
}

// locationTree is a balanced tree of sorted names; prefix is how much of each name its
// ancestors have matched (ngx_http_create_locations_tree).
func locationTree(names []*literal, prefix int) *LocNode {
	if len(names) == 0 {
		return nil
	}
	mid := len(names) / 2
	q := names[mid]
	return &LocNode{
		Name:         q.name[prefix:],
		Exact:        q.exact,
		Inclusive:    q.inclusive,
		AutoRedirect: q.exact != nil && q.exact.AutoRedirect || q.inclusive != nil && q.inclusive.AutoRedirect,
		Left:         locationTree(names[:mid], prefix),
		Right:        locationTree(names[mid+1:], prefix),
		Tree:         locationTree(q.list, len(q.name)),
	}
}

// compareNames orders with "/" lowest, after the end (ngx_filename_cmp).
func compareNames[A, B string | []byte](a A, b B) int {
	for i := 0; ; i++ {
		switch {
		case i == len(a) && i == len(b):
			return 0
		case i == len(a):
			return -1
		case i == len(b):
			return 1
		case a[i] == b[i]:
			continue
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		}
		return int(a[i]) - int(b[i])
	}
}

// FindLocation selects the location of the request's URI: OK an exact or a regular
// expression's, Again a prefix, Done one that redirects to itself with a slash, Declined
// none, Error (ngx_http_core_find_location).
func (r *Request) FindLocation() Rc {
	parent := r.Core
	noRegex := false
	rc := r.findLiteral(parent.Tree)
	if rc == Again {
		noRegex = r.Core.NoRegex
		rc = r.FindLocation()
	}
	if rc == OK || rc == Done {
		return rc
	}
	if noRegex {
		return rc
	}
	for _, l := range parent.Regexes {
		switch l.Regex.Exec(r, r.URI) {
		case OK:
			r.setLoc(l.Ctx.Loc)
			if r.FindLocation() == Error {
				return Error
			}
			return OK
		case Error:
			return Error
		}
	}
	return rc
}

// SetLocation makes a location's configurations the request's.
func (r *Request) SetLocation(l *CoreLoc) { r.setLoc(l.Ctx.Loc) }

// InLocationRewrite reports that the request is at the first step of the rewrite phase, not
// at the server's.
func (r *Request) InLocationRewrite() bool { return r.phase == r.CoreMain().LocationRewriteIndex }

// findLiteral walks a level's tree (ngx_http_core_find_static_location).
func (r *Request) findLiteral(node *LocNode) Rc {
	uri := r.URI
	found := Declined
	for node != nil {
		n := min(len(uri), len(node.Name))
		if c := compareNames(uri[:n], node.Name[:n]); c < 0 {
			node = node.Left
			continue
		} else if c > 0 {
			node = node.Right
			continue
		}
		switch {
		case len(uri) > len(node.Name):
			if node.Inclusive == nil {
				node = node.Right
				continue
			}
			r.setLoc(node.Inclusive.Ctx.Loc)
			found = Again
			node = node.Tree
			uri = uri[n:]
		case len(uri) == len(node.Name):
			if node.Exact != nil {
				r.setLoc(node.Exact.Ctx.Loc)
				return OK
			}
			r.setLoc(node.Inclusive.Ctx.Loc)
			return Again
		default:
			if len(uri)+1 == len(node.Name) && node.AutoRedirect {
				if node.Exact != nil {
					r.setLoc(node.Exact.Ctx.Loc)
				} else {
					r.setLoc(node.Inclusive.Ctx.Loc)
				}
				found = Done
			}
			node = node.Left
		}
	}
	return found
}

// UpdateLocationConfig applies the selected location's settings to the request
// (ngx_http_update_location_config).
func (r *Request) UpdateLocationConfig() {
	if r.Core.LimitExcept&r.Method != 0 {
		r.setLoc(r.Core.LimitExceptConf.Loc)
	}
	clcf := r.Core
	if r == r.Main {
		setLog(r.Conn, clcf)
	}
	r.HC.Sendfile = clcf.Sendfile == 1
	if clcf.ClientBodyInFileOnly != BodyFileOff {
		r.RequestBodyInFileOnly, r.RequestBodyInPersistentFile = true, true
		r.RequestBodyInCleanFile = clcf.ClientBodyInFileOnly == BodyFileClean
		r.RequestBodyFileLogLevel = elog.Notice
	} else {
		r.RequestBodyFileLogLevel = elog.Warn
	}
	r.RequestBodyInSingleBuf = clcf.ClientBodyInSingleBuffer == 1

	if r.KeepAlive && !r.mayKeepAlive(clcf) {
		r.KeepAlive = false
	}
	if clcf.TCPNopush != 1 {
		r.Conn.TCPNopush = ev.TCPDisabled
	}
	if clcf.Handler != nil {
		r.ContentHandler = clcf.Handler
	}
}

func (r *Request) mayKeepAlive(clcf *CoreLoc) bool {
	c, h := r.Conn, &r.HeadersIn
	switch {
	case clcf.KeepaliveTimeout == 0,
		c.Requests >= clcf.KeepaliveRequests,
		c.Loop.Mono()-c.StartMs > clcf.KeepaliveTime:
		return false
	case h.MSIE6 && r.Method == POST && clcf.KeepaliveDisable&KeepaliveDisableMSIE6 != 0,
		h.Safari && clcf.KeepaliveDisable&KeepaliveDisableSafari != 0:
		return false
	}
	return true
}

// MapURIToPath gives the file's name for the URI under root or alias (ngx_http_map_uri_to_path);
// rootLen is the length of the root part; reserve more bytes of capacity are kept.
func (r *Request) MapURIToPath(reserve int) (path []byte, rootLen int, ok bool) {
	clcf := r.Core
	alias := clcf.Alias
	if alias != 0 && !r.ValidLocation {
		r.Conn.Log.Err(elog.Alert, nil, `"alias" cannot be used in location "%s" where URI was rewritten`, clcf.Name)
		return nil, 0, false
	}
	if clcf.RootValues == nil {
		path = append(r.Alloc(len(clcf.Root.V) + reserve + len(r.URI) + 1)[:0], clcf.Root.V...)
		rootLen = len(path)
		return append(path, r.URI[alias:]...), rootLen, true
	}
	if path, ok = r.root(reserve + len(r.URI) + 1); !ok {
		return nil, 0, false
	}
	rootLen = len(path)
	if alias == AliasRegex {
		if !r.AddURIToAlias {
			return path, rootLen, true
		}
		alias = 0
	}
	return append(path, r.URI[alias:]...), rootLen, true
}

// AliasRegex is the Alias of a location that is a regular expression: the alias is the
// whole path.
const AliasRegex = -1

// root evaluates a root with variables into a full path.
func (r *Request) root(reserve int) (path []byte, ok bool) {
	path, ok = r.Core.RootValues.script.Run(r, reserve)
	if !ok || len(path) > 0 && path[0] == '/' {
		return path, ok
	}
	prefix := r.CoreMain().Prefix
	full := append(r.Alloc(len(prefix) + len(path) + reserve)[:0], prefix...)
	return append(full, path...), true
}
