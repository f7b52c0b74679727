// Package random_index answers for a folder with one of its files
// (nginx: src/http/modules/ngx_http_random_index_module.c).
package random_index

import (
	"math/rand/v2"
	"strings"
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

type conf struct{ enable int }

// Module is ngx_http_random_index_module.
var Module = &http.Module{}

func init() {
	*Module = http.Module{
		Name: "ngx_http_random_index_module",
		Directives: []module.Directive{{
			Name: "random_index", Where: module.HTTPLoc, Args: module.Flag, Level: module.LocConf,
			Set: module.FlagSlot(func(c *conf) *int { return &c.enable }),
		}},
		CreateLoc: func(*module.Conf) any { return &conf{module.Unset} },
		MergeLoc: func(_ *module.Conf, prev, c any) error {
			module.MergeInt(&c.(*conf).enable, prev.(*conf).enable, 0)
			return nil
		},
		Postconf: func(cf *module.Conf) error {
			http.AddHandler(cf, http.ContentPhase, handler)
			return nil
		},
	}
}

func handler(r *http.Request) http.Rc {
	if !r.URIEndsInSlash() || r.Method&(http.GET|http.HEAD|http.POST) == 0 ||
		r.LocConf[Module.Index].(*conf).enable == 0 {
		return http.Declined
	}
	path, _, ok := r.MapURIToPath(0)
	if !ok {
		return 500
	}
	dir := string(path[:len(path)-1])
	log := r.Conn.Log
	fd, rc := r.OpenDir(dir)
	if rc != http.OK {
		return rc
	}
	defer ev.CloseFD(fd)
	entries, err := ev.ReadDirFD(fd)
	if err != nil {
		log.Err(elog.Crit, err, `readdir() "%s" failed`, dir)
		return 500
	}

	var names []string
	for i := range entries {
		e := &entries[i]
		if strings.HasPrefix(e.Name, ".") {
			continue
		}
		isFile := e.Type == ev.DTFile
		if e.Type == ev.DTUnknown || e.Type == ev.DTLink {
			file := dir + "/" + e.Name
			st, err := ev.Stat(file)
			if err != nil {
				if err != syscall.ENOENT {
					log.Err(elog.Crit, err, `stat() "%s" failed`, file)
					return 500
				}
				if st, err = ev.Lstat(file); err != nil {
					log.Err(elog.Crit, err, `lstat() "%s" failed`, file)
					return 500
				}
			}
			isFile = st.IsFile()
		}
		if isFile {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 {
		return http.Declined
	}
	name := names[rand.IntN(len(names))]
	uri := append(append(r.Alloc(len(r.URI) + len(name))[:0], r.URI...), name...)
	return r.InternalRedirect(uri, r.Args)
}
