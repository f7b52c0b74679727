package proxy

import (
	"strings"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/upstream"
)

// cutScheme takes "http://" off; https is known and refused by whoever asks.
func cutScheme(url string) (schema, rest string, ok bool) {
	const plain = "http://"
	if len(url) >= len(plain) && ascii.EqualFold(url[:len(plain)], plain) {
		return url[:len(plain)], url[len(plain):], true
	}
	return "", "", false
}

func isHTTPS(url string) bool {
	const tls = "https://"
	return len(url) >= len(tls) && ascii.EqualFold(url[:len(tls)], tls)
}

// setPass is proxy_pass (ngx_http_proxy_pass).
func setPass(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.up.Upstream != nil || c.pass != nil {
		return module.ErrDuplicate
	}
	clcf := http.ConfLoc(cf, http.Modules[0]).(*http.CoreLoc)
	clcf.Handler = handle
	if strings.HasSuffix(clcf.Name, "/") {
		clcf.AutoRedirect = true
	}
	url := cf.Args[1]
	if http.ScriptVariablesCount(url) > 0 {
		v, err := http.CompileComplexValue(cf, url)
		if err != nil {
			return err
		}
		c.pass = v
		return nil
	}

	schema, rest, ok := cutScheme(url)
	if !ok {
		if isHTTPS(url) {
			return cf.NotSupported("proxy_pass " + url)
		}
		return cf.Emerg("invalid URL prefix")
	}
	u := upstream.URL{Text: rest, DefaultPort: 80, URIPart: true, NoResolve: true}
	us, err := upstream.Add(cf, &u, 0)
	if err != nil {
		return err
	}
	c.up.Upstream = us
	c.vars.schema = []byte(schema)
	c.vars.set(&u)
	c.location = clcf.Name
	if clcf.Named || clcf.Regex != nil || clcf.Noname {
		if len(c.vars.uri) > 0 {
			return cf.Emerg("\"proxy_pass\" cannot have URI part in location given by regular expression, " +
				"or inside named location, or inside \"if\" statement, or inside \"limit_except\" block")
		}
		c.location = ""
	}
	c.url = url
	return nil
}

// set takes what a URL gives (ngx_http_proxy_set_vars).
func (v *vars) set(u *upstream.URL) {
	switch {
	case u.Unix:
		v.hostHeader, v.port = []byte("localhost"), nil
	case u.NoPort || u.Port == u.DefaultPort:
		v.hostHeader, v.port = []byte(u.Host), []byte("80")
	default:
		v.hostHeader, v.port = []byte(u.Host+":"+u.PortText), []byte(u.PortText)
	}
	v.uri = []byte(u.URI)
}

// setStore is proxy_store.
func setStore(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.up.Store != module.Unset {
		return module.ErrDuplicate
	}
	switch v := cf.Args[1]; module.CText(v) {
	case "off":
		c.up.Store = 0
	case "on":
		c.up.Store = 1
	default:
		c.up.Store = 1
		// The byte that ends a C string is part of what nginx compiles.
		cv, err := http.CompileComplexValue(cf, v+"\x00")
		if err != nil {
			return err
		}
		c.up.StoreValue = cv
	}
	return nil
}

// headerSet is what is sent in place of, or besides, the client's header (ngx_http_proxy_headers_t).
type headerSet struct {
	lines   []headerLine
	names   map[string]struct{} // lower case: these of the client's are not passed on
	buckets uint64              // of nginx's table of the names
}

type headerLine struct {
	key   string
	value *http.ComplexValue
}

var defaultHeaders = []module.Keyval{
	{Key: "Host", Value: "$proxy_host"},
	{Key: "Connection", Value: "close"},
	{Key: "Content-Length", Value: "$proxy_internal_body_length"},
	{Key: "Transfer-Encoding", Value: "$proxy_internal_chunked"},
	{Key: "TE"},
	{Key: "Keep-Alive"},
	{Key: "Expect"},
	{Key: "Upgrade"},
}

// initHeaders merges proxy_set_header with the defaults (ngx_http_proxy_init_headers).
func (c *locConf) initHeaders(cf *module.Conf) error {
	merged := append([]module.Keyval(nil), c.headersSource...)
	own := len(merged)
defaults:
	for _, d := range defaultHeaders {
		for _, s := range merged[:own] {
			if ascii.EqualFold(s.Key, d.Key) {
				continue defaults
			}
		}
		merged = append(merged, d)
	}
	set := &headerSet{names: map[string]struct{}{}}
	var keys []string
	for _, h := range merged {
		low := ascii.Lower(h.Key)
		set.names[low] = struct{}{}
		keys = append(keys, low)
		if h.Value == "" {
			continue
		}
		v, err := http.CompileComplexValue(cf, h.Value)
		if err != nil {
			return err
		}
		set.lines = append(set.lines, headerLine{h.Key, v})
	}
	c.headers = set
	size, err := c.hashLimits().Size(cf, keys)
	set.buckets = uint64(size)
	return err
}

// replaces tells whether the set has the name of a request's field, as nginx finds it: by a hash that leaves out what may
// not stand in names, in the bucket of a table whose own names are hashed whole (ngx_http_parse_header_line, ngx_hash_find).
func (s *headerSet) replaces(h *http.Header) bool {
	if _, ok := s.names[string(h.Low)]; !ok {
		return false
	}
	plain := func(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' }
	whole := http.HashKey(h.Low, func(byte) bool { return true })
	found := http.HashKey(h.Low, plain)
	if uint32(found) != h.Hash { // underscores_in_headers was on
		found = http.HashKey(h.Low, func(c byte) bool { return plain(c) || c == '_' })
	}
	return found%s.buckets == whole%s.buckets
}

// checkHash says what nginx would of its hash table of these names.
func (c *locConf) checkHash(cf *module.Conf, names []string) error {
	return c.hashLimits().Check(cf, names)
}

func (c *locConf) hashLimits() http.HashLimits {
	return http.HashLimits{Name: "proxy_headers_hash", Max: c.headersHashMaxSize, BucketSize: c.headersHashBucketSize}
}
