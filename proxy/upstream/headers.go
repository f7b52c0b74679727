package upstream

import (
	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/http/parse"
)

// headerRule says what becomes of a header of an answer: process when it is read, copy when
// it is passed on; redirect when it also survives X-Accel-Redirect
// (ngx_http_upstream_header_t).
type headerRule struct {
	name     string
	in       func(h *HeadersIn) **http.Header
	process  func(r *http.Request, u *Upstream, h *http.Header, at **http.Header) http.Rc
	out      func(h *http.HeadersOut) **http.Header
	copy     func(r *http.Request, u *Upstream, h *http.Header, at **http.Header) http.Rc
	redirect bool
}

var headerRules = []headerRule{
	{"Status", func(h *HeadersIn) **http.Header { return &h.Status }, once, nil, copyLine, false},
	{"Content-Type", func(h *HeadersIn) **http.Header { return &h.ContentType }, once, nil, copyContentType, true},
	{"Content-Length", nil, processContentLength, nil, ignore, false},
	{"Date", func(h *HeadersIn) **http.Header { return &h.Date }, once,
		func(h *http.HeadersOut) **http.Header { return &h.Date }, copyLine, false},
	{"Last-Modified", func(h *HeadersIn) **http.Header { return &h.LastModified }, processLastModified, nil, copyLastModified, false},
	{"ETag", func(h *HeadersIn) **http.Header { return &h.ETag }, once,
		func(h *http.HeadersOut) **http.Header { return &h.ETag }, copyLine, false},
	{"Server", func(h *HeadersIn) **http.Header { return &h.Server }, once,
		func(h *http.HeadersOut) **http.Header { return &h.Server }, copyLine, false},
	{"WWW-Authenticate", func(h *HeadersIn) **http.Header { return &h.WWWAuthenticate }, many, nil, copyLine, false},
	{"Location", func(h *HeadersIn) **http.Header { return &h.Location }, once, nil, rewriteLocation, false},
	{"Refresh", func(h *HeadersIn) **http.Header { return &h.Refresh }, once, nil, rewriteRefresh, false},
	{"Set-Cookie", func(h *HeadersIn) **http.Header { return &h.SetCookie }, many, nil, rewriteSetCookie, true},
	{"Content-Disposition", nil, ignore, nil, copyLine, true},
	{"Cache-Control", func(h *HeadersIn) **http.Header { return &h.CacheControl }, many,
		func(h *http.HeadersOut) **http.Header { return &h.CacheControl }, copyMany, true},
	{"Expires", func(h *HeadersIn) **http.Header { return &h.Expires }, once,
		func(h *http.HeadersOut) **http.Header { return &h.Expires }, copyLine, true},
	{"Accept-Ranges", nil, ignore,
		func(h *http.HeadersOut) **http.Header { return &h.AcceptRanges }, copyAllowRanges, true},
	{"Content-Range", nil, ignore,
		func(h *http.HeadersOut) **http.Header { return &h.ContentRange }, copyLine, false},
	{"Connection", func(h *HeadersIn) **http.Header { return &h.Connection }, processConnection, nil, ignore, false},
	{"Keep-Alive", nil, ignore, nil, ignore, false},
	{"Vary", func(h *HeadersIn) **http.Header { return &h.Vary }, many, nil, copyLine, false},
	{"Link", nil, ignore,
		func(h *http.HeadersOut) **http.Header { return &h.Link }, copyMany, false},
	{"X-Accel-Expires", func(h *HeadersIn) **http.Header { return &h.XAccelExpires }, once, nil, copyLine, false},
	{"X-Accel-Redirect", func(h *HeadersIn) **http.Header { return &h.XAccelRedirect }, once, nil, copyLine, false},
	{"X-Accel-Limit-Rate", func(h *HeadersIn) **http.Header { return &h.XAccelLimitRate }, processLimitRate, nil, copyLine, false},
	{"X-Accel-Buffering", nil, processBuffering, nil, copyLine, false},
	{"X-Accel-Charset", nil, processCharset, nil, copyLine, false},
	{"Transfer-Encoding", func(h *HeadersIn) **http.Header { return &h.TransferEncoding }, processTransferEncoding, nil, ignore, false},
	{"Content-Encoding", nil, ignore,
		func(h *http.HeadersOut) **http.Header { return &h.ContentEncoding }, copyLine, false},
}

var rulesByName = func() map[string]*headerRule {
	m := make(map[string]*headerRule, len(headerRules))
	for i := range headerRules {
		m[ascii.Lower(headerRules[i].name)] = &headerRules[i]
	}
	return m
}()

