package upstream

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// sendRequest goes on sending the request (ngx_http_upstream_send_request).
func (u *Upstream) sendRequest(r *http.Request, doWrite bool) {
	c := u.Peer.Conn
	if u.State.ConnectTime == -1 {
		u.State.ConnectTime = c.Loop.Mono() - u.startTime
	}
	// also for a kept connection: what befell it must be known before the request counts as sent, for
	// a POST that was sent is not tried again
	if !u.requestSent && !testConnect(c) {
		u.next(r, FTError)
		return
	}
	c.Log.Action = "sending request to upstream"

	rc := u.sendRequestBody(r, doWrite)
	if rc == ev.Err {
		u.next(r, FTError)
		return
	}
	if rc >= specialResponse {
		u.finalize(r, http.Rc(rc))
		return
	}
	if rc == ev.Again {
		if !c.Write.Ready || u.bodyBlocked {
			c.Loop.AddTimer(&c.Write, u.Conf.SendTimeout)
		} else if c.Write.TimerSet {
			c.Loop.DelTimer(&c.Write)
		}
		if c.Write.Ready && !u.uncork(r) {
			return
		}
		if c.Read.Ready {
			c.Loop.Post(&c.Read)
		}
		return
	}

	if c.Write.TimerSet {
		c.Loop.DelTimer(&c.Write)
	}
	if !u.uncork(r) {
		return
	}
	if !u.Conf.PreserveOutput {
		u.writeHandler = dummyHandler
	}
	if !u.RequestBodySent {
		u.RequestBodySent = true
		if u.HeaderSent {
			return
		}
		c.Loop.AddTimer(&c.Read, u.Conf.ReadTimeout)
		if c.Read.Ready {
			processHeader(r, u)
		}
	}
}

// uncork has the kernel send what tcp_nopush held back; false: the request has been ended.
func (u *Upstream) uncork(r *http.Request) bool {
	c := u.Peer.Conn
	if c.TCPNopush != ev.TCPSet {
		return true
	}
	if err := c.Cork(false); err != nil {
		c.Log.Err(elog.Crit, err, "setsockopt(!TCP_CORK) failed")
		u.finalize(r, codeInternal)
		return false
	}
	c.TCPNopush = ev.TCPUnset
	return true
}

func dummyHandler(*http.Request, *Upstream) {}

// sendRequestBody writes what is there of the request; with an unbuffered body it also reads more
// of it from the client (ngx_http_upstream_send_request_body). The answer is OK, Again, Err or a status.
func (u *Upstream) sendRequestBody(r *http.Request, doWrite bool) int {
	if !r.RequestBodyNoBuffering {
		var out *http.Chain
		if !u.requestSent {
			u.requestSent = true
			out = u.RequestBufs
		}
		rc := u.output(r, out)
		u.bodyBlocked = rc == ev.Again
		return rc
	}

	var out *http.Chain
	first := false
	if !u.requestSent {
		u.requestSent = true
		first = true
		out = u.RequestBufs
		if r.Body.Bufs != nil {
			cl := out
			for cl.Next != nil {
				cl = cl.Next
			}
			cl.Next = r.Body.Bufs
			r.Body.Bufs = nil
		}
		if r.Core.TCPNodelay > 0 && !u.Peer.Conn.SetNodelay() {
			return ev.Err
		}
		r.ReadHandler = readRequestHandler
	}

	rc := ev.OK
	for {
		if doWrite {
			rc = u.output(r, out)
			if rc == ev.Err {
				return ev.Err
			}
			for !first && out != nil {
				ln := out
				out = out.Next
				r.FreeChain(ln)
			}
			if first {
				// the links of the first part stay: they are what a next try would send
				first, out = false, nil
			}
			u.bodyBlocked = rc == ev.Again
			if rc == ev.OK && !r.ReadingBody {
				break
			}
		}
		if r.ReadingBody {
			if st := r.ReadUnbufferedBody(); st >= specialResponse {
				return int(st)
			}
			out = r.Body.Bufs
			r.Body.Bufs = nil
		}
		if out == nil {
			rc = ev.Again
			break
		}
		doWrite = true
	}
	if !r.ReadingBody && !u.Store && !r.PostAction && u.Conf.IgnoreClientAbort <= 0 {
		r.ReadHandler = readCheckBroken
	}
	return rc
}

// output sends in, and what waits from before. A body in a file is read and sent in the pieces in which nginx does, unless
// sendfile is on: how much an origin that stops reading has been sent depends on them.
func (u *Upstream) output(r *http.Request, in *http.Chain) int {
	o := &u.copies
	if o.In == nil && o.Busy == nil && (r.HC.Sendfile || !hasFile(in)) {
		return u.outputFilter(r, in)
	}
	if o.Filter == nil {
		o.R, o.Tag = r, u
		o.Bufs = module.Bufs{Num: 1, Size: r.Core.ClientBodyBufferSize}
		o.Filter = func(r *http.Request, out *http.Chain) http.Rc { return http.Rc(u.outputFilter(r, out)) }
	}
	return int(o.Output(in))
}

// spareCopies has a file read into the buffer that the client's body was read into. Such a buffer is there before anything is
// sent, so a file that cannot be read keeps even the header back.
func (u *Upstream) spareCopies(r *http.Request) {
	if b := r.SpareBody(); b != nil {
		u.copies.Spare(&http.Buf{Start: b, Data: b[:0], Temporary: true, Tag: u})
	}
}

func hasFile(in *http.Chain) bool {
	for ; in != nil; in = in.Next {
		if in.Buf.InFile {
			return true
		}
	}
	return false
}

func (u *Upstream) outputFilter(r *http.Request, in *http.Chain) int {
	if u.OutputFilter != nil {
		return u.OutputFilter(r, u, in)
	}
	return u.ChainWriter(r, in)
}

// ChainWriter queues in and sends what the connection takes (ngx_chain_writer).
func (u *Upstream) ChainWriter(r *http.Request, in *http.Chain) int {
	c := u.Peer.Conn
	for ; in != nil; in = in.Next {
		if in.Buf.Size() == 0 && !in.Buf.Special() {
			c.Log.Err(elog.Alert, nil, "zero size buf in chain writer")
			continue
		}
		cl := r.NewChain(in.Buf)
		*u.wLast = cl
		u.wLast = &cl.Next
	}
	var size int64
	for cl := u.wOut; cl != nil; cl = cl.Next {
		size += cl.Buf.Size()
	}
	if size == 0 && c.Buffered == 0 {
		return ev.OK
	}
	rest, ok := http.SendChain(c, u.wOut, 0, false)
	if !ok {
		return ev.Err
	}
	for cl := u.wOut; cl != nil && cl != rest; {
		ln := cl
		cl = cl.Next
		r.FreeChain(ln)
	}
	u.wOut = rest
	if rest == nil {
		u.wLast = &u.wOut
		if c.Buffered == 0 {
			return ev.OK
		}
	}
	return ev.Again
}

func sendRequestHandler(r *http.Request, u *Upstream) {
	c := u.Peer.Conn
	if c.Write.TimedOut {
		u.next(r, FTTimeout)
		return
	}
	if u.HeaderSent && !u.Conf.PreserveOutput {
		u.writeHandler = dummyHandler
		return
	}
	u.sendRequest(r, true)
}

func readRequestHandler(r *http.Request) {
	u := Of(r)
	if r.Conn.Read.TimedOut {
		r.HC.TimedOut = true
		u.finalize(r, codeRequestTimeout)
		return
	}
	u.sendRequest(r, false)
}
