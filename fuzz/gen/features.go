package gen

import (
	"fmt"
	"slices"
	"strings"

	"nginxoracle/oracle/minimize/conftree"
)

// feature is one card of the deck: something a unit may have, with the
// directives it cannot do without.
type feature struct {
	name   string
	weight int
	needs  []string
	make   func(u *unit)
}

// features is the deck, rare things included. The order is the cards' numbers.
var features []feature

func init() {
	features = []feature{
		{"static", 4, []string{"location"}, (*unit).fStatic},
		{"alias", 4, []string{"location", "alias"}, (*unit).fAlias},
		{"return", 5, []string{"location", "return"}, (*unit).fReturn},
		{"vars", 5, []string{"location", "return"}, (*unit).fVars},
		{"rewrite", 6, []string{"location", "rewrite"}, (*unit).fRewrite},
		{"if", 6, []string{"location", "if"}, (*unit).fIf},
		{"try_files", 4, []string{"location", "try_files"}, (*unit).fTryFiles},
		{"error_page", 5, []string{"location", "error_page"}, (*unit).fErrorPage},
		{"nested", 4, []string{"location"}, (*unit).fNested},
		{"regex", 5, []string{"location"}, (*unit).fRegex},
		{"internal", 2, []string{"location", "internal"}, (*unit).fInternal},
		{"access", 3, []string{"location", "allow", "deny"}, (*unit).fAccess},
		{"limits", 4, []string{"client_max_body_size"}, (*unit).fLimits},
		{"map", 5, []string{"map"}, (*unit).fMap},
		{"types", 3, []string{"types"}, (*unit).fTypes},
		{"headers", 5, []string{"add_header"}, (*unit).fHeaders},
		{"keepalive", 3, []string{"keepalive_requests"}, (*unit).fKeepalive},
		{"limit_except", 2, []string{"limit_except"}, (*unit).fLimitExcept},
		{"timers", 1, []string{"client_header_timeout"}, (*unit).fTimers},
		{"proxy", 10, []string{"location", "proxy_pass"}, (*unit).fProxy},
		{"upstream", 7, []string{"location", "proxy_pass", "upstream"}, (*unit).fUpstream},
		{"proxy-hostile", 8, []string{"location", "proxy_pass"}, (*unit).fHostile},
		{"proxy-accel", 3, []string{"location", "proxy_pass", "internal"}, (*unit).fAccel},
		{"proxy-body", 4, []string{"location", "proxy_pass"}, (*unit).fProxyBody},
		{"proxy-next", 4, []string{"location", "proxy_pass", "upstream"}, (*unit).fNext},
		{"proxy-timeout", 1, []string{"location", "proxy_pass"}, (*unit).fProxyTimeout},
		{"auth", 3, []string{"location", "auth_basic", "auth_basic_user_file"}, (*unit).fAuth},
		{"listing", 2, []string{"location", "autoindex"}, (*unit).fListing},
		{"charset", 2, []string{"location", "charset", "charset_map", "source_charset"}, (*unit).fCharset},
		{"geo", 3, []string{"location", "geo"}, (*unit).fGeo},
		{"split", 2, []string{"location", "split_clients"}, (*unit).fSplit},
		{"secure-link", 2, []string{"location", "secure_link", "secure_link_md5"}, (*unit).fSecureLink},
		{"referer", 2, []string{"location", "valid_referers"}, (*unit).fReferer},
		{"mirror", 2, []string{"location", "mirror"}, (*unit).fMirror},
		{"gzip", 4, []string{"location", "gzip"}, (*unit).fGzip},
		{"handlers", 1, []string{"location", "empty_gif"}, (*unit).fHandlers},
		{"limit-req", 3, []string{"location", "limit_req", "limit_req_zone"}, (*unit).fLimitReq},
		{"limit-conn", 3, []string{"location", "limit_conn", "limit_conn_zone"}, (*unit).fLimitConn},
		{"balance", 4, []string{"location", "proxy_pass", "upstream"}, (*unit).fBalance},
		{"buffers", 3, []string{"location", "proxy_pass", "proxy_buffer_size", "proxy_buffers"}, (*unit).fBuffers},
		{"store", 1, []string{"location", "proxy_pass", "proxy_store"}, (*unit).fStore},
		{"tunnel", 2, []string{"location", "proxy_pass", "proxy_http_version", "proxy_set_header"}, (*unit).fTunnel},
		{"include", 2, []string{"location", "include"}, (*unit).fInclude},
		{"log-path", 1, []string{"location", "access_log"}, (*unit).fLogPath},
		{"file-cache", 2, []string{"location", "open_file_cache"}, (*unit).fFileCache},
		{"heads", 2, []string{"location", "large_client_header_buffers", "client_header_buffer_size"}, (*unit).fHeads},
		{"ranges", 2, []string{"location", "max_ranges"}, (*unit).fRanges},
		{"slice", 2, []string{"location", "slice", "proxy_pass", "proxy_set_header"}, (*unit).fSlice},
		{"packed", 3, []string{"location", "gunzip", "gzip_static"}, (*unit).fPacked},
		{"recode", 2, []string{"location", "charset", "charset_map", "source_charset", "charset_types"}, (*unit).fRecode},
		{"proxy-refused", 2, []string{"location", "proxy_pass"}, (*unit).fRefused},
	}
}

