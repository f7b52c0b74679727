package http

import (
	"bytes"

	"nginxoracle/proxy/http/pcre"
)

// Bits of gzip_proxied (NGX_HTTP_GZIP_PROXIED_*).
const (
	gzipProxiedOff = 2 << iota
	gzipProxiedExpired
	gzipProxiedNoCache
	gzipProxiedNoStore
	gzipProxiedPrivate
	gzipProxiedNoLastModified
	gzipProxiedNoETag
	gzipProxiedAuth
	gzipProxiedAny
)

// GzipAccepted tells whether the client may be sent gzip, by its Accept-Encoding and the gzip_*
// directives of the core; it is found out once (ngx_http_gzip_ok).
func (r *Request) GzipAccepted() bool {
	if !r.GzipTested {
		r.GzipTested = true
		r.GzipOK = r.gzipAccepted()
	}
	return r.GzipOK
}

func (r *Request) gzipAccepted() bool {
	in := &r.HeadersIn
	if r != r.Main || in.AcceptEncoding == nil || len(in.AcceptEncoding.Value) < len("gzip") {
		return false
	}
	ae := in.AcceptEncoding.Value
	if !bytes.HasPrefix(ae, []byte("gzip,")) && !acceptsGzip(ae) {
		return false
	}
	if in.MSIE6 && r.Core.GzipDisableMSIE6 != 0 || r.Version < r.Core.GzipHTTPVersion {
		return false
	}
	if in.Via != nil && !r.gzipProxied() {
		return false
	}
	if in.UserAgent != nil {
		for _, re := range r.Core.GzipDisable {
			if re.Exec(in.UserAgent.Value, nil) != pcre.NoMatch {
				return false
			}
		}
	}
	return true
}

// gzipProxied decides for a request that came through a proxy.
func (r *Request) gzipProxied() bool {
	out := &r.HeadersOut
	has := func(bit int) bool { return r.Core.GzipProxied&bit != 0 }
	switch {
	case has(gzipProxiedOff):
		return false
	case has(gzipProxiedAny), r.HeadersIn.Authorization != nil && has(gzipProxiedAuth):
		return true

	case out.Expires != nil:
		if !has(gzipProxiedExpired) {
			return false
		}
		expires := ParseHTTPTime(out.Expires.Value)
		date, _ := r.Conn.Loop.Now()
		if out.Date != nil {
			date = ParseHTTPTime(out.Date.Value)
		}
		return expires != -1 && date != -1 && expires < date

	case out.CacheControl != nil:
		cc := out.CacheControl
		return has(gzipProxiedNoCache) && cc.HasToken("no-cache") ||
			has(gzipProxiedNoStore) && cc.HasToken("no-store") ||
			has(gzipProxiedPrivate) && cc.HasToken("private")
	}
	return !(has(gzipProxiedNoLastModified) && out.LastModified != nil) && !(has(gzipProxiedNoETag) && out.ETag != nil)
}

// HasToken looks for a word in a field's lines, between commas or semicolons
// (ngx_http_parse_multi_header_lines).
func (h *Header) HasToken(name string) bool {
	for ; h != nil; h = h.Next {
		if len(name) > len(h.Value) {
			continue
		}
		for b := h.Value; len(b) > 0; {
			if hasPrefixFold(b, name) {
				b = skipSpaces(b[len(name):])
				if len(b) == 0 || b[0] == ',' {
					return true
				}
			}
			i := bytes.IndexAny(b, ";,")
			if i < 0 {
				break
			}
			b = skipSpaces(b[i+1:])
		}
	}
	return false
}

// acceptsGzip reads "gzip" with an optional weight: "gzip;q=0" and anything malformed is a no
// (ngx_http_gzip_accept_encoding).
func acceptsGzip(ae []byte) bool {
	p := 0
	for {
		for p < len(ae) && !hasPrefixFold(ae[p:], "gzip") {
			p++
		}
		if p == len(ae) {
			return false
		}
		if p == 0 || ae[p-1] == ',' || ae[p-1] == ' ' {
			break
		}
		p += 4
	}

	p += 4
	weighed := false
scan:
	for ; p < len(ae); p++ {
		switch c := ae[p]; {
		case c == ' ':
		case c == ',' && !weighed:
			return true
		case c == ';' && !weighed:
			weighed = true
		case (c == 'q' || c == 'Q') && weighed:
			break scan
		default:
			return false
		}
	}
	if p == len(ae) {
		return true
	}
	p++
	return p+2 <= len(ae) && ae[p] == '=' && gzipWeight(ae[p+1:]) > 0
}

// gzipWeight reads a weight as a sum of its digits: more than 0 is what counts
// (ngx_http_gzip_quantity).
func gzipWeight(s []byte) int {
	if s[0] != '0' && s[0] != '1' {
		return 0
	}
	q := int(s[0]-'0') * 100
	if len(s) == 1 || s[1] == ',' || s[1] == ' ' {
		return q
	}
	if s[1] != '.' {
		return 0
	}
	n := 0
	for _, c := range s[2:] {
		if c == ',' || c == ' ' {
			break
		}
		if c < '0' || c > '9' {
			return 0
		}
		q += int(c - '0')
		n++
	}
	if q > 100 || n > 3 {
		return 0
	}
	return q
}