func (u *Upstream) pushHeader(r *http.Request) *http.Header {
	h := r.NewHeader()
	u.HeadersIn.Headers = append(u.HeadersIn.Headers, h)
	return h
}

// AddHeader takes a header line of the answer: OK, or InvalidHeader.
// The field's bytes are copied to the request's memory.
func (u *Upstream) AddHeader(r *http.Request, f *parse.Field, buf []byte) http.Rc {
	nk, nv := f.NameEnd-f.NameStart, f.ValEnd-f.ValStart
	mem := r.Alloc(nk + nv + 1 + nk)
	h := u.pushHeader(r)
	h.Hash = f.Hash // 0 for a name without a single valid byte: nginx takes such a field for one that is not there
	h.Key = mem[:nk:nk]
	// a rewriting in place moves one byte more than the value
	h.Value = mem[nk : nk+nv : nk+nv+1]
	mem[nk+nv] = 0
	h.Low = mem[nk+nv+1:]
	copy(h.Key, buf[f.NameStart:f.NameEnd])
	copy(h.Value, buf[f.ValStart:f.ValEnd])
	if nk == f.LowLen {
		copy(h.Low, f.Low[:nk])
	} else {
		for i, c := range h.Key {
			if 'A' <= c && c <= 'Z' {
				c |= 0x20
			}
			h.Low[i] = c
		}
	}
	rule := rulesByName[string(h.Low)]
	if rule == nil {
		return http.OK
	}
	var at **http.Header
	if rule.in != nil {
		at = rule.in(&u.HeadersIn)
	}
	return rule.process(r, u, h, at)
}

var (
	serverKey, serverLow = []byte("Server"), []byte("server")
	dateKey, dateLow     = []byte("Date"), []byte("date")
)

// EndHeader adds what marks an answer without Server or Date: empty fields, so that
// passing these headers on sends none.
func (u *Upstream) EndHeader(r *http.Request) {
	if u.HeadersIn.Server == nil {
		h := u.pushHeader(r)
		h.Hash, h.Key, h.Low = 1, serverKey, serverLow
	}
	if u.HeadersIn.Date == nil {
		h := u.pushHeader(r)
		h.Hash, h.Key, h.Low = 1, dateKey, dateLow
	}
}

// processHeaders makes the response's header from the answer's, or follows X-Accel-Redirect
// (ngx_http_upstream_process_headers). When it is not OK, the request has been dealt with.
func (u *Upstream) processHeaders(r *http.Request) http.Rc {
	if u.HeadersIn.XAccelRedirect != nil && u.Conf.IgnoreHeaders&IgnXARedirect == 0 {
		u.accelRedirect(r)
		return http.Done
	}
	for _, h := range u.HeadersIn.Headers {
		if h.Hash == 0 {
			continue
		}
		if _, hidden := u.Conf.hide[string(h.Low)]; hidden {
			continue
		}
		rule := rulesByName[string(h.Low)]
		if rule == nil {
			pushOut(r, h)
			continue
		}
		if rule.copyOut(r, u, h) != http.OK {
			u.finalize(r, codeInternal)
			return http.Done
		}
	}
	out := &r.HeadersOut
	if out.Server != nil && out.Server.Value == nil {
		out.Server.Hash = 0
	}
	if out.Date != nil && out.Date.Value == nil {
		out.Date.Hash = 0
	}
	out.Status = u.HeadersIn.StatusN
	out.StatusLine = u.HeadersIn.StatusLine
	out.ContentLengthN = u.HeadersIn.ContentLengthN
	r.DisableNotModified = true
	if u.Conf.ForceRanges > 0 {
		r.AllowRanges = true
		r.SingleRange = true
	}
	u.Length = -1
	return http.OK
}

func (rule *headerRule) copyOut(r *http.Request, u *Upstream, h *http.Header) http.Rc {
	var at **http.Header
	if rule.out != nil {
		at = rule.out(&r.HeadersOut)
	}
	return rule.copy(r, u, h, at)
}

