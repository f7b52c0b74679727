package proxy

import (
	"strconv"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// addVariables declares $proxy_* (ngx_http_proxy_add_variables).
func addVariables(cf *module.Conf) error {
	for _, row := range []struct {
		name  string
		get   func(r *http.Request, v *http.VarValue, data any) http.Rc
		flags int
	}{
		{"proxy_host", hostVar, http.VarChangeable | http.VarNoCacheable | http.VarNoHash},
		{"proxy_port", portVar, http.VarChangeable | http.VarNoCacheable | http.VarNoHash},
		{"proxy_add_x_forwarded_for", forwardedVar, http.VarNoHash},
		{"proxy_internal_body_length", bodyLengthVar, http.VarNoCacheable | http.VarNoHash},
		{"proxy_internal_chunked", chunkedVar, http.VarNoCacheable | http.VarNoHash},
	} {
		v, err := http.AddVariable(cf, row.name, row.flags)
		if err != nil {
			return err
		}
		v.Get = row.get
	}
	return nil
}

func hostVar(r *http.Request, v *http.VarValue, _ any) http.Rc {
	c := ctxOf(r)
	if c == nil {
		return v.Missing()
	}
	return v.Set(c.vars.hostHeader)
}

func portVar(r *http.Request, v *http.VarValue, _ any) http.Rc {
	c := ctxOf(r)
	if c == nil {
		return v.Missing()
	}
	return v.Set(c.vars.port)
}

// forwardedVar is every X-Forwarded-For of the client, and its address behind them.
func forwardedVar(r *http.Request, v *http.VarValue, _ any) http.Rc {
	addr := r.Conn.PeerText
	n := 0
	for h := r.HeadersIn.XForwardedFor; h != nil; h = h.Next {
		n += len(h.Value) + len(", ")
	}
	b := r.Alloc(n + len(addr))[:0]
	for h := r.HeadersIn.XForwardedFor; h != nil; h = h.Next {
		b = append(append(b, h.Value...), ", "...)
	}
	return v.Set(append(b, addr...))
}

func bodyLengthVar(r *http.Request, v *http.VarValue, _ any) http.Rc {
	c := ctxOf(r)
	if c == nil || c.bodyLength < 0 {
		return v.Missing()
	}
	return v.Set(strconv.AppendInt(r.Alloc(20)[:0], c.bodyLength, 10))
}

var chunkedWord = []byte("chunked")

func chunkedVar(r *http.Request, v *http.VarValue, _ any) http.Rc {
	c := ctxOf(r)
	if c == nil || !c.chunkedOut {
		return v.Missing()
	}
	return v.Set(chunkedWord)
}
