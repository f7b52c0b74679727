package gen

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"

	"nginxoracle/oracle/minimize/conftree"
)

// Features of the smaller modules.

// users are lines of a password file: plain, APR1, SHA, salted SHA, crypt's MD5, and wrong ones.
const users = "# users\nuser:{PLAIN}pass\napr:$apr1$hUimxqqE$rAGiLeGyTLrNG7KuHXlwf1\nsha:{SHA}nU4eI71bcnBGqeO0t9tXvY1u5oQ=\n" +
	"bad:{NO}x\nempty:\nnocolon\nuser:{PLAIN}second\nlong:{PLAIN}pass:more:fields\n"

func (u *unit) fAuth() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	if _, ok := u.byPath["u00/users"]; !ok { // two locations may ask for passwords
		u.file("u00/users", users, 0, 0)
	}
	n.Add(u.dir("auth_basic", u.pick("realm", `"the \"realm\""`, "off", "$arg_realm", `"u00 $host"`)))
	n.Add(u.dir("auth_basic_user_file", u.pick("/cell/u00/users", "/cell/u00/users", "/cell/u00/$arg_file", "/cell/u00/nope")))
	u.put(n, "satisfy", u.pick("all", "any"))
	if u.pct(30) {
		u.put(n, u.pick("allow", "deny"), u.pick("all", "127.0.0.1"))
	}
	if u.pct(20) {
		u.put(n, "auth_delay", "0")
	}
	u.sprinkle(n, "location", s, 2)
	for range u.in(2, 4) {
		t := u.hit(s, p+u.pick("", "a.txt", "?file=users", "?realm=off", "?realm=x%22y"))
		name := u.pick("user:pass", "user:pass", "user:wrong", "apr:pass", "sha:pass", "bad:x", "empty:", "nocolon", "long:pass", ":", "nobody:x", "user:second")
		t.headers = append(t.headers, u.pick("Authorization: Basic ", "Authorization: Basic ", "Authorization: basic ", "Authorization: Basic   ", "Authorization: Basic\t")+
			base64.StdEncoding.EncodeToString([]byte(name))+u.pick("", "", "", "=", " x"))
	}
}

func (u *unit) fListing() {
	s := u.server()
	n := u.location(s, s.node, u.pick("", "^~"), u.pick("/list/", "/list", "/ls/"))
	if n == nil {
		return
	}
	p := n.Words[len(n.Words)-1]
	u.put(n, "alias", u.pick("u00/html/", "/cell/u00/html/", "u00/html/dir/", "u00/html"))
	n.Add(u.dir("autoindex", "on"))
	u.put(n, "autoindex_format", u.pick("html", "html", "json", "xml", "jsonp"))
	u.put(n, "autoindex_exact_size", u.pick("on", "off"))
	u.put(n, "autoindex_localtime", u.pick("on", "off"))
	u.put(n, "index", u.pick("nope", "nope.html", "index.html"))
	u.sprinkle(n, "location", s, 1)
	u.hit(s, p+u.pick("", "?callback=f", "?callback=a.b[0]", "?callback=(x)", "?callback="))
	u.hit(s, p+u.pick("dir/", "/dir/", "emptydir/", "../", "nope/"))
}

func (u *unit) fCharset() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	m := conftree.B([]string{"charset_map", "u00_k", u.pick("u00_w", "utf-8")})
	wide := m.Words[2] == "utf-8"
	for _, from := range some(u.rnd, []string{"80", "C1", "FF", "61", "62", "7e", "E9"}, 1, 5) {
		to := u.pick("41", "E1", "80", "20")
		if wide {
			to = u.pick("D0B0", "E282AC", "C3A9", "D18F")
		}
		m.Add(u.dir(from, to))
	}
	u.http = append(u.http, m)
	from, to := m.Words[1], m.Words[2]
	if u.pct(40) {
		from, to = to, from
	}
	n.Add(u.dir("source_charset", from), u.dir("charset", to))
	u.put(n, "override_charset", u.pick("on", "off"))
	u.put(n, "charset_types", u.pick("*", "text/plain", "text/html text/plain"))
	u.put(n, "default_type", u.pick("text/plain", "text/html"))
	switch {
	case u.pct(50):
		u.put(n, "return", u.pick(`200 "abc \xd0\xb0 é ab~"`, `200 "$arg_a аб"`))
	case u.ok("proxy_pass"):
		n.Add(u.dir("proxy_pass", u.originURL("good")))
	}
	u.hit(s, p+u.pick("", "?a=%e9b", "?a=abc"))
	u.hit(s, p+u.pick("a.txt", "caf%C3%A9.txt"))
}

