package range_filter

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
)

func bodyFilter(r *http.Request, in *http.Chain, next http.BodyFilter) http.Rc {
	if in == nil {
		return next(r, in)
	}
	c, _ := r.Ctx(Body).(*ctx)
	if c == nil {
		return next(r, in)
	}
	if len(c.spans) == 1 {
		return c.singleBody(r, in, next)
	}
	// Several ranges need the whole body in one buffer.
	if in.Buf.Special() {
		return next(r, in)
	}
	if c.overlapped(in.Buf) {
		r.Conn.Log.Err(elog.Alert, nil, "range in overlapped buffers")
		return http.Error
	}
	return c.multiBody(r, in.Buf, next)
}

func (c *ctx) overlapped(b *http.Buf) bool {
	if c.offset != 0 {
		return true
	}
	if !b.LastBuf {
		for i := range c.spans {
			if b.Size() < c.spans[i].end {
				return true
			}
		}
	}
	c.offset = b.Size()
	return false
}

// singleBody lets through what lies in the range; the buffers around it are marked as sent.
func (c *ctx) singleBody(r *http.Request, in *http.Chain, next http.BodyFilter) http.Rc {
	var out *http.Chain
	ll := &out
	s := &c.spans[0]
	for ; in != nil; in = in.Next {
		b := in.Buf
		start := c.offset
		last := start + b.Size()
		c.offset = last

		if b.Special() {
			if s.end > start {
				*ll = r.NewChain(b)
				ll = &(*ll).Next
			}
			continue
		}
		if s.end <= start || s.start >= last {
			if b.InFile {
				b.FilePos = b.FileLast
			}
			b.Data = b.Data[len(b.Data):]
			b.Sync = true
			continue
		}
		if skip := s.start - start; skip > 0 {
			if b.InFile {
				b.FilePos += skip
			}
			if b.InMemory() {
				b.Data = b.Data[skip:]
			}
		}
		if s.end <= last {
			if b.InFile {
				b.FileLast -= last - s.end
			}
			if b.InMemory() {
				b.Data = b.Data[:int64(len(b.Data))-(last-s.end)]
			}
			b.LastBuf = r == r.Main
			b.LastInChain = true
		}
		*ll = r.NewChain(b)
		ll = &(*ll).Next
	}

	rc := next(r, out)
	for out != nil {
		cl := out
		out = out.Next
		r.FreeChain(cl)
	}
	return rc
}

func (c *ctx) multiBody(r *http.Request, buf *http.Buf, next http.BodyFilter) http.Rc {
	var out *http.Chain
	ll := &out
	add := func(b *http.Buf) {
		*ll = r.NewChain(b)
		ll = &(*ll).Next
	}
	for i := range c.spans {
		s := &c.spans[i]
		b := r.NewBuf()
		b.Data, b.Memory = c.boundary, true
		add(b)

		b = r.NewBuf()
		b.Data, b.Temporary = s.contentRange, true
		add(b)

		b = r.NewBuf()
		b.InFile, b.Temporary, b.Memory, b.File, b.Pieces = buf.InFile, buf.Temporary, buf.Memory, buf.File, buf.Pieces
		if buf.InFile {
			b.FilePos = buf.FilePos + s.start
			b.FileLast = buf.FilePos + s.end
		}
		if buf.InMemory() {
			b.Data = buf.Data[s.start:s.end]
		}
		add(b)
	}

	const number = 20
	tail := append(r.Alloc(number + 8)[:0], c.boundary[:4+number]...)
	b := r.NewBuf()
	b.Data, b.Temporary, b.LastBuf = append(tail, "--\r\n"...), true, true
	add(b)
	return next(r, out)
}
