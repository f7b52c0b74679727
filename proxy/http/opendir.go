package http

import (
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
)

// OpenDir opens a folder that a module lists. Where that fails it is logged, and rc is the status of the
// answer; else rc is OK (ngx_http_autoindex_handler, ngx_http_random_index_handler).
func (r *Request) OpenDir(dir string) (fd int, rc Rc) {
	fd, err := ev.Open(dir, ev.ReadOnly|ev.Nonblock|ev.Directory, 0)
	if err == nil {
		return fd, OK
	}
	level, rc := elog.Error, Rc(404)
	switch err {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ENAMETOOLONG:
	case syscall.EACCES:
		rc = 403
	default:
		level, rc = elog.Crit, 500
	}
	r.Conn.Log.Err(level, err, `opendir() "%s" failed`, dir)
	return -1, rc
}
