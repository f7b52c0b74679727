// Package gunzip decompresses responses for clients that do not accept gzip
// (nginx: src/http/modules/ngx_http_gunzip_filter_module.c).
package gunzip

import (
	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/zlib"
)

type conf struct {
	enable int
	bufs   module.Bufs
}

// ctx is a response's decompression on its way, in nginx's steps.
type ctx struct {
	bufsConf module.Bufs
	z        *zlib.Inflater

	in, free, busy, out *http.Chain
	lastOut             **http.Chain

	inBuf   *http.Buf
	outBuf  *http.Buf
	written int // bytes in outBuf
	room    int // bytes left in outBuf
	bufs    int
	flush   int

	redo, done, nomem bool
}

// Module is ngx_http_gunzip_filter_module.
var Module = &http.Module{}

func init() {
	*Module = http.Module{
		Name: "ngx_http_gunzip_filter_module",
		Directives: []module.Directive{
			{Name: "gunzip", Where: http.InHTTPSrvLoc, Args: module.Flag, Level: module.LocConf,
				Set: module.FlagSlot(func(c *conf) *int { return &c.enable })},
			{Name: "gunzip_buffers", Where: http.InHTTPSrvLoc, Args: module.Take2, Level: module.LocConf,
				Set: module.BufsSlot(func(c *conf) *module.Bufs { return &c.bufs })},
		},
		CreateLoc: func(*module.Conf) any { return &conf{enable: module.Unset} },
		MergeLoc: func(_ *module.Conf, prev, c any) error {
			p, gc := prev.(*conf), c.(*conf)
			module.MergeInt(&gc.enable, p.enable, 0)
			module.MergeBufs(&gc.bufs, p.bufs, 32, 4096)
			return nil
		},
		HeaderFilter: func(next http.HeaderFilter) http.HeaderFilter {
			return func(r *http.Request) http.Rc { return headerFilter(r, next) }
		},
		BodyFilter: func(next http.BodyFilter) http.BodyFilter {
			return func(r *http.Request, in *http.Chain) http.Rc { return bodyFilter(r, in, next) }
		},
	}
}

func headerFilter(r *http.Request, next http.HeaderFilter) http.Rc {
	gc := r.LocConf[Module.Index].(*conf)
	enc := r.HeadersOut.ContentEncoding
	if gc.enable == 0 || enc == nil || !ascii.EqualFold(enc.Value, "gzip") {
		return next(r)
	}
	r.GzipVary = true
	if r.GzipAccepted() {
		return next(r)
	}
	r.SetCtx(Module, &ctx{bufsConf: gc.bufs})
	r.FilterNeedInMemory = true
	enc.Hash = 0
	r.HeadersOut.ContentEncoding = nil
	r.ClearContentLength()
	r.ClearAcceptRanges()
	r.WeakETag()
	return next(r)
}

func bodyFilter(r *http.Request, in *http.Chain, next http.BodyFilter) http.Rc {
	g, _ := r.Ctx(Module).(*ctx)
	if g == nil || g.done {
		return next(r, in)
	}
	rc := g.body(r, in, next)
	if rc == http.Error {
		g.done = true
	}
	return rc
}

func (g *ctx) body(r *http.Request, in *http.Chain, next http.BodyFilter) http.Rc {
	if g.z == nil {
		z, rc := zlib.NewInflater(15 + zlib.GzipWrap)
		if rc != zlib.OK {
			r.Conn.Log.Err(elog.Alert, nil, "inflateInit2() failed: %d", rc)
			return http.Error
		}
		g.z = z
		g.lastOut = &g.out
		r.AddCleanup(z.Close)
	}
	if in != nil {
		r.AddCopy(&g.in, in)
	}
	flush := g.busy != nil
	if g.nomem {
		if next(r, nil) == http.Error {
			return http.Error
		}
		var none *http.Chain
		r.UpdateChains(&g.free, &g.busy, &none, Module)
		g.nomem = false
		flush = false
	}
	for {
		for g.feed(r) && g.getBuf(r) {
			more, ok := g.inflate(r)
			if !ok {
				return http.Error
			}
			if !more {
				break
			}
		}
		if g.out == nil && !flush {
			if g.busy != nil {
				return http.Again
			}
			return http.OK
		}
		rc := next(r, g.out)
		if rc == http.Error {
			return http.Error
		}
		r.UpdateChains(&g.free, &g.busy, &g.out, Module)
		g.lastOut = &g.out
		g.nomem = false
		flush = false
		if g.done {
			return rc
		}
	}
}

