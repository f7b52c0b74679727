package gen

import (
	"fmt"
	"strings"
	"time"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// newOrigin adds an origin of a kind and returns its address.
func (u *unit) newOrigin(kind string) string {
	i := len(u.origins)
	if i >= 4 { // the fifth port stays closed: fRefused
		return u.origins[u.n(len(u.origins))].Addr
	}
	addr := fmt.Sprintf("127.0.0.1:%d", originPort+i)
	if u.pct(6) {
		addr = "unix:/cell/u00/o" + itoa(i) + ".sock"
	}
	o := casefile.Origin{Addr: addr}
	for range u.in(1, 3) {
		k := kind
		if k == "mixed" {
			k = u.pick("good", "hostile")
		}
		o.Conns = append(o.Conns, steady(u.originScript(k), true))
	}
	u.origins = append(u.origins, o)
	return addr
}

func (u *unit) originURL(kind string) string {
	return originAsURL(u.newOrigin(kind)) + u.pick("", "", "/", "/b/", "/b", "/x?y=1", "/a%20b/")
}

func originAsURL(addr string) string {
	if strings.HasPrefix(addr, "unix:") {
		return "http://" + addr + ":"
	}
	return "http://" + addr
}

// upstreamURL names something that proxy_pass can go to.
func (u *unit) upstreamURL() string {
	if len(u.upstreams) > 0 && u.pct(60) {
		return "http://" + pickOf(u.rnd, u.upstreams) + u.pick("", "/", "/z/")
	}
	return u.originURL("good")
}

func (u *unit) proxied(s *server, uri string) *target {
	t := u.hit(s, uri)
	t.proxied = true
	if u.pct(25) {
		t.method, t.body = u.pick("POST", "PUT", "PATCH"), true
	}
	return t
}

func (u *unit) fProxy() {
	s := u.server()
	kind := u.pick("", "", "", "=", "^~", "~", "@if")
	var n *conftree.Node
	p := u.segment()
	url := u.originURL("good")
	switch kind {
	case "~":
		p = u.pick("/re/", "/a/re", "/re")
		n = conftree.B([]string{"location", "~", u.pick(`"^/re(/.*)?$"`, `"/re"`, `"(.)re"`)})
		s.node.Add(n)
		url = trimURI(url)
		if u.pct(30) {
			url += "$uri$is_args$args"
		} else if u.pct(30) {
			url += u.pick("/v$1", "$request_uri", "/$arg_a?x=$args")
		}
	case "@if":
		n = u.location(s, s.node, "", p)
		if n == nil {
			return
		}
		b := conftree.B(u.dir("if", u.condition(s)).Words)
		b.Add(u.dir("proxy_pass", trimURI(url)))
		n.Add(b)
		u.proxied(s, p+u.pick("", "x", "?a=1"))
		url = u.originURL("good")
	default:
		n = u.location(s, s.node, kind, p)
		if n == nil {
			return
		}
		if u.pct(12) {
			url = trimURI(url) + u.pick("$request_uri", "/q$uri", "/$arg_a", "$uri$is_args$args", "/")
		}
		if u.pct(20) {
			u.put(n, "rewrite", `"^`+p+`(.*)$" /rw/$1 break`)
		}
	}
	n.Add(u.dir("proxy_pass", url))
	if u.pct(55) {
		u.put(n, "proxy_http_version", "1.1")
	}
	u.sprinkleProxy(n, s, 5)
	u.sprinkle(n, "location", s, 2)
	for range u.in(1, 3) {
		u.proxied(s, p+u.suffix(kind))
	}
}

// sprinkleProxy puts proxy_* directives into a location that proxies, where
// they have an effect.
func (u *unit) sprinkleProxy(n *conftree.Node, s *server, k int) {
	have := map[string]bool{}
	for _, kid := range n.Kids {
		have[kid.Name()] = true
	}
	rows := u.w.byCtx["location"]
	for range u.n(k + 1) {
		for range 20 {
			row := pickOf(u.rnd, rows)
			if !strings.HasPrefix(row.Name, "proxy_") {
				continue
			}
			if have[row.Name] && !Duplicates(row.Name) || row.Name == "proxy_redirect" && have[row.Name] {
				break
			}
			have[row.Name] = true
			form := u.fill(u.pick(row.Forms...), s)
			if row.Name == "proxy_redirect" && u.pct(20) && !strings.Contains(strings.Join(n.Kids[0].Words, " "), "$") {
				form = "default"
			}
			u.add(n, u.dir(row.Name, form))
			break
		}
	}
}

// upstreamBlock makes an upstream with servers of the given kinds.
func (u *unit) upstreamBlock(kinds ...string) string {
	name := "u00_up" + itoa(len(u.upstreams))
	b := conftree.B([]string{"upstream", name})
	normal := 0
	for i, k := range kinds {
		addr := u.newOrigin(k)
		if k == "refused" {
			addr = fmt.Sprintf("127.0.0.1:%d", originPort+4)
		}
		opts := ""
		if u.pct(25) {
			opts += u.pick(" weight=2", " weight=3", " weight=1")
		}
		if u.pct(25) {
			opts += u.pick(" max_fails=1", " max_fails=0", " max_fails=2 fail_timeout=30s", " fail_timeout=10s")
		}
		if i > 0 && normal > 0 && u.pct(20) {
			opts += u.pick(" down", " backup", " backup")
		} else {
			normal++
		}
		if u.pct(8) {
			opts += " max_conns=10"
		}
		b.Add(u.dir("server", addr+opts))
	}
	if u.pct(50) && u.ok("keepalive") {
		b.Add(u.dir("keepalive", u.pick("1", "2", "8")))
		if u.pct(30) {
			u.put(b, "keepalive_requests", u.pick("1", "2", "100"))
		}
	}
	u.http = append(u.http, b)
	u.upstreams = append(u.upstreams, name)
	return name
}

func (u *unit) proxyTo(name string) (*server, *conftree.Node, string) {
	s := u.server()
	p := u.segment()
	n := u.location(s, s.node, "", p)
	if n == nil {
		return s, nil, ""
	}
	n.Add(u.dir("proxy_pass", "http://"+name+u.pick("", "", "/", "/up/")))
	if u.pct(70) {
		u.put(n, "proxy_http_version", "1.1")
		u.put(n, "proxy_set_header", `Connection ""`)
	}
	return s, n, p
}

func (u *unit) fUpstream() {
	kinds := make([]string, u.in(1, 3))
	for i := range kinds {
		kinds[i] = u.pick("good", "good", "good", "mixed")
	}
	s, n, p := u.proxyTo(u.upstreamBlock(kinds...))
	if n == nil {
		return
	}
	u.sprinkleProxy(n, s, 4)
	u.sprinkle(n, "location", s, 1)
	for range u.in(2, 4) {
		u.proxied(s, p+u.suffix(""))
	}
}

func (u *unit) fNext() {
	kinds := []string{u.pick("refused", "hostile", "hostile", "status"), u.pick("good", "good", "hostile", "refused", "status")}
	if u.pct(40) {
		kinds = append(kinds, "good")
	}
	s, n, p := u.proxyTo(u.upstreamBlock(kinds...))
	if n == nil {
		return
	}
	u.put(n, "proxy_next_upstream", u.pick("error timeout", "error timeout invalid_header http_500 http_502 http_503 http_504 http_403 http_404 http_429", "off", "error non_idempotent", "http_404 non_idempotent"))
	if u.pct(40) {
		u.put(n, "proxy_next_upstream_tries", u.pick("0", "1", "2"))
	}
	if u.pct(30) {
		u.put(n, "proxy_intercept_errors", "on")
		u.put(n, "error_page", u.fill("502 504 404 500 ={rcode} /a.txt", s))
	}
	for range u.in(2, 4) {
		u.proxied(s, p+u.suffix(""))
	}
}

func (u *unit) fHostile() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	n.Add(u.dir("proxy_pass", originAsURL(u.newOrigin(u.pick("hostile", "hostile", "mixed")))+u.pick("", "/", "/h")))
	if u.pct(60) {
		u.put(n, "proxy_http_version", "1.1")
	}
	u.sprinkleProxy(n, s, 4)
	for range u.in(2, 4) {
		u.proxied(s, p+u.suffix(""))
	}
}

