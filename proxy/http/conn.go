package http

import (
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
)

const errTimedOut = syscall.ETIMEDOUT

// Values of lingering_close, satisfy, keepalive_disable (ngx_http_core_module.h).
const (
	LingeringOff    = 0
	LingeringOn     = 1
	LingeringAlways = 2

	SatisfyAll = 0
	SatisfyAny = 1

	KeepaliveDisableNone   = 0x0002
	KeepaliveDisableMSIE6  = 0x0004
	KeepaliveDisableSafari = 0x0008
)

const lingeringBuffer = 4096 // NGX_HTTP_LINGERING_BUFFER_SIZE, NGX_HTTP_DISCARD_BUFFER_SIZE

// hbuf is a buffer that is read into: b[pos:last] is what nobody has taken yet.
type hbuf struct {
	b                []byte
	start, pos, last int
}

func (h *hbuf) unread() []byte { return h.b[h.pos:h.last] }

// Connection is the http part of a client's connection (ngx_http_connection_t, and what
// ngx_connection_t holds for http).
type Connection struct {
	AddrConf      *ConfAddr
	ConfCtx       *ConfCtx
	SSL           bool
	ProxyProtocol bool

	TimedOut bool // the client was too slow: reset_timedout_connection
	Pipeline bool // a request came behind another one
	Sendfile bool // sendfile is on in the current location

	buf        *hbuf   // client_header_buffer_size; nil while nothing comes
	busy, free []*hbuf // large_client_header_buffers; the last is the newest
	nbusy      int
	log        logCtx
	elog       elog.Log
	worker     *worker
}

// worker is what the connections of one loop share: values to use again.
type worker struct {
	reqs    []*Request
	conns   []*Connection
	bufs    []*hbuf // of client_header_buffer_size
	scratch [lingeringBuffer]byte
	large   [largeKinds][][]byte
}

func (cm *CoreMain) workerState() *worker {
	if cm.worker == nil {
		cm.worker = &worker{}
	}
	return cm.worker
}

const keepFree = 512 // requests and connections kept for use again

func (w *worker) getConn() *Connection {
	if n := len(w.conns); n > 0 {
		hc := w.conns[n-1]
		w.conns = w.conns[:n-1]
		return hc
	}
	return &Connection{worker: w}
}

func (w *worker) putConn(hc *Connection) {
	if len(w.conns) == keepFree {
		return
	}
	hc.idle()
	*hc = Connection{worker: w, busy: hc.busy[:0], free: hc.free[:0]}
	w.conns = append(w.conns, hc)
}

func (w *worker) getRequest() *Request {
	if n := len(w.reqs); n > 0 {
		r := w.reqs[n-1]
		w.reqs = w.reqs[:n-1]
		return r
	}
	return &Request{pool: &pool{worker: w}}
}

func (w *worker) putRequest(r *Request) {
	if len(w.reqs) < keepFree {
		w.reqs = append(w.reqs, r)
	}
}

// InitConnection is the handler of http listeners: it finds the server of the address and waits
// for a request (ngx_http_init_connection).
func InitConnection(c *ev.Conn) {
	port := c.Listener.Data.(*ConfPort)
	i := 0
	if n := len(port.Addrs); n > 1 {
		// The last address is the wildcard; the others are told apart by where the client came to.
		local, err := c.LocalAddr()
		if err != nil {
			closeConnection(c)
			return
		}
		for i < n-1 && port.Addrs[i].Addr.IP != local.IP {
			i++
		}
	}
	addr := port.Addrs[i]
	ctx := addr.Default.Ctx
	w := ctx.Main[0].(*CoreMain).workerState()
	hc := w.getConn()
	hc.AddrConf, hc.ConfCtx = addr, ctx
	hc.log = logCtx{conn: c}
	hc.elog = elog.Log{Conn: c.Number, Action: "waiting for request", Ctx: &hc.log}
	if c.Log != nil {
		hc.elog.Sink, hc.elog.All = c.Log.Sink, c.Log.All
	}
	c.Log = &hc.elog
	c.Data = hc
	c.LogError = ev.ErrorInfo
	rev := &c.Read
	rev.Handler = waitRequestHandler
	c.Loop.Ahead = ahead
	c.Write.Handler = emptyHandler
	if addr.ProxyProtocol {
		hc.ProxyProtocol = true
		hc.elog.Action = "reading PROXY protocol"
	}
	if c.Loop.Add(c) != nil {
		closeConnection(c)
		return
	}
	if rev.Ready { // deferred accept
		rev.Handler(rev)
		return
	}
	c.Loop.AddTimer(rev, ctx.Srv[0].(*CoreSrv).ClientHeaderTimeout)
	c.Loop.Reusable(c, true)
}