// FeatureNames lists the deck, for tests and pages.
func FeatureNames() []string {
	var out []string
	for _, f := range features {
		out = append(out, f.name)
	}
	return out
}

// Path pieces. Two features that draw the same one in a server give one
// location to the first and nothing to the second.
func (u *unit) segment() string {
	return u.pick("/a", "/a/", "/b/", "/a/b/", "/c", "/dir/", "/e/", "/f", "/g/", "/h", "/x.y/", "/i-j/", "/k_l", "/m", "/o/", "/p", "/q/", "/r/", "/UP/", "/a/b/c/")
}

func (u *unit) prefixLocation(srv *server) (*conftree.Node, string) {
	p := u.segment()
	kind := u.pick("", "", "", "", "^~", "=")
	n := u.location(srv, srv.node, kind, p)
	if n == nil {
		return nil, ""
	}
	return n, p
}

func (u *unit) suffix(kind string) string {
	return u.pick("", "", "x", "x.txt", "a.txt", "index.html", "b/x", "?a=1", "x?a=1&b=2", "%41", "a%20b", "a%2fb", "a%2Fb/c", "../a", "./x", "b/../x", "//x", "x//y", "x%00y", "%e9", "x;y", "+", "x%3fy", "dir/", "dir", "c.txt")
}

func (u *unit) fStatic() {
	s := u.server()
	if n, p := u.prefixLocation(s); n != nil {
		u.sprinkle(n, "location", s, 5)
		u.hit(s, p)
		u.hit(s, p+u.suffix(""))
	}
}

func (u *unit) fAlias() {
	s := u.server()
	if u.pct(25) {
		if n := u.location(s, s.node, "~", u.pick(`^/al/(.*)$`, `^/al/(\w+)\.(.*)$`, `^/al(/.*)?$`)); n != nil {
			n.Add(u.dir("alias", u.pick("u00/html/$1", "/cell/u00/html/$1.$2", "u00/html$1", "u00/html/")))
			u.sprinkle(n, "location", s, 2)
			u.hit(s, "/al/"+u.pick("a.txt", "dir/", "dir/c.txt", "dir", "nope", "index.html", ""))
		}
		return
	}
	p := u.pick("/al/", "/al", "/al/deep/", "/i/", "/j")
	if n := u.location(s, s.node, u.pick("", "^~", "="), p); n != nil {
		n.Add(u.dir("alias", u.pick("u00/html/", "u00/html", "/cell/u00/html/dir/", "u00/html/a.txt", "u00/html/$arg_d", "u00/html/dir/")))
		u.sprinkle(n, "location", s, 3)
		u.hit(s, p+u.pick("", "a.txt", "dir/", "dir", "dir/c.txt", "nope", "index.html", "../a.txt", "?d=a.txt"))
		u.hit(s, p+u.pick("", "/", "x"))
	}
}

func (u *unit) fReturn() {
	s := u.server()
	for range u.in(1, 3) {
		n, p := u.prefixLocation(s)
		if n == nil {
			continue
		}
		var args string
		switch {
		case u.pct(40):
			args = fmt.Sprintf("%d %s", value[status](u.rnd), u.text(false))
		case u.pct(40):
			args = fmt.Sprintf("%d", value[status](u.rnd))
		case u.pct(50):
			args = u.fill("{rcode} {uri}", s)
		default:
			args = u.fill("{rcode} {absurl}", s)
		}
		u.sprinkle(n, "location", s, 2)
		n.Add(u.dir("return", args))
		u.hit(s, p+u.suffix(""))
	}
}

