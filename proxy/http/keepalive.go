package http

import (
	"syscall"

	"nginxoracle/proxy/ev"
)

// setKeepalive ends a request and goes on with its connection: at once when another request is
// in the buffer already, else when it comes (ngx_http_set_keepalive).
func (r *Request) setKeepalive() {
	c := r.Conn
	hc := r.HC
	rev, wev := &c.Read, &c.Write
	clcf := r.Core
	c.Log.Action = "closing request"
	b := r.headerIn
	if b.pos < b.last && b != hc.buf {
		// The pipelined request stays in its large buffer; the others are free again.
		for _, f := range hc.busy {
			if f != b {
				f.pos, f.last = 0, 0
				hc.free = append(hc.free, f)
			}
		}
		hc.busy = append(hc.busy[:0], b)
		hc.nbusy = 1
	}
	r.KeepAlive = false // against coming here again from a cleanup
	r.free(0)
	c.Data = hc
	wev.Handler = emptyHandler
	if b.pos < b.last {
		c.Log.Action = "reading client pipelined request line"
		r = createRequest(c)
		r.Pipeline = true
		c.Data = r
		c.Sent = 0
		c.Destroyed = false
		hc.Pipeline = true
		if rev.TimerSet {
			c.Loop.DelTimer(rev)
		}
		rev.Handler = processRequestLine
		c.Loop.Post(rev)
		return
	}
	hc.idle()
	rev.Watch()
	rev.Handler = keepaliveHandler
	rev.Ahead = true
	c.Log.Action = "keepalive"
	if c.TCPNopush == ev.TCPSet {
		if err := c.Cork(false); err != nil {
			c.Fault(err, "setsockopt(!TCP_CORK) failed")
			closeConnection(c)
			return
		}
		c.TCPNopush = ev.TCPUnset
	}
	if clcf.TCPNodelay > 0 && !c.SetNodelay() {
		closeConnection(c)
		return
	}
	c.Idle = true
	c.Loop.Reusable(c, true)
	c.Loop.AddTimer(rev, clcf.KeepaliveTimeout)
	if rev.Ready {
		c.Loop.Post(rev)
	}
}

func dropBufs(l []*hbuf) []*hbuf {
	clear(l)
	return l[:0]
}

func keepaliveHandler(rev *ev.Event) {
	c := rev.Conn
	if rev.TimedOut || c.Close {
		closeConnection(c)
		return
	}
	hc := c.Data.(*Connection)
	b := hc.headerBuf(hc.ConfCtx.Srv[0].(*CoreSrv).ClientHeaderBufferSize)
	// An old MSIE closes its idle connections with a reset.
	c.LogError = ev.ErrorIgnoreReset
	c.Errno = nil
	n := c.Recv(b.b)
	rev.Ahead = false
	c.LogError = ev.ErrorInfo
	switch {
	case n == ev.Again:
		hc.idle()
		return
	case n == ev.Err:
		closeConnection(c)
		return
	case n == 0:
		hc.log.off, c.Log.Action = true, ""
		c.Log.Err(logInfo, c.Errno, "client %s closed keepalive connection", c.PeerText)
		closeConnection(c)
		return
	}
	b.last += n
	c.Log.Action = "reading client request line"
	c.Idle = false
	c.Loop.Reusable(c, false)
	c.Data = createRequest(c)
	c.Sent = 0
	c.Destroyed = false
	c.Loop.DelTimer(rev)
	rev.Handler = processRequestLine
	processRequestLine(rev)
}

// setLingeringClose shuts the sending side and reads on for a while, so that the client sees
// the answer before a reset (ngx_http_set_lingering_close).
func (r *Request) setLingeringClose() {
	c := r.Conn
	clcf := r.Core
	if r.LingeringTime == 0 {
		r.LingeringTime = r.now() + clcf.LingeringTime/1000
	}
	rev := &c.Read
	rev.Handler = lingeringHandler
	c.Write.Handler = emptyHandler
	c.Loop.Flush()
	if err := c.Loop.Sys.Shutdown(c.FD, syscall.SHUT_WR); err != nil {
		c.Fault(err, "shutdown() failed")
		r.closeRequest(0)
		return
	}
	c.Close = false
	c.Loop.Reusable(c, true)
	c.Loop.AddTimer(rev, clcf.LingeringTimeout)
	if rev.Ready {
		lingeringHandler(rev)
	}
}

func lingeringHandler(rev *ev.Event) {
	c := rev.Conn
	r := c.Data.(*Request)
	if rev.TimedOut || c.Close {
		r.closeRequest(0)
		return
	}
	timer := r.LingeringTime - r.now()
	if timer <= 0 {
		r.closeRequest(0)
		return
	}
	for {
		n := c.Recv(r.HC.worker.scratch[:])
		if n == ev.Again {
			break
		}
		if n == ev.Err || n == 0 {
			r.closeRequest(0)
			return
		}
		if !rev.Ready {
			break
		}
	}
	c.Loop.AddTimer(rev, min(timer*1000, r.Core.LingeringTimeout))
}

// ahead is where keepaliveHandler reads.
func ahead(c *ev.Conn) []byte {
	hc := c.Data.(*Connection)
	return hc.headerBuf(hc.ConfCtx.Srv[0].(*CoreSrv).ClientHeaderBufferSize).b
}
