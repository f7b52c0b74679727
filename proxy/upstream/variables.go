package upstream

import (
	"strconv"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// AddVariables declares $upstream_* (ngx_http_upstream_add_variables). The names of the cache's
// are known, and empty: there is no cache.
func AddVariables(cf *module.Conf) error {
	for _, row := range []struct {
		name  string
		get   func(r *http.Request, v *http.VarValue, data any) http.Rc
		flags int
	}{
		{"upstream_addr", statesVar(appendAddr), http.VarNoCacheable},
		{"upstream_status", statesVar(appendStatus), http.VarNoCacheable},
		{"upstream_connect_time", statesVar(func(b []byte, s *State) []byte { return appendMs(b, s.ConnectTime) }), http.VarNoCacheable},
		{"upstream_header_time", statesVar(func(b []byte, s *State) []byte { return appendMs(b, s.HeaderTime) }), http.VarNoCacheable},
		{"upstream_response_time", statesVar(func(b []byte, s *State) []byte { return appendMs(b, s.ResponseTime) }), http.VarNoCacheable},
		{"upstream_response_length", statesVar(func(b []byte, s *State) []byte { return strconv.AppendInt(b, s.ResponseLength, 10) }), http.VarNoCacheable},
		{"upstream_bytes_received", statesVar(func(b []byte, s *State) []byte { return strconv.AppendInt(b, s.BytesReceived, 10) }), http.VarNoCacheable},
		{"upstream_bytes_sent", statesVar(func(b []byte, s *State) []byte { return strconv.AppendInt(b, s.BytesSent, 10) }), http.VarNoCacheable},
		{"upstream_cache_status", missing, http.VarNoCacheable},
		{"upstream_cache_last_modified", missing, http.VarNoCacheable | http.VarNoHash},
		{"upstream_cache_etag", missing, http.VarNoCacheable | http.VarNoHash},
		{"upstream_http_", headerVar, http.VarNoCacheable | http.VarPrefix},
		{"upstream_trailer_", trailerVar, http.VarNoCacheable | http.VarPrefix},
		{"upstream_cookie_", cookieVar, http.VarNoCacheable | http.VarPrefix},
	} {
		v, err := http.AddVariable(cf, row.name, row.flags)
		if err != nil {
			return err
		}
		v.Get = row.get
	}
	return nil
}

func missing(r *http.Request, v *http.VarValue, _ any) http.Rc { return v.Missing() }

// statesVar lists a value of every peer that was tried: ", " between the peers of one upstream,
// " : " where an internal redirect came between.
func statesVar(add func(b []byte, s *State) []byte) func(r *http.Request, v *http.VarValue, data any) http.Rc {
	return func(r *http.Request, v *http.VarValue, _ any) http.Rc {
		st, _ := r.UpstreamStates.(*States)
		if st == nil || len(st.List) == 0 {
			return v.Missing()
		}
		list := st.List
		b := r.Alloc(64 * len(list))[:0]
		for i := 0; ; {
			b = add(b, &list[i])
			if i++; i == len(list) {
				break
			}
			if list[i].Peer != nil {
				b = append(b, ", "...)
				continue
			}
			b = append(b, " : "...)
			if i++; i == len(list) {
				break
			}
		}
		return v.Set(b)
	}
}

func appendAddr(b []byte, s *State) []byte { return append(b, s.Peer...) }

func appendStatus(b []byte, s *State) []byte {
	if s.Status == 0 {
		return append(b, '-')
	}
	return strconv.AppendInt(b, int64(s.Status), 10)
}

func appendMs(b []byte, ms int64) []byte {
	if ms == -1 {
		return append(b, '-')
	}
	ms = max(ms, 0)
	b = strconv.AppendInt(b, ms/1000, 10)
	return append(b, '.', byte('0'+ms/100%10), byte('0'+ms/10%10), byte('0'+ms%10))
}

func headerVar(r *http.Request, v *http.VarValue, data any) http.Rc {
	u := Of(r)
	if u == nil {
		return v.Missing()
	}
	return http.UnknownHeader(r, v, data.(string), u.HeadersIn.Headers, len("upstream_http_"))
}

func trailerVar(r *http.Request, v *http.VarValue, data any) http.Rc {
	u := Of(r)
	if u == nil {
		return v.Missing()
	}
	return http.UnknownHeader(r, v, data.(string), u.HeadersIn.Trailers, len("upstream_trailer_"))
}

func cookieVar(r *http.Request, v *http.VarValue, data any) http.Rc {
	u := Of(r)
	if u == nil {
		return v.Missing()
	}
	name := data.(string)[len("upstream_cookie_"):]
	val, ok := setCookie(u.HeadersIn.SetCookie, name)
	if !ok {
		return v.Missing()
	}
	return v.Set(val)
}

// setCookie finds a cookie's value among Set-Cookie lines: the name must come first, up to ";"
// (ngx_http_parse_set_cookie_lines).
func setCookie(h *http.Header, name string) ([]byte, bool) {
	for ; h != nil; h = h.Next {
		v := h.Value
		if len(name) >= len(v) || indexFold(v[:len(name)], ascii.Lower(name)) != 0 {
			continue
		}
		v = v[len(name):]
		for len(v) > 0 && v[0] == ' ' {
			v = v[1:]
		}
		if len(v) == 0 || v[0] != '=' {
			continue
		}
		v = v[1:]
		for len(v) > 0 && v[0] == ' ' {
			v = v[1:]
		}
		for i, c := range v {
			if c == ';' {
				v = v[:i]
				break
			}
		}
		return v, true
	}
	return nil, false
}