func (g *ctx) pending() int {
	if g.inBuf == nil {
		return 0
	}
	return len(g.inBuf.Data)
}

// feed looks for bytes, or a flush, to give zlib.
func (g *ctx) feed(r *http.Request) bool {
	for {
		if g.pending() > 0 || g.flush != zlib.NoFlush || g.redo {
			return true
		}
		cl := g.in
		if cl == nil {
			return false
		}
		b := cl.Buf
		g.inBuf = b
		g.in = cl.Next
		r.FreeChain(cl)
		switch {
		case b.LastBuf, b.LastInChain:
			g.flush = zlib.Finish
		case b.Flush:
			g.flush = zlib.SyncFlush
		}
	}
}

// getBuf looks for room for zlib's output.
func (g *ctx) getBuf(r *http.Request) bool {
	if g.room > 0 {
		return true
	}
	size := int(g.bufsConf.Size)
	switch {
	case g.free != nil:
		cl := g.free
		g.outBuf = cl.Buf
		g.free = cl.Next
		r.FreeChain(cl)
		g.outBuf.Flush = false
	case g.bufs < g.bufsConf.Num:
		b := r.NewBuf()
		b.Start = ev.Bytes(int64(size))
		b.Temporary, b.Recycled, b.Tag = true, true, Module
		g.outBuf = b
		g.bufs++
	default:
		g.nomem = true
		return false
	}
	g.outBuf.Data = g.outBuf.Start[:0]
	g.written, g.room = 0, size
	return true
}

func (g *ctx) add(r *http.Request, b *http.Buf) {
	cl := r.NewChain(b)
	*g.lastOut = cl
	g.lastOut = &cl.Next
}

// inflate decompresses one step; more: there is reason to go on at once.
func (g *ctx) inflate(r *http.Request) (more, ok bool) {
	var data []byte
	if g.inBuf != nil {
		data = g.inBuf.Data
	}
	out := g.outBuf
	taken, given, rc := g.z.Inflate(data, out.Start[g.written:g.written+g.room], g.flush)
	if rc != zlib.OK && rc != zlib.StreamEnd && rc != zlib.BufError {
		r.Conn.Log.Err(elog.Error, nil, "inflate() failed: %d, %d", g.flush, rc)
		return false, false
	}
	if g.inBuf != nil {
		g.inBuf.Data = data[taken:]
		if taken == len(data) {
			g.inBuf = nil // its owner may fill it again
		}
	}
	g.written += given
	g.room -= given
	out.Data = out.Start[:g.written]

	if g.room == 0 {
		g.add(r, out)
		g.redo = true
		return true, true
	}
	g.redo = false

	switch {
	case g.flush == zlib.SyncFlush:
		g.flush = zlib.NoFlush
		if len(out.Data) == 0 {
			out = r.NewBuf()
		} else {
			g.room = 0
		}
		out.Flush = true
		g.add(r, out)
		return false, true

	case g.flush == zlib.Finish && g.pending() == 0:
		if rc != zlib.StreamEnd {
			r.Conn.Log.Err(elog.Error, nil, "inflate() returned %d on response end", rc)
			return false, false
		}
		if len(out.Data) == 0 {
			out = r.NewBuf()
		}
		g.add(r, out)
		out.LastBuf = r == r.Main
		out.LastInChain, out.Sync = true, true
		g.done = true
		return false, true

	case rc == zlib.StreamEnd && g.pending() > 0:
		// another member follows
		if rc := g.z.Reset(); rc != zlib.OK {
			r.Conn.Log.Err(elog.Alert, nil, "inflateReset() failed: %d", rc)
			return false, false
		}
		g.redo = true
		return true, true

	case g.in == nil:
		if len(out.Data) == 0 {
			return false, true
		}
		g.room = 0
		g.add(r, out)
		return false, true
	}
	return true, true
}
