package http

import (
	"strconv"
	"unsafe"

	"nginxoracle/proxy/ascii"
)

// BytesOf views a configuration's string as bytes without a copy; they must not be changed.
func BytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

var keyETag = []byte("ETag")

// SetETag adds an ETag made of the response's time and length, when etag is on
// (ngx_http_set_etag).
func (r *Request) SetETag() Rc {
	if r.Core.Etag == 0 {
		return OK
	}
	b := append(r.Alloc(36)[:0], '"')
	b = strconv.AppendInt(b, int64(r.HeadersOut.LastModifiedTime), 16)
	b = append(b, '-')
	b = strconv.AppendUint(b, uint64(r.HeadersOut.ContentLengthN), 16)
	b = append(b, '"')
	r.HeadersOut.ETag = r.AddHeaderOut(keyETag, b)
	return OK
}

// WeakETag makes the response's ETag a weak one; one that is no quoted string is taken back
// (ngx_http_weak_etag).
func (r *Request) WeakETag() {
	h := r.HeadersOut.ETag
	if h == nil {
		return
	}
	v := h.Value
	if len(v) > 2 && v[0] == 'W' && v[1] == '/' {
		return
	}
	if len(v) == 0 || v[0] != '"' {
		r.ClearETag()
		return
	}
	h.Value = append(append(r.Alloc(len(v) + 2)[:0], "W/"...), v...)
}

// SetContentType chooses the response's type by the URI's extension, or the default type,
// unless it has one (ngx_http_set_content_type).
func (r *Request) SetContentType() Rc {
	out := &r.HeadersOut
	if len(out.ContentType) > 0 {
		return OK
	}
	if len(r.Exten) > 0 {
		for _, c := range r.Exten {
			if c >= 'A' && c <= 'Z' {
				r.Exten = ascii.AppendLower(r.Alloc(len(r.Exten))[:0], r.Exten)
				break
			}
		}
		if t, ok := r.Core.Types[string(r.Exten)]; ok {
			out.ContentType, out.ContentTypeLen = BytesOf(t), len(t)
			return OK
		}
	}
	t := r.Core.DefaultType.V
	out.ContentType, out.ContentTypeLen = BytesOf(t), len(t)
	return OK
}

// SetExten finds the URI's extension: behind the last dot of the last segment, when it is not the
// segment's first byte (ngx_http_set_exten).
func (r *Request) SetExten() {
	r.Exten = nil
	for i := len(r.URI) - 1; i > 1; i-- {
		switch {
		case r.URI[i] == '.' && r.URI[i-1] != '/':
			r.Exten = r.URI[i+1:]
			return
		case r.URI[i] == '/':
			return
		}
	}
}
