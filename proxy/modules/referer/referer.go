// Package referer is ngx_http_referer_module: whether the Referer field names a site that may
// (src/http/modules/ngx_http_referer_module.c).
package referer

import (
	"bytes"
	"strings"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/http/pcre"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_referer_module.
var Module = &http.Module{
	Name: "ngx_http_referer_module",
	Directives: []module.Directive{
		{Name: "valid_referers", Where: where, Args: module.OneMore, Level: module.LocConf, Set: setValid},
		{Name: "referer_hash_max_size", Where: where, Args: module.Take1, Level: module.LocConf,
			Set: module.NumSlot(func(c *conf) *int { return &c.max })},
		{Name: "referer_hash_bucket_size", Where: where, Args: module.Take1, Level: module.LocConf,
			Set: module.NumSlot(func(c *conf) *int { return &c.bucket })},
	},
	CreateLoc: func(cf *module.Conf) any {
		return &conf{max: module.Unset, bucket: module.Unset, none: module.Unset, blocked: module.Unset}
	},
	MergeLoc: merge,
}

func init() { Module.Preconf = addVariable }

const where = module.HTTPSrv | module.HTTPLoc

type conf struct {
	names         *http.NameBuilder // while reading; nil: nothing was given
	given         bool              // a name is among them
	table         *http.NameTable
	regexes       []*pcre.Regexp
	serverRegexes []*http.Regex
	serverNames   bool
	none, blocked int
	max, bucket   int
}

// anyURI is the value of a name without a part of a URI behind it.
const anyURI = ""

func (c *conf) add(cf *module.Conf, name, uri string) error {
	switch c.names.Add(name, uri, true) {
	case http.NameInvalid:
		return cf.Emerg(`invalid hostname or wildcard "%s"`, name)
	case http.NameConflict:
		return cf.Emerg(`conflicting parameter "%s"`, ascii.Lower(name))
	}
	c.given = true
	return nil
}

func setValid(cf *module.Conf, cmd *module.Directive, confAny any) error {
	c := confAny.(*conf)
	if c.names == nil {
		c.names = &http.NameBuilder{}
	}
	for _, v := range cf.Args[1:] {
		switch {
		case v == "":
			return cf.Emerg(`invalid referer "%s"`, v)
		case module.Is(v, "none"):
			c.none = 1
		case module.Is(v, "blocked"):
			c.blocked = 1
		case module.Is(v, "server_names"):
			c.serverNames = true
		case v == "~":
			return cf.Emerg(`empty regex in "%s"`, v)
		case v[0] == '~':
			re, err := pcre.Compile(v[1:], true)
			if err != nil {
				return cf.Emerg("%s", err)
			}
			c.regexes = append(c.regexes, re)
		default:
			host, uri := v, anyURI
			if i := strings.IndexByte(v, '/'); i >= 0 {
				host, uri = v[:i], v[i:]
			}
			if err := c.add(cf, host, uri); err != nil {
				return err
			}
		}
	}
	return nil
}

func merge(cf *module.Conf, prevAny, confAny any) error {
	prev, c := prevAny.(*conf), confAny.(*conf)
	if c.names == nil {
		c.table = prev.table
		module.MergeSlice(&c.regexes, prev.regexes)
		module.MergeSlice(&c.serverRegexes, prev.serverRegexes)
		module.MergeInt(&c.none, prev.none, 0)
		module.MergeInt(&c.blocked, prev.blocked, 0)
		module.MergeInt(&c.max, prev.max, 2048)
		module.MergeInt(&c.bucket, prev.bucket, 64)
		return nil
	}
	if c.serverNames {
		for _, n := range cf.Ctx.(*http.ConfCtx).Srv[0].(*http.CoreSrv).Names {
			if n.Regex != nil {
				c.serverRegexes = append(c.serverRegexes, n.Regex)
				continue
			}
			if err := c.add(cf, n.Name, anyURI); err != nil {
				return err
			}
		}
	}
	if (c.none == 1 || c.blocked == 1) && !c.given {
		cf.Log().Err(elog.Emerg, nil, `the "none" or "blocked" referers are specified in the "valid_referers" directive without any valid referer`)
		return module.ErrReported
	}
	module.MergeInt(&c.max, prev.max, 2048)
	module.MergeInt(&c.bucket, prev.bucket, 64)
	c.bucket = http.AlignLine(c.bucket)
	table, err := c.names.Table(cf, http.HashLimits{Name: "referer_hash", Max: c.max, BucketSize: c.bucket})
	if err != nil {
		return err
	}
	if c.given {
		c.table = table
	}
	module.MergeSlice(&c.regexes, prev.regexes)
	module.MergeSlice(&c.serverRegexes, prev.serverRegexes)
	module.InitInt(&c.none, 0)
	module.InitInt(&c.blocked, 0)
	return nil
}

func addVariable(cf *module.Conf) error {
	v, err := http.AddVariable(cf, "invalid_referer", http.VarChangeable)
	if err != nil {
		return err
	}
	v.Get = get
	return nil
}

// get is empty for a valid referer, "1" for another (ngx_http_referer_variable).
func get(r *http.Request, v *http.VarValue, _ any) http.Rc {
	c := r.LocConf[Module.Index].(*conf)
	ok, rc := c.valid(r)
	if rc != http.OK {
		return rc
	}
	*v = http.VarTrue
	if ok {
		*v = http.VarNull
	}
	return http.OK
}

// longestHost is how much of a host's name is looked at.
const longestHost = 256

func (c *conf) valid(r *http.Request) (bool, http.Rc) {
	if c.table == nil && c.regexes == nil && c.serverRegexes == nil {
		return true, http.OK
	}
	if r.HeadersIn.Referer == nil {
		return c.none == 1, http.OK
	}
	ref := r.HeadersIn.Referer.Value
	rest, ok := afterScheme(ref)
	if !ok {
		return c.blocked == 1, http.OK
	}
	end := bytes.IndexAny(rest, "/:")
	if end < 0 {
		end = len(rest)
	}
	if end > longestHost {
		return false, http.OK
	}
	host := r.Lower(rest[:end])
	if c.table != nil {
		if uri := c.table.Find(host); uri != nil {
			path := rest[end:]
			if i := bytes.IndexByte(path, '/'); i >= 0 {
				path = path[i:]
			} else {
				path = nil
			}
			return strings.HasPrefix(string(path), uri.(string)), http.OK
		}
	}
	for _, re := range c.serverRegexes {
		if ok, rc := match(r, re.Pattern(), host); ok || rc != http.OK {
			return ok, rc
		}
	}
	for _, re := range c.regexes {
		if ok, rc := match(r, re, rest); ok || rc != http.OK {
			return ok, rc
		}
	}
	return false, http.OK
}

// afterScheme gives what is behind "http://" or "https://" of a field long enough to name a site.
func afterScheme(ref []byte) ([]byte, bool) {
	if len(ref) < len("http://i.ru") {
		return nil, false
	}
	for _, scheme := range []string{"http://", "https://"} {
		if len(ref) >= len(scheme) && ascii.EqualFold(ref[:len(scheme)], scheme) {
			return ref[len(scheme):], true
		}
	}
	return nil, false
}

func match(r *http.Request, re *pcre.Regexp, s []byte) (bool, http.Rc) {
	switch rc := re.Exec(s, nil); {
	case rc >= 0:
		return true, http.OK
	case rc != pcre.NoMatch:
		r.Conn.Log.Err(elog.Alert, nil, `pcre2_match() failed: %d on "%s" using "%s"`, rc, s, re.Pattern)
		return false, http.Error
	}
	return false, http.OK
}
