package upstream

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
)

// processHeader reads the answer's header (ngx_http_upstream_process_header).
func processHeader(r *http.Request, u *Upstream) {
	c := u.Peer.Conn
	c.Log.Action = "reading response header from upstream"
	if c.Read.TimedOut {
		u.next(r, FTTimeout)
		return
	}
	if !u.requestSent && !testConnect(c) {
		u.next(r, FTError)
		return
	}
	if u.Buffer.Start == nil {
		if !ev.Reserve(u.Conf.BufferSize, c.Log) {
			u.finalize(r, codeInternal)
			return
		}
		u.Buffer.Start = buffer(&u.mem, u.Conf.BufferSize)
		u.Buffer.Data = u.Buffer.Start[:0]
		u.Buffer.Temporary = true
		u.Buffer.Tag = u.Tag
	}

	var rc http.Rc
	for {
		b := &u.Buffer
		last := len(b.Data)
		n := c.Recv(b.Data[last:cap(b.Data)])
		if n == ev.Again {
			return
		}
		if n == 0 {
			c.Log.Err(elog.Error, nil, "upstream prematurely closed connection")
		}
		if n <= 0 {
			u.next(r, FTError)
			return
		}
		u.State.BytesReceived += int64(n)
		b.Data = b.Data[:last+n]

		rc = u.Proto.ProcessHeader(r, u)
		if rc != http.Again {
			break
		}
		if len(b.Data) == cap(b.Data) {
			c.Log.Err(elog.Error, nil, "upstream sent too big header")
			u.next(r, FTInvalidHeader)
			return
		}
	}
	switch rc {
	case InvalidHeader:
		u.next(r, FTInvalidHeader)
		return
	case http.Error:
		u.finalize(r, codeInternal)
		return
	}

	u.State.HeaderTime = c.Loop.Mono() - u.startTime
	if u.HeadersIn.StatusN >= specialResponse {
		if u.testNext(r) || u.intercept(r) {
			return
		}
	}
	if u.processHeaders(r) != http.OK {
		return
	}
	u.sendResponse(r)
}

// nextByStatus are the statuses for which another peer may be tried.
var nextByStatus = [...]struct{ status, mask int }{
	{500, FTHTTP500}, {502, FTHTTP502}, {503, FTHTTP503}, {504, FTHTTP504},
	{403, FTHTTP403}, {404, FTHTTP404}, {429, FTHTTP429},
}

// notIdempotent are the methods of which a repetition may do harm.
const notIdempotent = http.POST | http.LOCK | http.PATCH

// timeUp reports whether trying has taken as long as it may.
func (u *Upstream) timeUp(r *http.Request) bool {
	t := u.Conf.NextUpstreamTimeout
	return t != 0 && r.Conn.Loop.Mono()-u.Peer.StartTime >= t
}

// testNext tries the next peer when the status says so (ngx_http_upstream_test_next).
func (u *Upstream) testNext(r *http.Request) bool {
	for _, n := range nextByStatus {
		if n.status != u.HeadersIn.StatusN {
			continue
		}
		mask := n.mask
		if u.requestSent && r.Method&notIdempotent != 0 {
			mask |= FTNonIdempotent
		}
		if u.Peer.Tries > 1 && u.Conf.NextUpstream&mask == mask &&
			!(u.requestSent && r.RequestBodyNoBuffering) && !u.timeUp(r) {
			u.next(r, n.mask)
			return true
		}
		break
	}
	return false
}

// intercept answers with the page of error_page (ngx_http_upstream_intercept_errors).
func (u *Upstream) intercept(r *http.Request) bool {
	status := u.HeadersIn.StatusN
	if status == 404 && u.Conf.Intercept404 {
		u.finalize(r, 404)
		return true
	}
	if u.Conf.InterceptErrors <= 0 {
		return false
	}
	for _, p := range r.Core.ErrorPages {
		if p.Status != status {
			continue
		}
		if status == 401 {
			ph := &r.HeadersOut.WWWAuthenticate
			for h := u.HeadersIn.WWWAuthenticate; h != nil; h = h.Next {
				ho := pushOut(r, h)
				*ph = ho
				ph = &ho.Next
			}
		}
		u.finalize(r, http.Rc(status))
		return true
	}
	return false
}

