package http

import (
	"strconv"

	"nginxoracle/proxy/ev"
)

// HeaderFilterModule writes the response's header (ngx_http_header_filter_module.c).
var HeaderFilterModule = &Module{
	Name:         "ngx_http_header_filter_module",
	HeaderFilter: func(HeaderFilter) HeaderFilter { return headerFilter },
}

const crlf = "\r\n"

func headerFilter(r *Request) Rc {
	if r.HeaderSent {
		return OK
	}
	r.HeaderSent = true
	if r != r.Main || r.Version < HTTP10 {
		return OK
	}
	if r.Method == HEAD {
		r.HeaderOnly = true
	}
	o := &r.HeadersOut
	if o.LastModifiedTime != -1 && o.Status != 200 && o.Status != 206 && o.Status != 304 {
		o.LastModifiedTime = -1
		o.LastModified = nil
	}
	if r.KeepAlive && exiting(r.Conn) {
		r.KeepAlive = false
	}
	if len(o.StatusLine) == 0 {
		switch o.Status {
		case 204:
			r.HeaderOnly = true
			o.ContentType = nil
			o.LastModifiedTime = -1
			o.LastModified = nil
			o.ContentLength = nil
			o.ContentLengthN = -1
		case 304:
			r.HeaderOnly = true
		}
	}
	b := r.appendHeader(r.hdr[:0])
	r.hdr = b
	r.HeaderSize = int64(len(b))
	buf := r.NewBuf()
	buf.Temporary, buf.Data, buf.Start = true, b, b
	buf.LastBuf = r.HeaderOnly
	return writeFilter(r, r.NewChain(buf))
}

// appendHeader writes the status line and the fields in nginx's order.
func (r *Request) appendHeader(b []byte) []byte {
	o := &r.HeadersOut
	clcf := r.Core
	switch {
	case len(o.StatusLine) > 0:
		b = append(append(append(b, "HTTP/1.1 "...), o.StatusLine...), crlf...)
	case o.Status >= 0 && o.Status < len(statusTable) && statusTable[o.Status] != "":
		b = append(b, statusTable[o.Status]...)
	default:
		b = append(b, "HTTP/1.1 "...)
		if o.Status < 100 {
			b = append(b, "00"[:2-len(strconv.Itoa(o.Status))+1]...)
		}
		b = append(strconv.AppendInt(b, int64(o.Status), 10), " \r\n"...)
	}
	if o.Server == nil {
		b = append(b, serverFields[serverTokens(clcf)]...)
	}
	if o.Date == nil {
		b = append(append(append(b, "Date: "...), r.Conn.Loop.HTTPDate()...), crlf...)
	}
	if len(o.ContentType) > 0 {
		b = append(b, "Content-Type: "...)
		from := len(b)
		b = append(b, o.ContentType...)
		if o.ContentTypeLen == len(o.ContentType) && len(o.Charset) > 0 {
			b = append(append(b, "; charset="...), o.Charset...)
			o.ContentType = b[from:len(b):len(b)] // as it is logged
		}
		b = append(b, crlf...)
	}
	if o.ContentLength == nil && o.ContentLengthN >= 0 {
		b = append(b, "Content-Length: "...)
		b = append(strconv.AppendInt(b, o.ContentLengthN, 10), crlf...)
	}
	if o.LastModified == nil && o.LastModifiedTime != -1 {
		b = append(b, "Last-Modified: "...)
		b = append(ev.HTTPTime(b, o.LastModifiedTime), crlf...)
	}
	if h := o.Location; h != nil && len(h.Value) > 0 && h.Value[0] == '/' && clcf.AbsoluteRedirect > 0 {
		b = r.appendLocation(b, h)
	}
	if r.Chunked {
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	switch {
	case o.Status == 101:
		b = append(b, "Connection: upgrade\r\n"...)
	case r.KeepAlive:
		b = append(b, "Connection: keep-alive\r\n"...)
		if clcf.KeepaliveHeader > 0 {
			b = append(b, "Keep-Alive: timeout="...)
			b = append(strconv.AppendInt(b, clcf.KeepaliveHeader, 10), crlf...)
		}
	default:
		b = append(b, "Connection: close\r\n"...)
	}
	if r.GzipVary {
		if clcf.GzipVary > 0 {
			b = append(b, "Vary: Accept-Encoding\r\n"...)
		} else {
			r.GzipVary = false
		}
	}
	for _, h := range o.Headers {
		if h.Hash == 0 {
			continue
		}
		b = append(append(b, h.Key...), ": "...)
		b = append(append(b, h.Value...), crlf...)
	}
	return append(b, crlf...)
}

// appendLocation makes a local redirect absolute, in its own place before the other fields.
func (r *Request) appendLocation(b []byte, h *Header) []byte {
	clcf := r.Core
	c := r.Conn
	h.Hash = 0
	b = append(b, "Location: "...)
	from := len(b)
	b = append(b, "http"...)
	if r.HC.SSL {
		b = append(b, 's')
	}
	b = append(b, "://"...)
	local, _ := c.LocalAddr()
	switch {
	case clcf.ServerNameInRedirect > 0:
		b = append(b, r.CoreSrv().ServerName...)
	case len(r.HeadersIn.Server) > 0:
		b = append(b, r.HeadersIn.Server...)
	default:
		b = local.AppendIP(b)
	}
	port := 0
	if clcf.PortInRedirect > 0 {
		port = local.Port
		if port == 80 && !r.HC.SSL || port == 443 && r.HC.SSL {
			port = 0
		}
	}
	if port != 0 {
		b = strconv.AppendInt(append(b, ':'), int64(port), 10)
	}
	b = append(b, h.Value...)
	h.Value = b[from:len(b):len(b)] // as it is logged
	h.Key = keyLocation
	return append(b, crlf...)
}
