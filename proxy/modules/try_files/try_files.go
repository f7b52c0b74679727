// Package try_files looks for the first of several files that is there
// (nginx: src/http/modules/ngx_http_try_files_module.c).
package try_files

import (
	"bytes"
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/openfile"
)

type conf struct {
	files []file // the last is where to go when none is there
	code  int    // of a last "=code", else 0
}

type file struct {
	text   []byte
	script *http.Script // nil without variables
	dir    bool
}

// Module is ngx_http_try_files_module.
var Module = &http.Module{}

func init() {
	*Module = http.Module{
		Name: "ngx_http_try_files_module",
		Directives: []module.Directive{{
			Name: "try_files", Where: module.HTTPSrv | module.HTTPLoc, Args: module.TwoMore, Level: module.LocConf, Set: set,
		}},
		CreateLoc: func(*module.Conf) any { return &conf{} },
		Postconf: func(cf *module.Conf) error {
			http.AddHandler(cf, http.PrecontentPhase, handler)
			return nil
		},
	}
}

func set(cf *module.Conf, _ *module.Directive, c any) error {
	tc := c.(*conf)
	if tc.files != nil {
		return module.ErrDuplicate
	}
	words := cf.Args[1:]
	for i, w := range words {
		f := file{}
		if last := i == len(words)-1; !last && w != "" && w[len(w)-1] == '/' {
			f.dir = true
			w = w[:len(w)-1]
		}
		f.text = []byte(w)
		if http.ScriptVariablesCount(w) > 0 {
			s, err := http.CompileScript(cf, w, false)
			if err != nil {
				return err
			}
			f.script = s
		}
		tc.files = append(tc.files, f)
	}

	if w := words[len(words)-1]; w != "" && w[0] == '=' {
		// A code with variables loses its last byte, as in nginx.
		digits := w[1:]
		if tc.files[len(words)-1].script != nil {
			digits = digits[:max(len(digits)-1, 0)]
		}
		n, ok := module.Atoi(digits)
		if !ok || n > 999 {
			return cf.Emerg(`invalid code "%s"`, "="+digits)
		}
		tc.code = n
	}
	return nil
}

func handler(r *http.Request) http.Rc {
	tc := r.LocConf[Module.Index].(*conf)
	if tc.files == nil {
		return http.Declined
	}

	path, n, ok := r.MapURIToPath(0)
	if !ok {
		return 500
	}
	root := path[:n] // the part that does not come from the URI
	alias := r.Core.Alias
	for i := range tc.files {
		f := &tc.files[i]
		text := f.text
		if f.script != nil {
			n := f.script.Len(r, http.ScriptState{}, false)
			text, _ = f.script.Append(r, r.Alloc(n)[:0], n, &http.ScriptState{ArgsAt: -1}, true)
			if alias > 0 && alias <= len(r.URI) && bytes.HasPrefix(text, r.URI[:alias]) {
				text = text[alias:]
			}
		}

		if i == len(tc.files)-1 {
			if tc.code != 0 {
				r.NullPageArgs = true
				return http.Rc(tc.code)
			}
			if len(text) > 0 && text[0] == '@' {
				r.NamedLocation(text)
			} else {
				args := text[len(text):] // there but empty, as nginx leaves them
				if q := bytes.IndexByte(text, '?'); q >= 0 {
					text, args = text[:q], text[q+1:]
				}
				r.RedirectBehind(root, text, args)
			}
			r.Finalize(http.Done)
			return http.Done
		}

		path := append(append(r.Alloc(len(root) + len(text))[:0], root...), text...)
		of := openfile.Info{TestOnly: true}
		if _, ok := r.OpenFile(path, &of); !ok {
			switch of.Err {
			case 0:
				return 500
			case syscall.ENOENT, syscall.ENOTDIR, syscall.ENAMETOOLONG:
			default:
				r.Conn.Log.Err(elog.Crit, of.Err, `%s "%s" failed`, of.Failed, path)
			}
			continue
		}
		if of.IsDir != f.dir {
			continue
		}

		switch {
		case alias == 0:
			r.URI = text
		case alias < 0: // of a regular expression
			if !f.dir {
				r.URI = text
				r.AddURIToAlias = true
			}
		default:
			r.URI = append(append(r.Alloc(alias + len(text))[:0], r.URI[:alias]...), text...)
		}
		r.SetExten()
		return http.Declined
	}
	return http.Declined
}
