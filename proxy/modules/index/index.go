// Package index chooses the file that stands for a folder
// (nginx: src/http/modules/ngx_http_index_module.c).
package index

import (
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/openfile"
)

type conf struct{ names []name }

// name is one word of the directive; script is nil without variables.
type name struct {
	text   []byte
	script *http.Script
}

// Module is ngx_http_index_module.
var Module = &http.Module{}

func init() {
	*Module = http.Module{
		Name: "ngx_http_index_module",
		Directives: []module.Directive{{
			Name: "index", Where: http.InHTTPSrvLoc, Args: module.OneMore, Level: module.LocConf, Set: set,
		}},
		CreateLoc: func(*module.Conf) any { return &conf{} },
		MergeLoc: func(_ *module.Conf, prev, c any) error {
			module.MergeSlice(&c.(*conf).names, prev.(*conf).names)
			module.MergeSlice(&c.(*conf).names, []name{{text: []byte("index.html")}})
			return nil
		},
		Postconf: func(cf *module.Conf) error {
			http.AddHandler(cf, http.ContentPhase, handler)
			return nil
		},
	}
}

func set(cf *module.Conf, _ *module.Directive, c any) error {
	words := cf.Args[1:]
	for i, w := range words {
		if w == "" {
			return cf.Emerg(`index "%s" in "index" directive is invalid`, words[0])
		}
		if w[0] == '/' && i != len(words)-1 {
			cf.Warn(`only the last index in "index" directive should be absolute`)
		}
		n := name{text: []byte(w)}
		if http.ScriptVariablesCount(w) > 0 {
			s, err := http.CompileScript(cf, w, false)
			if err != nil {
				return err
			}
			n.script = s
		}
		c.(*conf).names = append(c.(*conf).names, n)
	}
	return nil
}

func handler(r *http.Request) http.Rc {
	if !r.URIEndsInSlash() || r.Method&(http.GET|http.HEAD|http.POST) == 0 {
		return http.Declined
	}

	var dir []byte // the folder's path, made with the first name that needs it
	tested := false
	names := r.LocConf[Module.Index].(*conf).names
	for i := range names {
		n := &names[i]
		if n.script == nil && n.text[0] == '/' {
			return r.InternalRedirect(n.text, r.Args)
		}
		text := n.text
		if n.script != nil {
			// Variables that were made before are taken as they are, changeable or not.
			size := n.script.Len(r, http.ScriptState{}, true)
			text, _ = n.script.Append(r, r.Alloc(size)[:0], size, &http.ScriptState{ArgsAt: -1}, true)
			if len(text) > 0 && text[0] == '/' {
				return r.InternalRedirect(text, r.Args)
			}
		}
		if dir == nil {
			path, _, ok := r.MapURIToPath(0)
			if !ok {
				return 500
			}
			dir = path
		}
		path := append(append(r.Alloc(len(dir) + len(text))[:0], dir...), text...)

		of := openfile.Info{TestOnly: true}
		if _, ok := r.OpenFile(path, &of); ok {
			uri := append(append(r.Alloc(len(r.URI) + len(text))[:0], r.URI...), text...)
			return r.InternalRedirect(uri, r.Args)
		}

		switch of.Err {
		case 0:
			return 500
		case syscall.EMLINK, syscall.ELOOP:
			return 403
		case syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.EACCES:
			return notFound(r, path, of.Err)
		}
		if !tested {
			if rc := testDir(r, path, len(dir)); rc != http.OK {
				return rc
			}
			tested = true
		}
		if of.Err == syscall.ENOENT {
			continue
		}
		r.Conn.Log.Err(elog.Crit, of.Err, `%s "%s" failed`, of.Failed, path)
		return 500
	}
	return http.Declined
}

// testDir tells a missing folder from a missing file in it; path[:n] is the folder.
func testDir(r *http.Request, path []byte, n int) http.Rc {
	dir := path[:n]
	if n > 1 && dir[n-1] == '/' { // not after an alias without a slash
		dir = dir[:n-1]
	}
	of := openfile.Info{TestOnly: true, TestDir: true}
	if _, ok := r.OpenFile(dir, &of); !ok {
		switch of.Err {
		case 0:
			return 500
		case syscall.EMLINK, syscall.ELOOP:
			return 403
		case syscall.ENOENT:
			return notFound(r, path, of.Err)
		case syscall.EACCES:
			// The first file's absence was seen, so the folder may be searched.
			return http.OK
		}
		r.Conn.Log.Err(elog.Crit, of.Err, `%s "%s" failed`, of.Failed, dir)
		return 500
	}
	if of.IsDir {
		return http.OK
	}
	r.Conn.Log.Err(elog.Alert, nil, `"%s" is not a directory`, path)
	return 500
}

func notFound(r *http.Request, path []byte, err syscall.Errno) http.Rc {
	if err == syscall.EACCES {
		r.Conn.Log.Err(elog.Error, err, `"%s" is forbidden`, path)
		return 403
	}
	if r.Core.LogNotFound != 0 {
		r.Conn.Log.Err(elog.Error, err, `"%s" is not found`, path)
	}
	return 404
}
