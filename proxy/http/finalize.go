package http

import "nginxoracle/proxy/elog"

const (
	logAlert  = elog.Alert
	logCrit   = elog.Crit
	logError  = elog.Error
	logWarn   = elog.Warn
	logNotice = elog.Notice
	logInfo   = elog.Info
)

// Bits of Request.Buffered and ev.Conn.Buffered (ngx_http_request.h, NGX_HTTP_*_BUFFERED).
const (
	CopyBuffered     = 0x04
	WriteBuffered    = 0x10
	LowlevelBuffered = 0xf0
)

// Codes that are nginx's own (ngx_http_request.h).
const (
	codeClose          = 444
	codeHeaderTooLarge = 494
	codeCertError      = 495
	codeNoCert         = 496
	codeToHTTPS        = 497
	codeClientClosed   = 499
)

// Finalize ends the handling of a request with rc (ngx_http_finalize_request).
func (r *Request) Finalize(rc Rc) {
	c := r.Conn
	if rc == Done {
		r.finalizeConnection()
		return
	}
	if r.unsent && r.park(rc) {
		return
	}
	if rc == OK && r.FilterFinalize {
		c.Error = true
	}
	if rc == Declined {
		r.ContentHandler = nil
		r.WriteHandler = runPhases
		r.RunPhases()
		return
	}
	if r != r.Main && r.PostSub != nil {
		rc = r.PostSub.Handler(r, r.PostSub.Data, rc)
	}
	if rc == Error || rc == 408 || rc == codeClientClosed || c.Error {
		if r.postAction() == OK {
			return
		}
		r.terminate(rc)
		return
	}
	if rc >= 300 || rc == 201 || rc == 204 {
		if rc == codeClose {
			r.HC.TimedOut = true
			r.terminate(rc)
			return
		}
		if r == r.Main {
			if c.Read.TimerSet {
				c.Loop.DelTimer(&c.Read)
			}
			if c.Write.TimerSet {
				c.Loop.DelTimer(&c.Write)
			}
		}
		c.Read.Handler = requestHandler
		c.Write.Handler = requestHandler
		r.Finalize(r.SpecialResponse(rc))
		return
	}
	if r != r.Main {
		r.finalizeSub()
		return
	}
	if r.Buffered != 0 || c.Buffered != 0 || r.Postponed != nil {
		if r.Postponed != nil {
			r.holdFiles()
		}
		if r.SetWriteHandler() != OK {
			r.terminate(0)
		}
		return
	}
	if c.Data != any(r) {
		c.Log.Err(logAlert, nil, "http finalize non-active request: \"%s?%s\"", r.URI, r.Args)
		return
	}
	r.Done = true
	r.ReadHandler = BlockReading
	r.WriteHandler = requestEmptyHandler
	if !r.PostAction {
		r.RequestComplete = true
	}
	if r.postAction() == OK {
		return
	}
	if c.Read.TimerSet {
		c.Loop.DelTimer(&c.Read)
	}
	if c.Write.TimerSet {
		c.Write.Delayed = false
		c.Loop.DelTimer(&c.Write)
	}
	r.finalizeConnection()
}

// finalizeSub ends a subrequest: its parent goes on, when it was its turn to be sent.
func (r *Request) finalizeSub() {
	r.holdFiles()
	c := r.Conn
	if r.Buffered != 0 || r.Postponed != nil {
		if r.SetWriteHandler() != OK {
			r.terminate(0)
		}
		return
	}
	pr := r.Parent
	if c.Data == any(r) || r.Background {
		if !r.Logged {
			if r.Core.LogSubrequest > 0 {
				r.logRequest()
			}
			r.Logged = true
		} else {
			c.Log.Err(logAlert, nil, "subrequest: \"%s?%s\" logged again", r.URI, r.Args)
		}
		r.Done = true
		if r.Background {
			r.finalizeConnection()
			return
		}
		r.Main.Count--
		if pr.Postponed != nil && pr.Postponed.Request == r {
			pr.Postponed = pr.Postponed.Next
		}
		c.Data = pr
	} else {
		r.WriteHandler = requestFinalizer
		if r.Waited {
			r.Done = true
		}
	}
	pr.Post()
}

// Terminate ends a request at once, whatever it was doing (ngx_http_terminate_request).
func (r *Request) terminate(rc Rc) {
	mr := r.Main
	mr.Terminated = true
	if rc > 0 && (mr.HeadersOut.Status == 0 || mr.Conn.Sent == 0) {
		mr.HeadersOut.Status = int(rc)
	}
	mr.runCleanup()
	if mr.WriteHandler != nil {
		if mr.Blocked > 0 {
			a := r.Conn.Data.(*Request)
			a.Conn.Error = true
			a.WriteHandler = requestFinalizer
			return
		}
		mr.posted = mr.posted[:0]
		mr.WriteHandler = terminateHandler
		mr.Post()
		return
	}
	mr.closeRequest(rc)
}

func terminateHandler(r *Request) {
	r.Count = 1
	r.closeRequest(0)
}

func (r *Request) runCleanup() {
	// A cleanup may add another one; nginx takes the whole list first.
	list := r.cleanup
	r.cleanup = nil
	for i := len(list) - 1; i >= 0; i-- {
		list[i]()
		list[i] = nil
	}
	if r.cleanup == nil {
		r.cleanup = list[:0]
	}
}

// AddCleanup runs f when the request ends, before it is logged; the last added runs first
// (ngx_http_cleanup_add).
func (r *Request) AddCleanup(f func()) { r.Main.cleanup = append(r.Main.cleanup, f) }

