package upstream

import (
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
)

// InvalidHeader is what a protocol's ProcessHeader returns for an answer that is not in
// its language (NGX_HTTP_UPSTREAM_INVALID_HEADER).
const InvalidHeader http.Rc = 40

// Codes that are nginx's own or have a meaning here.
const (
	codeRequestTimeout = 408
	codeClientClosed   = 499
	codeInternal       = 500
	codeBadGateway     = 502
	codeUnavailable    = 503
	codeGatewayTimeout = 504
	codeTooMany        = 429
	specialResponse    = 300
)

// Protocol is how requests to an upstream and its answers are written: HTTP/1, FastCGI, …
// (the hooks of ngx_http_upstream_t).
type Protocol interface {
	// CreateRequest fills u.RequestBufs and u.URI.
	CreateRequest(r *http.Request, u *Upstream) http.Rc
	// ReinitRequest makes ready for the next peer.
	ReinitRequest(r *http.Request, u *Upstream) http.Rc
	// ProcessHeader reads u.Buffer.Data, consuming it: OK when the header is complete, Again,
	// InvalidHeader or Error.
	ProcessHeader(r *http.Request, u *Upstream) http.Rc
	// InputFilterInit is called when the header has been sent.
	InputFilterInit(r *http.Request, u *Upstream) http.Rc
	// PipeFilter takes what has been read into buf to u.Pipe's chain (buffered answers).
	PipeFilter(p *Pipe, buf *http.Buf) http.Rc
	// Filter takes the n bytes that stand behind u.Buffer.Data to u.OutBufs (unbuffered answers).
	Filter(r *http.Request, u *Upstream, n int) http.Rc
	// FinalizeRequest is told the result.
	FinalizeRequest(r *http.Request, u *Upstream, rc http.Rc)
}

// State is what the log's variables know of one peer that was tried
// (ngx_http_upstream_state_t). Times are milliseconds, -1 = none.
type State struct {
	Status                                int
	ResponseTime, ConnectTime, HeaderTime int64
	ResponseLength                        int64
	BytesReceived, BytesSent              int64
	Peer                                  []byte // nil separates internal redirects

}

// States is the list of a request, over its internal redirects.
type States struct {
	List []State
	kept bool // given back to the worker
}

// HeadersIn is the header of an answer (ngx_http_upstream_headers_in_t).
type HeadersIn struct {
	Headers  []*http.Header
	Trailers []*http.Header

	StatusN    int
	StatusLine []byte

	Status, Date, Server, Connection                                 *http.Header
	Expires, ETag, XAccelExpires, XAccelRedirect, XAccelLimitRate    *http.Header
	ContentType, ContentLength, LastModified, Location, Refresh      *http.Header
	WWWAuthenticate, TransferEncoding, Vary, CacheControl, SetCookie *http.Header
	ContentLengthN, LastModifiedTime                                 int64
	ConnectionClose, Chunked                                         bool
}

// Resolved is an upstream that a proxy_pass with variables named (ngx_http_upstream_resolved_t).
type Resolved struct {
	Host   string
	Port   int
	NoPort bool
	Addr   *NamedAddr
	cancel func()
}

type handler func(r *http.Request, u *Upstream)

// Upstream is a request's exchange with an upstream (ngx_http_upstream_t).
type Upstream struct {
	R     *http.Request
	Proto Protocol

	readHandler, writeHandler handler

	Peer Peer
	Pipe Pipe

	RequestBufs *http.Chain
	// OutputFilter writes a part of the request; nil is ChainWriter.
	OutputFilter func(r *http.Request, u *Upstream, in *http.Chain) int
	copies       http.OutputChain // of a body that is in a file
	wOut         *http.Chain
	wLast        **http.Chain

	Conf *Conf
	srv  *SrvConf

	HeadersIn HeadersIn
	Resolved  *Resolved

	fromClient http.Buf
	Buffer     http.Buf // Data is what has not been taken, Start all of it
	Length     int64    // of an unbuffered answer: what is left, -1 = until close

	OutBufs, busyBufs, FreeBufs *http.Chain
	Tag                         any

	RewriteRedirect func(r *http.Request, h *http.Header, prefix int) http.Rc
	RewriteCookie   func(r *http.Request, h *http.Header) http.Rc

	startTime int64
	State     *State
	states    *States
	Method    []byte
	Schema    []byte
	URI       []byte

	cleanup   bool // not yet finalized
	cleanupFn func()
	w         *worker

	Store, Buffering, Keepalive, Upgrade, Error           bool
	requestSent, RequestBodySent, bodyBlocked, HeaderSent bool
	ssl                                                   bool

	mem       []byte   // Buffer's memory, kept for the next request
	clientMem []byte   // fromClient's
	raw       [][]byte // the pipe's buffers
	ReqMem    []byte   // the request header's memory, for protocols
}

