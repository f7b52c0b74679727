package gzip

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/zlib"
)

// gzipBuffered is the filter's bit of ev.Conn.Buffered (NGX_HTTP_GZIP_BUFFERED).
const gzipBuffered = 0x20

// ctx is a response's compression on its way. What is read and written in which steps follows nginx,
// since the borders of chunks show it.
type ctx struct {
	key  key
	conf *conf
	z    *zlib.Deflater

	in, free, busy, out *http.Chain
	lastOut             **http.Chain

	inBuf   *http.Buf
	outBuf  *http.Buf
	written int // bytes in outBuf
	room    int // bytes left in outBuf
	bufs    int // made so far
	flush   int // zlib's, of inBuf

	redo      bool // zlib has more output than there was room
	done      bool
	nomem     bool // all buffers are on their way
	buffering bool // postpone_gzipping

	zin, zout int64
}

func bodyFilter(r *http.Request, in *http.Chain, next http.BodyFilter) http.Rc {
	g, _ := r.Ctx(Module).(*ctx)
	if g == nil || g.done || r.HeaderOnly {
		return next(r, in)
	}
	rc := g.body(r, in, next)
	if rc == http.Error {
		g.done = true
		g.release(r)
	}
	return rc
}

func (g *ctx) body(r *http.Request, in *http.Chain, next http.BodyFilter) http.Rc {
	if g.buffering {
		switch {
		case in == nil:
			g.buffering = false
		case g.postpone(r, in):
			return http.OK
		default:
			in = nil
		}
	}
	if g.z == nil && !g.start(r) {
		return http.Error
	}
	if in != nil {
		r.AddCopy(&g.in, in)
		r.Conn.Buffered |= gzipBuffered
	}

	flush := g.busy != nil
	if g.nomem {
		// let the busy buffers go
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
			more, ok := g.deflate(r)
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

// start takes a Deflater that is idle, or makes one.
func (g *ctx) start(r *http.Request) bool {
	mc := r.MainConf[Module.Index].(*mainConf)
	if idle := mc.idle[g.key]; len(idle) > 0 {
		g.z = idle[len(idle)-1]
		mc.idle[g.key] = idle[:len(idle)-1]
	} else {
		var rc int
		if g.z, rc = zlib.NewDeflater(g.key.level, g.key.bits+zlib.GzipWrap, g.key.memLevel); rc != zlib.OK {
			r.Conn.Log.Err(elog.Alert, nil, "deflateInit2() failed: %d", rc)
			return false
		}
	}
	g.lastOut = &g.out
	r.AddCleanup(func() { g.release(r) })
	return true
}

// release puts the Deflater back.
func (g *ctx) release(r *http.Request) {
	if g.z == nil {
		return
	}
	const keep = 8
	mc := r.MainConf[Module.Index].(*mainConf)
	if idle := mc.idle[g.key]; len(idle) < keep {
		g.z.Reset()
		mc.idle[g.key] = append(idle, g.z)
	} else {
		g.z.Close()
	}
	g.z = nil
}

// postpone keeps copies of the first bytes until there are enough of them; false: go on with g.in.
func (g *ctx) postpone(r *http.Request, in *http.Chain) bool {
	r.Conn.Buffered |= gzipBuffered
	kept := int64(0)
	ll := &g.in
	for ; *ll != nil; ll = &(*ll).Next {
		kept += int64(len((*ll).Buf.Data))
	}
	for ; in != nil; in = in.Next {
		b := in.Buf
		kept += int64(len(b.Data))
		if b.Flush || b.LastBuf || kept > g.conf.postpone {
			g.buffering = false
		}
		if g.buffering && len(b.Data) > 0 {
			c := r.NewBuf()
			c.Data, c.Temporary = append([]byte(nil), b.Data...), true
			b.Data = b.Data[len(b.Data):]
			b = c
		}
		*ll = r.NewChain(b)
		ll = &(*ll).Next
	}
	return g.buffering
}

// feed looks for bytes, or a flush, to give zlib.
func (g *ctx) feed(r *http.Request) bool {
	for {
		if g.inBuf != nil && len(g.inBuf.Data) > 0 || g.flush != zlib.NoFlush || g.redo {
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
		case b.LastBuf:
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
	size := int(g.conf.bufs.Size)
	switch {
	case g.free != nil:
		cl := g.free
		g.outBuf = cl.Buf
		g.free = cl.Next
		r.FreeChain(cl)
	case g.bufs < g.conf.bufs.Num:
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

// deflate compresses one step; more: there is reason to go on at once.
func (g *ctx) deflate(r *http.Request) (more, ok bool) {
	var data []byte
	if g.inBuf != nil {
		data = g.inBuf.Data
	}
	out := g.outBuf
	taken, given, rc := g.z.Deflate(data, out.Start[g.written:g.written+g.room], g.flush)
	if rc != zlib.OK && rc != zlib.StreamEnd && rc != zlib.BufError {
		r.Conn.Log.Err(elog.Alert, nil, "deflate() failed: %d, %d", g.flush, rc)
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

	if g.room == 0 && rc != zlib.StreamEnd {
		g.add(r, out)
		g.redo = true
		return true, true
	}
	g.redo = false

	if g.flush == zlib.SyncFlush {
		g.flush = zlib.NoFlush
		if len(out.Data) == 0 {
			out = r.NewBuf()
		} else {
			g.room = 0
		}
		out.Flush = true
		g.add(r, out)
		r.Conn.Buffered &^= gzipBuffered
		return false, true
	}

	if rc == zlib.StreamEnd {
		g.zin, g.zout = g.z.TotalIn(), g.z.TotalOut()
		g.release(r)
		if len(out.Data) == 0 {
			out.Temporary = false
		}
		out.LastBuf = true
		g.add(r, out)
		g.room = 0
		g.done = true
		r.Conn.Buffered &^= gzipBuffered
		return false, true
	}
	return true, true
}
