package http

import "strconv"

// ChunkedFilterModule sends bodies of unknown length in chunks (ngx_http_chunked_filter_module.c).
var ChunkedFilterModule = &Module{
	Name: "ngx_http_chunked_filter_module",
	HeaderFilter: func(next HeaderFilter) HeaderFilter {
		return func(r *Request) Rc { return chunkedHeader(r, next) }
	},
	BodyFilter: func(next BodyFilter) BodyFilter {
		return func(r *Request, in *Chain) Rc { return chunkedBody(r, in, next) }
	},
}

// chunkTag marks the filter's own buffers.
var chunkTag = &Module{}

var (
	chunkEnd  = []byte(crlf)
	chunkLast = []byte("\r\n0\r\n\r\n")
)

func chunkedHeader(r *Request, next HeaderFilter) Rc {
	o := &r.HeadersOut
	if o.Status == 304 || o.Status == 204 || o.Status < 200 || r != r.Main || r.Method == HEAD {
		return next(r)
	}
	if o.ContentLengthN == -1 || r.ExpectTrailers {
		if r.Version >= HTTP11 && r.Core.ChunkedTransferEncoding != 0 {
			if r.ExpectTrailers {
				r.ClearContentLength()
			}
			r.Chunked = true
		} else if o.ContentLengthN == -1 {
			r.KeepAlive = false
		}
	}
	return next(r)
}

func chunkedBody(r *Request, in *Chain, next BodyFilter) Rc {
	if in == nil || !r.Chunked || r.HeaderOnly {
		return next(r, in)
	}
	var out *Chain
	ll := &out
	var size int64
	last := in
	for cl := in; cl != nil; cl = cl.Next {
		last = cl
		b := cl.Buf
		size += b.Size()
		if b.Flush || b.Sync || b.InMemory() || b.InFile {
			tl := r.NewChain(b)
			*ll = tl
			ll = &tl.Next
		}
	}
	if size != 0 {
		tl := r.GetFreeBuf(&r.chunkFree)
		b := tl.Buf
		if b.Start == nil {
			b.Start = r.Alloc(len("0000000000000000\r\n"))
		}
		*b = Buf{Start: b.Start, Temporary: true, Tag: chunkTag}
		b.Data = append(strconv.AppendInt(b.Start[:0], size, 16), crlf...)
		tl.Next = out
		if out == nil {
			ll = &tl.Next
		}
		out = tl
	}
	if last.Buf.LastBuf {
		tl := r.chunkTrailers()
		last.Buf.LastBuf = false
		*ll = tl
		if size == 0 {
			tl.Buf.Data = tl.Buf.Data[2:]
		}
	} else if size > 0 {
		tl := r.GetFreeBuf(&r.chunkFree)
		*tl.Buf = Buf{Start: tl.Buf.Start, Memory: true, Data: chunkEnd, Tag: chunkTag}
		*ll = tl
	}
	rc := next(r, out)
	r.UpdateChains(&r.chunkFree, &r.chunkBusy, &out, chunkTag)
	return rc
}

// chunkTrailers is the last chunk with the response's trailers (ngx_http_chunked_create_trailers).
func (r *Request) chunkTrailers() *Chain {
	cl := r.GetFreeBuf(&r.chunkFree)
	b := cl.Buf
	*b = Buf{Start: b.Start, Memory: true, LastBuf: true, Data: chunkLast, Tag: chunkTag}
	var data []byte
	for _, h := range r.HeadersOut.Trailers {
		if h.Hash == 0 {
			continue
		}
		if data == nil {
			data = append(data, "\r\n0\r\n"...)
		}
		data = append(append(data, h.Key...), ": "...)
		data = append(append(data, h.Value...), crlf...)
	}
	if data != nil {
		b.Data = append(data, crlf...)
	}
	return cl
}