func (u *unit) fGeo() {
	v := u.newVar()
	words := []string{"geo", "$" + v}
	if u.pct(70) {
		words = []string{"geo", u.pick("$arg_ip", "$http_x_a", "$remote_addr", "$arg_a"), "$" + v}
	}
	b := conftree.B(words)
	ranges := u.pct(30)
	if ranges {
		b.Add(u.dir("ranges", ""))
	}
	if u.pct(30) {
		b.Add(u.dir("proxy", u.pick("127.0.0.1", "127.0.0.0/8", "10.0.0.0/8")))
		if u.pct(50) {
			b.Add(u.dir("proxy_recursive", ""))
		}
	}
	if u.pct(70) {
		b.Add(u.dir("default", u.pick("zero", `""`, "d")))
	}
	nets := []string{"127.0.0.0/8", "127.0.0.1", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/1", "::1", "2001:db8::/32", "192.168.1.0/24"}
	if ranges {
		nets = []string{"127.0.0.1-127.0.0.1", "10.0.0.0-10.0.0.255", "10.0.1.0-10.1.0.0", "0.0.0.0-0.0.0.0", "255.255.255.254-255.255.255.254", "192.168.0.0-192.168.255.255"}
	}
	for _, k := range some(u.rnd, nets, 1, 5) {
		b.Add(u.dir(k, u.pick("one", "two", `"t w o"`, "1")))
	}
	if u.pct(20) {
		b.Add(u.dir("delete", u.pick(nets...)))
	}
	u.http = append(u.http, b)
	s := u.server()
	if n, p := u.prefixLocation(s); n != nil {
		u.put(n, "return", `200 "g=[$`+v+`]"`)
		for range 3 {
			t := u.hit(s, p+u.pick("", "?ip=127.0.0.1", "?ip=10.1.2.3", "?ip=10.0.0.200", "?ip=::1", "?ip=2001:db8::9", "?ip=bad", "?ip=255.255.255.255", "?ip=0.0.0.0", "?a=192.168.1.9"))
			if u.pct(40) {
				t.headers = append(t.headers, u.pick("X-Forwarded-For: 10.1.2.3", "X-Forwarded-For: 10.1.2.3, 127.0.0.1", "X-Forwarded-For: 10.0.0.1, 192.168.1.1", "X-A: 10.1.9.9"))
			}
		}
	}
}

func (u *unit) fSplit() {
	v := u.newVar()
	b := conftree.B([]string{"split_clients", u.pick("$arg_a", `"$arg_a$uri"`, "$http_x_a"), "$" + v})
	b.Add(u.dir(u.pick("0.01%", "25%", "33.3%", "0.5%"), "one"), u.dir(u.pick("50%", "12.34%", "10%"), u.pick("two", `""`, "$arg_b")))
	if u.pct(70) {
		b.Add(u.dir("*", "rest"))
	}
	u.http = append(u.http, b)
	s := u.server()
	if n, p := u.prefixLocation(s); n != nil {
		u.put(n, "return", `200 "s=[$`+v+`]"`)
		for range 3 {
			u.hit(s, p+"?a="+u.pick("", "1", "2", "x", "abc", "%20")+itoa(u.n(1000)))
		}
	}
}

func (u *unit) fSecureLink() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	if u.pct(30) && u.ok("secure_link_secret") {
		n.Add(u.dir("secure_link_secret", "u00s"))
		u.put(n, "return", `200 "l=[$secure_link]"`)
		sum := md5.Sum([]byte("a/bu00s"))
		u.hit(s, p+u.pick("", "/")+hex.EncodeToString(sum[:])+"/a/b") // of the unrenamed secret: slot 0 hits, the others miss
		u.hit(s, p+u.pick("0123/a", "x", hex.EncodeToString(sum[:]), hex.EncodeToString(sum[:])+"/"))
		return
	}
	expires := u.pick("1", "2147483647", "4102444800", "99999999999", "0", "-1", "x", "")
	n.Add(u.dir("secure_link", u.pick("$arg_md5", "$arg_md5,$arg_e")), u.dir("secure_link_md5", u.pick(`"k$arg_e"`, `"k"`)))
	u.put(n, "return", `200 "l=[$secure_link] e=[$secure_link_expires]"`)
	for _, text := range []string{"k" + expires, "k", "other"} {
		sum := md5.Sum([]byte(text))
		u.hit(s, p+"?md5="+base64.RawURLEncoding.EncodeToString(sum[:])+u.pick("", "", "==", "x")+"&e="+expires)
	}
}

