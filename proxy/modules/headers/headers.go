// Package headers adds fields to responses: expires, add_header, add_trailer
// (nginx: src/http/modules/ngx_http_headers_filter_module.c).
package headers

import (
	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

type conf struct {
	expires  expires
	headers  []header
	trailers []header
}

// header is one add_header or add_trailer.
type header struct {
	key    []byte
	value  *http.ComplexValue // nil: empty
	always bool
	set    func(r *http.Request, h *header, v []byte)
}

// Module is ngx_http_headers_filter_module.
var Module = &http.Module{}

func init() {
	const where = http.InHTTPSrvLocLif
	*Module = http.Module{
		Name: "ngx_http_headers_filter_module",
		Directives: []module.Directive{
			{Name: "expires", Where: where, Args: module.Take12, Level: module.LocConf, Set: setExpires},
			{Name: "add_header", Where: where, Args: module.Take23, Level: module.LocConf, Set: addHeader},
			{Name: "add_trailer", Where: where, Args: module.Take23, Level: module.LocConf, Set: addTrailer},
		},
		CreateLoc: func(*module.Conf) any { return &conf{expires: expires{kind: expiresUnset}} },
		MergeLoc: func(_ *module.Conf, prev, c any) error {
			p, hc := prev.(*conf), c.(*conf)
			if hc.expires.kind == expiresUnset {
				if hc.expires = p.expires; hc.expires.kind == expiresUnset {
					hc.expires.kind = expiresOff
				}
			}
			module.MergeSlice(&hc.headers, p.headers)
			module.MergeSlice(&hc.trailers, p.trailers)
			return nil
		},
		HeaderFilter: func(next http.HeaderFilter) http.HeaderFilter {
			return func(r *http.Request) http.Rc { return headerFilter(r, next) }
		},
		BodyFilter: func(next http.BodyFilter) http.BodyFilter {
			return func(r *http.Request, in *http.Chain) http.Rc { return trailersFilter(r, in, next) }
		},
	}
}

func addHeader(cf *module.Conf, _ *module.Directive, c any) error {
	h, err := newHeader(cf)
	if err == nil {
		c.(*conf).headers = append(c.(*conf).headers, h)
	}
	return err
}

func addTrailer(cf *module.Conf, _ *module.Directive, c any) error {
	h, err := newHeader(cf)
	if err == nil {
		c.(*conf).trailers = append(c.(*conf).trailers, h)
	}
	return err
}

func newHeader(cf *module.Conf) (h header, err error) {
	h = header{key: []byte(cf.Args[1]), set: addField}
	switch ascii.Lower(module.CText(cf.Args[1])) {
	case "cache-control":
		h.set = addCacheControl
	case "link":
		h.set = addLink
	case "last-modified":
		h.set = setLastModified
	case "etag":
		h.set = setETag
	}
	if cf.Args[2] != "" {
		if h.value, err = http.CompileComplexValue(cf, cf.Args[2]); err != nil {
			return h, err
		}
	}
	if len(cf.Args) > 3 {
		if !module.Is(cf.Args[3], "always") {
			return h, cf.Emerg(`invalid parameter "%s"`, cf.Args[3])
		}
		h.always = true
	}
	return h, nil
}

// usual reports a status that gets the fields which are not "always".
func usual(status int) bool {
	switch status {
	case 200, 201, 204, 206, 301, 302, 303, 304, 307, 308:
		return true
	}
	return false
}

func (h *header) text(r *http.Request) ([]byte, http.Rc) {
	if h.value == nil {
		return nil, http.OK
	}
	return r.Complex(h.value)
}

func headerFilter(r *http.Request, next http.HeaderFilter) http.Rc {
	if r != r.Main {
		return next(r)
	}
	hc := r.LocConf[Module.Index].(*conf)
	if hc.expires.kind == expiresOff && hc.headers == nil && hc.trailers == nil {
		return next(r)
	}
	ok := usual(r.HeadersOut.Status)

	if hc.expires.kind != expiresOff && ok {
		if hc.expires.apply(r) != http.OK {
			return http.Error
		}
	}
	for i := range hc.headers {
		h := &hc.headers[i]
		if !ok && !h.always {
			continue
		}
		v, rc := h.text(r)
		if rc != http.OK {
			return http.Error
		}
		h.set(r, h, v)
	}
	for i := range hc.trailers {
		if ok || hc.trailers[i].always {
			r.ExpectTrailers = true
			break
		}
	}
	return next(r)
}

func trailersFilter(r *http.Request, in *http.Chain, next http.BodyFilter) http.Rc {
	hc := r.LocConf[Module.Index].(*conf)
	if in == nil || hc.trailers == nil || !r.ExpectTrailers || r.HeaderOnly {
		return next(r, in)
	}
	last := in
	for last != nil && !last.Buf.LastBuf {
		last = last.Next
	}
	if last == nil {
		return next(r, in)
	}
	ok := usual(r.HeadersOut.Status)
	for i := range hc.trailers {
		h := &hc.trailers[i]
		if !ok && !h.always {
			continue
		}
		v, rc := h.text(r)
		if rc != http.OK {
			return http.Error
		}
		if len(v) > 0 {
			t := r.NewHeader()
			t.Hash, t.Key, t.Value = 1, h.key, v
			r.HeadersOut.Trailers = append(r.HeadersOut.Trailers, t)
		}
	}
	return next(r, in)
}

func addField(r *http.Request, h *header, v []byte) {
	if len(v) > 0 {
		r.AddHeaderOut(h.key, v)
	}
}

// addCacheControl and addLink also append the field to the list of its kind.
func addCacheControl(r *http.Request, h *header, v []byte) {
	addToList(r, &r.HeadersOut.CacheControl, h, v)
}

func addLink(r *http.Request, h *header, v []byte) { addToList(r, &r.HeadersOut.Link, h, v) }

func addToList(r *http.Request, list **http.Header, h *header, v []byte) {
	if len(v) == 0 {
		return
	}
	for *list != nil {
		list = &(*list).Next
	}
	*list = r.AddHeaderOut(h.key, v)
}

func setLastModified(r *http.Request, h *header, v []byte) {
	replace(r, &r.HeadersOut.LastModified, h, v)
	r.HeadersOut.LastModifiedTime = -1
	if len(v) > 0 {
		r.HeadersOut.LastModifiedTime = http.ParseHTTPTime(v)
	}
}

func setETag(r *http.Request, h *header, v []byte) { replace(r, &r.HeadersOut.ETag, h, v) }

// replace sets a field that there is one of; an empty value takes it back.
func replace(r *http.Request, at **http.Header, h *header, v []byte) {
	if len(v) == 0 {
		if *at != nil {
			(*at).Hash = 0
			*at = nil
		}
		return
	}
	if *at == nil {
		*at = r.AddHeaderOut(h.key, v)
		return
	}
	(*at).Hash, (*at).Key, (*at).Value = 1, h.key, v
}
