// Package autoindex lists folders (nginx: src/http/modules/ngx_http_autoindex_module.c).
package autoindex

import (
	"sort"
	"strings"
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

type conf struct{ enable, format, localtime, exactSize int }

const (
	formatHTML = iota
	formatJSON
	formatJSONP
	formatXML
)

// entry is one name of the folder.
type entry struct {
	name      string
	dir, file bool
	mtime     int64 // seconds
	size      int64 // bytes
}

// Module is ngx_http_autoindex_module.
var Module = &http.Module{}

func init() {
	const where = http.InHTTPSrvLoc
	*Module = http.Module{
		Name: "ngx_http_autoindex_module",
		Directives: []module.Directive{
			{Name: "autoindex", Where: where, Args: module.Flag, Level: module.LocConf,
				Set: module.FlagSlot(func(c *conf) *int { return &c.enable })},
			{Name: "autoindex_format", Where: where, Args: module.Take1, Level: module.LocConf,
				Set: module.EnumSlot(func(c *conf) *int { return &c.format }, []module.Enum{
					{Name: "html", Value: formatHTML}, {Name: "json", Value: formatJSON},
					{Name: "jsonp", Value: formatJSONP}, {Name: "xml", Value: formatXML}})},
			{Name: "autoindex_localtime", Where: where, Args: module.Flag, Level: module.LocConf,
				Set: module.FlagSlot(func(c *conf) *int { return &c.localtime })},
			{Name: "autoindex_exact_size", Where: where, Args: module.Flag, Level: module.LocConf,
				Set: module.FlagSlot(func(c *conf) *int { return &c.exactSize })},
		},
		CreateLoc: func(*module.Conf) any {
			return &conf{module.Unset, module.Unset, module.Unset, module.Unset}
		},
		MergeLoc: func(_ *module.Conf, prev, c any) error {
			p, ac := prev.(*conf), c.(*conf)
			module.MergeInt(&ac.enable, p.enable, 0)
			module.MergeInt(&ac.format, p.format, formatHTML)
			module.MergeInt(&ac.localtime, p.localtime, 0)
			module.MergeInt(&ac.exactSize, p.exactSize, 1)
			return nil
		},
		Postconf: func(cf *module.Conf) error {
			http.AddHandler(cf, http.ContentPhase, handler)
			return nil
		},
	}
}

var contentTypes = [...]string{
	formatHTML: "text/html", formatJSON: "application/json", formatJSONP: "application/javascript", formatXML: "text/xml",
}

func handler(r *http.Request) http.Rc {
	if !r.URIEndsInSlash() || r.Method&(http.GET|http.HEAD) == 0 {
		return http.Declined
	}
	ac := r.LocConf[Module.Index].(*conf)
	if ac.enable == 0 {
		return http.Declined
	}
	if rc := r.DiscardRequestBody(); rc != http.OK {
		return rc
	}
	path, _, ok := r.MapURIToPath(0)
	if !ok {
		return 500
	}
	if len(path) > 1 {
		path = path[:len(path)-1]
	}
	dir := string(path)

	format := ac.format
	var callback []byte
	if format == formatJSONP {
		if callback, ok = jsonpCallback(r); !ok {
			return 400
		}
		if len(callback) == 0 {
			format = formatJSON
			callback = nil
		}
	}

	fd, rc := r.OpenDir(dir)
	if rc != http.OK {
		return rc
	}
	defer ev.CloseFD(fd)

	out := &r.HeadersOut
	out.Status = 200
	out.ContentType = http.BytesOf(contentTypes[format])
	out.ContentTypeLen = len(out.ContentType)
	out.ContentTypeLow = nil
	if format == formatXML {
		out.Charset = []byte("utf-8")
	}
	rc = r.SendHeader()
	if rc == http.Error || rc > http.OK || r.HeaderOnly {
		return rc
	}

	entries, ok := list(r, fd, dir)
	if !ok {
		if r.HeaderSent {
			return http.Error
		}
		return 500
	}
	sort.Slice(entries, func(i, j int) bool {
		a, b := &entries[i], &entries[j]
		if a.dir != b.dir {
			return a.dir
		}
		return a.name < b.name
	})

	var body []byte
	switch format {
	case formatJSON, formatJSONP:
		body = appendJSON(nil, entries, callback)
	case formatXML:
		body = appendXML(nil, entries)
	default:
		body = ac.appendHTML(nil, r, entries)
	}
	b := r.NewBuf()
	b.Data, b.Temporary = body, true
	b.LastBuf = r == r.Main
	b.LastInChain = true
	return r.OutputFilter(r.NewChain(b))
}

// list reads the folder; a false has been logged.
func list(r *http.Request, fd int, dir string) ([]entry, bool) {
	log := r.Conn.Log
	names, err := ev.ReadDirFD(fd)
	if err != nil {
		log.Err(elog.Crit, err, `readdir() "%s" failed`, dir)
		return nil, false
	}
	var entries []entry
	for i := range names {
		name := names[i].Name
		if strings.HasPrefix(name, ".") {
			continue
		}
		file := dir + "/" + name
		st, err := ev.Stat(file)
		if err != nil {
			if err != syscall.ENOENT && err != syscall.ELOOP {
				log.Err(elog.Crit, err, `stat() "%s" failed`, file)
				if err == syscall.EACCES {
					continue
				}
				return nil, false
			}
			// a link that leads nowhere
			if st, err = ev.Lstat(file); err != nil {
				log.Err(elog.Crit, err, `lstat() "%s" failed`, file)
				return nil, false
			}
		}
		entries = append(entries, entry{name: name, dir: st.IsDir(), file: st.IsFile(), mtime: st.MtimeSec, size: st.Size})
	}
	return entries, true
}

// jsonpCallback is the argument "callback", a dotted name; not ok: it is something else.
func jsonpCallback(r *http.Request) (name []byte, ok bool) {
	name, ok = r.Arg("callback")
	if !ok {
		return nil, true
	}
	if len(name) > 128 {
		r.Conn.Log.Err(elog.Info, nil, `client sent too long callback name: "%s"`, name)
		return nil, false
	}
	for _, c := range name {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9', c == '_', c == '.':
		default:
			r.Conn.Log.Err(elog.Info, nil, `client sent invalid callback name: "%s"`, name)
			return nil, false
		}
	}
	return name, true
}