func (u *unit) fVars() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	for range u.n(3) {
		n.Add(u.dir("set", u.fill("{setvar} {text}", s)))
	}
	u.sprinkle(n, "location", s, 2)
	body := ""
	for range u.in(2, 5) {
		v := u.variable()
		body += v[1:] + "=[" + v + "] "
	}
	n.Add(u.dir("return", "200 "+forceQuote(body)))
	t := u.hit(s, p+u.pick("", "?a=1", "?a=1&b=%20&a=2", "x/y?A=1", "?", "?a", "?b=&a="))
	t.headers = append(t.headers, u.pick("X-A: 1", "X-A: one, two", "Cookie: c=1; d=2", "Cookie: C=3", "X-B: ", "X-Forwarded-For: 1.2.3.4", "Referer: http://r/", "Content-Type: x/y"))
}

func (u *unit) fRewrite() {
	s := u.server()
	in, ctx := s.node, "server"
	p := "/"
	if u.pct(60) {
		n, q := u.prefixLocation(s)
		if n == nil {
			return
		}
		in, ctx, p = n, "location", q
	}
	for range u.in(1, 3) {
		re := u.pick(`"^`+p+`(.*)$"`, `"^`+p+`(\w*)/?(.*)"`, u.regex(), u.regex())
		args := re + " " + u.repl(s)
		if u.pct(65) {
			args += " " + u.one("rflag", s)
		}
		in.Add(u.dir("rewrite", args))
		if u.pct(30) {
			u.put(in, "set", u.fill("{setvar} {text}", s))
		}
		if u.pct(12) {
			u.put(in, "break", "")
		}
	}
	u.sprinkle(in, ctx, s, 2)
	u.hit(s, p+u.suffix(""))
	u.hit(s, p+u.pick("x", "b/x.txt", "a?a=1", "word/rest/of?it=1", "%25", "a%20b/c"))
}

func (u *unit) condition(s *server) string {
	return u.pick(
		"("+u.variable()+")",
		"($arg_a = "+u.pick("1", "x", `""`)+")",
		"($request_method = POST)", "($request_method != GET)",
		"($http_x_a ~ "+u.regex()+")", "($uri ~* "+u.regex()+")", "($args !~ "+u.regex()+")", "($http_user_agent !~* "+u.regex()+")",
		"(-f $request_filename)", "(!-f $request_filename)", "(-d $request_filename)", "(!-e $document_root$uri)", "(-e $request_filename)", "(-x u00/html/a.txt)",
		"($host = "+u.fill("{host}", s)+")",
		`($http_cookie ~* "c=([^;]+)(?:;|$)")`,
		"($uri ~ ^/(.)(.*)$)", "( $arg_a = 1 )")
}

func (u *unit) fIf() {
	s := u.server()
	in, ctx, p := s.node, "if-in-server", "/"
	if u.pct(75) {
		n, q := u.prefixLocation(s)
		if n == nil {
			return
		}
		in, ctx, p = n, "if-in-location", q
		u.sprinkle(n, "location", s, 3)
	}
	for range u.in(1, 2) {
		b := conftree.B(u.dir("if", u.condition(s)).Words)
		switch {
		case u.pct(30):
			u.put(b, "return", u.fill(u.pick("{code}", "{code} {text}", "{rcode} {uri}"), s))
		case u.pct(40):
			u.put(b, "rewrite", u.regex()+" "+u.repl(s)+u.pick("", " last", " break", " redirect"))
		case u.pct(60):
			u.put(b, "set", u.fill("{setvar} {text}", s))
		case ctx == "if-in-location" && u.pct(50) && u.ok("proxy_pass"):
			b.Add(u.dir("proxy_pass", trimURI(u.originURL("good"))))
		}
		u.sprinkle(b, ctx, s, 2)
		in.Add(b)
	}
	if ctx == "if-in-location" && u.pct(40) {
		u.put(in, "return", "200 "+u.text(false))
	}
	t := u.hit(s, p+u.pick("", "x", "?a=1", "?a=x&b=2", "a.txt", "?a=1&b=2", "nope"))
	if u.pct(40) {
		t.headers = append(t.headers, u.pick("X-A: a.txt", "Cookie: c=v; d=w", "X-A: /a", "User-Agent: index/0"))
	}
	if u.pct(25) {
		t.method = u.pick("POST", "HEAD", "DELETE")
	}
}

