package http

// AddHeaderOut appends a field to the response; key is sent as it is.
func (r *Request) AddHeaderOut(key, value []byte) *Header {
	h := r.NewHeader()
	h.Hash, h.Key, h.Value = 1, key, value
	r.HeadersOut.Headers = append(r.HeadersOut.Headers, h)
	return h
}

// ClearContentLength and its likes take a field back (ngx_http_clear_*).
func (r *Request) ClearContentLength() {
	r.HeadersOut.ContentLengthN = -1
	if h := r.HeadersOut.ContentLength; h != nil {
		h.Hash = 0
		r.HeadersOut.ContentLength = nil
	}
}

func (r *Request) ClearAcceptRanges() {
	r.AllowRanges = false
	if h := r.HeadersOut.AcceptRanges; h != nil {
		h.Hash = 0
		r.HeadersOut.AcceptRanges = nil
	}
}

func (r *Request) ClearLastModified() {
	r.HeadersOut.LastModifiedTime = -1
	if h := r.HeadersOut.LastModified; h != nil {
		h.Hash = 0
		r.HeadersOut.LastModified = nil
	}
}

func (r *Request) ClearLocation() {
	if h := r.HeadersOut.Location; h != nil {
		h.Hash = 0
		r.HeadersOut.Location = nil
	}
}

func (r *Request) ClearETag() {
	if h := r.HeadersOut.ETag; h != nil {
		h.Hash = 0
		r.HeadersOut.ETag = nil
	}
}

// SendHeader runs the header filters (ngx_http_send_header).
func (r *Request) SendHeader() Rc {
	if r.PostAction {
		return OK
	}
	if r.HeaderSent {
		r.Conn.Log.Err(logAlert, nil, "header already sent")
		return Error
	}
	if r.ErrStatus != 0 {
		r.HeadersOut.Status = r.ErrStatus
		r.HeadersOut.StatusLine = nil
	}
	return topHeaderFilter(r)
}

// OutputFilter runs the body filters; nil goes on with what is pending (ngx_http_output_filter).
func (r *Request) OutputFilter(in *Chain) Rc {
	rc := topBodyFilter(r, in)
	if rc == Error {
		r.Conn.Error = true
	}
	return rc
}

// SendSpecial sends a buffer that carries only flags (ngx_http_send_special).
func (r *Request) SendSpecial(last, flush bool) Rc {
	b := r.NewBuf()
	if last {
		if r == r.Main && !r.PostAction {
			b.LastBuf = true
		} else {
			b.Sync, b.LastInChain = true, true
		}
	}
	b.Flush = flush
	return r.OutputFilter(r.NewChain(b))
}

// SendResponse answers with one text, or redirects to it; ctype nil stands for the type by
// the URI's extension (ngx_http_send_response).
func (r *Request) SendResponse(status int, ctype []byte, body []byte) Rc {
	if rc := r.DiscardRequestBody(); rc != OK {
		return rc
	}
	r.HeadersOut.Status = status
	switch status {
	case 301, 302, 303, 307, 308:
		r.ClearLocation()
		r.HeadersOut.Location = r.AddHeaderOut(keyLocation, body)
		return Rc(status)
	}
	r.HeadersOut.ContentLengthN = int64(len(body))
	if ctype != nil {
		r.HeadersOut.ContentType = ctype
		r.HeadersOut.ContentTypeLen = len(ctype)
	} else if r.SetContentType() != OK {
		return 500
	}
	b := r.NewBuf()
	b.Data = body
	b.Memory = len(body) > 0
	b.LastBuf = r == r.Main
	b.LastInChain = true
	b.Sync = !b.LastBuf && !b.Memory
	rc := r.SendHeader()
	if rc == Error || rc > OK || r.HeaderOnly {
		return rc
	}
	return r.OutputFilter(r.NewChain(b))
}
