package http

import "nginxoracle/proxy/http/parse"

// bodyTag marks buffers that lie in what was read of the body.
var bodyTag = &Module{Name: "request body"}

// bodyFilter cuts what is the body's out of src and hands it to the request body filters; src nil
// lets them go on (ngx_http_request_body_filter).
func (r *Request) bodyFilter(src *hbuf) Rc {
	var out *Chain
	var rc Rc
	if r.HeadersIn.Chunked {
		out, rc = r.bodyChunked(src)
	} else {
		out = r.bodyLength(src)
	}
	if rc != OK {
		return rc
	}
	rc = topRequestBody(r, out)
	rb := r.Body
	r.UpdateChains(&rb.Free, &rb.Busy, &out, bodyTag)
	return rc
}

// bodyPiece is a buffer over src's bytes from its position on.
func (r *Request) bodyPiece(src *hbuf) *Chain {
	cl := r.GetFreeBuf(&r.Body.Free)
	*cl.Buf = Buf{Temporary: true, Tag: bodyTag, Flush: r.RequestBodyNoBuffering, Start: src.b[src.pos:]}
	return cl
}

func (r *Request) bodyEnd() *Chain {
	cl := r.GetFreeBuf(&r.Body.Free)
	*cl.Buf = Buf{LastBuf: true}
	return cl
}

func (r *Request) bodyLength(src *hbuf) *Chain {
	rb := r.Body
	var out *Chain
	ll := &out
	if rb.Rest == -1 {
		rb.Rest = r.HeadersIn.ContentLengthN
		if rb.Rest == 0 {
			*ll = r.bodyEnd()
			ll = &(*ll).Next
		}
	}
	if src != nil && rb.Rest != 0 {
		cl := r.bodyPiece(src)
		b := cl.Buf
		n := int64(src.last - src.pos)
		if n < rb.Rest {
			rb.Rest -= n
		} else {
			n = rb.Rest
			rb.Rest = 0
			b.LastBuf = true
		}
		b.Data = src.b[src.pos : src.pos+int(n)]
		src.pos += int(n)
		*ll = cl
	}
	return out
}

func (r *Request) bodyChunked(src *hbuf) (*Chain, Rc) {
	rb := r.Body
	in := &r.HeadersIn
	if rb.Rest == -1 {
		rb.chunked = parse.Chunked{}
		in.ContentLengthN = 0
		rb.Rest = r.CoreSrv().LargeClientHeaderBuffers.Size
	}
	if src == nil {
		return nil, OK
	}
	var out *Chain
	ll := &out
	var b *Buf
	ch := &rb.chunked
	for {
		n, res := ch.Parse(src.unread())
		src.pos += n
		switch res {
		case parse.OK:
			limit := r.Core.ClientMaxBodySize
			if limit != 0 && limit-in.ContentLengthN < ch.Size {
				r.Conn.Log.Err(logError, nil, "client intended to send too large chunked body: %d+%d bytes",
					in.ContentLengthN, ch.Size)
				r.LingeringClose = true
				return nil, 413
			}
			avail := int64(src.last - src.pos)
			if b != nil && ch.Size <= 128 && avail >= ch.Size {
				// A small chunk joins the buffer before it: the framing between is overwritten.
				k := len(b.Data)
				b.Data = b.Data[:k+int(ch.Size)]
				copy(b.Data[k:], src.b[src.pos:src.pos+int(ch.Size)])
				src.pos += int(ch.Size)
				in.ContentLengthN += ch.Size
				ch.Size = 0
				continue
			}
			cl := r.bodyPiece(src)
			b = cl.Buf
			*ll = cl
			ll = &cl.Next
			take := min(avail, ch.Size)
			b.Data = src.b[src.pos : src.pos+int(take)]
			src.pos += int(take)
			ch.Size -= take
			in.ContentLengthN += take
		case parse.Done:
			rb.Rest = 0
			*ll = r.bodyEnd()
			return out, OK
		case parse.Again:
			rb.Rest = max(ch.Length, r.CoreSrv().LargeClientHeaderBuffers.Size)
			return out, OK
		default:
			r.Conn.Log.Err(logError, nil, "client sent invalid chunked body")
			return nil, 400
		}
	}
}

// requestBodySaveFilter is the last of the request body filters: it keeps the body in memory, and
// in a file when there is no room (ngx_http_request_body_save_filter).
func requestBodySaveFilter(r *Request, in *Chain) Rc {
	rb := r.Body
	ll := &rb.Bufs
	for *ll != nil {
		ll = &(*ll).Next
	}
	for cl := in; cl != nil; cl = cl.Next {
		if cl.Buf.LastBuf {
			if rb.LastSaved {
				r.Conn.Log.Err(logAlert, nil, "duplicate last buf in save filter")
				return 500
			}
			rb.LastSaved = true
		}
		*ll = r.NewChain(cl.Buf)
		ll = &(*ll).Next
	}
	if r.RequestBodyNoBuffering {
		return OK
	}
	if rb.Rest > 0 {
		if rb.Bufs != nil && rb.buf != nil && rb.buf.last == len(rb.buf.b) && !r.writeBody() {
			return 500
		}
		return OK
	}
	if !rb.LastSaved {
		return OK
	}
	if rb.TempFile != nil || r.RequestBodyInFileOnly {
		if rb.Bufs != nil && rb.Bufs.Buf.InFile {
			r.Conn.Log.Err(logAlert, nil, "body already in file")
			return 500
		}
		if !r.writeBody() {
			return 500
		}
		if f := &rb.TempFile.File; f.Offset != 0 {
			cl := r.GetFreeBuf(&rb.Free)
			*cl.Buf = Buf{InFile: true, FileLast: f.Offset, File: f}
			rb.Bufs = cl
		}
	}
	return OK
}

// writeBody moves the body's buffers to its temporary file (ngx_http_write_request_body).
func (r *Request) writeBody() bool {
	rb := r.Body
	if rb.TempFile == nil {
		tf := &TempFile{
			Path: r.Core.ClientBodyTempPath, Warn: "a client request body is buffered to a temporary file",
			LogLevel: logWarn, Persistent: r.RequestBodyInPersistentFile, Clean: r.RequestBodyInCleanFile,
		}
		tf.File.FD = -1
		if r.Core.ClientBodyInFileOnly > 0 {
			tf.LogLevel = logNotice
		}
		if r.RequestBodyFileGroupAccess {
			tf.Access = 0660
		}
		rb.TempFile = tf
		if rb.Bufs == nil {
			return tf.create(r) == nil // an empty body that is wanted in a file
		}
	}
	if rb.Bufs == nil {
		return true
	}
	n, err := rb.TempFile.WriteChain(r, rb.Bufs)
	if err != nil {
		return false
	}
	rb.TempFile.Offset += n
	for cl := rb.Bufs; cl != nil; {
		next := cl.Next
		cl.Buf.Data = cl.Buf.Data[len(cl.Buf.Data):]
		r.FreeChain(cl)
		cl = next
	}
	rb.Bufs = nil
	return true
}
