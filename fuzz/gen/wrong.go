package gen

import (
	"fmt"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// Wrong makes a small configuration with something wrong in it, for comparing
// diagnostics. It has no clients. Sometimes the damage hurts nothing, and then
// the configuration loads on both sides.
func (g *Generator) Wrong(seed, index uint64) *casefile.Case {
	var c *casefile.Case
	g.reset()
	// the high bit keeps these indexes apart from the batches' ones
	seeded(seed, index|1<<63, func(r *rnd) { c = g.wrong(r, fmt.Sprintf("%d/wrong %d", seed, index)) })
	return c
}

func (g *Generator) wrong(r *rnd, label string) *casefile.Case {
	u := &unit{rnd: r, w: g.w, byPath: map[string]int{}}
	s := &server{node: conftree.B([]string{"server"}), port: listenPort, seen: map[string]bool{}, hosts: []string{"a.test"}}
	s.node.Add(u.dir("listen", fmt.Sprintf("127.0.0.1:%d", listenPort)))
	u.servers = append(u.servers, s)
	for range r.in(0, 2) {
		f := features[g.deck.deal(r)]
		if u.ok(f.needs...) {
			f.make(u)
		}
	}
	u.sprinkle(s.node, "server", s, 3)
	http := conftree.B([]string{"http"}, u.http...)
	u.sprinkle(http, "http", s, 2)
	http.Add(s.node)
	top := []*conftree.Node{u.dir("error_log", "logs/error.log warn"), conftree.B([]string{"events"}), http}
	text := ""
	if r.pct(65) {
		mistakes[r.n(len(mistakes))].do(u, &top)
		text = string(conftree.Print(top))
	} else {
		text = string(conftree.Print(top))
		for range r.in(1, 2) {
			text = spoil(u, text)
		}
	}
	c := &casefile.Case{Title: "generated: " + label, Files: []casefile.File{
		{Path: "nginx.conf", Data: []byte(text)}, {Path: "logs", Dir: true},
		{Path: "conf/one.conf", Data: []byte("# nothing\n")}, {Path: "conf/bad.conf", Data: []byte("server_tokens;\n")}, {Path: "conf/open.conf", Data: []byte("types {\n")},
	}}
	return c
}

// mistake is one way to get a configuration wrong that keeps its syntax.
type mistake struct {
	name string
	do   func(u *unit, top *[]*conftree.Node)
}

func init() {
	mistakes = []mistake{
		{"context", misplace}, {"context", misplace}, {"argument count", miscount}, {"argument count", miscount}, {"value", misvalue}, {"value", misvalue}, {"value", misvalue},
		{"twice", twice}, {"unknown directive", unknown}, {"block", misblock}, {"variable", badVariable}, {"include", badInclude}, {"special", special}, {"special", special}, {"special", special},
	}
}

var mistakes []mistake

// all lists every node with its parent (nil at the top).
func all(top []*conftree.Node) (nodes []*conftree.Node) {
	conftree.Walk(top, "", func(n *conftree.Node, _ string) bool {
		nodes = append(nodes, n)
		return true
	})
	return nodes
}

// blockOf picks any block of the configuration; nil means the top.
func (u *unit) blockOf(top []*conftree.Node) *conftree.Node {
	var blocks []*conftree.Node
	for _, n := range all(top) {
		if n.Block && n.Name() != "types" && n.Name() != "map" {
			blocks = append(blocks, n)
		}
	}
	if u.pct(15) {
		return nil
	}
	return pickOf(u.rnd, blocks)
}

func insert(u *unit, top *[]*conftree.Node, n *conftree.Node) {
	b := u.blockOf(*top)
	if b == nil {
		*top = append(*top, n)
		return
	}
	i := u.n(len(b.Kids) + 1)
	b.Kids = append(b.Kids[:i:i], append([]*conftree.Node{n}, b.Kids[i:]...)...)
}

// anyRow picks a row of the generator's table that the candidate knows.
func (u *unit) anyRow() (name, form string) {
	for range 50 {
		r := pickOf(u.rnd, u.w.t.Rows)
		if u.w.known(r.Name) && r.Name != "daemon" && r.Name != "master_process" && r.Name != "env" {
			return r.Name, u.fill(u.pick(r.Forms...), u.servers[0])
		}
	}
	return "root", "html"
}

func (u *unit) makeNode(name, form string) *conftree.Node {
	n := u.dir(name, form)
	for _, d := range u.w.t.Named(name) {
		if d.Block() && !strings.Contains(d.Module, "stream") && !strings.Contains(d.Module, "mail") && u.pct(90) {
			n.Block = true
		}
	}
	return n
}

func misplace(u *unit, top *[]*conftree.Node) {
	name, form := u.anyRow()
	insert(u, top, u.makeNode(name, form))
}

func miscount(u *unit, top *[]*conftree.Node) {
	var n *conftree.Node
	if u.pct(50) {
		name, form := u.anyRow()
		n = u.makeNode(name, form)
		insert(u, top, n)
	} else {
		n = pickOf(u.rnd, all(*top))
	}
	switch {
	case len(n.Words) > 1 && u.pct(50):
		i := u.in(1, len(n.Words)-1)
		n.Words = append(n.Words[:i:i], n.Words[i+1:]...)
	default:
		for range u.in(1, 3) {
			n.Words = append(n.Words, u.pick("extra", "on", "1", `""`, "$uri", "10s"))
		}
		if u.pct(4) {
			for range 12 {
				n.Words = append(n.Words, "many")
			}
		}
	}
}

var badValues = []string{"maybe", "-1", "1x", "10kk", "1k1", "k", "m", "1 m", `""`, "0", "00", "99999999999999999999", "9223372036854775807", "9223372036854775808", "4294967296", "2147483648", "1.5", "+1", "0x10", "1d1h1m1s", "1s1m", "1m 1s", "1sm", "ms",
	"ON", "Off", "on off", "$", "${", "${}", "$$", "${a", "$nope_u00", "$1", "\"$arg_a", "/", "//", "http://", "http:", "https://", "http:///x", "http://a b", "unix:", "http://unix:", "http://unix:/x:", "http://127.0.0.1:0", "http://127.0.0.1:99999", "http://127.0.0.1:x/", "http://[::1", "http://nohost.invalid.:80", "127.0.0.1:80", "=", "=abc", "=99", "=1000", "@", "@a", "~", "~*", "~[", `"~("`,
	"127.0.0.1/33", "127.0.0.300", "::1/129", "10.0.0.1/8", "all", "all;", "1.2.3", "max", "epoch", "@25h", "@15h", "@1x", "modified", "modified @1h", "weight=0", "weight=x", "max_fails=-1", "fail_timeout=x", "nope=1", "escape=x", "buffer=0", "buffer=x", "gzip=10", "flush=x", "if=", "if=x", "off", "combined", "main", "nope", "200", "99", "1000", "600", "abc", "HTTP/1.1", "2.0", "1.0", "1.1", "a/b/c", "*.*", "*", "a.*.b", ".", "..", "*.", "~^(", "~", "a\\b", "'x", "é", "\x01", "{", "}"}

func misvalue(u *unit, top *[]*conftree.Node) {
	var n *conftree.Node
	if u.pct(60) {
		name, form := u.anyRow()
		n = u.makeNode(name, form)
		b := u.blockOf(*top)
		for range 30 { // look for a block where the directive may stand
			if b != nil && u.fits(name, b) {
				break
			}
			b = u.blockOf(*top)
		}
		if b == nil {
			*top = append(*top, n)
		} else {
			b.Add(n)
		}
	} else {
		n = pickOf(u.rnd, all(*top))
	}
	if len(n.Words) < 2 {
		n.Words = append(n.Words, u.badValue())
		return
	}
	n.Words[u.in(1, len(n.Words)-1)] = u.badValue()
}

// badValue is a value that is wrong nearly everywhere, or a right one of another kind.
func (u *unit) badValue() string {
	if u.pct(35) {
		return u.anyValue()
	}
	return u.pick(badValues...)
}

func (u *unit) fits(name string, b *conftree.Node) bool {
	ctx := b.Name()
	if ctx == "if" {
		ctx = "if-in-location"
	}
	return u.w.t.HTTP(name, ctx)
}

func twice(u *unit, top *[]*conftree.Node) {
	for range 20 {
		b := u.blockOf(*top)
		if b == nil || len(b.Kids) == 0 {
			continue
		}
		n := pickOf(u.rnd, b.Kids).Clone()
		if len(n.Words) > 1 && u.pct(30) {
			n.Words[len(n.Words)-1] = u.pick("on", "off", "10", "x")
		}
		b.Add(n)
		return
	}
	*top = append(*top, conftree.B([]string{"events"}))
}

func unknown(u *unit, top *[]*conftree.Node) {
	insert(u, top, raw(u.pick("nonsense", "Root", "server_names", "proxypass", "http2_push_preload", "ssl", `"quoted"`, "$var", "return200", "{", "if(", "-", "tcp", "proxy_", "locations"), u.pick("", "on", "a b c")))
}

func misblock(u *unit, top *[]*conftree.Node) {
	n := pickOf(u.rnd, all(*top))
	n.Block = !n.Block
	if !n.Block {
		n.Kids = nil
	}
}

func badVariable(u *unit, top *[]*conftree.Node) {
	v := u.pick("$nope", "${nope}", "$u99_x", "$", "${}", "${a", "$-", "$arg_", "$http_", "$cookie_", "$sent_http_", "$upstream_http_", "$1x", "$10", "${1}", "$é", "$proxy_host", "$limit_rate", "$ssl_protocol", "$geoip_org", "$document_roots")
	s := u.servers[0].node
	switch u.n(7) {
	case 0:
		put(s, "add_header", "X-V "+u.pick(v, `"`+v+`"`))
	case 1:
		put(s, "set", v+" "+v)
	case 2:
		put(s, "set", u.pick("x", "$", "$x", "${x}", "$uri", "$args", "$host", "$http_x", "$arg_z")+" 1")
	case 3:
		put(s, "return", "200 "+v)
	case 4:
		put(s, "root", "/x"+v)
	case 5:
		(*top)[2].Add(raw("log_format", "u00_v "+v))
	default:
		s.Add(conftree.B([]string{"if", "(" + v + " " + u.pick("=", "~", "!~", "!=", "~*", "==", "<", "!") + " " + u.pick("x)", "(x", "[)", "a b)", ")", "x) )")}))
	}
}

func badInclude(u *unit, top *[]*conftree.Node) {
	insert(u, top, raw("include", u.pick("conf/*.conf", "conf/nope.conf", "conf/nope*.conf", "conf/one.conf", "conf/bad.conf", "conf/open.conf", "conf", "/nope/x", `""`, "conf/[", "conf/?ne.conf", "nginx.conf", "*/", "conf/*/", "*/one.conf", "co*/n*.conf", "con?//o*.conf", "*/*/one.conf")))
}

// raw makes a node out of text as it stands, which need not be made of whole tokens.
func raw(name, args string) *conftree.Node {
	if args == "" {
		return conftree.N(name)
	}
	return conftree.N(name, args)
}

func put(n *conftree.Node, name, args string) { n.Add(raw(name, args)) }

// special are mistakes that need more than one word.
func special(u *unit, top *[]*conftree.Node) {
	s := u.servers[0].node
	list := []string{
		"location / {} location / {}", "location = /a {} location = /a {}", "location ^~ /z {} location /z {}", "location @x {} location @x {}", "location /a { location /b {} }", "location = /e { location /e/x {} }", "location @n { location /x {} }", "location ~ ( {}", "location ~ [[:nope:]] {}", "location ~ x[[.a.]]y {}", "location ~ [[=a=]x {}", "location ~ [a-\\\\d] {}", "location ~ [[:alpha:]-z]b {}", "location ~ [a-[:digit:]]c {}", "location ~ [\\\\w-z] {}", "location ~ [z-a] {}", "location ~ (?<n>a)(?<n>b) {}", "location ~ (?z) {}", "location ~ a** {}", "location ~ (?(1)a|b|c) {}", "location ~ a) {}", "location a b c {}", "location ~ {}", "location ~x y {}", "location !/x {}", "location {}",
		"location /p { proxy_pass http://127.0.0.1:1; proxy_pass http://127.0.0.1:2; }", "location ~ /p { proxy_pass http://127.0.0.1:1/uri; }", "location /p { if ($a) { proxy_pass http://127.0.0.1:1/; } }", "location @p { proxy_pass http://127.0.0.1/x; }", "location /p { proxy_pass http://nohost.invalid; }", "location /p { proxy_pass 127.0.0.1; }",
		"location /a { alias /x; root /y; }", "location /a { root /y; alias /x; }", "location @a { alias /x; }", "root a; root b;", "alias /x;",
		"listen 127.0.0.1:20001; listen 127.0.0.1:20001;", "listen 127.0.0.1:0;", "listen 127.0.0.1:99999;", "listen 1.2.3.4.5:80;", "listen [::1;", "listen unix:;", "listen 127.0.0.1:20001 nope;", "listen 127.0.0.1:20001 backlog=0;", "listen 127.0.0.1:20001 rcvbuf=x;", "listen 127.0.0.1:20001 so_keepalive=;", "listen 127.0.0.1:20001 so_keepalive=1:2:3:4;", "listen 127.0.0.1:20001 fastopen=x;", "listen;", "listen *;", "listen localhost:20001;", "listen 127.0.0.1:20001 default_server default_server;", "listen 127.0.0.1:20001-20000;", "listen 127.0.0.1:20001-20003;", "listen 127.0.0.1:20000 default_server;", "listen nohost.invalid:80;", "listen 127.0.0.1:20000 backlog=5 backlog=6;", "listen 0;", "listen :80;", "listen 127.0.0.1:;", "listen 127.0.0.1:20001 bind setfib=x;", "listen 127.0.0.1:20001 proxy_protocol;", "listen 127.0.0.1:20001 accept_filter=x;", "listen 127.0.0.1:20001 ipv6only=on;",
		"server_name ~^(;", "server_name *.*;", "server_name a.*.b;", "server_name ..a;", "server_name ~;", "server_name *a.b;", "server_name a.b*;", "server_name a a;", "server_name \"~^(?<u00_dup>.)$\";", "server_name \"~(?<1x>.)\";", "server_name \"\";", "server_name .;", "server_name *;",
		"rewrite ( /;", "rewrite a b c;", "rewrite a b last last;", "rewrite a;", "rewrite ^ http://x permanent;", "rewrite \"^(\" /;", "rewrite a{ b;", "return;", "return abc;", "return 1000;", "return 99;", "return 200 a b;", "return 301;", "return 0;", "return -1;", "return 4040 x;", "return 10;", "break 1;",
		"if {}", "if ($uri {}", "if $uri) {}", "if () {}", "if (uri) {}", "if (-f) {}", "if (-z x) {}", "if ($uri == x) {}", "if ($uri ~ [) {}", "if ($uri = x y) {}", "if (!-f $uri x) {}", "if ($uri) { root x; listen 1; }", "if ($uri) { location / {} }", "if ($) {}", "if ($uri ~) {}",
		"try_files $uri;", "try_files;", "location /t { try_files a =x; }", "location /t { try_files a =1000; }", "try_files a b; try_files c d;",
		"error_page 404;", "error_page 200 /x;", "error_page 404 = ;", "error_page abc /x;", "error_page 600 /x;", "error_page 299 /x;", "error_page 404 =xyz /x;", "error_page 404 =999 /x;", "error_page 499 /x;", "error_page 404 =200;", "error_page 300 @x;",
		"types { text/html; }", "types { text/html html; text/plain html; }", "types { a { } }", "types { include conf/nope; }", "types { text/html }", "types x { }",
		"add_header X;", "add_header X y z;", "add_header X y always z;", "expires;", "expires nope;", "expires modified;", "expires @25h;", "expires @12h 1;", "expires -99999999999999999999;", "expires 1y1y;", "expires $nope_v;",
		"access_log;", "access_log logs/x nope;", "access_log logs/x combined buffer=1x;", "access_log off x;", "access_log logs/$nope.log;", "access_log logs/x combined gzip=0;", "access_log logs/x combined flush=1s;", "access_log logs/$host combined buffer=4k;", "access_log logs/x combined buffer=4k; access_log logs/x combined buffer=8k;", "access_log logs/x combined buffer=4k; access_log logs/x combined buffer=4k flush=1m;", "access_log syslog:server=1;", "access_log \"\";", "error_log;", "error_log logs/x nope;", "error_log logs/e warn error;", "error_log /nope/dir/x;", "access_log /nope/dir/x;",
		"allow;", "allow 1.2.3.4/33;", "deny nope;", "satisfy some;", "client_max_body_size -1;", "large_client_header_buffers 0 1k;", "large_client_header_buffers 4 0;", "connection_pool_size 4k; large_client_header_buffers 2 1k;", "charset koi8-r; source_charset windows-1251;", "keepalive_timeout 1 2 3;", "keepalive_timeout x;", "client_body_buffer_size x;", "limit_except { deny all; }", "location /l { limit_except NOPE { deny all; } }", "location /l { limit_except get { deny all; } }", "location /l { limit_except GET { root x; } }", "internal;", "location /i { internal on; }",
		"location /x { proxy_buffer_size 4k; proxy_buffers 2 1k; proxy_pass http://127.0.0.1:1; }", "location /x { proxy_busy_buffers_size 1k; proxy_pass http://127.0.0.1:1; }", "proxy_buffers 1 4k;", "proxy_http_version 2.0;", "proxy_next_upstream nope;", "proxy_next_upstream error error;", "proxy_redirect default x;", "proxy_redirect a;", "proxy_redirect ~( x;", "proxy_redirect off; proxy_redirect default;", "proxy_redirect default; location /d { proxy_pass http://127.0.0.1:1$uri; proxy_redirect default; }", "location /r { proxy_redirect default; proxy_pass http://127.0.0.1:1; }", "proxy_set_header X;", "proxy_cookie_flags;", "proxy_cookie_flags a nope;", "proxy_cookie_path a;", "proxy_cookie_domain off x;", "proxy_temp_file_write_size 1;", "proxy_max_temp_file_size 1;", "proxy_method;", "proxy_ignore_headers Nope;", "proxy_bind nope;", "proxy_bind 127.0.0.1 transparent;", "proxy_store_access a:b;",
		"default_type;", "index;", "index /;", "index a /b c;", "root;", "root \"\";", "server_tokens nope;", "if_modified_since nope;", "keepalive_disable nope;", "lingering_close nope;", "sendfile maybe;", "send_timeout -1;", "output_buffers 0 1k;", "output_buffers 1 0;", "postpone_output x;", "disable_symlinks nope;", "disable_symlinks on nope;", "open_file_cache;", "open_file_cache max=0;", "resolver;", "resolver nope.invalid;", "client_body_temp_path a 1 2 3 4;", "client_body_temp_path a 4;", "client_body_in_file_only nope;", "aio nope;", "aio on;", "directio x;", "limit_rate x;",
	}
	httpList := []string{
		"map;", "map $uri {}", "map $uri x {}", "map uri $x {}", "map $uri $m { a; }", "map $uri $m { a b; a c; }", "map $uri $m { default a; default b; }", "map $uri $m { hostnames; *.* x; }", "map $uri $m { ~( x; }", "map $uri $m { a b c; }", "map $uri $m { include conf/nope; }", "map $uri $m { a { } }", "map $uri $uri {}", "map $nope2 $m { a b; }", "map $uri $m { a $nope3; }",
		"log_format;", "log_format x;", "log_format x escape=nope y;", "log_format x y; log_format x y;", "log_format combined x;", "log_format x \"$nope4\";", "log_format x \"$\";", "log_format x escape=json;",
		"upstream {}", "upstream a {}", "upstream a { server 127.0.0.1:1; } upstream a { server 127.0.0.1:2; }", "upstream a { server; }", "upstream a { server nohost.invalid; }", "upstream a { server 127.0.0.1:1 nope; }", "upstream a { server 127.0.0.1:1 weight=0; }", "upstream a { server 127.0.0.1:1 backup; }", "upstream a { server 127.0.0.1:99999; }", "upstream a { keepalive 0; server 127.0.0.1:1; }", "upstream a { server 127.0.0.1:1; keepalive x; }", "upstream a { server 127.0.0.1:1 max_fails=x; }", "upstream a { server 127.0.0.1:1 fail_timeout=; }", "upstream a { server 127.0.0.1:1 slow_start=1s; }", "upstream a { root x; }", "upstream a { server 127.0.0.1:1 down; }", "upstream a { keepalive 1; keepalive 2; server 127.0.0.1:1; }", "upstream a b { }", "upstream a { server unix:; }", "upstream a { server http://x; }", "upstream a { server 127.0.0.1:1/x; }",
		"server { listen 127.0.0.1:20000 default_server; } server { listen 127.0.0.1:20000 default_server; }", "server { server_name a.test; listen 127.0.0.1:20000; } server { server_name a.test; listen 127.0.0.1:20000; }", "server { listen 127.0.0.1:20000 backlog=3; } server { listen 127.0.0.1:20000 backlog=4; }", "server x {}", "server;", "types { } types { }", "types_hash_bucket_size 1;", "server_names_hash_bucket_size 1;", "variables_hash_max_size 0;", "http { }", "events { }", "sendfile on; sendfile off;", "connection_pool_size 1;", "request_pool_size 255;", "server { listen 127.0.0.1:20000; server_name " + strings.Repeat("n", 70) + ".test; }", "map_hash_bucket_size 8;",
	}
	into, text := s, u.pick(list...)
	if u.pct(30) {
		into, text = (*top)[2], u.pick(httpList...)
	}
	nodes, err := conftree.Parse([]byte(text))
	if err != nil {
		nodes = []*conftree.Node{conftree.N(strings.TrimSuffix(text, ";"))}
	}
	into.Add(nodes...)
}

// spoil damages the text itself: what nginx's tokenizer has to say.
func spoil(u *unit, text string) string {
	i := u.n(len(text) + 1)
	at := func(chars string) int {
		var places []int
		for j := range len(text) {
			if strings.IndexByte(chars, text[j]) >= 0 {
				places = append(places, j)
			}
		}
		if len(places) == 0 {
			return i
		}
		return pickOf(u.rnd, places)
	}
	switch u.n(11) {
	case 0:
		j := at(";")
		return text[:j] + text[min(j+1, len(text)):]
	case 1:
		j := at("{}")
		return text[:j] + text[min(j+1, len(text)):]
	case 2:
		return text[:i] + u.pick("{", "}", ";", ";;", "{}", "};", "{;", "#", "\"", "'", "\\", "$", "${", ")", "\x00", "\xff", "\r", " ", "\n") + text[i:]
	case 3:
		j := at("\"'")
		return text[:j] + text[min(j+1, len(text)):]
	case 4:
		return text[:i]
	case 5:
		j := at(" ")
		return text[:j] + u.pick(";", "{", "}", "\\ ", "\t", "\n\n", "\"\"", "\"x\"y", "'a'b", "\"a\";", " # c\n", "\\") + text[min(j+1, len(text)):]
	case 6:
		return text + u.pick("}", "{", ";", "x", "events {}", "http {}", "\"", "# end", "\\", "server {}", "x y;", "}}")
	case 7:
		j := at(";{")
		return text[:j] + u.pick(" \"unfinished;", " 'x;", " \"a\"b", " "+strings.Repeat("long", []int{300, 1020, 1024, 1100}[u.n(4)]), " \"\\q\\\"\"", " a\\;b", " \\\"x", " \"x\" \"y\"", " ${a}{b}", " $", "\"") + text[j:]
	case 8:
		return u.pick("\xef\xbb\xbf", "{", "}", ";", "\"x\";", "user;", "# comment only\n", "\n\n\n", "\r\n", "x {}") + text
	case 9:
		j := at("\n")
		return text[:j] + u.pick("\r", "\n;", " }\n", " {\n", "\n# a \"comment' {\n", "\\\n") + text[j:]
	}
	j := at("abcdefghijklmnopqrstuvwxyz_")
	return text[:j] + u.pick("x", "", "_", "-", "Z", "0") + text[min(j+1, len(text)):]
}