func (u *unit) fReferer() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	n.Add(u.dir("valid_referers", u.pick("none r.test", "blocked *.test", "none blocked server_names", "server_names", "*.u00.test r.test", "r.test/p", `"~\.test/"`, "none r.* .dot.test", "*.u00.test/dir")))
	u.put(n, "return", `200 "r=[$invalid_referer]"`)
	for range 3 {
		t := u.hit(s, p)
		if u.pct(85) {
			t.headers = append(t.headers, "Referer: "+u.pick("http://r.test/p", "https://r.test", "r.test", "http://a.u00.test/dir/x", "http://s0.u00.test:80/", "ftp://r.test/", "http://R.TEST/P", "http://", "-", "", "http://dot.test/", "http://r.org/x"))
		}
	}
}

func (u *unit) fMirror() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	m := u.location(s, s.node, "=", "/u00mirror")
	if m == nil {
		return
	}
	n.Add(u.dir("mirror", u.pick("/u00mirror", "/u00mirror", "off", "/nope")))
	u.put(n, "mirror_request_body", u.pick("on", "off"))
	u.put(m, "internal", "")
	u.put(m, "return", u.pick("204", "200 mirrored", "500"))
	u.sprinkle(n, "location", s, 2)
	t := u.hit(s, p+u.suffix(""))
	t.method, t.body = u.pick("POST", "GET"), true
	u.hit(s, "/u00mirror")
}

func (u *unit) fGzip() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	n.Add(u.dir("gzip", "on"))
	u.put(n, "gzip_min_length", u.pick("0", "1", "20", "100"))
	u.put(n, "gzip_types", u.pick("*", "text/plain", "application/octet-stream text/plain"))
	u.put(n, "gzip_proxied", u.pick("any", "off", "expired", "auth", "no-cache no_etag"))
	u.put(n, "gzip_vary", u.pick("on", "off"))
	if u.pct(50) && u.ok("proxy_pass") {
		n.Add(u.dir("proxy_pass", u.originURL("good")))
	} else {
		u.put(n, "root", "u00/html")
		u.put(n, "try_files", u.pick("$uri /a.txt", "/big.bin /index.html", "$uri/ /dir/c.txt"))
	}
	u.sprinkle(n, "location", s, 3)
	uris := []string{p + u.suffix(""), p + u.suffix("")}
	if _, ok := u.byPath["u00/html/noise.txt"]; u.pct(30) && !ok {
		// What does not become smaller fills buffers that are too few.
		u.file("u00/html/noise.txt", string(u.randomBytes([]int{500, 1500, 5000, 12000}[u.n(4)])), 0, 0)
		m := u.location(s, s.node, "=", "/noise.txt")
		if m != nil {
			m.Add(u.dir("gzip", "on"))
			u.put(m, "root", "u00/html")
			u.put(m, "gzip_types", "*")
			u.put(m, "gzip_buffers", u.pick("1 512", "2 512", "2 1k", "4 100", "32 4k"))
			u.sprinkle(m, "location", s, 2)
			uris = append(uris, "/noise.txt")
		}
	}
	for _, uri := range uris {
		t := u.hit(s, uri)
		t.headers = append(t.headers, "Accept-Encoding: "+u.pick("gzip", "gzip", "gzip;q=0.001", "gzip;q=0", "gzip;q=1.0, deflate", "deflate,  gzip", "x-gzip", "*", "gzip;q=2", "gzip ;q=0.5"))
	}
}

// fHandlers has modules whose only work is to answer. What stub_status counts is the whole
// server's, so it is refused before it tells.
func (u *unit) fHandlers() {
	s := u.server()
	if n := u.location(s, s.node, u.pick("=", ""), "/gif"); n != nil {
		n.Add(u.dir("empty_gif", ""))
		u.sprinkle(n, "location", s, 2)
		u.hit(s, "/gif")
		u.hit(s, "/gif").method = u.pick("POST", "HEAD", "PUT")
	}
	if n := u.location(s, s.node, "=", "/stub"); n != nil && u.ok("stub_status", "deny") {
		n.Add(u.dir("stub_status", ""), u.dir("deny", "all"))
		u.hit(s, "/stub")
	}
	if n := u.location(s, s.node, "", "/one/"); n != nil && u.ok("random_index", "alias") {
		u.file("u00/one/only.txt", "the only one\n", 0, 0)
		n.Add(u.dir("alias", "u00/one/"), u.dir("random_index", u.pick("on", "on", "off")))
		u.hit(s, "/one/")
	}
}
