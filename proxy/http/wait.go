package http

import "nginxoracle/proxy/ev"

// waitMost is how large a response may be that waits for others: of those that go out with one send.
const waitMost = 2048

// answer runs a handler whose result is what the request is finalized with, and nothing else depends on.
func (r *Request) answer(h Handler) Rc {
	r.direct = r == r.Main && r.Count == 1
	rc := h(r)
	r.direct = false
	return rc
}

// mayWait reports a response that can be sent a little later (ev.Loop.SendLater): it is whole, in memory and
// short, and nobody but its own connection has to do with the request.
func (r *Request) mayWait(s *outState) bool {
	c := r.Conn
	return !s.inFile && s.size <= waitMost && r.Count == 1 && !r.unsent &&
		c.Write.Ready && c.Buffered == 0 && c.IO == ev.Plain && r.LimitRate == 0 &&
		r.Upstream == nil && r.Postponed == nil && len(r.cleanup) == 0 && len(r.posted) == 0 && r.Blocked == 0 &&
		!r.DiscardBody && !r.ReadingBody && !r.FilterFinalize && r.Core.PostAction == ""
}

// park lets a request wait for its response to be sent; false: it was sent now, because rc asks for more than the end.
func (r *Request) park(rc Rc) bool {
	c := r.Conn
	if rc == OK && c.Data == any(r) && !c.Error {
		r.parked = true
		r.ReadHandler, r.WriteHandler = BlockReading, requestEmptyHandler
		return true
	}
	c.Loop.Flush()
	return false
}

// SendNow sends the response and ends the request as its handler would have with what came of the sending.
func (r *Request) SendNow() {
	if r.freed {
		return
	}
	c := r.Conn
	parked := r.parked
	r.unsent, r.parked = false, false
	r.SetLogRequest()
	rc := writeFilter(r, nil)
	if rc == Error {
		c.Error = true
	}
	if parked {
		r.Finalize(rc)
		RunPosted(c)
	}
}
