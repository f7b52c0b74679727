package proxy

import (
	"strconv"
	"strings"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/http/parse"
	"nginxoracle/proxy/upstream"
)

func locOf(r *http.Request) *locConf { return r.LocConf[Module.Index].(*locConf) }

// ctx is the module's state of a request, and HTTP/1 as the engine's protocol
// (ngx_http_proxy_ctx_t).
type ctx struct {
	r       *http.Request
	status  parse.StatusLine
	field   parse.Field
	chunked parse.Chunked
	vars    vars
	line    bool // the status line has been read

	bodyLength int64
	head       bool
	chunkedOut bool // the body goes on in chunks
	headerSent bool

	chunkedIn  bool // the answer comes in chunks
	free, busy *http.Chain
	res        upstream.Resolved
	addr       upstream.NamedAddr
	reqBuf     http.Buf
}

func ctxOf(r *http.Request) *ctx {
	c, _ := r.Ctx(Module).(*ctx)
	return c
}

// handle is the location's handler (ngx_http_proxy_handler).
func handle(r *http.Request) http.Rc {
	u := upstream.New(r)
	c, ok := u.Proto.(*ctx)
	if ok {
		*c = ctx{}
	} else {
		c = &ctx{}
		u.Proto = c
	}
	c.r = r
	r.SetCtx(Module, c)
	loc := locOf(r)
	if loc.pass == nil {
		c.vars = loc.vars
		u.Schema = loc.vars.schema
	} else if !c.eval(u, loc) {
		return 500
	}
	u.Tag = Module
	u.Conf = &loc.up
	if loc.redirects != nil {
		u.RewriteRedirect = rewriteRedirect
	}
	if loc.cookieDomains.rules != nil || loc.cookiePaths.rules != nil || loc.cookieFlags.rules != nil {
		u.RewriteCookie = rewriteCookie
	}
	u.Buffering = loc.up.Buffering > 0
	if loc.up.RequestBuffering <= 0 && loc.body == nil && loc.up.PassRequestBody > 0 &&
		(!r.HeadersIn.Chunked || loc.httpVersion == http.HTTP11) {
		r.RequestBodyNoBuffering = true
	}
	if rc := r.ReadBody(upstream.Init); rc >= 300 {
		return rc
	}
	return http.Done
}

// eval finds out where a proxy_pass with variables leads (ngx_http_proxy_eval).
func (c *ctx) eval(u *upstream.Upstream, loc *locConf) bool {
	r := c.r
	val, rc := r.Complex(loc.pass)
	if rc != http.OK {
		return false
	}
	url := string(val)
	schema, rest, ok := cutScheme(url)
	if isHTTPS(url) && len(url) > len("https://") {
		// which URL a variable gives is only known now
		r.Conn.Log.Err(elog.Crit, nil, "\"https\" in \"%s\" is not supported", val)
		return false
	}
	if !ok || rest == "" {
		r.Conn.Log.Err(elog.Error, nil, "invalid URL prefix in \"%s\"", val)
		return false
	}
	u.Schema = []byte(schema)
	p := upstream.URL{Text: rest, DefaultPort: 80, URIPart: true, NoResolve: true}
	if err := upstream.ParseURL(&p); err != nil {
		r.Conn.Log.Err(elog.Error, nil, "%s in upstream \"%s\"", err, p.Text)
		return false
	}
	if strings.HasPrefix(p.URI, "?") {
		p.URI = "/" + p.URI
	}
	c.vars.schema = u.Schema
	c.vars.set(&p)
	c.res = upstream.Resolved{Host: p.Host, Port: p.Port, NoPort: p.NoPort}
	if len(p.Addrs) > 0 {
		c.addr = p.Addrs[0]
		c.res.Addr = &c.addr
	}
	u.Resolved = &c.res
	return true
}

// appendURI appends the URI to ask for (the middle of ngx_http_proxy_create_request).
func (c *ctx) appendURI(b []byte, loc *locConf) []byte {
	r := c.r
	uri := c.vars.uri
	switch {
	case loc.pass != nil && len(uri) > 0:
		return append(b, uri...)
	case len(uri) == 0 && r.ValidUnparsedURI:
		return append(b, r.UnparsedURI...)
	}
	cut := 0
	if r.ValidLocation {
		if len(uri) > 0 {
			cut = min(len(loc.location), len(r.URI))
		}
		b = append(b, uri...)
	}
	if r.QuotedURI || r.Internal {
		b = parse.Escape(b, r.URI[cut:], parse.EscapeURI)
	} else {
		b = append(b, r.URI[cut:]...)
	}
	if len(r.Args) > 0 {
		b = append(append(b, '?'), r.Args...)
	}
	return b
}

