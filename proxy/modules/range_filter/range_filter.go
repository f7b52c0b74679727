// Package range_filter answers requests for ranges of bytes
// (nginx: src/http/modules/ngx_http_range_filter_module.c; RFC 9110, section 14).
package range_filter

import (
	"bytes"
	"math"
	"strconv"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// Header and Body are ngx_http_range_header_filter_module and ngx_http_range_body_filter_module;
// they have no directives (max_ranges is the core's).
var (
	Header = &http.Module{Name: "ngx_http_range_header_filter_module"}
	Body   = &http.Module{Name: "ngx_http_range_body_filter_module"}
)

func init() {
	Header.HeaderFilter = func(next http.HeaderFilter) http.HeaderFilter {
		return func(r *http.Request) http.Rc { return headerFilter(r, next) }
	}
	Body.BodyFilter = func(next http.BodyFilter) http.BodyFilter {
		return func(r *http.Request, in *http.Chain) http.Rc { return bodyFilter(r, in, next) }
	}
}

// span is one range; end is one past its last byte.
type span struct {
	start, end   int64
	contentRange []byte // "0-4/10" CRLF CRLF, of a part
}

type ctx struct {
	offset   int64 // of the body's next byte
	spans    []span
	boundary []byte // CRLF "--…" CRLF and the part's header up to its Content-Range
}

var (
	keyContentRange = []byte("Content-Range")
	keyAcceptRanges = []byte("Accept-Ranges")
	valBytes        = []byte("bytes")
)

func headerFilter(r *http.Request, next http.HeaderFilter) http.Rc {
	out := &r.HeadersOut
	if r.Version < http.HTTP10 || out.Status != 200 || r != r.Main && !r.SubrequestRanges || out.ContentLengthN == -1 || !r.AllowRanges {
		return next(r)
	}
	limit := uint64(r.Core.MaxRanges)
	if limit == 0 {
		return next(r)
	}

	if wanted(r) {
		if r.SingleRange {
			limit = 1
		}
		c := &ctx{offset: out.ContentOffset}
		switch c.find(r, limit) {
		case http.OK:
			r.SetCtx(Body, c)
			out.Status = 206
			out.StatusLine = nil
			if len(c.spans) == 1 {
				c.single(r)
			} else {
				c.multi(r)
			}
			return next(r)
		case 416:
			out.Status = 416
			v := strconv.AppendInt(append(r.Alloc(28)[:0], "bytes */"...), out.ContentLengthN, 10)
			setContentRange(r, v)
			r.ClearContentLength()
			return 416
		}
	}

	out.AcceptRanges = r.AddHeaderOut(keyAcceptRanges, valBytes)
	return next(r)
}

// wanted reports a Range of bytes whose If-Range, if any, holds.
func wanted(r *http.Request) bool {
	h := r.HeadersIn.Range
	if h == nil || len(h.Value) < 7 || !ascii.EqualFold(h.Value[:6], "bytes=") {
		return false
	}
	if r.HeadersIn.IfRange == nil {
		return true
	}
	v := r.HeadersIn.IfRange.Value
	if n := len(v); n >= 2 && v[n-1] == '"' {
		etag := r.HeadersOut.ETag
		return etag != nil && bytes.Equal(v, etag.Value)
	}
	t := r.HeadersOut.LastModifiedTime
	return t != -1 && http.ParseHTTPTime(v) == t
}

// find gives a subrequest the ranges of the main request, and reads those of the main request.
func (c *ctx) find(r *http.Request, limit uint64) http.Rc {
	if r != r.Main {
		if main, _ := r.Main.Ctx(Body).(*ctx); main != nil {
			c.spans = main.spans
			return http.OK
		}
	}
	return c.parse(r.HeadersIn.Range.Value[6:], r.HeadersOut.ContentLengthN, limit)
}

// parse reads the list of ranges: OK, 416, or Declined (send the whole).
func (c *ctx) parse(s []byte, length int64, limit uint64) http.Rc {
	p := 0
	at := func() byte {
		if p < len(s) {
			return s[p]
		}
		return 0
	}
	spaces := func() {
		for at() == ' ' {
			p++
		}
	}
	number := func() (n int64, ok bool) {
		for at() >= '0' && at() <= '9' {
			d := int64(at() - '0')
			if n > (math.MaxInt64-d)/10 {
				return 0, false
			}
			n = n*10 + d
			p++
			ok = true
		}
		return n, ok
	}

	size := int64(0)
	for {
		var start, end int64
		var ok bool
		suffix := false
		open := false

		spaces()
		if at() == '-' {
			suffix = true
			p++
		} else {
			if start, ok = number(); !ok {
				return 416
			}
			spaces()
			if at() != '-' {
				return 416
			}
			p++
			spaces()
			open = at() == ',' || at() == 0
		}

		if open {
			end = length
		} else {
			if end, ok = number(); !ok {
				return 416
			}
			spaces()
			if at() != ',' && at() != 0 {
				return 416
			}
			if suffix {
				start = max(length-end, 0)
				end = length - 1
			}
			if end >= length {
				end = length
			} else {
				end++
			}
		}

		if start < end {
			c.spans = append(c.spans, span{start: start, end: end})
			if size > math.MaxInt64-(end-start) {
				return 416
			}
			size += end - start
			if limit == 0 {
				return http.Declined
			}
			limit--
		} else if start == 0 {
			return http.Declined
		}

		if at() != ',' {
			break
		}
		p++
	}
	if len(c.spans) == 0 {
		return 416
	}
	if size > length {
		return http.Declined
	}
	return http.OK
}

func setContentRange(r *http.Request, v []byte) {
	old := r.HeadersOut.ContentRange
	r.HeadersOut.ContentRange = r.AddHeaderOut(keyContentRange, v)
	if old != nil {
		old.Hash = 0
	}
}

func clearLength(r *http.Request) {
	if h := r.HeadersOut.ContentLength; h != nil {
		h.Hash = 0
		r.HeadersOut.ContentLength = nil
	}
}

// appendSpan appends "START-LAST/LENGTH".
func appendSpan(b []byte, s *span, length int64) []byte {
	b = append(strconv.AppendInt(b, s.start, 10), '-')
	b = append(strconv.AppendInt(b, s.end-1, 10), '/')
	return strconv.AppendInt(b, length, 10)
}

// spanText is the most bytes of appendSpan.
const spanText = 3*20 + 2

func (c *ctx) single(r *http.Request) {
	if r != r.Main {
		return
	}
	out := &r.HeadersOut
	s := &c.spans[0]
	setContentRange(r, appendSpan(append(r.Alloc(6 + spanText)[:0], "bytes "...), s, out.ContentLengthN))
	out.ContentLengthN = s.end - s.start
	out.ContentOffset = s.start
	clearLength(r)
}

func (c *ctx) multi(r *http.Request) {
	out := &r.HeadersOut
	number := boundaryNumber()

	b := append([]byte(nil), "\r\n--"...)
	b = append(append(b, number...), "\r\n"...)
	if len(out.ContentType) > 0 || out.ContentTypeLen == len(out.ContentType) && len(out.Charset) > 0 {
		b = append(append(b, "Content-Type: "...), out.ContentType...)
		if out.ContentTypeLen == len(out.ContentType) && len(out.Charset) > 0 {
			b = append(append(b, "; charset="...), out.Charset...)
		}
		b = append(b, "\r\n"...)
	}
	c.boundary = append(b, "Content-Range: bytes "...)

	out.ContentType = append([]byte("multipart/byteranges; boundary="), number...)
	out.ContentTypeLen = len(out.ContentType)
	out.ContentTypeLow = nil
	out.Charset = nil

	length := int64(len("\r\n--") + len(number) + len("--\r\n"))
	for i := range c.spans {
		s := &c.spans[i]
		s.contentRange = append(appendSpan(r.Alloc(spanText + 4)[:0], s, out.ContentLengthN), "\r\n\r\n"...)
		length += int64(len(c.boundary)+len(s.contentRange)) + s.end - s.start
	}
	out.ContentLengthN = length
	clearLength(r)
	if out.ContentRange != nil {
		out.ContentRange.Hash = 0
		out.ContentRange = nil
	}
}

// boundaryNumber is the next temporary number, in twenty digits.
func boundaryNumber() []byte {
	digits := strconv.AppendUint(nil, uint64(module.NextTempNumber(false)), 10)
	return append([]byte("00000000000000000000")[:20-len(digits)], digits...)
}