func emptyHandler(*ev.Event) {}

// headerBuf gives the connection its first buffer, of client_header_buffer_size.
func (hc *Connection) headerBuf(size int64) *hbuf {
	if hc.buf != nil {
		return hc.buf
	}
	w := hc.worker
	if n := len(w.bufs); n > 0 {
		hc.buf = w.bufs[n-1]
		w.bufs = w.bufs[:n-1]
		if int64(len(hc.buf.b)) == size {
			return hc.buf
		}
	}
	hc.buf = &hbuf{b: ev.Bytes(size)}
	return hc.buf
}

// idle takes back the memory of a connection on which nothing comes.
func (hc *Connection) idle() {
	hc.free, hc.busy, hc.nbusy = dropBufs(hc.free), dropBufs(hc.busy), 0
	b := hc.buf
	if b == nil {
		return
	}
	hc.buf = nil
	b.pos, b.last = 0, 0
	if w := hc.worker; len(w.bufs) < keepFree {
		w.bufs = append(w.bufs, b)
	}
}

func waitRequestHandler(rev *ev.Event) {
	c := rev.Conn
	hc := c.Data.(*Connection)
	if rev.TimedOut {
		c.Log.Err(logInfo, errTimedOut, "client timed out")
		closeConnection(c)
		return
	}
	if c.Close {
		closeConnection(c)
		return
	}
	cscf := hc.ConfCtx.Srv[0].(*CoreSrv)
	b := hc.headerBuf(cscf.ClientHeaderBufferSize)
	n := c.Recv(b.b[b.last:])
	switch {
	case n == ev.Again:
		rev.Watch()
		hc.idle()
		if !rev.TimerSet {
			c.Loop.AddTimer(rev, cscf.ClientHeaderTimeout)
			c.Loop.Reusable(c, true)
		}
		return
	case n == ev.Err:
		closeConnection(c)
		return
	case n == 0:
		c.Log.Err(logInfo, nil, "client closed connection")
		closeConnection(c)
		return
	}
	b.last += n
	c.Log.Action = "reading client request line"
	c.Loop.Reusable(c, false)
	c.Data = createRequest(c)
	rev.Handler = processRequestLine
	processRequestLine(rev)
}

// createRequest begins a request on the connection (ngx_http_create_request).
func createRequest(c *ev.Conn) *Request {
	var hc *Connection
	switch d := c.Data.(type) {
	case *Connection:
		hc = d
	case *Request:
		hc = d.HC
	}
	r := hc.worker.getRequest()
	keep := r.pool
	headers, out, trailers := r.HeadersIn.Headers[:0], r.HeadersOut.Headers[:0], r.HeadersOut.Trailers[:0]
	ctx, vars, hdr, uri := r.ctx, r.Variables, r.hdr, r.uriBuf
	cleanup, posted, capt := r.cleanup[:0], r.posted[:0], r.Captures[:0]
	*r = Request{} // and then field by field: a literal would be made elsewhere and copied
	r.pool, r.HC, r.Conn, r.Log = keep, hc, c, c.Log
	r.MainConf, r.SrvConf = hc.ConfCtx.Main, hc.ConfCtx.Srv
	r.ReadHandler = BlockReading
	r.Method, r.Version = UNKNOWN, HTTP10
	r.Count, r.URIChanges, r.Subrequests = 1, maxURIChanges+1, maxSubrequests+1
	r.State = StateReadingRequest
	r.hdr, r.uriBuf, r.cleanup, r.posted, r.Captures = hdr, uri, cleanup, posted, capt
	r.HeadersIn.Headers, r.HeadersOut.Headers, r.HeadersOut.Trailers = headers, out, trailers
	r.HeadersIn.ContentLengthN, r.HeadersIn.KeepAliveN = -1, -1
	r.HeadersOut.ContentLengthN, r.HeadersOut.LastModifiedTime = -1, -1
	r.Main = r
	r.setLoc(hc.ConfCtx.Loc)
	if len(ctx) != len(Modules) {
		ctx = make([]any, len(Modules))
	} else {
		clear(ctx)
	}
	r.ctx = ctx
	if n := len(r.CoreMain().Variables); cap(vars) < n {
		vars = make([]VarValue, n)
	} else {
		vars = vars[:n]
		clear(vars)
	}
	r.Variables = vars
	r.StartSec, r.StartMsec = c.Loop.Now()
	r.setStat(statReading)
	ev.Stats.Requests.Add(1)
	if n := len(hc.busy); n > 0 {
		r.headerIn = hc.busy[n-1]
	} else {
		r.headerIn = hc.buf
	}
	c.Requests++
	setLog(c, r.Core)
	hc.log.request, hc.log.current = r, r
	return r
}

