// Package static answers with files (nginx: src/http/modules/ngx_http_static_module.c).
package static

import (
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/http/parse"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/openfile"
)

// Module is ngx_http_static_module; it has no directives.
var Module = &http.Module{}

func init() {
	*Module = http.Module{
		Name: "ngx_http_static_module",
		Postconf: func(cf *module.Conf) error {
			http.AddHandler(cf, http.ContentPhase, handler)
			return nil
		},
	}
}

var keyLocation = []byte("Location")

func handler(r *http.Request) http.Rc {
	if r.Method&(http.GET|http.HEAD|http.POST) == 0 {
		return 405
	}
	if r.URIEndsInSlash() {
		return http.Declined
	}
	path, _, ok := r.MapURIToPath(0)
	if !ok {
		return 500
	}

	log := r.Conn.Log
	var of openfile.Info
	file, ok := r.OpenFile(path, &of)
	if !ok {
		return openError(r, path, &of)
	}
	r.RootTested = !r.ErrorPage

	if of.IsDir {
		return redirect(r)
	}
	if !of.IsFile {
		log.Err(elog.Crit, nil, `"%s" is not a regular file`, path)
		return 404
	}
	if r.Method == http.POST {
		return 405
	}
	if rc := r.DiscardRequestBody(); rc != http.OK {
		return rc
	}
	log.Action = "sending response to client"

	out := &r.HeadersOut
	out.Status = 200
	out.ContentLengthN = of.Size
	out.LastModifiedTime = of.Mtime
	if r.SetETag() != http.OK || r.SetContentType() != http.OK {
		return 500
	}
	r.AllowRanges = true

	rc := r.SendHeader()
	if rc == http.Error || rc > http.OK || r.HeaderOnly {
		return rc
	}
	b := r.NewBuf()
	b.SetFile(&of, file)
	b.LastBuf = r == r.Main
	b.LastInChain = true
	b.Sync = !b.LastBuf && of.Size == 0
	return r.OutputFilter(r.NewChain(b))
}

// openError tells the log why there is no file, and the client what that means.
func openError(r *http.Request, path []byte, of *openfile.Info) http.Rc {
	r.NullPageArgs = true
	level, rc := elog.Error, http.Rc(404)
	switch of.Err {
	case 0:
		return 500
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ENAMETOOLONG:
		if r.Core.LogNotFound == 0 {
			return rc
		}
	case syscall.EACCES, syscall.EMLINK, syscall.ELOOP:
		rc = 403
	default:
		level, rc = elog.Crit, 500
	}
	r.Conn.Log.Err(level, of.Err, `%s "%s" failed`, of.Failed, path)
	return rc
}

// redirect sends a client that asked for a folder to the folder's name with a slash.
func redirect(r *http.Request) http.Rc {
	r.ClearLocation()
	n := len(r.URI) + 2*parse.EscapeCount(r.URI, parse.EscapeURI) + 1
	if len(r.Args) > 0 {
		n += len(r.Args) + 1
	}
	to := parse.Escape(r.Alloc(n)[:0], r.URI, parse.EscapeURI)
	to = append(to, '/')
	if len(r.Args) > 0 {
		to = append(append(to, '?'), r.Args...)
	}
	r.HeadersOut.Location = r.AddHeaderOut(keyLocation, to)
	return 301
}
