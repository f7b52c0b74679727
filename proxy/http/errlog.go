package http

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
)

// UpstreamLog is what an upstream adds to the error log's context: `, upstream: "…"`.
type UpstreamLog interface {
	AppendUpstream(b []byte) []byte
}

// logCtx is the context of a client connection's log (ngx_http_log_ctx_t).
type logCtx struct {
	conn    *ev.Conn
	request *Request // the main request, nil between requests
	current *Request
	off     bool // log->handler == NULL: the entry stands alone
}

// AppendLog writes the context of an entry (ngx_http_log_error).
func (x *logCtx) AppendLog(b []byte) []byte {
	if x.off {
		return b
	}
	c := x.conn
	b = append(append(b, ", client: "...), c.PeerText...)
	r := x.request
	if r == nil {
		return append(append(b, ", server: "...), c.Listener.Text...)
	}
	b = append(append(b, ", server: "...), r.CoreSrv().ServerName...)
	if line := r.RequestLineSeen(); len(line) > 0 {
		b = append(append(append(b, ", request: \""...), line...), '"')
	}
	sr := x.current
	if sr == nil {
		sr = r
	}
	if sr != r {
		b = append(append(append(b, ", subrequest: \""...), sr.URI...), '"')
	}
	if u, ok := sr.Upstream.(UpstreamLog); ok {
		b = u.AppendUpstream(b)
	}
	if h := r.HeadersIn.Host; h != nil {
		b = append(append(append(b, ", host: \""...), h.Value...), '"')
	}
	if h := r.HeadersIn.Referer; h != nil {
		b = append(append(append(b, ", referrer: \""...), h.Value...), '"')
	}
	return b
}

// setLog points the connection's log at the error_log of a level (ngx_set_connection_log).
func setLog(c *ev.Conn, clcf *CoreLoc) {
	if s, ok := clcf.ErrorLog.(elog.Sink); ok {
		c.Log.Sink = s
	}
}

// SetLogRequest names the request that runs now in the log's context (ngx_http_set_log_request).
func (r *Request) SetLogRequest() { r.HC.log.current = r }
