package http

import (
	"bytes"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http/parse"
)

// knownHeader says where a field of the request is kept and how it is taken
// (ngx_http_request.c, ngx_http_headers_in).
type knownHeader struct {
	at   func(in *HeadersIn) **Header
	take func(r *Request, h *Header, at **Header) bool
}

var headersIn map[string]knownHeader

func init() {
	// Filled here because what takes a field can end up reading the next request's.
	headersIn = map[string]knownHeader{
		"host":                {func(in *HeadersIn) **Header { return &in.Host }, takeHost},
		"connection":          {func(in *HeadersIn) **Header { return &in.Connection }, takeConnection},
		"if-modified-since":   {func(in *HeadersIn) **Header { return &in.IfModifiedSince }, takeUnique},
		"if-unmodified-since": {func(in *HeadersIn) **Header { return &in.IfUnmodifiedSince }, takeUnique},
		"if-match":            {func(in *HeadersIn) **Header { return &in.IfMatch }, takeUnique},
		"if-none-match":       {func(in *HeadersIn) **Header { return &in.IfNoneMatch }, takeUnique},
		"user-agent":          {func(in *HeadersIn) **Header { return &in.UserAgent }, takeUserAgent},
		"referer":             {func(in *HeadersIn) **Header { return &in.Referer }, takeMore},
		"content-length":      {func(in *HeadersIn) **Header { return &in.ContentLength }, takeUnique},
		"content-range":       {func(in *HeadersIn) **Header { return &in.ContentRange }, takeUnique},
		"content-type":        {func(in *HeadersIn) **Header { return &in.ContentType }, takeMore},
		"range":               {func(in *HeadersIn) **Header { return &in.Range }, takeMore},
		"if-range":            {func(in *HeadersIn) **Header { return &in.IfRange }, takeUnique},
		"transfer-encoding":   {func(in *HeadersIn) **Header { return &in.TransferEncoding }, takeUnique},
		"te":                  {func(in *HeadersIn) **Header { return &in.TE }, takeMore},
		"expect":              {func(in *HeadersIn) **Header { return &in.Expect }, takeUnique},
		"upgrade":             {func(in *HeadersIn) **Header { return &in.Upgrade }, takeMore},
		"accept-encoding":     {func(in *HeadersIn) **Header { return &in.AcceptEncoding }, takeMore},
		"via":                 {func(in *HeadersIn) **Header { return &in.Via }, takeMore},
		"authorization":       {func(in *HeadersIn) **Header { return &in.Authorization }, takeUnique},
		"keep-alive":          {func(in *HeadersIn) **Header { return &in.KeepAlive }, takeMore},
		"x-forwarded-for":     {func(in *HeadersIn) **Header { return &in.XForwardedFor }, takeMore},
		"x-real-ip":           {func(in *HeadersIn) **Header { return &in.XRealIP }, takeMore},
		"accept":              {func(in *HeadersIn) **Header { return &in.Accept }, takeMore},
		"accept-language":     {func(in *HeadersIn) **Header { return &in.AcceptLanguage }, takeMore},
		"depth":               {func(in *HeadersIn) **Header { return &in.Depth }, takeMore},
		"destination":         {func(in *HeadersIn) **Header { return &in.Destination }, takeMore},
		"overwrite":           {func(in *HeadersIn) **Header { return &in.Overwrite }, takeMore},
		"date":                {func(in *HeadersIn) **Header { return &in.Date }, takeMore},
		"cookie":              {func(in *HeadersIn) **Header { return &in.Cookie }, takeMore},
	}
}

// takeMore keeps a field behind those of its name.
func takeMore(_ *Request, h *Header, at **Header) bool {
	for *at != nil {
		at = &(*at).Next
	}
	*at = h
	return true
}

// takeUnique keeps a field that may come once.
func takeUnique(r *Request, h *Header, at **Header) bool {
	if *at == nil {
		*at = h
		return true
	}
	r.Conn.Log.Err(logInfo, nil, "client sent duplicate header line: \"%s: %s\", previous value: \"%s: %s\"",
		h.Key, h.Value, (*at).Key, (*at).Value)
	r.Finalize(400)
	return false
}

