package http

import (
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http/parse"
)

// ReadBody reads the client's body and calls post when it is all there, or at once when it is not
// to be buffered. A status from 300 on is an error that the caller finalizes with; otherwise the
// caller returns Done (ngx_http_read_client_request_body).
func (r *Request) ReadBody(post func(r *Request)) Rc {
	r.Main.Count++
	if r != r.Main || r.Body != nil || r.DiscardBody {
		r.RequestBodyNoBuffering = false
		post(r)
		return OK
	}
	rc, whole := r.readBody(post)
	if whole {
		r.RequestBodyNoBuffering = false
		post(r)
		return OK
	}
	if rc == OK || rc == Again {
		// At OK without buffering off, post has run, and the request may be no more.
		if r.RequestBodyNoBuffering {
			if rc == OK {
				r.RequestBodyNoBuffering = false
			} else {
				r.ReadingBody = true
			}
			r.ReadHandler = BlockReading
			post(r)
		}
		return rc
	}
	if rc >= 300 {
		r.Main.Count--
	}
	return rc
}

// readBody is ReadBody without its bookkeeping; whole: there is no body, or it is here already.
func (r *Request) readBody(post func(r *Request)) (rc Rc, whole bool) {
	if r.testExpect() != OK {
		return 500, false
	}
	r.bodyStore = RequestBody{Rest: -1, Post: post}
	rb := &r.bodyStore
	r.Body = rb
	if r.HeadersIn.ContentLengthN < 0 && !r.HeadersIn.Chunked {
		return OK, true
	}
	h := r.headerIn
	preread := h.last - h.pos
	if preread > 0 {
		if rc := r.bodyFilter(h); rc != OK {
			return rc, false
		}
		r.RequestLength += int64(preread - (h.last - h.pos))
		if !r.HeadersIn.Chunked && rb.Rest > 0 && rb.Rest <= int64(len(h.b)-h.last) {
			// The rest fits behind what came with the header.
			rb.buf = &hbuf{b: h.b, start: h.pos, pos: h.pos, last: h.last}
			r.ReadHandler = readBodyHandler
			r.WriteHandler = requestEmptyHandler
			return r.doReadBody(), false
		}
	} else if rc := r.bodyFilter(nil); rc != OK {
		return rc, false
	}
	if rb.Rest == 0 && rb.LastSaved {
		return OK, true
	}
	if rb.Rest < 0 {
		r.Conn.Log.Err(logAlert, nil, "negative request body rest")
		return 500, false
	}
	size := r.Core.ClientBodyBufferSize
	if big := size + size>>2; !r.HeadersIn.Chunked && rb.Rest < big {
		size = rb.Rest
		if r.RequestBodyInSingleBuf {
			size += int64(preread)
		}
		if size == 0 {
			size++
		}
	}
	if !ev.Reserve(size, r.Conn.Log) {
		return 500, false
	}
	rb.buf = &hbuf{b: r.Alloc(int(size))}
	r.ReadHandler = readBodyHandler
	r.WriteHandler = requestEmptyHandler
	return r.doReadBody(), false
}

// SpareBody is the memory that the body was read into, where the body lies in a file; a subrequest must not have it.
func (r *Request) SpareBody() []byte {
	rb := r.Body
	if rb == nil || rb.buf == nil || rb.TempFile == nil || r != r.Main {
		return nil
	}
	return rb.buf.b[rb.buf.start:]
}

// ReadUnbufferedBody reads what has come of a body that is not buffered: OK at its end, Again,
// or a status (ngx_http_read_unbuffered_request_body).
func (r *Request) ReadUnbufferedBody() Rc {
	if r.Conn.Read.TimedOut {
		r.HC.TimedOut = true
		return 408
	}
	rc := r.doReadBody()
	if rc == OK {
		r.ReadingBody = false
	}
	return rc
}

func readBodyHandler(r *Request) {
	if r.Conn.Read.TimedOut {
		r.HC.TimedOut = true
		r.Finalize(408)
		return
	}
	if rc := r.doReadBody(); rc >= 300 {
		r.Finalize(rc)
	}
}

