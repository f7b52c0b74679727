// Package log writes access logs (nginx: src/http/modules/ngx_http_log_module.c).
package log

import (
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/openfile"
	"nginxoracle/proxy/zlib"
)

type mainConf struct {
	formats      []*format
	combinedUsed bool
	line         []byte // the entry that is being made; one at a time in a worker
}

type locConf struct {
	off  bool
	logs []*accessLog

	cacheSet bool
	cache    *openfile.Cache
	valid    int64
	minUses  int
}

// accessLog is one access_log.
type accessLog struct {
	file   *module.File
	script *http.Script // the file's name, when it has variables
	format *format
	filter *http.ComplexValue // "if="

	diskFull, errorLogged int64 // seconds
}

// buffer holds entries of a file until it is full, or for some time.
type buffer struct {
	data  []byte // len: filled; cap: the size
	flush int64  // ms, 0 = only when full
	gzip  int    // level, 0 = as it is
	timer *ev.Event
}

// Module is ngx_http_log_module.
var Module = &http.Module{}

const defaultPath = "/var/log/nginx/access.log"

func init() {
	*Module = http.Module{
		Name: "ngx_http_log_module",
		Directives: []module.Directive{
			{Name: "log_format", Where: module.HTTPMain, Args: module.TwoMore, Level: module.MainConf, Set: setFormat},
			{Name: "access_log", Where: http.InHTTPSrvLocLif | module.HTTPLmt, Args: module.OneMore, Level: module.LocConf, Set: setLog},
			{Name: "open_log_file_cache", Where: http.InHTTPSrvLoc, Args: module.Take1234, Level: module.LocConf, Set: setCache},
		},
		CreateMain: func(*module.Conf) any { return &mainConf{formats: []*format{{name: "combined"}}} },
		CreateLoc:  func(*module.Conf) any { return &locConf{} },
		MergeLoc:   merge,
		Postconf: func(cf *module.Conf) error {
			if mc := http.ConfMain(cf, Module).(*mainConf); mc.combinedUsed {
				f := mc.formats[0]
				if err := f.compile(cf, []string{combined}); err != nil {
					return err
				}
				f.flushes = nil
			}
			http.AddHandler(cf, http.LogPhase, handler)
			return nil
		},
	}
}

func merge(cf *module.Conf, prev, c any) error {
	p, lc := prev.(*locConf), c.(*locConf)
	if !lc.cacheSet {
		lc.cacheSet, lc.cache, lc.valid, lc.minUses = p.cacheSet, p.cache, p.valid, p.minUses
	}
	if lc.logs != nil || lc.off {
		return nil
	}
	lc.logs, lc.off = p.logs, p.off
	if lc.logs != nil || lc.off {
		return nil
	}
	mc := http.ConfMain(cf, Module).(*mainConf)
	mc.combinedUsed = true
	lc.logs = []*accessLog{{file: cf.OpenFile(defaultPath), format: mc.formats[0]}}
	return nil
}

func handler(r *http.Request) http.Rc {
	lc := r.LocConf[Module.Index].(*locConf)
	if lc.off {
		return http.OK
	}
	mc := r.MainConf[Module.Index].(*mainConf)
	now, _ := r.Conn.Loop.Now()
	for _, l := range lc.logs {
		if l.filter != nil {
			v, rc := r.Complex(l.filter)
			if rc != http.OK {
				return http.Error
			}
			if len(v) == 0 || string(v) == "0" {
				continue
			}
		}
		if now == l.diskFull {
			continue
		}

		room := l.format.prepare(r) + 1
		var b *buffer
		if l.file != nil {
			b, _ = l.file.Data.(*buffer)
		}
		if b != nil {
			if room > cap(b.data)-len(b.data) {
				l.write(r, lc, b.data)
				b.data = b.data[:0]
			}
			if room <= cap(b.data)-len(b.data) {
				if b.timer != nil && len(b.data) == 0 {
					r.Conn.Loop.AddTimer(b.startTimer(l.file), b.flush)
				}
				b.data = append(l.format.append(r, b.data), '\n')
				continue
			}
			if b.timer != nil {
				r.Conn.Loop.DelTimer(b.timer)
			}
		}
		mc.line = append(l.format.append(r, mc.line[:0]), '\n')
		l.write(r, lc, mc.line)
	}
	return http.OK
}

// startTimer gives the timer that writes the buffer out.
func (b *buffer) startTimer(f *module.File) *ev.Event {
	if b.timer.Handler == nil {
		b.timer.Cancelable = true
		b.timer.Handler = func(*ev.Event) { f.Flush(f) }
	}
	return b.timer
}

