// Package gzip_static answers with files that are compressed already
// (nginx: src/http/modules/ngx_http_gzip_static_module.c).
package gzip_static

import (
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/openfile"
)

type conf struct{ enable int }

const (
	off = iota
	on
	always
)

// Module is ngx_http_gzip_static_module.
var Module = &http.Module{}

func init() {
	*Module = http.Module{
		Name: "ngx_http_gzip_static_module",
		Directives: []module.Directive{{
			Name: "gzip_static", Where: http.InHTTPSrvLoc, Args: module.Take1, Level: module.LocConf,
			Set: module.EnumSlot(func(c *conf) *int { return &c.enable }, []module.Enum{
				{Name: "off", Value: off}, {Name: "on", Value: on}, {Name: "always", Value: always}}),
		}},
		CreateLoc: func(*module.Conf) any { return &conf{module.Unset} },
		MergeLoc: func(_ *module.Conf, prev, c any) error {
			module.MergeInt(&c.(*conf).enable, prev.(*conf).enable, off)
			return nil
		},
		Postconf: func(cf *module.Conf) error {
			http.AddHandler(cf, http.ContentPhase, handler)
			return nil
		},
	}
}

var (
	keyContentEncoding = []byte("Content-Encoding")
	valGzip            = []byte("gzip")
)

func handler(r *http.Request) http.Rc {
	if r.Method&(http.GET|http.HEAD) == 0 || r.URIEndsInSlash() {
		return http.Declined
	}
	enable := r.LocConf[Module.Index].(*conf).enable
	if enable == off {
		return http.Declined
	}
	accepted := enable == always || r.GzipAccepted()
	// That there is a compressed file matters for Vary even to those who do not accept it.
	if !accepted && r.Core.GzipVary == 0 {
		return http.Declined
	}

	plain, _, ok := r.MapURIToPath(3)
	if !ok {
		return 500
	}
	path := append(plain, ".gz"...)
	log := r.Conn.Log
	var of openfile.Info
	file, ok := r.OpenFile(path, &of)
	if !ok {
		level := elog.Crit
		switch of.Err {
		case 0:
			return 500
		case syscall.ENOENT, syscall.ENOTDIR, syscall.ENAMETOOLONG:
			return http.Declined
		case syscall.EACCES, syscall.EMLINK, syscall.ELOOP:
			level = elog.Error
		}
		log.Err(level, of.Err, `%s "%s" failed`, of.Failed, path)
		return http.Declined
	}
	if enable == on {
		r.GzipVary = true
		if !accepted {
			return http.Declined
		}
	}
	if of.IsDir {
		return http.Declined
	}
	if !of.IsFile {
		log.Err(elog.Crit, nil, `"%s" is not a regular file`, path)
		return 404
	}
	r.RootTested = !r.ErrorPage
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
	out.ContentEncoding = r.AddHeaderOut(keyContentEncoding, valGzip)
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