func (u *unit) fTryFiles() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	args := ""
	for range u.in(1, 3) {
		args += u.pick("$uri", "$uri/", "$uri.html", "/a.txt", "/nope", "/dir/", "$uri/index.html", "/$arg_a", "$document_uri", "nolead") + " "
	}
	args += u.pick("=404", "=200", "=444", "/a.txt", "/index.html?x=$uri", u.uri(), u.one("named", s), "=500", "/nope", "$arg_b")
	n.Add(u.dir("try_files", args))
	u.sprinkle(n, "location", s, 3)
	u.hit(s, p+u.suffix(""))
	u.hit(s, u.pick("/a.txt", p+"index", p+"?a=b.html", "/dir"))
}

func (u *unit) fErrorPage() {
	s := u.server()
	in := s.node
	p := "/nope"
	if u.pct(60) {
		n, q := u.prefixLocation(s)
		if n == nil {
			return
		}
		in, p = n, q+u.pick("", "nope")
		if u.pct(60) {
			u.put(in, "return", u.fill("{code}", s))
		}
	}
	if u.pct(50) {
		name := "@u00_" + u.pick("e", "f", "g")
		if n := u.location(s, s.node, "", name); n != nil {
			switch {
			case u.pct(50):
				u.put(n, "return", u.fill(u.pick("{code} {text}", "200 {text}", "{rcode} {uri}", "{code}"), s))
			case u.pct(50) && u.ok("proxy_pass"):
				n.Add(u.dir("proxy_pass", trimURI(u.originURL("good"))))
			default:
				u.put(n, "try_files", "/404.html =404")
			}
			u.named = append(u.named, name)
		}
	}
	for range u.in(1, 3) {
		form := u.pick("404 {uri}", "{code} {uri}", "{code} ={rcode} {uri}", "{code} = {uri}", "{code} {code} {uri}", "{code} {absurl}", "404 403 =200 /404.html", "{code} {named}", "{code} =200 {named}", "{code} = {named}", "{code} /err?c=$status", "404 /404.html")
		in.Add(u.dir("error_page", u.fill(form, s)))
	}
	if u.pct(30) {
		if n := u.location(s, s.node, "=", "/404.html"); n != nil {
			u.put(n, "internal", "")
			u.sprinkle(n, "location", s, 2)
		}
	}
	u.hit(s, p)
	u.hit(s, "/nope").method = u.pick("GET", "POST", "HEAD")
	u.hit(s, "/404.html")
}

func (u *unit) fNested() {
	s := u.server()
	p := u.pick("/n/", "/n", "/a/", "/a")
	n := u.location(s, s.node, u.pick("", "", "^~"), p)
	if n == nil {
		return
	}
	u.sprinkle(n, "location", s, 4)
	u.hit(s, p)
	for range u.in(1, 3) {
		kind := u.pick("", "=", "^~", "~", "~*")
		q := p + u.pick("a", "b/", "c/d", "x.txt")
		path := q
		if kind[:min(1, len(kind))] == "~" {
			path = u.pick(`\.txt$`, `b`, `(.*)`, `/([a-z])/?`)
		}
		m := u.location(s, n, kind, path)
		if m == nil {
			continue
		}
		u.sprinkle(m, "location", s, 3)
		if u.pct(50) {
			u.put(m, "return", "200 "+u.text(false))
		}
		if kind == "" && u.pct(30) {
			if l := u.location(s, m, "~", `\.(t)xt$`); l != nil {
				u.sprinkle(l, "location", s, 2)
				u.put(l, "return", `200 "nested2 $1 $uri"`)
			}
		}
		u.hit(s, q+u.pick("", "", "x", ".txt", "/", "?a=1"))
	}
}

func (u *unit) fRegex() {
	s := u.server()
	for range u.in(1, 3) {
		re := u.regex()
		words := []string{"location", u.pick("~", "~*"), re}
		n := conftree.B(words)
		s.node.Add(n)
		u.sprinkle(n, "location", s, 3)
		switch u.n(4) {
		case 0:
			u.put(n, "return", `200 "re [$1] [$2] $uri"`)
		case 1:
			u.put(n, "try_files", "$uri /$1 =404")
		case 2:
			if u.ok("proxy_pass") {
				n.Add(u.dir("proxy_pass", trimURI(u.originURL("good"))))
			}
		}
		u.hit(s, u.pick("/a/b.txt", "/x.html", "/INDEX.HTML", "/a/b", "/x.bin", "/12", "//", "/a%20b", "/%25", "/c.txt", "/dir/c.txt", "/a.txt"))
	}
}