// write writes entries to the log's file. What goes wrong is told once a minute.
func (l *accessLog) write(r *http.Request, lc *locConf, b []byte) {
	if len(b) == 0 {
		return
	}
	var name []byte
	var n int
	var err error
	if l.script != nil {
		var fd int
		if name, fd = l.open(r, lc); fd < 0 {
			return
		}
		n, err = ev.WriteFD(fd, b)
	} else {
		name = http.BytesOf(l.file.Name)
		n, err = writeFile(l.file, b, r.Conn.Log)
	}
	if err == nil && n == len(b) {
		return
	}

	now, _ := r.Conn.Loop.Now()
	if err == syscall.ENOSPC {
		l.diskFull = now
	}
	if now-l.errorLogged <= 59 {
		return
	}
	l.errorLogged = now
	if err != nil {
		r.Conn.Log.Err(elog.Alert, err, `write() to "%s" failed`, name)
		return
	}
	r.Conn.Log.Err(elog.Alert, nil, `write() to "%s" was incomplete: %d of %d`, name, n, len(b))
}

// open opens a log whose name has variables; fd -1: there is nothing to write to, and the log was told.
func (l *accessLog) open(r *http.Request, lc *locConf) (name []byte, fd int) {
	log := r.Conn.Log
	if !r.RootTested {
		path, n, ok := r.MapURIToPath(0)
		if !ok {
			return nil, -1
		}
		root := path[:n]
		of := openfile.Info{TestOnly: true, TestDir: true}
		asked := root
		if n < len(path) && r.Core.OpenFileCache != nil {
			path[n] = 0 // nginx's cache knows the folder by the hash of the whole path, once for each
			asked = path
		}
		if _, ok := r.OpenFile(asked, &of); !ok {
			if of.Err != 0 {
				log.Err(elog.Error, of.Err, `testing "%s" existence failed`, root)
			}
			return nil, -1
		}
		if !of.IsDir {
			log.Err(elog.Error, syscall.ENOTDIR, `testing "%s" existence failed`, root)
			return nil, -1
		}
	}

	name, ok := l.script.Run(r, 0)
	if !ok {
		return nil, -1
	}
	of := openfile.Info{Append: true, Valid: lc.valid, MinUses: lc.minUses}
	if lc.cache != nil {
		if _, ok := r.OpenCached(lc.cache, name, &of); ok {
			return name, of.FD
		}
	} else if openfile.Open(name, &of, log) {
		if of.FD >= 0 {
			r.NewFile(of.FD, name)
		}
		return name, of.FD
	}
	if of.Err != 0 {
		log.Err(elog.Crit, of.Err, `%s "%s" failed`, of.Failed, name)
	}
	return name, -1
}

// writeFile writes b to the file, compressed when its buffer is to be; then a short write is a failure,
// and what cannot be compressed counts as written.
func writeFile(f *module.File, b []byte, log *elog.Log) (int, error) {
	buf, _ := f.Data.(*buffer)
	if buf == nil || buf.gzip == 0 {
		return ev.WriteFD(f.FD, b)
	}
	z, rc := gzipped(b, buf.gzip)
	if rc != zlib.StreamEnd {
		log.Err(elog.Alert, nil, "deflate(Z_FINISH) failed: %d", rc)
		return len(b), nil
	}
	n, err := ev.WriteFD(f.FD, z)
	if err == nil && n != len(z) {
		err = syscall.Errno(0)
	}
	return len(b), err
}

// gzipped is b as one gzip member, with a window no larger than it needs (ngx_http_log_gzip).
func gzipped(b []byte, level int) ([]byte, int) {
	bits, memLevel := 15, 8
	for len(b) < 1<<(bits-1)-262 {
		bits--
		memLevel--
	}
	d, rc := zlib.NewDeflater(level, bits+zlib.GzipWrap, memLevel)
	if rc != zlib.OK {
		return nil, rc
	}
	defer d.Close()
	out := make([]byte, len(b)+(len(b)+7)>>3+(len(b)+63)>>6+5+18)
	_, n, rc := d.Deflate(b, out, zlib.Finish)
	return out[:n], rc
}

// flush writes a buffer out: when its time has come, before the file is reopened, at the end.
func flush(log *elog.Log) func(f *module.File) {
	return func(f *module.File) {
		b := f.Data.(*buffer)
		if len(b.data) == 0 {
			return
		}
		n, err := writeFile(f, b.data, log)
		if err != nil {
			log.Err(elog.Alert, err, `write() to "%s" failed`, f.Name)
		} else if n != len(b.data) {
			log.Err(elog.Alert, nil, `write() to "%s" was incomplete: %d of %d`, f.Name, n, len(b.data))
		}
		b.data = b.data[:0]
	}
}