// AppendUpstream is the error log's context (ngx_http_log_error_handler).
func (u *Upstream) AppendUpstream(b []byte) []byte {
	if u.Peer.Name == nil {
		return b
	}
	b = append(b, `, upstream: "`...)
	b = append(b, u.Schema...)
	b = append(b, u.Peer.Name...)
	if u.Peer.Addr != nil && u.Peer.Addr.Family == syscall.AF_UNIX {
		b = append(b, ':')
	}
	b = append(b, u.URI...)
	return append(b, '"')
}

// Of gives the request's upstream, nil when it has none.
func Of(r *http.Request) *Upstream {
	u, _ := r.Upstream.(*Upstream)
	return u
}

// New starts an exchange; one that a request still has is finalized first
// (ngx_http_upstream_create).
func New(r *http.Request) *Upstream {
	if u := Of(r); u != nil && u.cleanup {
		r.Main.Count++
		u.finalize(r, http.Done)
	}
	w := workerOf(r.Conn.Loop)
	u := w.get()
	u.R = r
	u.Peer.Log = r.Conn.Log
	u.Peer.Loop = r.Conn.Loop
	u.HeadersIn.ContentLengthN = -1
	u.HeadersIn.LastModifiedTime = -1
	r.Upstream = u
	// its memory is given back when the request is freed
	r.AddCleanup(u.cleanupFn)
	return u
}

// Init runs once the request body has been read (ngx_http_upstream_init).
func Init(r *http.Request) {
	if r.Conn.Read.TimerSet {
		r.Conn.Loop.DelTimer(&r.Conn.Read)
	}
	// A post_action may run while what reads the header is still called: it meets the client's end again.
	r.Conn.Loop.AskWrite(r.Conn, r.PostAction)
	u := Of(r)
	u.initRequest(r)
}

func (u *Upstream) initRequest(r *http.Request) {
	u.Store = u.Conf.Store > 0
	if !u.Store && !r.PostAction && u.Conf.IgnoreClientAbort <= 0 {
		if r.Conn.Read.Ready {
			r.Conn.Loop.Post(&r.Conn.Read)
		}
		r.Conn.Read.Watch()
		r.ReadHandler = readCheckBroken
		r.WriteHandler = writeCheckBroken
	}
	if r.Body != nil {
		u.RequestBufs = r.Body.Bufs
	}
	if u.Proto.CreateRequest(r, u) != http.OK {
		r.Finalize(codeInternal)
		return
	}
	if u.setLocal(r) != http.OK {
		r.Finalize(codeInternal)
		return
	}
	u.Peer.Keepalive = u.Conf.SocketKeepalive > 0

	if st, _ := r.UpstreamStates.(*States); st == nil {
		u.states = u.w.newStates()
		r.UpstreamStates = u.states
		u.State = nil
	} else {
		u.states = st
		u.pushState()
	}
	u.cleanup = true

	if u.Resolved != nil {
		u.initResolved(r)
		return
	}
	u.useUpstream(r, u.Conf.Upstream)
}

// useUpstream starts choosing among the servers of us.
func (u *Upstream) useUpstream(r *http.Request, us *SrvConf) {
	if us == nil {
		r.Conn.Log.Err(elog.Alert, nil, "no upstream configuration")
		u.finalize(r, codeInternal)
		return
	}
	u.srv = us
	if us.PeerInit(r, u, us) != http.OK {
		u.finalize(r, codeInternal)
		return
	}
	u.start(r)
}

func (u *Upstream) start(r *http.Request) {
	u.Peer.StartTime = r.Conn.Loop.Mono()
	if n := u.Conf.NextUpstreamTries; n > 0 && u.Peer.Tries > n {
		u.Peer.Tries = n
	}
	u.connect(r)
}

func (u *Upstream) pushState() {
	u.states.List = append(u.states.List, State{})
	u.State = &u.states.List[len(u.states.List)-1]
}