// doReadBody reads into the body's buffer and through the filters until the client has no more
// (ngx_http_do_read_client_request_body).
func (r *Request) doReadBody() Rc {
	c := r.Conn
	rb := r.Body
	flush := true
	for {
		for rb.Rest != 0 {
			if rb.buf.last == len(rb.buf.b) {
				if rc := r.bodyFilter(nil); rc != OK {
					return rc
				}
				if rb.Busy != nil {
					if r.RequestBodyNoBuffering {
						if c.Read.TimerSet {
							c.Loop.DelTimer(&c.Read)
						}
						return Again
					}
					if rb.FilterNeedBuffering {
						c.Loop.AddTimer(&c.Read, r.Core.ClientBodyTimeout)
						return Again
					}
					c.Log.Err(logAlert, nil, "busy buffers after request body flush")
					return 500
				}
				flush = false
				rb.buf.pos, rb.buf.last = rb.buf.start, rb.buf.start
			}
			size := int64(len(rb.buf.b) - rb.buf.last)
			rest := rb.Rest - int64(rb.buf.last-rb.buf.pos)
			size = min(size, rest)
			if size == 0 {
				break
			}
			n := c.Recv(rb.buf.b[rb.buf.last : rb.buf.last+int(size)])
			if n == ev.Again {
				break
			}
			if n == 0 {
				c.Log.Err(logInfo, nil, "client prematurely closed connection")
			}
			if n == 0 || n == ev.Err {
				c.Error = true
				return 400
			}
			rb.buf.last += n
			r.RequestLength += int64(n)
			flush = false
			if rc := r.bodyFilter(rb.buf); rc != OK {
				return rc
			}
			if rb.Rest == 0 || rb.buf.last < len(rb.buf.b) {
				break
			}
		}
		if flush {
			if rc := r.bodyFilter(nil); rc != OK {
				return rc
			}
		}
		if rb.Rest == 0 && rb.LastSaved {
			break
		}
		if !c.Read.Ready || rb.Rest == 0 {
			c.Read.Watch()
			c.Loop.AddTimer(&c.Read, r.Core.ClientBodyTimeout)
			return Again
		}
	}
	if r.copyPipelined(rb.buf) != OK {
		return 500
	}
	if c.Read.TimerSet {
		c.Loop.DelTimer(&c.Read)
	}
	if !r.RequestBodyNoBuffering {
		r.ReadHandler = BlockReading
		rb.Post(r)
	}
	return OK
}

// copyPipelined takes what was read behind the body back to the header's buffer, or to a large
// one: it is the next request's (ngx_http_copy_pipelined_header).
func (r *Request) copyPipelined(buf *hbuf) Rc {
	b := r.headerIn
	n := buf.last - buf.pos
	if buf == b || n == 0 {
		return OK
	}
	if n > len(b.b)-b.last {
		hc := r.HC
		size := int(r.CoreSrv().LargeClientHeaderBuffers.Size)
		if k := len(hc.free); k > 0 {
			b = hc.free[k-1]
			hc.free = hc.free[:k-1]
		} else {
			b = &hbuf{b: ev.Bytes(int64(size))}
		}
		hc.busy = append(hc.busy, b)
		hc.nbusy++
		r.headerIn = b
		if n > len(b.b)-b.last {
			r.Conn.Log.Err(logAlert, nil, "too large pipelined header after reading body")
			return Error
		}
	}
	copy(b.b[b.last:], buf.unread())
	b.last += n
	r.RequestLength -= int64(n)
	return OK
}

var (
	continue100  = []byte("HTTP/1.1 100 Continue\r\n\r\n")
	wordContinue = []byte("100-continue")
)

// testExpect sends "100 Continue" to a client that waits for it (ngx_http_test_expect).
func (r *Request) testExpect() Rc {
	if r.ExpectTested || r.HeadersIn.Expect == nil || r.Version < HTTP11 {
		return OK
	}
	r.ExpectTested = true
	if !equalFold(r.HeadersIn.Expect.Value, wordContinue) {
		return OK
	}
	if r.Conn.Send(continue100) == len(continue100) {
		return OK
	}
	r.Conn.Error = true // so small a piece is always taken
	return Error
}