// trimURI takes the URI off an upstream's URL: a proxy_pass inside a regular
// expression, a named location or an if must have none.
func trimURI(url string) string {
	rest := strings.TrimPrefix(url, "http://")
	if strings.HasPrefix(rest, "unix:") {
		return "http://" + rest[:strings.LastIndex(rest, ".sock")+len(".sock")]
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		rest = rest[:i]
	}
	return "http://" + rest
}

func (u *unit) fInternal() {
	s := u.server()
	n := u.location(s, s.node, u.pick("", "=", "^~"), "/int/")
	if n == nil {
		return
	}
	u.put(n, "internal", "")
	u.sprinkle(n, "location", s, 3)
	u.put(n, "return", u.pick(`200 "in $uri $request_uri"`, "404", "302 /x"))
	if m, p := u.prefixLocation(s); m != nil {
		switch u.n(3) {
		case 0:
			u.put(m, "rewrite", "^ /int/ last")
		case 1:
			u.put(m, "try_files", "/nope /int/")
		default:
			u.put(m, "error_page", "404 =200 /int/")
		}
		u.hit(s, p)
	}
	u.hit(s, "/int/")
	u.hit(s, "/int/x")
}

func (u *unit) fAccess() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	for range u.in(1, 3) {
		n.Add(u.dir(u.pick("allow", "deny"), u.fill(u.pick("{cidr}", "{cidr}", "all"), s)))
	}
	u.put(n, "satisfy", u.pick("any", "all"))
	u.sprinkle(n, "location", s, 3)
	if u.pct(40) {
		u.put(n, "error_page", "403 "+u.pick("/403.html", "=200 /a.txt", "@u00_nope", "http://h/"))
		if last := n.Kids[len(n.Kids)-1]; last.Name() == "error_page" && last.Words[len(last.Words)-1] == "@u00_nope" && u.pct(50) {
			u.location(s, s.node, "", "@u00_nope")
		}
	}
	u.hit(s, p+u.suffix(""))
}

func (u *unit) fLimits() {
	s := u.server()
	in := s.node
	p := "/"
	if u.pct(60) {
		n, q := u.prefixLocation(s)
		if n == nil {
			return
		}
		in, p = n, q
		if u.pct(50) {
			u.put(in, "return", `200 "[$request_body] $content_length"`)
		} else if u.ok("proxy_pass") {
			in.Add(u.dir("proxy_pass", u.originURL("good")))
		}
	} else {
		u.put(in, "large_client_header_buffers", u.pick("1 512", "2 600", "1 1k", "2 1k", "4 2k"))
		u.put(in, "client_header_buffer_size", u.pick("16", "64", "128", "512", "1k"))
	}
	in.Add(u.dir("client_max_body_size", u.pick("0", "1", "4", "5", "6", "10", "100", "1k")))
	u.put(in, "client_body_buffer_size", u.pick("1", "4", "8", "64", "1k"))
	for range 2 {
		t := u.hit(s, p)
		t.method, t.body = u.pick("POST", "PUT", "GET"), true
		if u.pct(30) {
			t.headers = append(t.headers, "Expect: 100-continue")
		}
	}
}

func (u *unit) fMap() {
	v := u.newVar()
	b := conftree.B([]string{"map", u.pick("$arg_a", "$uri", "$host", "$http_x_a", `"$arg_a:$request_method"`, "$args", "$http_cookie"), "$" + v})
	if u.pct(15) {
		b.Add(u.dir("hostnames", ""))
	}
	if u.pct(10) {
		b.Add(u.dir("volatile", ""))
	}
	seen := map[string]bool{}
	for range u.in(1, 5) {
		k := u.pick("default", "1", "x", `""`, "/a", "*.u00.test", "s0.u00.test", "example.*", `"~^/(.)"`, `"~*INDEX"`, `"~(?<u00_m>\d+)"`, `\default`, "A", `"1:GET"`, ".dot0.u00.test")
		if seen[k] {
			continue
		}
		seen[k] = true
		if k == `"~(?<u00_m>\d+)"` && !contains(u.vars, "u00_m") {
			u.vars = append(u.vars, "u00_m")
		}
		b.Add(u.dir(k, u.pick("one", `"t w o"`, "$uri", `"x${arg_b}y"`, `""`, "$1", "$http_x_a", "0")))
	}
	u.http = append(u.http, b)
	s := u.server()
	if n, p := u.prefixLocation(s); n != nil {
		u.put(n, u.pick("return", "return"), `200 "m=[$`+v+`]"`)
		u.put(n, "add_header", "X-Map $"+v+" always")
		u.sprinkle(n, "location", s, 1)
		u.hit(s, p+u.pick("?a=1", "?a=x", "?a=A", "", "?a="))
		u.hit(s, p)
	}
}

