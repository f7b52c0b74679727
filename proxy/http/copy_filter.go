package http

import "nginxoracle/proxy/module"

// CopyFilterModule reads files into memory where they cannot be sent as they are
// (ngx_http_copy_filter_module.c).
var CopyFilterModule = &Module{
	Name: "ngx_http_copy_filter_module",
	Directives: []module.Directive{{
		Name: "output_buffers", Where: module.HTTPMain | module.HTTPSrv | module.HTTPLoc, Args: module.Take2,
		Level: module.LocConf, Set: module.BufsSlot(func(c *copyConf) *module.Bufs { return &c.bufs }),
	}},
	CreateLoc: func(*module.Conf) any { return &copyConf{} },
	MergeLoc: func(_ *module.Conf, prev, conf any) error {
		module.MergeBufs(&conf.(*copyConf).bufs, prev.(*copyConf).bufs, 2, 32768)
		return nil
	},
}

type copyConf struct{ bufs module.Bufs }

func init() {
	// Set here because the filter names the module.
	CopyFilterModule.BodyFilter = func(next BodyFilter) BodyFilter {
		return func(r *Request, in *Chain) Rc { return copyFilter(r, in, next) }
	}
}

func copyFilter(r *Request, in *Chain, next BodyFilter) Rc {
	o := &r.copy
	if !r.copySet {
		r.copySet = true
		*o = OutputChain{
			R: r, Sendfile: r.HC.Sendfile,
			NeedInMemory: r.MainFilterNeedInMemory || r.FilterNeedInMemory,
			NeedTmp:      r.FilterNeedTemporary,
			Bufs:         r.LocConf[CopyFilterModule.Index].(*copyConf).bufs,
			Tag:          CopyFilterModule, Filter: next,
		}
		// A chunk, a filter's window and a pause of limit_rate end where a buffer does; a subrequest has no say in whether there are chunks.
		o.Whole = !o.NeedInMemory && !o.NeedTmp && r == r.Main && !r.Chunked && r.LimitRate == 0 && r.Core.LimitRateValue == nil
		if in != nil && in.Buf != nil && in.Buf.Size() != 0 {
			r.RequestOutput = true
		}
	}
	rc := o.Output(in)
	if o.In == nil {
		r.Buffered &^= CopyBuffered
	} else {
		r.Buffered |= CopyBuffered
	}
	return rc
}