func (u *unit) fAccel() {
	s := u.server()
	if n := u.location(s, s.node, "", "/accel/"); n != nil {
		u.put(n, "internal", "")
		u.put(n, "alias", "u00/html/")
		u.sprinkle(n, "location", s, 2)
	}
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	n.Add(u.dir("proxy_pass", originAsURL(u.newOrigin("accel"))))
	u.sprinkleProxy(n, s, 3)
	for range u.in(1, 3) {
		u.proxied(s, p)
	}
}

func (u *unit) fProxyBody() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	n.Add(u.dir("proxy_pass", u.originURL(u.pick("good", "early"))))
	u.put(n, "proxy_request_buffering", u.pick("on", "off", "off"))
	u.put(n, "proxy_http_version", u.pick("1.0", "1.1"))
	u.put(n, "client_body_buffer_size", u.pick("1", "8", "100", "1k"))
	if u.pct(25) {
		u.put(n, "proxy_set_body", u.fill(u.pick("{text}", `"$request_body"`, `""`, "fixed"), s))
	}
	if u.pct(15) {
		u.put(n, "proxy_pass_request_body", "off")
	}
	for range u.in(2, 3) {
		t := u.proxied(s, p+u.suffix(""))
		t.method, t.body = u.pick("POST", "PUT", "GET", "POST"), true
	}
}

// fProxyTimeout has an origin that says nothing, and a read timeout that is
// short enough to wait for.
func (u *unit) fProxyTimeout() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	n.Add(u.dir("proxy_pass", originAsURL(u.newOrigin("silent"))))
	u.put(n, "proxy_read_timeout", "50ms")
	if u.pct(50) {
		u.put(n, "error_page", "504 =200 /a.txt")
	}
	u.timers = 2
	u.proxied(s, p).slow = true
}

func (u *unit) fRefused() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	n.Add(u.dir("proxy_pass", fmt.Sprintf("http://127.0.0.1:%d%s", originPort+4, u.pick("", "/", "/x/"))))
	if u.pct(40) {
		u.put(n, "error_page", u.fill("502 ={rcode} {uri}", s))
	}
	u.sprinkleProxy(n, s, 2)
	u.proxied(s, p+u.suffix(""))
}

func step(op casefile.Op) casefile.Step { return casefile.Step{Op: op} }

func recv(what string) casefile.Step { return casefile.Step{Op: casefile.Recv, What: what} }

func send(parts ...string) casefile.Step {
	s := casefile.Step{Op: casefile.Send}
	for _, p := range parts {
		s.Data = append(s.Data, []byte(p))
	}
	return s
}

func pause(ms int) casefile.Step {
	return casefile.Step{Op: casefile.Pause, Dur: time.Duration(ms) * time.Millisecond}
}