// CreateRequest writes the request (ngx_http_proxy_create_request).
func (c *ctx) CreateRequest(r *http.Request, u *upstream.Upstream) http.Rc {
	loc := locOf(r)
	method := r.MethodName
	if loc.method != nil {
		m, rc := r.Complex(loc.method)
		if rc != http.OK {
			return http.Error
		}
		method = m
	}
	c.head = equalFold(method, headName)

	b := u.ReqMem[:0]
	b = append(append(b, method...), ' ')
	uriAt := len(b)
	b = c.appendURI(b, loc)
	uriEnd := len(b)
	// A URI that an internal redirect made empty is sent so: nginx counts the question mark in.
	if uriEnd == uriAt && len(c.vars.uri) == 0 && r.ValidUnparsedURI {
		r.Conn.Log.Err(elog.Error, nil, "zero length URI to proxy")
		return http.Error
	}
	if loc.httpVersion == http.HTTP11 {
		b = append(b, " HTTP/1.1\r\n"...)
	} else {
		b = append(b, " HTTP/1.0\r\n"...)
	}

	// Variables have one value in the body and in all fields: a body that holds its own length has it
	// as of before it was made, and so has the field behind it (ngx_http_proxy_create_request).
	if loc.body != nil {
		r.FlushComplex(loc.body)
	}
	for i := range loc.headers.lines {
		r.FlushComplex(loc.headers.lines[i].value)
	}
	var body []byte
	switch {
	case loc.body != nil:
		v, rc := r.ComplexFlushed(loc.body)
		if rc != http.OK {
			return http.Error
		}
		body = v
		c.bodyLength = int64(len(v))
	case r.HeadersIn.Chunked && r.ReadingBody:
		c.bodyLength = -1
		c.chunkedOut = true
	default:
		c.bodyLength = r.HeadersIn.ContentLengthN
	}

	for i := range loc.headers.lines {
		h := &loc.headers.lines[i]
		v, rc := r.ComplexFlushed(h.value)
		if rc != http.OK {
			return http.Error
		}
		if len(v) == 0 {
			continue
		}
		b = append(append(b, h.key...), ": "...)
		b = append(append(b, v...), "\r\n"...)
	}
	if loc.up.PassRequestHeaders > 0 {
		for _, h := range r.HeadersIn.Headers {
			if loc.headers.replaces(h) {
				continue
			}
			b = append(append(b, h.Key...), ": "...)
			b = append(append(b, h.Value...), "\r\n"...)
		}
	}
	b = append(b, "\r\n"...)
	b = append(b, body...)
	u.ReqMem = b
	u.URI = b[uriAt:uriEnd:uriEnd]

	c.reqBuf = http.Buf{Start: b, Data: b, Temporary: true}
	cl := r.NewChain(&c.reqBuf)
	passed := u.RequestBufs
	u.RequestBufs = cl
	switch {
	case r.RequestBodyNoBuffering:
		if c.chunkedOut {
			u.OutputFilter = c.bodyOutput
		}
	case loc.body == nil && loc.up.PassRequestBody > 0:
		for ; passed != nil; passed = passed.Next {
			nb := r.NewBuf()
			*nb = *passed.Buf
			nb.Start = nb.Data // where a next try begins again
			cl.Next = r.NewChain(nb)
			cl = cl.Next
		}
	}
	cl.Buf.Flush = true
	cl.Next = nil
	return http.OK
}

var headName = []byte("HEAD")

// ReinitRequest is ngx_http_proxy_reinit_request.
func (c *ctx) ReinitRequest(r *http.Request, u *upstream.Upstream) http.Rc {
	c.status = parse.StatusLine{}
	c.field = parse.Field{}
	c.chunked = parse.Chunked{}
	c.line, c.chunkedIn = false, false
	return http.OK
}

func (c *ctx) FinalizeRequest(r *http.Request, u *upstream.Upstream, rc http.Rc) {}

var (
	crlf      = []byte("\r\n")
	lastChunk = []byte("\r\n0\r\n\r\n")
)

type outputTag struct{}

// bodyOutput writes an unbuffered body in chunks (ngx_http_proxy_body_output_filter).
func (c *ctx) bodyOutput(r *http.Request, u *upstream.Upstream, in *http.Chain) int {
	var out *http.Chain
	if in != nil {
		out = c.chunk(r, in)
	}
	rc := u.ChainWriter(r, out)
	r.UpdateChains(&c.free, &c.busy, &out, outputTag{})
	return rc
}

// chunk puts what is in memory or files of in into one chunk, behind the header the first time.
func (c *ctx) chunk(r *http.Request, in *http.Chain) *http.Chain {
	var out *http.Chain
	ll := &out
	push := func(cl *http.Chain) {
		*ll = cl
		ll = &cl.Next
	}
	if !c.headerSent {
		c.headerSent = true
		push(r.NewChain(in.Buf))
		if in = in.Next; in == nil {
			return out
		}
	}
	var size int64
	first := ll
	last := false
	for cl := in; cl != nil; cl = cl.Next {
		b := cl.Buf
		size += b.Size()
		if b.Flush || b.Sync || b.InMemory() || b.InFile {
			push(r.NewChain(b))
		}
		if cl.Next == nil && b.LastBuf {
			last = true
			b.LastBuf = false
		}
	}
	if size > 0 {
		tl := c.freeBuf(r)
		b := tl.Buf
		if cap(b.Start) < 18 {
			b.Start = r.Alloc(18)
		}
		b.Data = append(strconv.AppendInt(b.Start[:0], size, 16), crlf...)
		b.Temporary = true
		tl.Next = *first
		if *first == nil {
			ll = &tl.Next
		}
		*first = tl
	}
	switch {
	case last:
		tl := c.freeBuf(r)
		tl.Buf.Memory, tl.Buf.LastBuf = true, true
		tl.Buf.Data = lastChunk
		if size == 0 {
			tl.Buf.Data = lastChunk[2:]
		}
		push(tl)
	case size > 0:
		tl := c.freeBuf(r)
		tl.Buf.Memory = true
		tl.Buf.Data = crlf
		push(tl)
	}
	return out
}

// freeBuf takes one of the filter's own buffers; its Start is only ever room for a chunk's size.
func (c *ctx) freeBuf(r *http.Request) *http.Chain {
	cl := r.GetFreeBuf(&c.free)
	*cl.Buf = http.Buf{Start: cl.Buf.Start, Tag: outputTag{}}
	return cl
}
