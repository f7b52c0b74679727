package gen

import (
	"fmt"
	"regexp"
	"strings"

	"nginxoracle/oracle/minimize/conftree"
)

// stable are variables whose value is the same whenever the same case is run.
// The others (times, process and connection numbers, client ports) have a form
// that only a log line's mask can check; see volatile.
var stable = []string{
	"args", "arg_a", "arg_b", "arg_nope", "binary_remote_addr", "body_bytes_sent", "bytes_sent", "connection_requests",
	"content_length", "content_type", "cookie_c", "cookie_nope", "document_root", "document_uri", "host", "http_cookie", "http_host",
	"http_referer", "http_user_agent", "http_via", "http_x_a", "http_x_b", "http_x_forwarded_for", "http_range", "https", "is_args",
	"limit_rate", "nginx_version", "pipe", "query_string", "realpath_root", "remote_addr", "remote_user", "request", "request_body",
	"request_completion", "request_filename", "request_length", "request_method", "request_uri", "scheme",
	"sent_http_cache_control", "sent_http_connection", "sent_http_content_length", "sent_http_content_type",
	"sent_http_keep_alive", "sent_http_last_modified", "sent_http_link", "sent_http_location", "sent_http_transfer_encoding", "sent_http_x_a",
	"sent_http_etag", "sent_trailer_x_a", "server_addr", "server_name", "server_port", "server_protocol", "status", "uri",
	"upstream_addr", "upstream_status", "upstream_http_x_a", "upstream_http_server", "upstream_http_content_type", "upstream_cookie_c",
	"upstream_response_length", "upstream_bytes_received", "upstream_bytes_sent", "proxy_host", "proxy_port",
	"proxy_add_x_forwarded_for", "upstream_trailer_x_a", "request_body_file", "proxy_protocol_addr",
	"hostname", "proxy_protocol_port", "proxy_protocol_server_addr", "proxy_protocol_server_port", "proxy_protocol_tlv_authority", "realip_remote_addr",
	"proxy_internal_body_length", "proxy_internal_chunked", "gzip_ratio",
}

// seldom are variables that say little here: connections without TLS have only empty ones.
var seldom = []string{"limit_conn_status", "limit_req_status", "http2", "http3", "ssl_alpn_protocol", "ssl_cipher", "ssl_ciphers", "ssl_client_cert",
	"ssl_client_escaped_cert", "ssl_client_fingerprint", "ssl_client_i_dn", "ssl_client_i_dn_legacy", "ssl_client_raw_cert", "ssl_client_s_dn",
	"ssl_client_s_dn_legacy", "ssl_client_serial", "ssl_client_v_end", "ssl_client_v_remain", "ssl_client_v_start", "ssl_client_verify", "ssl_curve",
	"ssl_curves", "ssl_early_data", "ssl_protocol", "ssl_server_name", "ssl_session_id", "ssl_session_reused", "upstream_cache_etag",
	"upstream_cache_last_modified", "upstream_cache_status"}

// volatile are variables whose value has a form and no more. They are put into access logs now and
// then, where a mask checks the form. What counts connections in the whole server and what the kernel
// measures of a connection (connections_*, tcpinfo_*) has no value that two runs share.
var volatile = []string{"connection", "connection_time", "msec", "pid", "realip_remote_port", "remote_port", "request_id", "request_time", "time_iso8601", "time_local",
	"upstream_connect_time", "upstream_header_time", "upstream_response_time"}

// variable names one, with its dollar sign.
func (u *unit) variable() string {
	if len(u.vars) > 0 && u.pct(30) {
		return "$" + pickOf(u.rnd, u.vars)
	}
	if u.pct(4) {
		return "$" + u.pick(seldom...)
	}
	return "$" + u.pick(stable...)
}

// text is a quoted token of literals and variables.
func (u *unit) text(logs bool) string {
	var b strings.Builder
	for range u.in(1, 4) {
		switch {
		case u.pct(45):
			v := u.variable()
			if sep := u.pick("", "", "|", " ", "/", ":"); sep == "" || u.pct(20) {
				v = "${" + v[1:] + "}" + sep // braces: a name must not run on into the next literal
			} else {
				v += sep
			}
			b.WriteString(v)
		case !logs && u.pct(15):
			b.WriteString("$" + itoa(u.in(1, 3)) + u.pick(" ", "|"))
		case u.pct(50):
			b.WriteString(string(value[word](u.rnd)))
		default:
			b.WriteString(strings.ReplaceAll(string(value[text](u.rnd)), "$", ""))
		}
	}
	if b.Len() == 0 {
		return `""`
	}
	return forceQuote(b.String())
}

func forceQuote(s string) string {
	q := conftree.Quote(s)
	if q[0] != '"' {
		q = `"` + q + `"`
	}
	return q
}

var headerNames = []string{"X-A", "X-B", "Link", "Vary", "ETag", "Content-Language", "x-lower", "X_Under", "Cache-Control", "Last-Modified",
	"Allow", "Keep-Alive", "Content-Encoding", "Via", "Set-Cookie", "WWW-Authenticate", "Date", "Pragma", "Accept-Ranges", "Content-Range"}

var proxyHeaderNames = []string{"X-A", "X-B", "Host", "Connection", "X-Real-IP", "User-Agent", "Accept", "Range", "If-Range", "If-Modified-Since",
	"Cookie", "Content-Type", "Content-Length", "TE", "Upgrade", "Expect", "Keep-Alive", "Authorization", "X-Forwarded-Proto", "X_Under", "x-a"}

var originHeaderNames = []string{"X-A", "X-Powered-By", "Set-Cookie", "Server", "Date", "Content-Type", "Location", "ETag", "Cache-Control", "X-Pad", "Via", "Last-Modified"}

