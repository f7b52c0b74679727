package charset

import (
	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
)

func headerFilter(r *http.Request, next http.HeaderFilter) http.Rc {
	mc := r.MainConf[Module.Index].(*mainConf)
	lc := r.LocConf[Module.Index].(*locConf)
	out := &r.HeadersOut

	var dst int
	var dstName []byte
	var rc http.Rc
	if r == r.Main {
		dst, dstName, rc = destination(r, mc, lc)
	} else {
		dst, dstName, rc = ofMain(r, mc)
	}
	switch rc {
	case http.Error:
		return rc
	case http.Declined:
		return next(r)
	}

	src, srcName, rc := source(r, mc, lc)
	if rc != http.OK {
		return rc
	}

	switch {
	case src == setOff:
		tell(r, dstName)
		return next(r)

	case dst == setNone || src == setNone:
		if src != dst || len(srcName) < len(dstName) || !ascii.EqualFold(dstName, srcName[:len(dstName)]) {
			return noMap(r, srcName, dstName, next)
		}
		tell(r, dstName)
		return next(r)

	case src == dst:
		out.ContentType = out.ContentType[:out.ContentTypeLen]
		tell(r, dstName)
		return next(r)

	case out.ContentEncoding != nil && len(out.ContentEncoding.Value) > 0:
		return next(r)
	}

	t := mc.sets[src].to[dst]
	if t == nil {
		return noMap(r, srcName, dstName, next)
	}
	out.ContentType = out.ContentType[:out.ContentTypeLen]
	tell(r, dstName)

	r.SetCtx(Module, &ctx{table: t, charset: dst, name: []byte(mc.sets[dst].name), length: mc.sets[dst].length})
	r.FilterNeedInMemory = true
	if t.bytes == nil && r == r.Main {
		r.ClearContentLength()
	} else {
		r.FilterNeedTemporary = true
	}
	return next(r)
}

func noMap(r *http.Request, src, dst []byte, next http.HeaderFilter) http.Rc {
	r.Conn.Log.Err(elog.Error, nil, `no "charset_map" between the charsets "%s" and "%s"`, src, dst)
	return next(r)
}

// destination is the set that the response shall have; Declined: nothing is to be done.
func destination(r *http.Request, mc *mainConf, lc *locConf) (int, []byte, http.Rc) {
	out := &r.HeadersOut
	if len(out.ContentType) == 0 {
		return 0, nil, http.Declined
	}
	if name := out.OverrideCharset; len(name) > 0 {
		if i := mc.find(string(name)); i != setNone {
			return i, name, http.OK
		}
		r.Conn.Log.Err(elog.Error, nil, `unknown charset "%s" to override`, name)
		return 0, nil, http.Declined
	}
	if lc.charset == setOff {
		return 0, nil, http.Declined
	}
	if len(out.Charset) > 0 {
		if lc.override == 0 {
			return 0, nil, http.Declined
		}
	} else if !lc.types.Has(r) {
		return 0, nil, http.Declined
	}
	return named(r, mc, lc.charset)
}

// named is a set of the configuration, which may be a variable's value.
func named(r *http.Request, mc *mainConf, i int) (int, []byte, http.Rc) {
	if i < varBase {
		return i, []byte(mc.sets[i].name), http.OK
	}
	v := r.IndexedVariable(i - varBase)
	if v == nil || v.NotFound {
		return 0, nil, http.Error
	}
	return mc.find(string(v.V)), v.V, http.OK
}

// ofMain is the set of the main request, which a subrequest's output must be in.
func ofMain(r *http.Request, mc *mainConf) (int, []byte, http.Rc) {
	if c, _ := r.Main.Ctx(Module).(*ctx); c != nil {
		return c.charset, c.name, http.OK
	}
	name := r.Main.HeadersOut.Charset
	if len(name) == 0 {
		return 0, nil, http.Declined
	}
	i := mc.find(string(name))
	r.Main.SetCtx(Module, &ctx{charset: i, name: name})
	return i, name, http.OK
}

func source(r *http.Request, mc *mainConf, lc *locConf) (int, []byte, http.Rc) {
	if name := r.HeadersOut.Charset; len(name) > 0 {
		return mc.find(string(name)), name, http.OK
	}
	if lc.source == setOff {
		return setOff, nil, http.OK
	}
	return named(r, mc, lc.source)
}

// tell puts the set into the main response's Content-Type, but not into a redirect's.
func tell(r *http.Request, name []byte) {
	if r != r.Main {
		return
	}
	if r.HeadersOut.Status == 301 || r.HeadersOut.Status == 302 {
		name = nil
	}
	r.HeadersOut.Charset = name
}