const (
	maxURIChanges  = 10 // NGX_HTTP_MAX_URI_CHANGES
	maxSubrequests = 50 // NGX_HTTP_MAX_SUBREQUESTS
)

func (r *Request) setLoc(loc []any) {
	r.LocConf = loc
	r.Core = loc[0].(*CoreLoc)
}

func (r *Request) clearCtx() {
	clear(r.ctx)
	r.copy, r.copySet = OutputChain{}, false
	r.chunkFree, r.chunkBusy = nil, nil
}

func (r *Request) now() int64 {
	sec, _ := r.Conn.Loop.Now()
	return sec
}

// exiting reports a worker that shuts down gracefully (ngx_exiting).
func exiting(c *ev.Conn) bool { return c.Loop.Exiting }

// requestHandler runs a request's handlers when its connection can be read or written
// (ngx_http_request_handler).
func requestHandler(e *ev.Event) {
	c := e.Conn
	r := c.Data.(*Request)
	r.SetLogRequest()
	if c.Close {
		r.Main.Count++
		r.terminate(0)
		RunPosted(c)
		return
	}
	if e.Delayed && e.TimedOut {
		e.Delayed, e.TimedOut = false, false
	}
	switch {
	case !e.Write:
		r.ReadHandler(r)
	case r.WriteHandler != nil: // a request refused by its headers has none; nginx has not asked for the event then
		r.WriteHandler(r)
	}
	RunPosted(c)
}

// RunPosted runs the requests of a connection that were posted (ngx_http_run_posted_requests).
// Whoever calls a request's functions from outside its handlers calls this afterwards.
func RunPosted(c *ev.Conn) {
	for !c.Destroyed {
		r, ok := c.Data.(*Request)
		if !ok || len(r.Main.posted) == 0 {
			return
		}
		m := r.Main
		r = m.posted[0]
		m.posted = append(m.posted[:0], m.posted[1:]...)
		r.SetLogRequest()
		r.WriteHandler(r)
	}
}

// Post has the request's write handler run when the present handler is done (ngx_http_post_request).
func (r *Request) Post() { r.Main.posted = append(r.Main.posted, r) }

func closeConnection(c *ev.Conn) {
	var hc *Connection
	switch d := c.Data.(type) {
	case *Connection:
		hc = d
	case *Request:
		hc = d.HC
	}
	c.Destroyed = true
	ev.Stats.Active.Add(-1)
	c.Loop.CloseConn(c)
	if hc != nil {
		hc.worker.putConn(hc)
	}
}

// Panicked ends what a connection was about after a panic in one of its handlers: the client's
// connection is closed, what the request had open is given back, and its memory, which may be in
// any state, is not used again. c is the client's connection, or one that the request made.
func Panicked(c *ev.Conn) {
	r, ok := c.Data.(*Request)
	if !ok {
		if hc, ok := c.Data.(*Connection); ok && hc.log.conn == c && c.FD != -1 {
			closeConnection(c)
		}
		return
	}
	m := r.Main
	if m.freed {
		return
	}
	m.freed, m.Terminated = true, true
	m.setStat(statNone)
	m.runCleanup()
	m.removeTempFiles()
	m.pool.closeFiles()
	if m.Conn.FD != -1 {
		m.Conn.Destroyed = true
		ev.Stats.Active.Add(-1)
		m.Conn.Loop.CloseConn(m.Conn)
	}
}