// sendResponse sends the header and starts on the body (ngx_http_upstream_send_response).
func (u *Upstream) sendResponse(r *http.Request) {
	rc := r.SendHeader()
	if rc == http.Error || rc > http.OK || r.PostAction {
		u.finalize(r, rc)
		return
	}
	u.HeaderSent = true
	if u.Upgrade {
		u.upgrade(r)
		return
	}
	if r.HeaderOnly {
		if !u.Buffering || !u.Store {
			u.finalize(r, rc)
			return
		}
		u.Pipe.downstreamError = true
	}
	if t := r.Body; t != nil && t.TempFile != nil && r == r.Main && !r.PreserveBody && !u.Conf.PreserveOutput {
		// One that is deleted at the end stays open until then: nginx looks for the other kind only, and forgets both.
		f := &t.TempFile.File
		if t.TempFile.Clean {
			r.NewFile(f.FD, f.Name)
		} else if f.FD >= 0 {
			ev.CloseFD(f.FD)
		}
		f.FD = -1
	}
	if !u.Buffering {
		u.startUnbuffered(r)
		return
	}

	p := &u.Pipe
	p.start(r, u)
	if u.Proto.InputFilterInit(r, u) != http.OK {
		u.finalize(r, http.Error)
		return
	}
	u.readHandler = processUpstream
	r.WriteHandler = processDownstream
	processUpstream(r, u)
}

// processDownstream gets the client's write events while an answer is piped
// (ngx_http_upstream_process_downstream).
func processDownstream(r *http.Request) {
	u := Of(r)
	c := r.Conn
	c.Log.Action = "sending to client"
	if c.Write.TimedOut {
		u.Pipe.downstreamError = true
		r.HC.TimedOut = true
		c.Fault(errTimedOut, "client timed out")
	} else {
		if c.Write.Delayed {
			return
		}
		if !u.Pipe.run(true) {
			u.finalize(r, http.Error)
			return
		}
	}
	u.processRequest(r)
}

// processUpstream gets the upstream's read events while an answer is piped
// (ngx_http_upstream_process_upstream).
func processUpstream(r *http.Request, u *Upstream) {
	c := u.Peer.Conn
	c.Log.Action = "reading upstream"
	if c.Read.TimedOut {
		u.Pipe.upstreamError = true
		c.Fault(errTimedOut, "upstream timed out")
	} else {
		if c.Read.Delayed {
			return
		}
		if !u.Pipe.run(false) {
			u.finalize(r, http.Error)
			return
		}
	}
	u.processRequest(r)
}

// processRequest ends the exchange when the pipe has (ngx_http_upstream_process_request).
func (u *Upstream) processRequest(r *http.Request) {
	p := &u.Pipe
	if u.Peer.Conn != nil {
		if u.Store && (p.upstreamEOF || p.UpstreamDone) {
			tf := &p.tempFile
			if u.HeadersIn.StatusN == 200 && (p.UpstreamDone || p.Length == -1) &&
				(u.HeadersIn.ContentLengthN == -1 || u.HeadersIn.ContentLengthN == tf.Offset) {
				u.store(r)
			}
		}
		if p.UpstreamDone || p.upstreamEOF || p.upstreamError {
			if p.UpstreamDone || p.upstreamEOF && p.Length == -1 {
				u.finalize(r, http.OK)
				return
			}
			if p.upstreamEOF {
				r.Conn.Log.Err(elog.Error, nil, "upstream prematurely closed connection")
			}
			u.finalize(r, codeBadGateway)
			return
		}
	}
	if p.downstreamError && !u.Store && u.Peer.Conn != nil {
		u.finalize(r, http.Error)
	}
}