// DiscardRequestBody throws the body away, now and as it comes
// (ngx_http_discard_request_body).
func (r *Request) DiscardRequestBody() Rc {
	if r != r.Main || r.DiscardBody || r.Body != nil {
		return OK
	}
	if r.testExpect() != OK {
		return 500
	}
	c := r.Conn
	if c.Read.TimerSet {
		c.Loop.DelTimer(&c.Read)
	}
	if r.HeadersIn.ContentLengthN <= 0 && !r.HeadersIn.Chunked {
		return OK
	}
	h := r.headerIn
	if h.pos < h.last || r.HeadersIn.Chunked {
		if rc := r.discardFilter(h); rc != OK {
			return rc
		}
		if r.HeadersIn.ContentLengthN == 0 {
			return OK
		}
	}
	rc := r.readDiscarded()
	if rc == OK {
		r.LingeringClose = false
		return OK
	}
	if rc >= 300 {
		return rc
	}
	r.ReadHandler = discardedBodyHandler
	r.Count++
	r.DiscardBody = true
	return OK
}

func discardedBodyHandler(r *Request) {
	c := r.Conn
	rev := &c.Read
	if rev.TimedOut {
		r.HC.TimedOut = true
		c.Error = true
		r.Finalize(Error)
		return
	}
	var timer int64
	if r.LingeringTime != 0 {
		timer = r.LingeringTime - r.now()
		if timer <= 0 {
			r.DiscardBody = false
			r.LingeringClose = false
			r.Finalize(Error)
			return
		}
	}
	rc := r.readDiscarded()
	if rc == OK {
		r.DiscardBody = false
		r.LingeringClose = false
		r.LingeringTime = 0
		r.Finalize(Done)
		return
	}
	if rc >= 300 {
		c.Error = true
		r.Finalize(Error)
		return
	}
	if timer > 0 {
		c.Loop.AddTimer(rev, min(timer*1000, r.Core.LingeringTimeout))
	}
}

func (r *Request) readDiscarded() Rc {
	c := r.Conn
	b := hbuf{b: r.HC.worker.scratch[:]}
	for r.HeadersIn.ContentLengthN != 0 {
		if !c.Read.Ready {
			c.Read.Watch()
			return Again
		}
		n := c.Recv(b.b[:min(r.HeadersIn.ContentLengthN, lingeringBuffer)])
		switch {
		case n == ev.Err:
			c.Error = true
			return OK
		case n == ev.Again:
			c.Read.Watch()
			return Again
		case n == 0:
			return OK
		}
		b.pos, b.last = 0, n
		if rc := r.discardFilter(&b); rc != OK {
			return rc
		}
	}
	if r.copyPipelined(&b) != OK {
		return 500
	}
	r.ReadHandler = BlockReading
	return OK
}

// discardFilter finds the body's end in b (ngx_http_discard_request_body_filter).
func (r *Request) discardFilter(b *hbuf) Rc {
	if !r.HeadersIn.Chunked {
		if n := int64(b.last - b.pos); n > r.HeadersIn.ContentLengthN {
			b.pos += int(r.HeadersIn.ContentLengthN)
			r.HeadersIn.ContentLengthN = 0
		} else {
			b.pos = b.last
			r.HeadersIn.ContentLengthN -= n
		}
		return OK
	}
	if r.Body == nil {
		r.bodyStore = RequestBody{}
		r.Body = &r.bodyStore
	}
	ch := &r.Body.chunked
	for {
		n, res := ch.Parse(b.unread())
		b.pos += n
		switch res {
		case parse.OK:
			take := min(int64(b.last-b.pos), ch.Size)
			b.pos += int(take)
			ch.Size -= take
		case parse.Done:
			r.HeadersIn.ContentLengthN = 0
			return OK
		case parse.Again:
			r.HeadersIn.ContentLengthN = max(ch.Length, r.CoreSrv().LargeClientHeaderBuffers.Size)
			return OK
		default:
			r.Conn.Log.Err(logError, nil, "client sent invalid chunked body")
			return 400
		}
	}
}