func (u *unit) fTypes() {
	s := u.server()
	in := s.node
	p := "/"
	if u.pct(50) {
		n, q := u.prefixLocation(s)
		if n == nil {
			return
		}
		in, p = n, q
	}
	for _, k := range in.Kids {
		if k.Name() == "types" {
			return
		}
	}
	b := conftree.B([]string{"types"})
	seen := map[string]bool{}
	for range u.n(4) {
		args := ""
		for _, e := range some(u.rnd, []string{"txt", "html", "bin", "TXT", "gz", "tar.gz", "jpg"}, 1, 3) {
			if !seen[e] {
				seen[e] = true
				args += " " + e
			}
		}
		if args != "" {
			b.Add(u.dir(string(value[mime](u.rnd)), args))
		}
	}
	in.Add(b)
	u.hit(s, p+u.pick("a.txt", "index.html", "big.bin", "A.TXT", "x.tar.gz", "noext"))
	u.hit(s, u.pick("/a.txt", "/index.html", "/x.tar.gz", "/noext"))
}

func (u *unit) fHeaders() {
	s := u.server()
	in := s.node
	p := u.pick("/", "/a.txt", "/nope", "/dir/")
	if u.pct(60) {
		n, q := u.prefixLocation(s)
		if n == nil {
			return
		}
		in, p = n, q
		if u.pct(40) {
			u.put(n, "return", u.fill("{code} {text}", s))
		}
	}
	for range u.in(1, 4) {
		in.Add(u.dir("add_header", u.fill(u.pick("{hname} {text}", "{hname} {text} always", `{hname} ""`, "{shname} {text}"), s)))
	}
	if u.pct(40) {
		u.put(in, "expires", u.fill(u.pick("epoch", "max", "off", "-1", "0", "$arg_exp", "modified 0"), s))
	}
	if u.pct(30) {
		u.put(in, "add_trailer", u.fill("{hname} {text}", s))
	}
	u.hit(s, p)
	u.hit(s, p+u.pick("?exp=max", "?exp=epoch", "?exp=off", "?exp=bad"))
}

func (u *unit) fKeepalive() {
	s := u.server()
	var have bool
	for _, k := range s.node.Kids {
		have = have || k.Name() == "keepalive_requests"
	}
	if !have {
		s.node.Add(u.dir("keepalive_requests", u.pick("1", "2", "3")))
	}
	if n, p := u.prefixLocation(s); n != nil {
		u.put(n, "keepalive_timeout", u.pick("0", "65 20", "10"))
		u.put(n, "return", `200 "$connection_requests"`)
		u.hit(s, p)
		u.hit(s, p)
	}
}

func (u *unit) fLimitExcept() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	b := conftree.B([]string{"limit_except", u.pick("GET", "POST", "GET POST", "PUT", "HEAD"), u.pick("DELETE", "OPTIONS", "MOVE")})
	u.put(b, u.pick("deny", "allow"), u.pick("all", "127.0.0.1"))
	n.Add(b)
	u.sprinkle(n, "location", s, 2)
	for range 3 {
		u.hit(s, p).method = string(value[method](u.rnd))
	}
}

// fTimers sets timeouts of tens of milliseconds: a client that waits a little
// longer sees them fire, without a wait that a campaign would feel.
func (u *unit) fTimers() {
	s := u.server()
	for _, k := range s.node.Kids {
		switch k.Name() {
		case "client_header_timeout", "client_body_timeout", "keepalive_timeout", "lingering_close":
			return
		}
	}
	if slices.ContainsFunc(u.own, func(o ownClients) bool { return o.port == s.port }) {
		return // see held
	}
	s.node.Add(u.dir("client_header_timeout", "50ms"))
	u.put(s.node, "client_body_timeout", "50ms")
	u.put(s.node, "keepalive_timeout", "50ms")
	u.timers, s.timers = 2, true
	u.hit(s, "/a.txt")
	t := u.hit(s, "/nope")
	t.method, t.body = "POST", true
}
