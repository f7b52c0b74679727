// Package gzip compresses responses, byte for byte as zlib does
// (nginx: src/http/modules/ngx_http_gzip_filter_module.c).
package gzip

import (
	"strconv"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/zlib"
)

type mainConf struct{ idle map[key][]*zlib.Deflater }

// key is what a Deflater is made with.
type key struct{ level, bits, memLevel int }

type conf struct {
	enable    int
	bufs      module.Bufs
	types     *http.TypeSet
	level     int
	window    int64 // bits
	hash      int64 // zlib's memLevel
	postpone  int64 // bytes
	minLength int64 // bytes
}

// Module is ngx_http_gzip_filter_module.
var Module = &http.Module{}

func init() {
	const where = http.InHTTPSrvLoc
	*Module = http.Module{
		Name: "ngx_http_gzip_filter_module",
		Directives: []module.Directive{
			{Name: "gzip", Where: http.InHTTPSrvLocLif, Args: module.Flag, Level: module.LocConf,
				Set: module.FlagSlot(func(c *conf) *int { return &c.enable })},
			{Name: "gzip_buffers", Where: where, Args: module.Take2, Level: module.LocConf,
				Set: module.BufsSlot(func(c *conf) *module.Bufs { return &c.bufs })},
			{Name: "gzip_types", Where: where, Args: module.OneMore, Level: module.LocConf,
				Set: http.TypesSlot(func(c *conf) **http.TypeSet { return &c.types }, "text/html")},
			{Name: "gzip_comp_level", Where: where, Args: module.Take1, Level: module.LocConf,
				Set: module.NumSlot(func(c *conf) *int { return &c.level }), Post: module.Bounds{Low: 1, High: 9}},
			{Name: "gzip_window", Where: where, Args: module.Take1, Level: module.LocConf,
				Set:  module.SizeSlot(func(c *conf) *int64 { return &c.window }),
				Post: bitsOf(32<<10, 15, "must be 512, 1k, 2k, 4k, 8k, 16k, or 32k")},
			{Name: "gzip_hash", Where: where, Args: module.Take1, Level: module.LocConf,
				Set:  module.SizeSlot(func(c *conf) *int64 { return &c.hash }),
				Post: bitsOf(128<<10, 9, "must be 512, 1k, 2k, 4k, 8k, 16k, 32k, 64k, or 128k")},
			{Name: "postpone_gzipping", Where: where, Args: module.Take1, Level: module.LocConf,
				Set: module.SizeSlot(func(c *conf) *int64 { return &c.postpone })},
			{Name: "gzip_min_length", Where: where, Args: module.Take1, Level: module.LocConf,
				Set: module.SizeSlot(func(c *conf) *int64 { return &c.minLength })},
		},
		Preconf: func(cf *module.Conf) error {
			v, err := http.AddVariable(cf, "gzip_ratio", http.VarNoHash)
			if err == nil {
				v.Get = ratio
			}
			return err
		},
		CreateMain: func(cf *module.Conf) any {
			mc := &mainConf{idle: map[key][]*zlib.Deflater{}}
			cf.Cycle.AtExit = append(cf.Cycle.AtExit, mc.close)
			return mc
		},
		CreateLoc: func(*module.Conf) any {
			return &conf{enable: module.Unset, level: module.Unset, window: module.Unset, hash: module.Unset,
				postpone: module.Unset, minLength: module.Unset}
		},
		MergeLoc: func(cf *module.Conf, prev, c any) error {
			p, gc := prev.(*conf), c.(*conf)
			module.MergeInt(&gc.enable, p.enable, 0)
			module.MergeBufs(&gc.bufs, p.bufs, 32, 4096)
			module.MergeInt64(&gc.postpone, p.postpone, 0)
			module.MergeInt(&gc.level, p.level, 1)
			module.MergeInt64(&gc.window, p.window, 15)
			module.MergeInt64(&gc.hash, p.hash, 8)
			module.MergeInt64(&gc.minLength, p.minLength, 20)
			return http.MergeTypes(cf, &gc.types, p.types, "text/html")
		},
		HeaderFilter: func(next http.HeaderFilter) http.HeaderFilter {
			return func(r *http.Request) http.Rc { return headerFilter(r, next) }
		},
		BodyFilter: func(next http.BodyFilter) http.BodyFilter {
			return func(r *http.Request, in *http.Chain) http.Rc { return bodyFilter(r, in, next) }
		},
	}
}

// close frees the idle Deflaters: their memory is not the collector's.
func (mc *mainConf) close() {
	for _, idle := range mc.idle {
		for _, z := range idle {
			z.Close()
		}
	}
	mc.idle = nil
}

// bitsOf turns a size that is a power of two, from 512 up to largest, into zlib's number for it.
func bitsOf(largest, bits int64, text module.Text) module.PostFunc {
	return func(_ *module.Conf, _ *module.Directive, field any) error {
		n := field.(*int64)
		for size, b := largest, bits; size > 256; size, b = size>>1, b-1 {
			if size == *n {
				*n = b
				return nil
			}
		}
		return text
	}
}

var (
	keyContentEncoding = []byte("Content-Encoding")
	valGzip            = []byte("gzip")
)

func headerFilter(r *http.Request, next http.HeaderFilter) http.Rc {
	gc := r.LocConf[Module.Index].(*conf)
	out := &r.HeadersOut
	if gc.enable == 0 || r.HeaderOnly ||
		out.Status != 200 && out.Status != 403 && out.Status != 404 ||
		out.ContentEncoding != nil && len(out.ContentEncoding.Value) > 0 ||
		out.ContentLengthN != -1 && out.ContentLengthN < gc.minLength ||
		!gc.types.Has(r) {
		return next(r)
	}
	r.GzipVary = true
	if !r.GzipAccepted() {
		return next(r)
	}

	// A short response needs no large window.
	k := key{level: gc.level, bits: int(gc.window), memLevel: int(gc.hash)}
	if n := out.ContentLengthN; n > 0 {
		for n < 1<<(k.bits-1)-262 {
			k.bits--
			k.memLevel--
		}
		k.memLevel = max(k.memLevel, 1)
	}
	g := &ctx{key: k, conf: gc, buffering: gc.postpone != 0}
	r.SetCtx(Module, g)

	out.ContentEncoding = r.AddHeaderOut(keyContentEncoding, valGzip)
	r.MainFilterNeedInMemory = true
	r.ClearContentLength()
	r.ClearAcceptRanges()
	r.WeakETag()
	return next(r)
}

// ratio is $gzip_ratio, rounded to two decimals.
func ratio(r *http.Request, v *http.VarValue, _ any) http.Rc {
	g, _ := r.Ctx(Module).(*ctx)
	if g == nil || g.zout == 0 {
		return v.Missing()
	}
	whole, frac := g.zin/g.zout, g.zin*100/g.zout%100
	if g.zin*1000/g.zout%10 > 4 {
		if frac++; frac > 99 {
			whole, frac = whole+1, 0
		}
	}
	b := append(strconv.AppendInt(nil, whole, 10), '.', byte('0'+frac/10), byte('0'+frac%10))
	return v.Set(b)
}
