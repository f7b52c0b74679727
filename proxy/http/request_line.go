package http

import (
	"bytes"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http/parse"
)

var clientErrors = map[parse.Result]string{
	parse.InvalidMethod:  "client sent invalid method",
	parse.InvalidRequest: "client sent invalid request",
	parse.InvalidVersion: "client sent invalid version",
	parse.Invalid09:      "client sent invalid method in HTTP/0.9 request",
}

// processRequestLine reads and takes apart the request line (ngx_http_process_request_line).
func processRequestLine(rev *ev.Event) {
	c := rev.Conn
	r := c.Data.(*Request)
	if rev.TimedOut {
		c.Log.Err(logInfo, errTimedOut, "client timed out")
		r.HC.TimedOut = true
		r.closeRequest(408)
		return
	}
	r.readRequestLine()
	RunPosted(c)
}

func (r *Request) readRequestLine() {
	c := r.Conn
	for {
		if !r.readHeader() {
			return
		}
		h := r.headerIn
		if r.line.Idle() {
			r.line.Pos = h.pos
		}
		res := r.line.Parse(h.b[:h.last])
		// An error page obeys what is known already: HEAD has no body, HTTP/0.9 no header.
		r.Method = Method(r.line.Method)
		if p := r.line.ProtoStart; p >= 0 {
			r.Protocol = h.b[p:p]
		}
		if res == parse.OK || res == parse.Invalid09 {
			r.Version = r.line.Version
			h.pos = r.line.Pos
		}
		switch res {
		case parse.OK:
			r.requestLineDone()
			return
		case parse.Again:
			h.pos = r.line.Pos
		default:
			c.Log.Err(logInfo, nil, clientErrors[res])
			if res == parse.InvalidVersion {
				r.Finalize(505)
			} else {
				r.Finalize(400)
			}
			return
		}
		if h.pos == len(h.b) {
			switch r.largeHeaderBuffer(true) {
			case Error:
				r.closeRequest(500)
				return
			case Declined:
				h = r.headerIn
				r.RequestLine = h.b[r.line.Start:]
				c.Log.Err(logInfo, nil, "client sent too long URI")
				r.Finalize(414)
				return
			}
		}
	}
}

// requestLineDone goes on from a complete request line.
func (r *Request) requestLineDone() {
	c := r.Conn
	l := &r.line
	b := r.headerIn.b
	r.RequestLine = b[l.Start:l.End]
	r.RequestLength = int64(r.headerIn.pos - l.Start)
	r.MethodName = b[l.Start:l.MethodEnd]
	if l.ProtoStart >= 0 {
		r.Protocol = b[l.ProtoStart:l.End]
	}
	if !r.processURI() {
		return
	}
	if l.SchemaEnd >= 0 {
		r.Schema = b[l.SchemaStart:l.SchemaEnd]
	}
	if l.HostEnd >= 0 {
		host, rc := ValidateHost(b[l.HostStart:l.HostEnd])
		if rc == Declined {
			c.Log.Err(logInfo, nil, "client sent invalid host in request line")
			r.Finalize(400)
			return
		}
		if rc == Error {
			r.closeRequest(500)
			return
		}
		if !r.chooseServer(host) {
			return
		}
		r.HeadersIn.Server = host
	}
	if r.Version < HTTP10 {
		if len(r.HeadersIn.Server) == 0 && !r.chooseServer(nil) {
			return
		}
		r.processRequest()
		return
	}
	c.Log.Action = "reading client request headers"
	c.Read.Handler = processRequestHeaders
	r.field = parse.Field{Pos: r.headerIn.pos, NameStart: -1}
	r.readHeaders()
}

// chooseServer goes over to the server of that name; false: the request has been closed.
func (r *Request) chooseServer(host []byte) bool {
	if r.SetVirtualServer(host) == Error {
		r.closeRequest(500)
		return false
	}
	return true
}

