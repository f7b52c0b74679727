// Package stub_status answers with the numbers of connections and requests
// (nginx: src/http/modules/ngx_http_stub_status_module.c).
package stub_status

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_stub_status_module.
var Module = &http.Module{
	Name: "ngx_http_stub_status_module",
	Directives: []module.Directive{{
		Name: "stub_status", Where: module.HTTPSrv | module.HTTPLoc, Args: module.NoArgs | module.Take1,
		Set: func(cf *module.Conf, _ *module.Directive, _ any) error {
			http.SetHandler(cf, handler)
			return nil
		},
	}},
	Preconf: func(cf *module.Conf) error {
		for _, v := range []struct {
			name  string
			count *atomic.Int64
		}{
			{"connections_active", &ev.Stats.Active},
			{"connections_reading", &ev.Stats.Reading},
			{"connections_writing", &ev.Stats.Writing},
			{"connections_waiting", &ev.Stats.Waiting},
		} {
			variable, err := http.AddVariable(cf, v.name, http.VarNoCacheable)
			if err != nil {
				return err
			}
			variable.Get = func(r *http.Request, to *http.VarValue, _ any) http.Rc {
				r.Conn.Loop.Flush() // requests that are over but for the sending
				return to.Set(strconv.AppendInt(r.Alloc(20)[:0], v.count.Load(), 10))
			}
		}
		return nil
	},
}

func handler(r *http.Request) http.Rc {
	if r.Method&(http.GET|http.HEAD) == 0 {
		return 405
	}
	if rc := r.DiscardRequestBody(); rc != http.OK {
		return rc
	}
	r.Conn.Loop.Flush() // requests that are over but for the sending
	s := &ev.Stats
	body := fmt.Appendf(nil, "Active connections: %d \nserver accepts handled requests\n %d %d %d \nReading: %d Writing: %d Waiting: %d \n",
		s.Active.Load(), s.Accepted.Load(), s.Handled.Load(), s.Requests.Load(),
		s.Reading.Load(), s.Writing.Load(), s.Waiting.Load())

	out := &r.HeadersOut
	out.ContentType, out.ContentTypeLow = []byte("text/plain"), nil
	out.ContentTypeLen = len(out.ContentType)
	out.Status = 200
	out.ContentLengthN = int64(len(body))
	rc := r.SendHeader()
	if rc == http.Error || rc > http.OK || r.HeaderOnly {
		return rc
	}
	b := r.NewBuf()
	b.Data, b.Temporary = body, true
	b.LastBuf = r == r.Main
	b.LastInChain = true
	return r.OutputFilter(r.NewChain(b))
}