// connect chooses a peer and connects to it (ngx_http_upstream_connect).
func (u *Upstream) connect(r *http.Request) {
	now := r.Conn.Loop.Mono()
	r.Conn.Log.Action = "connecting to upstream"
	if u.State != nil && u.State.ResponseTime == -1 {
		u.State.ResponseTime = now - u.startTime
	}
	u.pushState()
	u.startTime = now
	u.State.ResponseTime, u.State.ConnectTime, u.State.HeaderTime = -1, -1, -1

	rc := u.Peer.connect()
	if rc == ev.Err {
		u.finalize(r, codeInternal)
		return
	}
	u.State.Peer = u.Peer.Name
	if rc == ev.Busy {
		r.Conn.Log.Err(elog.Error, nil, "no live upstreams")
		u.next(r, FTNoLive)
		return
	}
	if rc == ev.Declined {
		u.next(r, FTError)
		return
	}

	c := u.Peer.Conn
	c.Requests++
	c.Data = r
	c.Write.Handler = eventHandler
	c.Read.Handler = eventHandler
	u.writeHandler = sendRequestHandler
	u.readHandler = processHeader
	c.Log = r.Conn.Log
	if r.Conn.TCPNopush == ev.TCPDisabled {
		c.TCPNopush = ev.TCPDisabled
	}
	u.wOut, u.wLast = nil, &u.wOut

	if u.requestSent && u.reinit(r) != http.OK {
		u.finalize(r, codeInternal)
		return
	}
	u.spareCopies(r)
	u.requestSent, u.RequestBodySent, u.bodyBlocked = false, false, false
	if rc == ev.Again {
		c.Loop.AddTimer(&c.Write, u.Conf.ConnectTimeout)
		return
	}
	u.sendRequest(r, true)
}

// eventHandler gets the events of the connection to the upstream (ngx_http_upstream_handler).
func eventHandler(e *ev.Event) {
	r := e.Conn.Data.(*http.Request)
	u := Of(r)
	c := r.Conn
	r.SetLogRequest()
	if e.Delayed && e.TimedOut {
		e.Delayed = false
		e.TimedOut = false
	}
	if e.Write {
		u.writeHandler(r, u)
	} else {
		u.readHandler(r, u)
	}
	http.RunPosted(c)
}

// reinit makes the request ready to be sent again (ngx_http_upstream_reinit).
func (u *Upstream) reinit(r *http.Request) http.Rc {
	if u.Proto.ReinitRequest(r, u) != http.OK {
		return http.Error
	}
	u.Keepalive, u.Upgrade, u.Error = false, false, false
	u.HeadersIn = HeadersIn{Headers: u.HeadersIn.Headers[:0], Trailers: u.HeadersIn.Trailers[:0], ContentLengthN: -1, LastModifiedTime: -1}

	pos := int64(0)
	for cl := u.RequestBufs; cl != nil; cl = cl.Next {
		if cl.Buf.Start != nil {
			cl.Buf.Data = cl.Buf.Start
		}
		// there is at most one file
		if cl.Buf.InFile {
			cl.Buf.FilePos = pos
			pos = cl.Buf.FileLast
		}
	}
	u.copies.Again(r != r.Main && r.Body != nil && r.Body.TempFile != nil)
	u.Buffer.Data = u.Buffer.Start[:0]
	return http.OK
}

func readCheckBroken(r *http.Request)  { checkBroken(r, &r.Conn.Read) }
func writeCheckBroken(r *http.Request) { checkBroken(r, &r.Conn.Write) }

// checkBroken gives up when the client has gone (ngx_http_upstream_check_broken_connection).
func checkBroken(r *http.Request, e *ev.Event) {
	c := r.Conn
	u := Of(r)
	if c.Error {
		u.finalize(r, codeClientClosed)
		return
	}
	if !e.PendingEOF {
		return
	}
	e.EOF = true
	c.Error = true
	err := c.Loop.Sys.SockError(c.FD)
	if err != nil {
		e.Error = true
	}
	if u.Peer.Conn != nil {
		c.Log.Err(elog.Info, err, "epoll_wait() reported that client prematurely closed connection, so upstream connection is closed too")
	} else {
		c.Log.Err(elog.Info, err, "epoll_wait() reported that client prematurely closed connection")
	}
	u.finalize(r, codeClientClosed)
}
