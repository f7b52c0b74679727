package sub_filter

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
)

// subBuffered is the filter's bit of Request.Buffered (NGX_HTTP_SUB_BUFFERED).
const subBuffered = 0x02

type ctx struct {
	conf    *conf
	tables  *tables
	matches []match

	looked []byte // the end of what has been read, which may begin a match
	once   bool   // all has been replaced

	buf  *http.Buf // being read
	data []byte    // its bytes
	pos  int       // place in data

	in, out, busy, free *http.Chain
	lastOut             **http.Chain

	subs    []sub
	applied int
	offset  int // where the search goes on, from pos
	index   int // of the match that is being tried
}

// sub is a replacement, made once.
type sub struct {
	text []byte
	made bool
}

func bodyFilter(r *http.Request, in *http.Chain, next http.BodyFilter) http.Rc {
	s, _ := r.Ctx(Module).(*ctx)
	if s == nil || in == nil && s.buf == nil && s.in == nil && s.busy == nil {
		return next(r, in)
	}
	if s.once && (s.buf == nil || s.in == nil) {
		if s.busy != nil && s.output(r, next) == http.Error {
			return http.Error
		}
		return next(r, in)
	}
	if in != nil {
		r.AddCopy(&s.in, in)
	}

	flush, last := false, false
	for s.in != nil || s.buf != nil {
		if s.buf == nil {
			cl := s.in
			s.buf = cl.Buf
			s.data, s.pos = s.buf.Data, 0
			s.in = cl.Next
			r.FreeChain(cl)
		}
		if s.buf.Flush || s.buf.Recycled {
			flush = true
		}
		if s.in == nil {
			last = flush
		}

		b, ok := s.search(r, last)
		if !ok {
			return http.Error
		}
		if len(s.looked) > 0 && (s.buf.LastBuf || s.buf.LastInChain) {
			b = s.add(r)
			b.Data, b.Memory = append([]byte(nil), s.looked...), true
			s.looked = s.looked[:0]
		}
		if s.buf.LastBuf || s.buf.Flush || s.buf.Sync || s.buf.InMemory() {
			if b == nil {
				b = s.add(r)
				b.Sync = true
			}
			b.LastBuf, b.LastInChain, b.Flush, b.Recycled = s.buf.LastBuf, s.buf.LastInChain, s.buf.Flush, s.buf.Recycled
			b.Shadow = s.buf
		}
		s.buf = nil
	}
	if s.out == nil && s.busy == nil {
		return http.OK
	}
	return s.output(r, next)
}

// add appends an empty buffer to the output.
func (s *ctx) add(r *http.Request) *http.Buf {
	cl := r.GetFreeBuf(&s.free)
	*cl.Buf = http.Buf{}
	*s.lastOut = cl
	s.lastOut = &cl.Next
	return cl.Buf
}

// search goes through the buffer and puts what it gives into the output; last is the last buffer of
// that, if any.
func (s *ctx) search(r *http.Request, flush bool) (last *http.Buf, ok bool) {
	for s.pos < len(s.data) {
		from := s.pos
		c := s.parse(flush)
		if len(c.saved) > 0 {
			last = s.add(r)
			last.Data, last.Memory = c.saved, true
		}
		if len(c.copied) > 0 {
			last = s.add(r)
			*last = *s.buf
			last.Data = c.copied
			last.Shadow = nil
			last.LastBuf, last.LastInChain, last.Recycled = false, false, false
			if last.InFile {
				last.FileLast = last.FilePos + int64(from+len(c.copied))
				last.FilePos += int64(from)
			}
		}
		if !c.matched {
			continue
		}

		if s.subs == nil {
			s.subs = make([]sub, len(s.matches))
		}
		sub := &s.subs[s.index]
		if !sub.made {
			text, rc := r.Complex(s.matches[s.index].value)
			if rc != http.OK {
				return nil, false
			}
			sub.text, sub.made = text, true
		}
		last = s.add(r)
		if len(sub.text) > 0 {
			last.Data, last.Memory = sub.text, true
		} else {
			last.Sync = true
		}
		s.index = 0
		if s.conf.once != 0 {
			s.applied++
			s.once = s.applied == len(s.matches)
		}
	}
	return last, true
}

// output hands the output on; what has been sent frees its buffers, and those it came from.
func (s *ctx) output(r *http.Request, next http.BodyFilter) http.Rc {
	var prev *http.Buf
	for cl := s.out; cl != nil; cl = cl.Next {
		if cl.Buf == prev {
			r.Conn.Log.Err(elog.Alert, nil, "the same buf was used in sub")
			return http.Error
		}
		prev = cl.Buf
	}

	rc := next(r, s.out)
	ll := &s.busy
	for *ll != nil {
		ll = &(*ll).Next
	}
	*ll = s.out
	s.out = nil
	s.lastOut = &s.out

	for s.busy != nil {
		cl := s.busy
		b := cl.Buf
		if b.Size() != 0 {
			break
		}
		if from := b.Shadow; from != nil {
			from.Data = from.Data[len(from.Data):]
		}
		s.busy = cl.Next
		if b.InMemory() || b.InFile {
			cl.Next = s.free
			s.free = cl
		}
	}
	if s.in != nil || s.buf != nil {
		r.Buffered |= subBuffered
	} else {
		r.Buffered &^= subBuffered
	}
	return rc
}