func (u *Upstream) accelRedirect(r *http.Request) {
	u.finalize(r, http.Declined)
	for _, h := range u.HeadersIn.Headers {
		if h.Hash == 0 {
			continue
		}
		if rule := rulesByName[string(h.Low)]; rule != nil && rule.redirect {
			if rule.copyOut(r, u, h) != http.OK {
				r.Finalize(codeInternal)
				return
			}
		}
	}
	uri := u.HeadersIn.XAccelRedirect.Value
	if len(uri) > 0 && uri[0] == '@' {
		r.NamedLocation(uri)
	} else {
		path, args, ok := parse.UnsafeURI(r.Alloc(len(uri))[:0], uri)
		if !ok {
			r.Conn.Log.Err(elog.Error, nil, "unsafe URI \"%s\" was detected", uri)
			r.Finalize(404)
			return
		}
		if r.Method != http.HEAD {
			r.Method = http.GET
			r.MethodName = getName
		}
		r.InternalRedirect(path, args)
	}
	r.Finalize(http.Done)
}

var getName = []byte("GET")

func duplicate(r *http.Request, level elog.Level, h, prev *http.Header, end string) {
	r.Conn.Log.Err(level, nil, "upstream sent duplicate header line: \"%s: %s\", previous value: \"%s: %s\"%s",
		h.Key, h.Value, prev.Key, prev.Value, end)
}

// once keeps the first of several lines.
func once(r *http.Request, u *Upstream, h *http.Header, at **http.Header) http.Rc {
	if *at != nil {
		duplicate(r, elog.Warn, h, *at, ", ignored")
		h.Hash = 0
		return http.OK
	}
	*at = h
	h.Next = nil
	return http.OK
}

// many links all of them.
func many(r *http.Request, u *Upstream, h *http.Header, at **http.Header) http.Rc {
	for *at != nil {
		at = &(*at).Next
	}
	*at = h
	h.Next = nil
	return http.OK
}

func ignore(*http.Request, *Upstream, *http.Header, **http.Header) http.Rc { return http.OK }

func processContentLength(r *http.Request, u *Upstream, h *http.Header, _ **http.Header) http.Rc {
	in := &u.HeadersIn
	if in.ContentLength != nil {
		duplicate(r, elog.Error, h, in.ContentLength, "")
		return InvalidHeader
	}
	if in.TransferEncoding != nil {
		bothLengths(r)
		return InvalidHeader
	}
	in.ContentLength = h
	n, ok := Atoi(h.Value)
	if !ok {
		in.ContentLengthN = -1
		r.Conn.Log.Err(elog.Error, nil, "upstream sent invalid \"Content-Length\" header: \"%s: %s\"", h.Key, h.Value)
		return InvalidHeader
	}
	in.ContentLengthN = int64(n)
	return http.OK
}

func bothLengths(r *http.Request) {
	r.Conn.Log.Err(elog.Error, nil, "upstream sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time")
}

func processTransferEncoding(r *http.Request, u *Upstream, h *http.Header, at **http.Header) http.Rc {
	if *at != nil {
		duplicate(r, elog.Error, h, *at, "")
		return InvalidHeader
	}
	if u.HeadersIn.ContentLength != nil {
		bothLengths(r)
		return InvalidHeader
	}
	*at = h
	if !ascii.EqualFold(h.Value, "chunked") {
		r.Conn.Log.Err(elog.Error, nil, "upstream sent unknown \"Transfer-Encoding\": \"%s\"", h.Value)
		return InvalidHeader
	}
	u.HeadersIn.Chunked = true
	return http.OK
}

func processLastModified(r *http.Request, u *Upstream, h *http.Header, at **http.Header) http.Rc {
	if *at == nil {
		u.HeadersIn.LastModifiedTime = http.ParseHTTPTime(h.Value)
	}
	return once(r, u, h, at)
}

func processConnection(r *http.Request, u *Upstream, h *http.Header, at **http.Header) http.Rc {
	many(r, u, h, at)
	if indexFold(h.Value, "close") >= 0 {
		u.HeadersIn.ConnectionClose = true
	}
	return http.OK
}

func processLimitRate(r *http.Request, u *Upstream, h *http.Header, at **http.Header) http.Rc {
	first := *at == nil
	once(r, u, h, at)
	if !first || u.Conf.IgnoreHeaders&IgnXALimitRate != 0 {
		return http.OK
	}
	if n, ok := Atoi(h.Value); ok {
		r.LimitRate = int64(n)
		r.LimitRateSet = true
	}
	return http.OK
}

func processBuffering(r *http.Request, u *Upstream, h *http.Header, _ **http.Header) http.Rc {
	if u.Conf.IgnoreHeaders&IgnXABuffering != 0 || !u.Conf.ChangeBuffering {
		return http.OK
	}
	switch {
	case ascii.EqualFold(h.Value, "no"):
		u.Buffering = false
	case ascii.EqualFold(h.Value, "yes"):
		u.Buffering = true
	}
	return http.OK
}