var regexes = []string{`\.txt$`, `^/a`, `^/(\w+)/(.*)$`, `\.(html|txt)$`, `^/([^/]+)/`, `(.*)`, `^$`, `/b/`, `(?i)INDEX`, `^/(?:x|y)?`, `\.(?<u00_x>[a-z]+)$`,
	`[0-9]+`, `^/a(?=/b)`, `(?<!x)\.bin$`, `^(/.)(.)?`, `%`, `//`, `"q"`, `\s`, `é`, `^(.{2,4})$`}

func (u *unit) regex() string {
	re := u.pick(regexes...)
	if strings.Contains(re, "u00_x") && !contains(u.vars, "u00_x") {
		u.vars = append(u.vars, "u00_x")
	}
	return forceQuoteRegex(re)
}

// forceQuoteRegex writes a pattern as a token: in double quotes, with only
// quotes escaped, since a backslash before other bytes stays one in nginx's strings.
func forceQuoteRegex(re string) string {
	return `"` + strings.ReplaceAll(re, `"`, `\"`) + `"`
}

func (u *unit) uri() string {
	p := u.pick("/", "/a", "/a/", "/a/b", "/b/", "/b/x.txt", "/index.html", "/dir/", "/dir", "/a.txt", "/nope", "/404.html", "/err", "/dir/c.txt", "/big.bin", "/e", "/a.txt", "/x y", "/%41", "/a//b")
	if u.pct(20) {
		p += u.pick("?", "?a=1", "?a=1&b=2", "?$args", "$is_args$args", "?x=$uri", "$uri", "#f", "?a=%20")
	}
	return conftree.Quote(p)
}

func (u *unit) path() string {
	return u.pick("u00/html", "u00/html", "u00/html/dir", "/cell/u00/html/", "u00/html/dir/", "u00/nope", "u00/$arg_a", "u00/html/$1", "/cell/u00/html/a.txt", "u00")
}

func (u *unit) absurl(srv *server) string {
	return u.pick("http://example.test/x", "https://$host$uri", fmt.Sprintf("http://127.0.0.1:%d/", srv.port), "http://$server_name:$server_port/r", "http://a.b", "//other.test/p", "https://example.test")
}

func (u *unit) repl(srv *server) string {
	r := u.pick("/a/$1", "/$1/$2", "/b/x.txt", "/dir/", "/index.html?x=$1", "/index.html?", "/$args", "/a.txt?$1&b=$arg_b", "/e%20f", "http://example.test/$1", "https://h/?q=$uri", "$uri/x", "/nope$1", "/", "x/$1", "$scheme://$host/$1", "/a b/$1", "/%2541", "/$2/$1?")
	return conftree.Quote(r)
}

var placeholder = regexp.MustCompile(`\{[a-z][a-z0-9]*\}`)

// fill writes values for the placeholders of a form of fuzz/grammar/args.txt.
func (u *unit) fill(form string, srv *server) string {
	return placeholder.ReplaceAllStringFunc(form, func(p string) string { return u.one(p[1:len(p)-1], srv) })
}

func (u *unit) one(what string, srv *server) string {
	switch what {
	case "flag":
		return string(value[flag](u.rnd))
	case "size":
		return string(value[size](u.rnd))
	case "bsize":
		return string(value[bufSize](u.rnd))
	case "bsize2":
		return string(value[bigBuf](u.rnd))
	case "num":
		return itoa(u.in(1, 64))
	case "time":
		return string(value[span](u.rnd))
	case "text":
		return u.text(false)
	case "str", "word":
		return string(value[word](u.rnd))
	case "var":
		return u.variable()
	case "setvar":
		return "$" + u.newVar()
	case "uri":
		return u.uri()
	case "path":
		return u.path()
	case "file":
		return "u00/html/a.txt"
	case "iname":
		return u.pick("index.html", "index.txt", "nope.html", "a.txt", "$arg_a", "dir/c.txt", "index.$arg_b")
	case "hname":
		return u.pick(headerNames...)
	case "shname":
		return u.pick("ETag", "Last-Modified", "Cache-Control", "Content-Type", "Server", "Location", "Connection", "Content-Length")
	case "phname":
		return u.pick(proxyHeaderNames...)
	case "ohname":
		return u.pick(originHeaderNames...)
	case "code":
		return u.pick("404", "403", "400", "405", "412", "413", "414", "416", "500", "502", "504", "301", "302", "401", "301", "408", "494", "599", "300")
	case "rcode":
		return u.pick("301", "302", "303", "307", "308", "200", "204", "404", "503", "299")
	case "rflag":
		return u.pick("last", "break", "redirect", "permanent")
	case "named":
		if len(u.named) == 0 {
			return "/nope"
		}
		return pickOf(u.rnd, u.named)
	case "absurl":
		return u.absurl(srv)
	case "regex":
		return u.regex()
	case "re":
		q := u.regex()
		return q[1 : len(q)-1]
	case "repl":
		return u.repl(srv)
	case "cidr":
		return u.pick("127.0.0.1", "127.0.0.0/8", "10.0.0.0/8", "192.168.1.1", "0.0.0.0/0", "127.0.0.2", "::1", "unix:", "127.0.0.1/32")
	case "host":
		if srv != nil && len(srv.hosts) > 0 && u.pct(60) {
			return forceQuote(u.pick(srv.hosts...))
		}
		return u.pick("example.test", "a.test", "*.b.test")
	case "method":
		return string(value[method](u.rnd))
	case "mime":
		return string(value[mime](u.rnd))
	case "port":
		return itoa(listenPort)
	case "upurl":
		return u.upstreamURL()
	}
	panic("gen: args.txt has an unknown placeholder {" + what + "}")
}