func (r *Request) finalizeConnection() {
	clcf := r.Core
	c := r.Conn
	if r.Main.Count != 1 {
		r.holdFiles()
		if r.DiscardBody {
			r.ReadHandler = discardedBodyHandler
			c.Loop.AddTimer(&c.Read, clcf.LingeringTimeout)
			if r.LingeringTime == 0 {
				r.LingeringTime = r.now() + clcf.LingeringTime/1000
			}
		}
		r.closeRequest(0)
		return
	}
	r = r.Main
	if c.Read.EOF {
		r.closeRequest(0)
		return
	}
	if r.ReadingBody {
		r.KeepAlive = false
		r.LingeringClose = true
	}
	if !exiting(c) && r.KeepAlive && clcf.KeepaliveTimeout > 0 {
		r.setKeepalive()
		return
	}
	if clcf.LingeringClose == LingeringAlways ||
		(clcf.LingeringClose == LingeringOn &&
			(r.LingeringClose || r.headerIn.pos < r.headerIn.last || c.Read.Ready || r.HC.Pipeline)) {
		r.setLingeringClose()
		return
	}
	r.closeRequest(0)
}

// SetWriteHandler has the rest of a response sent when the client can take it
// (ngx_http_set_write_handler).
func (r *Request) SetWriteHandler() Rc {
	r.State = StateWritingRequest
	if r.DiscardBody {
		r.ReadHandler = discardedBodyHandler
	} else {
		r.ReadHandler = testReading
	}
	r.WriteHandler = writer
	wev := &r.Conn.Write
	if wev.Ready && wev.Delayed {
		return OK
	}
	if !wev.Delayed {
		r.Conn.Loop.AddTimer(wev, r.Core.SendTimeout)
	}
	if !wev.Ready {
		r.Conn.Loop.AskWrite(r.Conn, false)
	}
	return OK
}

func writer(r *Request) {
	c := r.Conn
	wev := &c.Write
	clcf := r.Main.Core
	if wev.TimedOut {
		c.Log.Err(logInfo, errTimedOut, "client timed out")
		r.HC.TimedOut = true
		r.Finalize(408)
		return
	}
	if wev.Delayed || r.Aio {
		if !wev.Delayed {
			c.Loop.AddTimer(wev, clcf.SendTimeout)
		}
		return
	}
	rc := r.OutputFilter(nil)
	if rc == Error {
		r.Finalize(rc)
		return
	}
	if r.Buffered != 0 || r.Postponed != nil || (r == r.Main && c.Buffered != 0) {
		if !wev.Delayed {
			c.Loop.AddTimer(wev, clcf.SendTimeout)
		}
		return
	}
	r.WriteHandler = requestEmptyHandler
	r.Finalize(rc)
}

func requestFinalizer(r *Request) { r.Finalize(0) }

// BlockReading is the read handler of a request that wants nothing from its client
// (ngx_http_block_reading).
func BlockReading(*Request) {}

func requestEmptyHandler(*Request) {}

func testReading(r *Request) { r.TestReading() }

// TestReading is a read handler that only looks whether the client went away
// (ngx_http_test_reading).
func (r *Request) TestReading() {
	c := r.Conn
	rev := &c.Read
	if !rev.PendingEOF || rev.Unwatched {
		return
	}
	rev.EOF = true
	c.Error = true
	err := c.Loop.Sys.SockError(c.FD)
	if err != nil {
		rev.Error = true
	}
	c.Log.Err(logInfo, err, "client prematurely closed connection")
	r.Finalize(codeClientClosed)
}

// postAction starts post_action's request once the response is out (ngx_http_post_action).
func (r *Request) postAction() Rc {
	clcf := r.Core
	if clcf.PostAction == "" {
		return Declined
	}
	if r.PostAction && r.URIChanges == 0 {
		return Declined
	}
	r.holdFiles()
	r.Main.Count--
	r.Version = HTTP9
	r.HeaderOnly = true
	r.PostAction = true
	r.ReadHandler = BlockReading
	if clcf.PostAction[0] == '/' {
		r.InternalRedirect([]byte(clcf.PostAction), nil)
	} else {
		r.NamedLocation([]byte(clcf.PostAction))
	}
	return OK
}

// closeRequest drops one reference; the last one frees the request and closes the connection
// (ngx_http_close_request).
func (r *Request) closeRequest(rc Rc) {
	r = r.Main
	c := r.Conn
	if r.Count == 0 {
		c.Log.Err(logAlert, nil, "http request count is zero")
	}
	r.Count--
	if r.Count != 0 || r.Blocked != 0 {
		return
	}
	r.free(rc)
	closeConnection(c)
}

// free ends a request: cleanups, log, memory (ngx_http_free_request).
func (r *Request) free(rc Rc) {
	c := r.Conn
	if r.freed {
		c.Log.Err(logAlert, nil, "http request already closed")
		return
	}
	r.runCleanup()
	r.setStat(statNone)
	if rc > 0 && (r.HeadersOut.Status == 0 || c.Sent == 0) {
		r.HeadersOut.Status = int(rc)
	}
	if !r.Logged {
		c.Log.Action = "logging request"
		r.logRequest()
	}
	c.Log.Action = "closing request"
	if r.HC.TimedOut && r.Core.ResetTimedoutConnection > 0 {
		if err := c.LingerReset(); err != nil {
			c.Log.Err(logAlert, err, "setsockopt(SO_LINGER) failed")
		}
	}
	r.HC.log.request = nil
	c.Destroyed = true
	r.freed = true
	r.removeTempFiles()
	r.runLast()
	r.pool.reset()
	r.HC.worker.putRequest(r)
}

func (r *Request) logRequest() {
	r.Conn.Loop.Flush()
	for _, h := range r.CoreMain().Phases[LogPhase] {
		h(r)
	}
}