func takeHost(r *Request, h *Header, at **Header) bool {
	if *at != nil {
		r.Conn.Log.Err(logInfo, nil, "client sent duplicate host header: \"%s: %s\", previous value: \"%s: %s\"",
			h.Key, h.Value, (*at).Key, (*at).Value)
		r.Finalize(400)
		return false
	}
	*at = h
	host, rc := ValidateHost(h.Value)
	switch rc {
	case Declined:
		r.Conn.Log.Err(logInfo, nil, "client sent invalid host header")
		r.Finalize(400)
		return false
	case Error:
		r.closeRequest(500)
		return false
	}
	if len(r.HeadersIn.Server) > 0 {
		return true // the request line named one
	}
	if !r.chooseServer(host) {
		return false
	}
	r.HeadersIn.Server = host
	return true
}

var (
	wordClose     = []byte("close")
	wordKeepAlive = []byte("keep-alive")
)

func takeConnection(r *Request, h *Header, at **Header) bool {
	takeMore(r, h, at)
	if containsFold(h.Value, wordClose) {
		r.HeadersIn.ConnectionType = ConnClose
	} else if containsFold(h.Value, wordKeepAlive) {
		r.HeadersIn.ConnectionType = ConnKeepAlive
	}
	return true
}

// containsFold looks for a word in lower case, whatever the case of s (ngx_strcasestrn).
func containsFold(s, word []byte) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if equalFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// equalFold compares s with a word in lower case.
func equalFold(s, word []byte) bool {
	if len(s) != len(word) {
		return false
	}
	for i, c := range s {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

var (
	agentMSIE      = []byte("MSIE ")
	agentSV1       = []byte("SV1")
	agentOpera     = []byte("Opera")
	agentGecko     = []byte("Gecko/")
	agentChrome    = []byte("Chrome/")
	agentSafari    = []byte("Safari/")
	agentMac       = []byte("Mac OS X")
	agentKonqueror = []byte("Konqueror")
)

// takeUserAgent looks for the browsers that some directives are about (ngx_http_process_user_agent).
func takeUserAgent(r *Request, h *Header, at **Header) bool {
	takeMore(r, h, at)
	in := &r.HeadersIn
	ua := h.Value
	if i := bytes.Index(ua, agentMSIE); i >= 0 && i+7 < len(ua) {
		in.MSIE = true
		if v := ua[i:]; v[6] == '.' {
			switch v[5] {
			case '4', '5':
				in.MSIE6 = true
			case '6':
				if !bytes.Contains(v[min(8, len(v)):], agentSV1) {
					in.MSIE6 = true
				}
			}
		}
	}
	if bytes.Contains(ua, agentOpera) {
		in.Opera = true
		in.MSIE, in.MSIE6 = false, false
	}
	if in.MSIE || in.Opera {
		return true
	}
	switch {
	case bytes.Contains(ua, agentGecko):
		in.Gecko = true
	case bytes.Contains(ua, agentChrome):
		in.Chrome = true
	case bytes.Contains(ua, agentSafari) && bytes.Contains(ua, agentMac):
		in.Safari = true
	case bytes.Contains(ua, agentKonqueror):
		in.Konqueror = true
	}
	return true
}

// processRequestHeaders reads the header fields (ngx_http_process_request_headers).
func processRequestHeaders(rev *ev.Event) {
	c := rev.Conn
	r := c.Data.(*Request)
	if rev.TimedOut {
		c.Log.Err(logInfo, errTimedOut, "client timed out")
		r.HC.TimedOut = true
		r.closeRequest(408)
		return
	}
	r.readHeaders()
	RunPosted(c)
}

const maxLoggedHeader = 2048 - 300 // NGX_MAX_ERROR_STR - 300

func (r *Request) readHeaders() {
	c := r.Conn
	f := &r.field
	res := parse.Again
	for {
		if res == parse.Again {
			if h := r.headerIn; h.pos == len(h.b) {
				switch r.largeHeaderBuffer(false) {
				case Error:
					r.closeRequest(500)
					return
				case Declined:
					r.LingeringClose = true
					if f.NameStart < 0 {
						c.Log.Err(logInfo, nil, "client sent too large request")
					} else {
						line := h.b[f.NameStart:]
						c.Log.Err(logInfo, nil, "client sent too long header line: \"%s...\"",
							line[:min(len(line), maxLoggedHeader)])
					}
					r.Finalize(codeHeaderTooLarge)
					return
				}
			}
			if !r.readHeader() {
				return
			}
		}
		// The Host field may have changed the server.
		cscf := r.CoreSrv()
		h := r.headerIn
		res = f.Parse(h.b[:h.last], cscf.UnderscoresInHeaders > 0)
		switch res {
		case parse.OK:
			h.pos = f.Pos
			r.RequestLength += int64(h.pos - f.NameStart)
			if f.Invalid && cscf.IgnoreInvalidHeaders > 0 {
				c.Log.Err(logInfo, nil, "client sent invalid header line: \"%s\"", h.b[f.NameStart:f.ValEnd])
				continue
			}
			if len(r.HeadersIn.Headers) >= cscf.MaxHeaders {
				c.Log.Err(logInfo, nil, "client sent too many header lines")
				r.Finalize(codeHeaderTooLarge)
				return
			}
			if !r.takeHeader() {
				return
			}
		case parse.Done:
			h.pos = f.Pos
			r.RequestLength += int64(h.pos - f.NameStart)
			r.State = StateProcessRequest
			if r.checkHeaders() {
				r.processRequest()
			}
			return
		case parse.Again:
			h.pos = f.Pos
		default:
			c.Log.Err(logInfo, nil, "client sent invalid header line: \"%s\\x%02x...\"",
				h.b[f.NameStart:f.ValEnd], h.b[f.ValEnd])
			r.Finalize(400)
			return
		}
	}
}

// takeHeader keeps the field that was just read; false: the request has been ended.
func (r *Request) takeHeader() bool {
	f := &r.field
	b := r.headerIn.b
	h := r.NewHeader()
	h.Hash = f.Hash
	h.Key = b[f.NameStart:f.NameEnd:f.NameEnd]
	h.Value = b[f.ValStart:f.ValEnd:f.ValEnd]
	h.Low = r.Alloc(len(h.Key))
	if len(h.Key) == f.LowLen {
		copy(h.Low, f.Low[:f.LowLen])
	} else {
		for i, c := range h.Key {
			if c >= 'A' && c <= 'Z' {
				c |= 0x20
			}
			h.Low[i] = c
		}
	}
	r.HeadersIn.Headers = append(r.HeadersIn.Headers, h)
	if k, ok := headersIn[string(h.Low)]; ok {
		return k.take(r, h, k.at(&r.HeadersIn))
	}
	return true
}

var wordChunked = []byte("chunked")

// checkHeaders looks at the header as a whole (ngx_http_process_request_header).
func (r *Request) checkHeaders() bool {
	in := &r.HeadersIn
	log := r.Conn.Log
	if len(in.Server) == 0 && !r.chooseServer(nil) {
		return false
	}
	bad := func(rc Rc, text string) bool {
		log.Err(logInfo, nil, text)
		r.Finalize(rc)
		return false
	}
	if in.Host == nil && r.Version > HTTP10 {
		return bad(400, "client sent HTTP/1.1 request without \"Host\" header")
	}
	if in.ContentLength != nil {
		n, ok := parseLength(in.ContentLength.Value)
		if !ok {
			in.ContentLengthN = -1
			return bad(400, "client sent invalid \"Content-Length\" header")
		}
		in.ContentLengthN = n
	}
	if te := in.TransferEncoding; te != nil {
		if r.Version < HTTP11 {
			return bad(400, "client sent HTTP/1.0 request with \"Transfer-Encoding\" header")
		}
		if !equalFold(te.Value, wordChunked) {
			log.Err(logInfo, nil, "client sent unknown \"Transfer-Encoding\": \"%s\"", te.Value)
			r.Finalize(501)
			return false
		}
		if in.ContentLength != nil {
			return bad(400, "client sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time")
		}
		in.Chunked = true
	}
	if in.ConnectionType == ConnKeepAlive && in.KeepAlive != nil {
		if n, ok := parseLength(in.KeepAlive.Value); ok {
			in.KeepAliveN = n
		}
	}
	switch r.Method {
	case CONNECT:
		return bad(405, "client sent CONNECT method")
	case TRACE:
		return bad(405, "client sent TRACE method")
	}
	return true
}

// parseLength reads a number of digits alone, up to the largest offset (ngx_atoof).
func parseLength(s []byte) (int64, bool) {
	const most = 1<<63 - 1
	if len(s) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		d := int64(c - '0')
		if n >= most/10 && (n > most/10 || d > most%10) {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// processRequest has the phases run (ngx_http_process_request).
func (r *Request) processRequest() {
	c := r.Conn
	if c.Read.TimerSet {
		c.Loop.DelTimer(&c.Read)
	}
	c.Read.Handler = requestHandler
	c.Write.Handler = requestHandler
	r.ReadHandler = BlockReading
	r.setStat(statWriting)
	handler(r)
}
