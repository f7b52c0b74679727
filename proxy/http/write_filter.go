package http

import "nginxoracle/proxy/module"

// WriteFilterModule is the end of the body filters: it sends (ngx_http_write_filter_module.c).
var WriteFilterModule = &Module{
	Name:       "ngx_http_write_filter_module",
	BodyFilter: func(BodyFilter) BodyFilter { return writeFilter },
}

// outState is what the write filter has to know of what it holds.
type outState struct {
	size                      int64
	last, flush, sync, inFile bool
}

func (s *outState) add(r *Request, b *Buf) bool {
	size := b.Size()
	if size == 0 && !b.Special() || size < 0 {
		kind := "zero"
		if size < 0 {
			kind = "negative"
		}
		r.Conn.Log.Err(logAlert, nil, "%s size buf in writer t:%d r:%d f:%d %s %s-%s %s %d-%d", kind,
			bit(b.Temporary), bit(b.Recycled), bit(b.InFile), address(b.Start), address(b.Data), address(b.Data), address(b.File), b.FilePos, b.FileLast)
		return false
	}
	s.size += size
	s.flush = s.flush || b.Flush || b.Recycled
	s.sync = s.sync || b.Sync
	s.last = s.last || b.LastBuf
	s.inFile = s.inFile || b.InFile
	return true
}

// writeFilter sends what it holds and in, or keeps it for later (ngx_http_write_filter).
func writeFilter(r *Request, in *Chain) Rc {
	c := r.Conn
	if r.unsent {
		c.Loop.Flush()
	}
	if c.Error {
		return Error
	}
	var s outState
	ll := &r.Out
	for cl := r.Out; cl != nil; cl = cl.Next {
		ll = &cl.Next
		if !s.add(r, cl.Buf) {
			return Error
		}
	}
	for ln := in; ln != nil; ln = ln.Next {
		cl := r.NewChain(ln.Buf)
		*ll = cl
		ll = &cl.Next
		if !s.add(r, ln.Buf) {
			return Error
		}
	}
	clcf := r.Core
	// No hurry, and too little for a send of its own.
	if !s.last && !s.flush && in != nil && s.size < clcf.PostponeOutput {
		return OK
	}
	if c.Write.Delayed {
		c.Buffered |= WriteBuffered
		return Again
	}
	if s.size == 0 && c.Buffered&LowlevelBuffered == 0 && !(s.last && c.NeedLastBuf) && !(s.flush && c.NeedFlushBuf) {
		if !s.last && !s.flush && !s.sync {
			c.Log.Err(logAlert, nil, "the http output chain is empty")
			return Error
		}
		r.freeOut(nil)
		c.Buffered &^= WriteBuffered
		if s.last {
			r.ResponseSent = true
		}
		return OK
	}
	limit, ok := r.rateLimit()
	if !ok {
		return Again
	}
	if r.direct && s.last && r.mayWait(&s) {
		r.unsent = true
		c.Loop.SendLater(c, r)
		return OK
	}
	sent := c.Sent
	chain, ok := SendChain(c, r.Out, limit, r.Core.Sendfile == 1)
	if !ok {
		c.Error = true
		return Error
	}
	if r.LimitRate != 0 {
		from, to := sent, c.Sent
		if r.LimitRateAfter != 0 {
			from, to = max(from-r.LimitRateAfter, 0), max(to-r.LimitRateAfter, 0)
		}
		if delay := (to - from) * 1000 / r.LimitRate; delay > 0 {
			c.Write.Delayed = true
			c.Loop.AddTimer(&c.Write, delay)
		}
	}
	if chain != nil && c.Write.Ready && !c.Write.Delayed {
		c.Loop.PostNext(&c.Write)
	}
	r.freeOut(chain)
	if chain != nil {
		c.Buffered |= WriteBuffered
		return Again
	}
	c.Buffered &^= WriteBuffered
	if s.last {
		r.ResponseSent = true
	}
	if c.Buffered&LowlevelBuffered != 0 && r.Postponed == nil {
		return Again
	}
	return OK
}

// freeOut gives back the links before rest, which is what remains to be sent.
func (r *Request) freeOut(rest *Chain) {
	for cl := r.Out; cl != nil && cl != rest; {
		next := cl.Next
		r.FreeChain(cl)
		cl = next
	}
	r.Out = rest
}

// rateLimit is how many bytes may go out now, 0 for any number; false: none, a timer is set
// (limit_rate, limit_rate_after, sendfile_max_chunk).
func (r *Request) rateLimit() (int64, bool) {
	clcf := r.Core
	c := r.Conn
	if !r.LimitRateSet {
		r.LimitRate = r.complexSize(clcf.LimitRateValue)
		r.LimitRateSet = true
	}
	if r.LimitRate == 0 {
		return clcf.SendfileMaxChunk, true
	}
	if !r.LimitRateAfterSet {
		r.LimitRateAfter = r.complexSize(clcf.LimitRateAfterValue)
		r.LimitRateAfterSet = true
	}
	limit := r.LimitRate*(r.now()-r.StartSec+1) - (c.Sent - r.LimitRateAfter)
	if limit <= 0 {
		c.Write.Delayed = true
		c.Loop.AddTimer(&c.Write, -limit*1000/r.LimitRate+1)
		c.Buffered |= WriteBuffered
		return 0, false
	}
	if clcf.SendfileMaxChunk != 0 && clcf.SendfileMaxChunk < limit {
		limit = clcf.SendfileMaxChunk
	}
	return limit, true
}

// complexSize evaluates a size with variables; absent or wrong ones are 0 (ngx_http_complex_value_size).
func (r *Request) complexSize(v *ComplexValue) int64 {
	if v == nil {
		return 0
	}
	text, rc := r.Complex(v)
	if rc != OK {
		return 0
	}
	n, ok := module.ParseSize(string(text))
	if !ok {
		r.Conn.Log.Err(logError, nil, "invalid size \"%s\"", text)
		return 0
	}
	return n
}
