package proxy

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/http/parse"
	"nginxoracle/proxy/upstream"
)

// ProcessHeader reads the status line and the header (ngx_http_proxy_process_status_line,
// ngx_http_proxy_process_header). The engine's buffer grows behind u.Buffer.Data, so offsets are
// from its Start.
func (c *ctx) ProcessHeader(r *http.Request, u *upstream.Upstream) http.Rc {
	b := &u.Buffer
	buf := b.Start[:len(b.Start)-cap(b.Data)+len(b.Data)]
	if !c.line {
		if rc := c.statusLine(r, u, buf); rc != http.OK || !c.line {
			return rc
		}
	}
	for {
		rc := c.field.Parse(buf, true)
		b.Data = b.Start[c.field.Pos:len(buf)]
		switch rc {
		case parse.OK:
			if rc := u.AddHeader(r, &c.field, buf); rc != http.OK {
				return rc
			}
		case parse.Done:
			c.headerDone(r, u)
			return http.OK
		case parse.Again:
			return http.Again
		default:
			bad := c.field.ValEnd
			r.Conn.Log.Err(elog.Error, nil, "upstream sent invalid header: \"%s\\x%02x...\"",
				buf[c.field.NameStart:bad], buf[bad])
			return upstream.InvalidHeader
		}
	}
}

func (c *ctx) statusLine(r *http.Request, u *upstream.Upstream, buf []byte) http.Rc {
	b := &u.Buffer
	switch c.status.Parse(buf) {
	case parse.Again:
		b.Data = b.Start[c.status.Pos:len(buf)]
		return http.Again
	case parse.OK:
		b.Data = b.Start[c.status.Pos:len(buf)]
	default:
		// taken for an HTTP/0.9 answer, from its first byte on
		b.Data = buf
		r.Conn.Log.Err(elog.Error, nil, "upstream sent no valid HTTP/1.0 header")
		r.Version = http.HTTP9
		u.State.Status = 200
		u.HeadersIn.ConnectionClose = true
		return http.OK
	}
	c.line = true
	s := &c.status
	if u.State.Status == 0 {
		u.State.Status = s.Code
	}
	u.HeadersIn.StatusN = s.Code
	line := r.Alloc(s.End - s.Start)
	copy(line, buf[s.Start:s.End])
	u.HeadersIn.StatusLine = line
	if s.Version < http.HTTP11 {
		u.HeadersIn.ConnectionClose = true
	}
	c.field.Pos = s.Pos
	c.field.Upstream = true
	return http.OK
}

func (c *ctx) headerDone(r *http.Request, u *upstream.Upstream) {
	u.EndHeader(r)
	in := &u.HeadersIn
	if in.Chunked {
		in.ContentLengthN = -1
	}
	// an answer without a body leaves the connection free at once
	if c.noBody(u) || !in.Chunked && in.ContentLengthN == 0 {
		u.Keepalive = !in.ConnectionClose
	}
	if in.StatusN == 101 {
		u.Keepalive = false
		if r.HeadersIn.Upgrade != nil {
			u.Upgrade = true
		}
	}
}

func (c *ctx) noBody(u *upstream.Upstream) bool {
	return u.HeadersIn.StatusN == 204 || u.HeadersIn.StatusN == 304 || c.head
}

// InputFilterInit chooses how the body is delimited (ngx_http_proxy_input_filter_init,
// RFC 9112 section 6.3).
func (c *ctx) InputFilterInit(r *http.Request, u *upstream.Upstream) http.Rc {
	in := &u.HeadersIn
	switch {
	case c.noBody(u):
		u.Pipe.Length, u.Length = 0, 0
		u.Keepalive = !in.ConnectionClose
	case in.Chunked:
		c.chunkedIn = true
		u.Pipe.Length = 3 // "0" LF LF
		u.Length = 1
	case in.ContentLengthN == 0:
		u.Pipe.Length, u.Length = 0, 0
		u.Keepalive = !in.ConnectionClose
	default:
		u.Pipe.Length, u.Length = in.ContentLengthN, in.ContentLengthN
	}
	return http.OK
}

const (
	moreData       = "upstream sent more data than specified in \"Content-Length\" header"
	dataAfterChunk = "upstream sent data after final chunk"
	invalidChunked = "upstream sent invalid chunked response"
)

// PipeFilter takes what a raw buffer of the pipe holds.
func (c *ctx) PipeFilter(p *upstream.Pipe, buf *http.Buf) http.Rc {
	if len(buf.Data) == 0 || p.UpstreamDone {
		return http.OK
	}
	if c.chunkedIn {
		return c.pipeChunked(p, buf)
	}
	return c.pipeCopy(p, buf)
}

