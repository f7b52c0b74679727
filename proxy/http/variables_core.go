package http

import (
	"nginxoracle/proxy/module"
)

// The variables of ngx_http_core_module (ngx_http_variables.c, ngx_http_core_variables).

type varGet = func(r *Request, v *VarValue, data any) Rc

// text makes the getter of a value that is never missing.
func text(f func(r *Request) []byte) varGet {
	return func(r *Request, v *VarValue, _ any) Rc { return v.Set(f(r)) }
}

// bytesOf makes the getter of a value that is missing when nil.
func bytesOf(f func(r *Request) []byte) varGet {
	return func(r *Request, v *VarValue, _ any) Rc {
		if b := f(r); b != nil {
			return v.Set(b)
		}
		return v.Missing()
	}
}

// headers makes the getter of a known field: all of its lines, joined.
func headers(sep byte, f func(r *Request) *Header) varGet {
	return func(r *Request, v *VarValue, _ any) Rc { return joined(r, v, f(r), sep) }
}

// joined gives a list of fields as one text (ngx_http_variable_headers_internal).
func joined(r *Request, v *VarValue, h *Header, sep byte) Rc {
	n := 0
	for t := h; t != nil; t = t.Next {
		if t.Hash != 0 {
			n += len(t.Value) + 2
		}
	}
	if n == 0 {
		return v.Missing()
	}
	if h.Next == nil {
		return v.Set(h.Value)
	}
	n -= 2
	b := r.Alloc(n)[:0]
	for t := h; t != nil; t = t.Next {
		if t.Hash == 0 {
			continue
		}
		b = append(b, t.Value...)
		if len(b) == n {
			break
		}
		b = append(b, sep, ' ')
	}
	return v.Set(b)
}

// nothing is PROXY protocol's: connections that do not speak it have no values.
func nothing(r *Request, v *VarValue, _ any) Rc { return v.Missing() }

func no(r *Request, v *VarValue, _ any) Rc {
	*v = VarNull
	return OK
}

type coreVar struct {
	name  string
	get   varGet
	set   func(r *Request, v *VarValue, data any)
	flags int
	data  any
}