// processURI sets the URI, its arguments and its extension (ngx_http_process_request_uri).
func (r *Request) processURI() bool {
	l := &r.line
	b := r.headerIn.b
	end := l.URIEnd
	if l.ArgsStart >= 0 {
		end = l.ArgsStart - 1
	}
	r.ComplexURI, r.QuotedURI, r.PlusInURI, r.EmptyPathInURI = l.Complex, l.Quoted, l.Plus, l.EmptyPath
	if l.Complex || l.Quoted || l.EmptyPath {
		if n := l.URIEnd - l.URIStart + 1; cap(r.uriBuf) < n {
			r.uriBuf = make([]byte, 0, max(n, 256))
		}
		uri, ext, _, res := parse.ComplexURI(r.uriBuf[:0], l, b[:r.headerIn.last], r.CoreSrv().MergeSlashes != 0)
		if res != parse.OK {
			r.URI = r.uriBuf[:0]
			r.Conn.Log.Err(logInfo, nil, "client sent invalid request")
			r.Finalize(400)
			return false
		}
		r.URI = uri
		r.QuotedURI, r.PlusInURI = l.Quoted, l.Plus
		if ext >= 0 {
			r.Exten = uri[ext:]
		}
	} else {
		r.URI = b[l.URIStart:end]
		if l.URIExt >= 0 {
			r.Exten = b[l.URIExt:end]
		}
	}
	r.UnparsedURI = b[l.URIStart:l.URIEnd]
	r.ValidUnparsedURI = !l.EmptyPath
	// Arguments cut short by a fragment are there even when they are empty.
	if l.ArgsStart >= 0 && (l.ArgsEnd > l.ArgsStart || l.ArgsEnd < l.URIEnd) {
		r.Args = b[l.ArgsStart:l.ArgsEnd]
	}
	return true
}

// RequestLineSeen is the request line, or what has come of it when it could not be parsed; it is
// fixed by the first look (ngx_http_variable_request_line). nil: nothing has come.
func (r *Request) RequestLineSeen() []byte {
	if r.RequestLine == nil && r.headerIn != nil {
		r.RequestLine = r.rawRequestLine()
	}
	return r.RequestLine
}

func (r *Request) rawRequestLine() []byte {
	if r.line.Fresh() || r.line.Start < 0 {
		return nil
	}
	h := r.headerIn
	line := h.b[r.line.Start:h.last]
	if i := bytes.IndexAny(line, crlf); i >= 0 {
		line = line[:i]
	}
	return line
}

// readHeader makes sure that there is something to parse; false: come back later, or the
// request has been ended (ngx_http_read_request_header).
func (r *Request) readHeader() bool {
	h := r.headerIn
	if h.pos < h.last {
		return true
	}
	c := r.Conn
	rev := &c.Read
	n := ev.Again
	if rev.Ready {
		n = c.Recv(h.b[h.last:])
	}
	if n == ev.Again {
		rev.Watch()
		if !rev.TimerSet {
			c.Loop.AddTimer(rev, r.CoreSrv().ClientHeaderTimeout)
		}
		return false
	}
	if n == 0 {
		c.Log.Err(logInfo, nil, "client prematurely closed connection")
	}
	if n == 0 || n == ev.Err {
		c.Error = true
		c.Log.Action = "reading client request headers"
		r.Finalize(400)
		return false
	}
	h.last += n
	return true
}

// largeHeaderBuffer moves the line that is being read to a large buffer: OK, Declined when
// there is none left or the line is too long (ngx_http_alloc_large_header_buffer).
func (r *Request) largeHeaderBuffer(line bool) Rc {
	h := r.headerIn
	if line && r.line.Idle() {
		// The client fills the buffer with empty lines.
		h.pos, h.last = 0, 0
		return OK
	}
	var old int
	idle := false
	if line {
		old = r.line.Start
	} else {
		old = r.field.NameStart
		idle = r.field.Idle()
	}
	bufs := r.CoreSrv().LargeClientHeaderBuffers
	if !idle && int64(h.pos-old) >= bufs.Size {
		return Declined
	}
	hc := r.HC
	var b *hbuf
	if n := len(hc.free); n > 0 {
		b = hc.free[n-1]
		hc.free = hc.free[:n-1]
	} else if hc.nbusy < bufs.Num {
		if !ev.Reserve(bufs.Size, r.Conn.Log) {
			return Error
		}
		b = &hbuf{b: ev.Bytes(bufs.Size)}
	} else {
		return Declined
	}
	hc.busy = append(hc.busy, b)
	hc.nbusy++
	if idle {
		// The last line ended with the buffer: nothing to move.
		r.headerIn = b
		r.field = parse.Field{NameStart: -1}
		return OK
	}
	n := h.pos - old
	if n > len(b.b) {
		r.Conn.Log.Err(logAlert, nil, "too large header to copy")
		return Error
	}
	copy(b.b, h.b[old:h.pos])
	b.pos, b.last = n, n
	if line {
		r.line.Shift(-old)
	} else {
		r.field.Shift(-old)
	}
	r.headerIn = b
	return OK
}
