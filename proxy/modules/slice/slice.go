// Package slice makes a response out of ranges asked for one after the other
// (nginx: src/http/modules/ngx_http_slice_filter_module.c).
package slice

import (
	"bytes"
	"math"
	"strconv"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

type conf struct{ size int64 }

type ctx struct {
	start, end int64
	text       []byte // $slice_range
	etag       []byte
	last       bool // the main request's part has ended
	active     bool // the present slice has been answered
	sub        *http.Request
}

// Module is ngx_http_slice_filter_module.
var Module = &http.Module{}

func init() {
	*Module = http.Module{
		Name: "ngx_http_slice_filter_module",
		Directives: []module.Directive{{
			Name: "slice", Where: http.InHTTPSrvLoc, Args: module.Take1, Level: module.LocConf,
			Set: module.SizeSlot(func(c *conf) *int64 { return &c.size }),
		}},
		Preconf: func(cf *module.Conf) error {
			v, err := http.AddVariable(cf, "slice_range", 0)
			if err == nil {
				v.Get = rangeVariable
			}
			return err
		},
		CreateLoc: func(*module.Conf) any { return &conf{module.Unset} },
		MergeLoc: func(_ *module.Conf, prev, c any) error {
			module.MergeInt64(&c.(*conf).size, prev.(*conf).size, 0)
			return nil
		},
		HeaderFilter: func(next http.HeaderFilter) http.HeaderFilter {
			return func(r *http.Request) http.Rc { return headerFilter(r, next) }
		},
		BodyFilter: func(next http.BodyFilter) http.BodyFilter {
			return func(r *http.Request, in *http.Chain) http.Rc { return bodyFilter(r, in, next) }
		},
	}
}

func headerFilter(r *http.Request, next http.HeaderFilter) http.Rc {
	c, _ := r.Ctx(Module).(*ctx)
	if c == nil {
		return next(r)
	}
	out := &r.HeadersOut
	fail := func(format string, args ...any) http.Rc {
		r.Conn.Log.Err(elog.Error, nil, format, args...)
		return http.Error
	}
	if out.Status != 206 {
		if r == r.Main {
			r.SetCtx(Module, nil)
			return next(r)
		}
		return fail("unexpected status code %d in slice response", out.Status)
	}
	if len(c.etag) > 0 && (out.ETag == nil || !bytes.Equal(out.ETag.Value, c.etag)) {
		return fail("etag mismatch in slice response")
	}
	if out.ETag != nil {
		c.etag = out.ETag.Value
	}
	start, end, length, ok := parseContentRange(out.ContentRange)
	if !ok {
		return fail("invalid range in slice response")
	}
	if length == -1 {
		return fail("no complete length in slice response")
	}
	size := r.LocConf[Module.Index].(*conf).size
	until := min(start+size, length)
	if start != c.start || end != until {
		return fail("unexpected range in slice response: %d-%d", start, end)
	}
	c.start = until
	c.active = true

	out.Status = 200
	out.StatusLine = nil
	out.ContentLengthN = length
	out.ContentOffset = start
	out.ContentRange.Hash = 0
	out.ContentRange = nil
	if out.AcceptRanges != nil {
		out.AcceptRanges.Hash = 0
		out.AcceptRanges = nil
	}
	r.AllowRanges, r.SubrequestRanges, r.SingleRange = true, true, true

	rc := next(r)
	if r != r.Main {
		return rc
	}
	r.PreserveBody = true
	c.end = length
	if out.Status == 206 {
		if c.start+size <= out.ContentOffset {
			c.start = size * (out.ContentOffset / size)
		}
		c.end = out.ContentOffset + out.ContentLengthN
	}
	return rc
}

func bodyFilter(r *http.Request, in *http.Chain, next http.BodyFilter) http.Rc {
	c, _ := r.Ctx(Module).(*ctx)
	if c == nil || r != r.Main {
		return next(r, in)
	}
	for cl := in; cl != nil; cl = cl.Next {
		if b := cl.Buf; b.LastBuf {
			b.LastBuf, b.LastInChain, b.Sync = false, true, true
			c.last = true
		}
	}
	rc := next(r, in)
	switch {
	case rc == http.Error, !c.last, c.sub != nil && !c.sub.Done:
		return rc
	case !c.active:
		r.Conn.Log.Err(elog.Error, nil, "missing slice response")
		return http.Error
	case c.start >= c.end:
		r.SetCtx(Module, nil)
		r.SendSpecial(true, false)
		return rc
	case r.Buffered != 0:
		return rc
	}

	sub, sc := r.Subrequest(r.URI, r.Args, nil, http.SubClone)
	if sc != http.OK {
		return http.Error
	}
	c.sub = sub
	sub.SetCtx(Module, c)
	c.setText(r.LocConf[Module.Index].(*conf).size)
	c.active = false
	return rc
}

func (c *ctx) setText(size int64) {
	b := append(c.text[:0:0], "bytes="...)
	b = append(strconv.AppendInt(b, c.start, 10), '-')
	c.text = strconv.AppendInt(b, c.start+size-1, 10)
}

// scanner reads a header's value; it reads 0 at the end.
type scanner struct {
	s  []byte
	ok bool
}

func (p *scanner) peek() byte {
	if len(p.s) == 0 {
		return 0
	}
	return p.s[0]
}

func (p *scanner) spaces() {
	for p.peek() == ' ' {
		p.s = p.s[1:]
	}
}

func (p *scanner) byte(c byte) {
	if p.spaces(); p.peek() != c {
		p.ok = false
		return
	}
	p.s = p.s[1:]
}

func (p *scanner) number() (n int64) {
	p.spaces()
	digits := false
	for ; p.peek() >= '0' && p.peek() <= '9'; p.s = p.s[1:] {
		d := int64(p.peek() - '0')
		if n > (math.MaxInt64-d)/10 {
			p.ok = false
			return 0
		}
		n = n*10 + d
		digits = true
	}
	p.ok = p.ok && digits
	return n
}

// parseContentRange reads "bytes 0-4/10"; end is one past the last byte, length -1 for "*".
func parseContentRange(h *http.Header) (start, end, length int64, ok bool) {
	if h == nil || len(h.Value) < 7 || string(h.Value[:6]) != "bytes " {
		return 0, 0, 0, false
	}
	p := scanner{s: h.Value[6:], ok: true}
	start = p.number()
	if p.ok {
		p.byte('-')
	}
	if p.ok {
		end = p.number() + 1
	}
	if p.ok {
		p.byte('/')
	}
	if p.ok {
		if p.spaces(); p.peek() == '*' {
			length = -1
			p.s = p.s[1:]
		} else {
			length = p.number()
		}
		p.spaces()
	}
	return start, end, length, p.ok && len(p.s) == 0
}

// rangeVariable is $slice_range, which begins the slicing when it is first read.
func rangeVariable(r *http.Request, v *http.VarValue, _ any) http.Rc {
	c, _ := r.Ctx(Module).(*ctx)
	if c == nil {
		size := r.LocConf[Module.Index].(*conf).size
		if r != r.Main || r.HeadersOut.Status != 0 || size == 0 {
			return v.Missing()
		}
		c = &ctx{start: size * (firstByte(r) / size)}
		c.setText(size)
		r.SetCtx(Module, c)
	}
	rc := v.Set(c.text)
	v.NoCacheable = true
	return rc
}

// firstByte is where the range that the client wants begins.
func firstByte(r *http.Request) int64 {
	h := r.HeadersIn.Range
	if r.HeadersIn.IfRange != nil || h == nil || len(h.Value) < 7 || !ascii.EqualFold(h.Value[:6], "bytes=") {
		return 0
	}
	s := h.Value[6:]
	if bytes.IndexByte(s, ',') >= 0 {
		return 0
	}
	p := scanner{s: s, ok: true}
	if p.spaces(); p.peek() == '-' {
		return 0
	}
	n := p.number()
	if !p.ok {
		return 0
	}
	return n
}