var coreVariables = []coreVar{
	{name: "http_host", get: headers(',', func(r *Request) *Header { return r.HeadersIn.Host })},
	{name: "http_user_agent", get: headers(',', func(r *Request) *Header { return r.HeadersIn.UserAgent })},
	{name: "http_referer", get: headers(',', func(r *Request) *Header { return r.HeadersIn.Referer })},
	{name: "http_via", get: headers(',', func(r *Request) *Header { return r.HeadersIn.Via })},
	{name: "http_x_forwarded_for", get: headers(',', func(r *Request) *Header { return r.HeadersIn.XForwardedFor })},
	{name: "http_cookie", get: headers(';', func(r *Request) *Header { return r.HeadersIn.Cookie })},
	{name: "content_length", get: varContentLength},
	{name: "content_type", get: headers(',', func(r *Request) *Header { return r.HeadersIn.ContentType })},
	{name: "host", get: text(varHost)},
	{name: "binary_remote_addr", get: text(varBinaryRemoteAddr)},
	{name: "remote_addr", get: text(func(r *Request) []byte { return r.str(r.Conn.PeerText) })},
	{name: "remote_port", get: text(func(r *Request) []byte { return r.port(r.Conn.Peer.Port) })},
	{name: "proxy_protocol_addr", get: nothing},
	{name: "proxy_protocol_port", get: nothing},
	{name: "proxy_protocol_server_addr", get: nothing},
	{name: "proxy_protocol_server_port", get: nothing},
	{name: "proxy_protocol_tlv_", get: nothing, flags: VarPrefix},
	{name: "server_addr", get: varServerAddr},
	{name: "server_port", get: varServerPort},
	{name: "server_protocol", get: bytesOf(func(r *Request) []byte { return r.Protocol })},
	{name: "scheme", get: text(varScheme)},
	{name: "https", get: varHTTPS},
	{name: "request_uri", get: bytesOf(func(r *Request) []byte { return r.UnparsedURI })},
	{name: "uri", get: bytesOf(func(r *Request) []byte { return r.URI }), flags: VarNoCacheable},
	{name: "document_uri", get: bytesOf(func(r *Request) []byte { return r.URI }), flags: VarNoCacheable},
	{name: "request", get: varRequestLine},
	{name: "document_root", get: varDocumentRoot, flags: VarNoCacheable},
	{name: "realpath_root", get: varRealpathRoot, flags: VarNoCacheable},
	{name: "query_string", get: bytesOf(func(r *Request) []byte { return r.Args }), flags: VarNoCacheable},
	{name: "args", get: bytesOf(func(r *Request) []byte { return r.Args }), set: setArgs, flags: VarChangeable | VarNoCacheable},
	{name: "is_args", get: varIsArgs, flags: VarNoCacheable},
	{name: "request_filename", get: varRequestFilename, flags: VarNoCacheable},
	{name: "server_name", get: text(func(r *Request) []byte { return r.str(r.CoreSrv().ServerName) })},
	{name: "request_method", get: bytesOf(func(r *Request) []byte { return r.Main.MethodName }), flags: VarNoCacheable},
	{name: "remote_user", get: varRemoteUser},
	{name: "bytes_sent", get: text(func(r *Request) []byte { return r.num(r.Conn.Sent) })},
	{name: "body_bytes_sent", get: text(func(r *Request) []byte { return r.num(max(r.Conn.Sent-r.HeaderSize, 0)) })},
	{name: "pipe", get: text(varPipe)},
	{name: "request_completion", get: varRequestCompletion},
	{name: "request_body", get: varRequestBody},
	{name: "request_body_file", get: varRequestBodyFile},
	{name: "request_length", get: text(func(r *Request) []byte { return r.num(r.RequestLength) }), flags: VarNoCacheable},
	{name: "request_time", get: text(varRequestTime), flags: VarNoCacheable},
	{name: "request_id", get: text(varRequestID)},
	{name: "status", get: text(varStatus), flags: VarNoCacheable},
	{name: "sent_http_content_type", get: varSentContentType},
	{name: "sent_http_content_length", get: varSentContentLength},
	{name: "sent_http_location", get: varSentLocation},
	{name: "sent_http_last_modified", get: varSentLastModified},
	{name: "sent_http_connection", get: text(varSentConnection)},
	{name: "sent_http_keep_alive", get: varSentKeepAlive},
	{name: "sent_http_transfer_encoding", get: varSentTransferEncoding},
	{name: "sent_http_cache_control", get: headers(',', func(r *Request) *Header { return r.HeadersOut.CacheControl })},
	{name: "sent_http_link", get: headers(',', func(r *Request) *Header { return r.HeadersOut.Link })},
	{name: "limit_rate", get: text(func(r *Request) []byte { return r.num(r.LimitRate) }), set: setLimitRate, flags: VarChangeable | VarNoCacheable},
	{name: "connection", get: text(func(r *Request) []byte { return r.num(int64(r.Conn.Number)) })},
	{name: "connection_requests", get: text(func(r *Request) []byte { return r.num(int64(r.Conn.Requests)) })},
	{name: "connection_time", get: text(varConnectionTime), flags: VarNoCacheable},
	{name: "nginx_version", get: text(func(r *Request) []byte { return nginxVersion })},
	{name: "hostname", get: text(func(r *Request) []byte { return r.str(r.CoreMain().Hostname) })},
	{name: "pid", get: text(varPid)},
	{name: "msec", get: text(varMsec), flags: VarNoCacheable},
	{name: "time_iso8601", get: text(func(r *Request) []byte { return append(r.Alloc(25)[:0], r.Conn.Loop.ISOTime()...) }), flags: VarNoCacheable},
	{name: "time_local", get: text(func(r *Request) []byte { return append(r.Alloc(26)[:0], r.Conn.Loop.LogTime()...) }), flags: VarNoCacheable},
	{name: "tcpinfo_rtt", get: varTCPInfo, flags: VarNoCacheable, data: 0},
	{name: "tcpinfo_rttvar", get: varTCPInfo, flags: VarNoCacheable, data: 1},
	{name: "tcpinfo_snd_cwnd", get: varTCPInfo, flags: VarNoCacheable, data: 2},
	{name: "tcpinfo_rcv_space", get: varTCPInfo, flags: VarNoCacheable, data: 3},
	{name: "http_", get: varUnknownIn, flags: VarPrefix},
	{name: "sent_http_", get: varUnknownOut, flags: VarPrefix},
	{name: "sent_trailer_", get: varUnknownTrailer, flags: VarPrefix},
	{name: "cookie_", get: varCookie, flags: VarPrefix},
	{name: "arg_", get: varArg, flags: VarNoCacheable | VarPrefix},
}

// AddCoreVariables declares the core's variables (ngx_http_variables_add_core_vars).
func AddCoreVariables(cf *module.Conf) error {
	for i := range coreVariables {
		c := &coreVariables[i]
		v, err := AddVariable(cf, c.name, c.flags)
		if err != nil {
			return err
		}
		v.Get, v.Set, v.Data = c.get, c.set, c.data
	}
	return nil
}
