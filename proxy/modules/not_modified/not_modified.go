// Package not_modified answers conditional requests
// (nginx: src/http/modules/ngx_http_not_modified_filter_module.c; RFC 9110, section 13).
package not_modified

import (
	"bytes"

	"nginxoracle/proxy/http"
)

// Module is ngx_http_not_modified_filter_module; it has no directives (if_modified_since is the core's).
var Module = &http.Module{
	Name: "ngx_http_not_modified_filter_module",
	HeaderFilter: func(next http.HeaderFilter) http.HeaderFilter {
		return func(r *http.Request) http.Rc { return filter(r, next) }
	},
}

// Values of if_modified_since (NGX_HTTP_IMS_*).
const (
	imsOff = iota
	imsExact
	imsBefore
)

func filter(r *http.Request, next http.HeaderFilter) http.Rc {
	if r.HeadersOut.Status != 200 || r != r.Main || r.DisableNotModified {
		return next(r)
	}
	in, out := &r.HeadersIn, &r.HeadersOut
	if in.IfUnmodifiedSince != nil && !unmodified(r) {
		return r.FilterFinalizeRequest(nil, 412)
	}
	if in.IfMatch != nil && !matches(r, in.IfMatch, false) {
		return r.FilterFinalizeRequest(nil, 412)
	}
	if in.IfModifiedSince == nil && in.IfNoneMatch == nil ||
		in.IfModifiedSince != nil && modified(r) ||
		in.IfNoneMatch != nil && !matches(r, in.IfNoneMatch, true) {
		return next(r)
	}

	out.Status = 304
	out.StatusLine = nil
	out.ContentType = nil
	r.ClearContentLength()
	r.ClearAcceptRanges()
	if out.ContentEncoding != nil {
		out.ContentEncoding.Hash = 0
		out.ContentEncoding = nil
	}
	return next(r)
}

func unmodified(r *http.Request) bool {
	t := r.HeadersOut.LastModifiedTime
	return t != -1 && http.ParseHTTPTime(r.HeadersIn.IfUnmodifiedSince.Value) >= t
}

func modified(r *http.Request) bool {
	t := r.HeadersOut.LastModifiedTime
	if t == -1 || r.Core.IfModifiedSince == imsOff {
		return true
	}
	since := http.ParseHTTPTime(r.HeadersIn.IfModifiedSince.Value)
	return since != t && (r.Core.IfModifiedSince == imsExact || since < t)
}

// matches looks for the response's ETag in a list of them; weak compares without "W/".
func matches(r *http.Request, h *http.Header, weak bool) bool {
	list := h.Value
	if string(list) == "*" {
		return true
	}
	if r.HeadersOut.ETag == nil {
		return false
	}
	isWeak := func(s []byte) bool { return weak && len(s) > 2 && s[0] == 'W' && s[1] == '/' }
	etag := r.HeadersOut.ETag.Value
	if isWeak(etag) {
		etag = etag[2:]
	}
	for len(list) > 0 {
		if isWeak(list) {
			list = list[2:]
		}
		if len(etag) > len(list) {
			return false
		}
		if bytes.HasPrefix(list, etag) {
			list = bytes.TrimLeft(list[len(etag):], " \t")
			if len(list) == 0 || list[0] == ',' {
				return true
			}
		}
		i := bytes.IndexByte(list, ',')
		if i < 0 {
			return false
		}
		list = bytes.TrimLeft(list[i:], " \t,")
	}
	return false
}
