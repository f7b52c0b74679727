package http

// PostponeFilterModule keeps the output of a request and its subrequests in order
// (ngx_http_postpone_filter_module.c).
var PostponeFilterModule = &Module{
	Name: "ngx_http_postpone_filter_module",
	BodyFilter: func(next BodyFilter) BodyFilter {
		return func(r *Request, in *Chain) Rc { return postponeFilter(r, in, next) }
	},
}

func postponeFilter(r *Request, in *Chain, next BodyFilter) Rc {
	c := r.Conn
	if r.SubrequestInMemory {
		return postponeInMemory(r, in)
	}
	if a, ok := c.Data.(*Request); !ok || a != r {
		if in != nil {
			r.postpone(in)
		}
		return OK
	}
	if r.Postponed == nil {
		if in != nil || c.Buffered != 0 {
			return next(r.Main, in)
		}
		return OK
	}
	if in != nil {
		r.postpone(in)
	}
	for r.Postponed != nil {
		pr := r.Postponed
		if pr.Request != nil {
			r.Postponed = pr.Next
			c.Data = pr.Request
			pr.Request.Post()
			return OK
		}
		if pr.Out == nil {
			c.Log.Err(logAlert, nil, "http postpone filter NULL output")
		} else if next(r.Main, pr.Out) == Error {
			return Error
		}
		r.Postponed = pr.Next
	}
	return OK
}

// postpone keeps in until it is its turn.
func (r *Request) postpone(in *Chain) {
	pp := &r.Postponed
	var last *Postponed
	for *pp != nil {
		last = *pp
		pp = &last.Next
	}
	if last == nil || last.Request != nil {
		last = &Postponed{}
		*pp = last
	}
	r.AddCopy(&last.Out, in)
}

// postponeInMemory gathers the response of an in-memory subrequest.
func postponeInMemory(r *Request, in *Chain) Rc {
	log := r.Conn.Log
	if r.Out == nil {
		size := r.Core.SubrequestOutputBufferSize
		if n := r.HeadersOut.ContentLengthN; n != -1 {
			if n > size {
				log.Err(logError, nil, "too big subrequest response: %d", n)
				return Error
			}
			size = n
		}
		b := r.NewBuf()
		b.Start = r.Alloc(int(size))
		b.Data = b.Start[:0]
		b.Temporary, b.LastBuf = true, true
		r.Out = r.NewChain(b)
	}
	b := r.Out.Buf
	for ; in != nil; in = in.Next {
		if in.Buf.Special() {
			continue
		}
		if len(in.Buf.Data) > len(b.Start)-len(b.Data) {
			log.Err(logError, nil, "too big subrequest response")
			return Error
		}
		b.Data = append(b.Data, in.Buf.Data...)
		in.Buf.Data = in.Buf.Data[len(in.Buf.Data):]
	}
	return OK
}