// pipeCopy is ngx_http_proxy_copy_filter.
func (c *ctx) pipeCopy(p *upstream.Pipe, buf *http.Buf) http.Rc {
	r := c.r
	u := upstream.Of(r)
	if p.Length == 0 {
		r.Conn.Log.Err(elog.Warn, nil, moreData)
		u.Keepalive = false
		p.UpstreamDone = true
		return http.OK
	}
	cl := p.GetFree()
	b := cl.Buf
	*b = *buf
	b.Shadow = buf
	b.Tag = u.Tag
	b.LastShadow = true
	b.Recycled = true
	buf.Shadow = b
	p.Append(cl)
	if p.Length == -1 {
		return http.OK
	}
	n := int64(len(b.Data))
	if n > p.Length {
		r.Conn.Log.Err(elog.Warn, nil, moreData)
		b.Data = b.Data[:p.Length]
		p.UpstreamDone = true
		return http.OK
	}
	if p.Length -= n; p.Length == 0 {
		u.Keepalive = !u.HeadersIn.ConnectionClose
	}
	return http.OK
}

// pipeChunked is ngx_http_proxy_chunked_filter.
func (c *ctx) pipeChunked(p *upstream.Pipe, buf *http.Buf) http.Rc {
	r := c.r
	u := upstream.Of(r)
	log := r.Conn.Log
	if p.Length == 0 {
		log.Err(elog.Warn, nil, dataAfterChunk)
		u.Keepalive = false
		p.UpstreamDone = true
		return http.OK
	}
	var b *http.Buf
	prev := &buf.Shadow
chunks:
	for {
		n, rc := c.chunked.Parse(buf.Data)
		buf.Data = buf.Data[n:]
		switch rc {
		case parse.OK:
			cl := p.GetFree()
			b = cl.Buf
			take := min(int64(len(buf.Data)), c.chunked.Size)
			*b = http.Buf{
				Data: buf.Data[:take], Start: buf.Start, Tag: u.Tag,
				Temporary: true, Recycled: true, Num: buf.Num,
			}
			*prev = b
			prev = &b.Shadow
			p.Append(cl)
			buf.Data = buf.Data[take:]
			c.chunked.Size -= take
		case parse.Done:
			p.Length = 0
			u.Keepalive = !u.HeadersIn.ConnectionClose
			if len(buf.Data) > 0 {
				log.Err(elog.Warn, nil, dataAfterChunk)
				u.Keepalive = false
			}
			break chunks
		case parse.Again:
			p.Length = c.chunked.Length
			break chunks
		default:
			log.Err(elog.Error, nil, invalidChunked)
			return http.Error
		}
	}
	if b != nil {
		b.Shadow = buf
		b.LastShadow = true
		return http.OK
	}
	p.AddFreeBuf(buf)
	return http.OK
}

// Filter takes n bytes that have been read behind u.Buffer.Data.
func (c *ctx) Filter(r *http.Request, u *upstream.Upstream, n int) http.Rc {
	if c.chunkedIn {
		return c.filterChunked(r, u, n)
	}
	// ngx_http_proxy_non_buffered_copy_filter
	log := r.Conn.Log
	if u.Length == 0 {
		log.Err(elog.Warn, nil, moreData)
		u.Keepalive = false
		return http.OK
	}
	b := &u.Buffer
	last := len(b.Data)
	b.Data = b.Data[:last+n]
	out := u.AppendOut(r, b.Data[last:])
	if u.Length == -1 {
		return http.OK
	}
	if int64(n) > u.Length {
		log.Err(elog.Warn, nil, moreData)
		out.Data = out.Data[:u.Length]
		u.Length = 0
		return http.OK
	}
	if u.Length -= int64(n); u.Length == 0 {
		u.Keepalive = !u.HeadersIn.ConnectionClose
	}
	return http.OK
}

// filterChunked is ngx_http_proxy_non_buffered_chunked_filter.
func (c *ctx) filterChunked(r *http.Request, u *upstream.Upstream, n int) http.Rc {
	b := &u.Buffer
	// what stands before has been handed on
	b.Data = b.Data[len(b.Data) : len(b.Data)+n]
	for {
		n, rc := c.chunked.Parse(b.Data)
		b.Data = b.Data[n:]
		switch rc {
		case parse.OK:
			take := min(int64(len(b.Data)), c.chunked.Size)
			u.AppendOut(r, b.Data[:take])
			b.Data = b.Data[take:]
			c.chunked.Size -= take
		case parse.Done:
			u.Keepalive = !u.HeadersIn.ConnectionClose
			u.Length = 0
			if len(b.Data) > 0 {
				r.Conn.Log.Err(elog.Warn, nil, dataAfterChunk)
				u.Keepalive = false
			}
			return http.OK
		case parse.Again:
			return http.OK
		default:
			r.Conn.Log.Err(elog.Error, nil, invalidChunked)
			return http.Error
		}
	}
}