func processCharset(r *http.Request, u *Upstream, h *http.Header, _ **http.Header) http.Rc {
	if u.Conf.IgnoreHeaders&IgnXACharset == 0 {
		r.HeadersOut.OverrideCharset = h.Value
	}
	return http.OK
}

// pushOut copies a field to the response.
func pushOut(r *http.Request, h *http.Header) *http.Header {
	ho := r.NewHeader()
	*ho = *h
	ho.Next = nil
	r.HeadersOut.Headers = append(r.HeadersOut.Headers, ho)
	return ho
}

func copyLine(r *http.Request, u *Upstream, h *http.Header, at **http.Header) http.Rc {
	ho := pushOut(r, h)
	if at != nil {
		*at = ho
	}
	return http.OK
}

func copyMany(r *http.Request, u *Upstream, h *http.Header, at **http.Header) http.Rc {
	return many(r, u, pushOut(r, h), at)
}

func copyContentType(r *http.Request, u *Upstream, h *http.Header, _ **http.Header) http.Rc {
	out := &r.HeadersOut
	v := h.Value
	out.ContentType, out.ContentTypeLen, out.ContentTypeLow = v, len(v), nil
	for p := 0; p < len(v); p++ {
		if v[p] != ';' {
			continue
		}
		last := p
		for p++; p < len(v) && v[p] == ' '; p++ {
		}
		if p == len(v) {
			return http.OK
		}
		const word = "charset="
		if len(v)-p < len(word) || !ascii.EqualFold(v[p:p+len(word)], word) {
			continue
		}
		p += len(word)
		out.ContentTypeLen = last
		if p < len(v) && v[p] == '"' {
			p++
		}
		end := len(v)
		if v[end-1] == '"' {
			end--
		}
		if end < p {
			end = p
		}
		out.Charset = v[p:end]
		return http.OK
	}
	return http.OK
}

func copyLastModified(r *http.Request, u *Upstream, h *http.Header, _ **http.Header) http.Rc {
	r.HeadersOut.LastModified = pushOut(r, h)
	r.HeadersOut.LastModifiedTime = u.HeadersIn.LastModifiedTime
	return http.OK
}

func copyAllowRanges(r *http.Request, u *Upstream, h *http.Header, at **http.Header) http.Rc {
	if u.Conf.ForceRanges > 0 {
		return http.OK
	}
	*at = pushOut(r, h)
	return http.OK
}

func rewriteLocation(r *http.Request, u *Upstream, h *http.Header, _ **http.Header) http.Rc {
	ho := pushOut(r, h)
	if u.RewriteRedirect != nil {
		rc := u.RewriteRedirect(r, ho, 0)
		if rc == http.Declined {
			return http.OK
		}
		if rc == http.OK {
			r.HeadersOut.Location = ho
		}
		return rc
	}
	// a relative one is left alone by the header filter when it is not named
	if len(ho.Value) == 0 || ho.Value[0] != '/' {
		r.HeadersOut.Location = ho
	}
	return http.OK
}

func rewriteRefresh(r *http.Request, u *Upstream, h *http.Header, _ **http.Header) http.Rc {
	ho := pushOut(r, h)
	if u.RewriteRedirect == nil {
		r.HeadersOut.Refresh = ho
		return http.OK
	}
	i := indexFold(ho.Value, "url=")
	if i < 0 {
		return http.OK
	}
	rc := u.RewriteRedirect(r, ho, i+len("url="))
	if rc == http.Declined {
		return http.OK
	}
	if rc == http.OK {
		r.HeadersOut.Refresh = ho
	}
	return rc
}

func rewriteSetCookie(r *http.Request, u *Upstream, h *http.Header, _ **http.Header) http.Rc {
	ho := pushOut(r, h)
	if u.RewriteCookie == nil {
		return http.OK
	}
	if rc := u.RewriteCookie(r, ho); rc != http.Declined {
		return rc
	}
	return http.OK
}

// indexFold finds sub, in lower case, in s without regard to case.
func indexFold(s []byte, sub string) int {
	for i := 0; i+len(sub) <= len(s); i++ {
		j := 0
		for j < len(sub) && s[i+j]|0x20 == sub[j]|0x20 && (s[i+j] == sub[j] || isLetter(sub[j])) {
			j++
		}
		if j == len(sub) {
			return i
		}
	}
	return -1
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }

// HidesHeader reports whether a header of answers is not passed on, by its lower-case name.
func (c *Conf) HidesHeader(low []byte) bool { _, ok := c.hide[string(low)]; return ok }
