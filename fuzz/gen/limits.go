package gen

import (
	"fmt"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// Features of what requests share: zones, balancers, and requests that are under way at the same time.

// limitKey is a key that requests can be told by; the long ones fill a zone of the smallest size with few.
func (u *unit) limitKey() (key string, values []string) {
	switch u.n(8) {
	case 0:
		return "$binary_remote_addr", []string{""}
	case 1:
		return "$uri", []string{""}
	case 2:
		return "$http_x_a", []string{"", "?k=1"}
	case 3: // longer than nginx takes: 65,535
		return strings.Repeat("$arg_k", 100), []string{"?k=" + strings.Repeat("l", 655), "?k=" + strings.Repeat("l", 656), "?k=1"}
	case 4:
		long := strings.Repeat("$arg_k", 8)
		for i := range u.in(4, 16) {
			values = append(values, fmt.Sprintf("?k=%d%s", i, strings.Repeat(string(rune('a'+i)), 200)))
		}
		return long, append(values, values[0], "?k=1")
	case 5:
		return `"$arg_k:$arg_j"`, []string{"?k=1", "?j=1", "?k=1&j=1", ""}
	}
	return "$arg_k", []string{"?k=1", "?k=2", "", "?k="}
}

// zone declares a zone of the unit for requests.
func (u *unit) zone(name, letter, key, rest string) string {
	zone := "u00_" + letter + itoa(u.zones)
	u.zones++
	u.http = append(u.http, u.dir(name, fmt.Sprintf("%s zone=%s:%s%s", key, zone, u.pick("32k", "32k", "64k", "1m"), rest)))
	return zone
}

// fLimitReq has rates of which hardly anything leaks while a case plays, or bursts that are worked off in tens of
// milliseconds. How much was in excess is a matter of milliseconds: it is logged where no log is compared, see Head.
func (u *unit) fLimitReq() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	key, values := u.limitKey()
	short := u.pct(12)
	rate := u.pick("1r/m", "1r/m", "2r/m", "59r/m")
	if short {
		rate = u.pick("25r/s", "1500r/m")
		key, values = u.pick("$arg_k", "$arg_k$arg_j", "$arg_j$arg_k"), []string{u.pick("?k=1", "?k=1&j=2")} // what no other client of the unit asks with
	}
	for i := range u.in(1, 2) {
		if i > 0 {
			key, rate = u.pick("$arg_j", "$http_x_b", "$uri"), "1r/m"
		}
		args := "zone=" + u.zone("limit_req_zone", "r", key, " rate="+rate)
		switch {
		case short && i == 0:
			args += " burst=" + u.pick("2", "3", "10") + u.pick("", "", " delay=1", " delay=2", " delay=3")
		case u.pct(60):
			args += " burst=" + u.pick("1", "2", "3", "100") + " nodelay"
		case u.pct(20): // the burst passes without delay up to what is delayed from
			args += " burst=2 delay=2"
		}
		n.Add(u.dir("limit_req", args))
	}
	u.limited(n, s, "limit_req", u.pick("info", "notice"))
	if !short {
		for _, v := range append(values, values[0]) {
			u.hit(s, p+v)
		}
		return
	}
	// Whether a request finds the one before it worked off would be chance, unless both come at once.
	all := ""
	k := u.in(2, 3)
	for range k {
		all += u.plainGet(s, p+values[0], "")
	}
	c := casefile.Section{Steps: []casefile.Step{step(casefile.Settle), send(all)}}
	for range k {
		c.Steps = append(c.Steps, recv(casefile.Response))
	}
	u.own = append(u.own, ownClients{s.port, []casefile.Section{c}})
}

// limited has what both modules that limit have in common.
func (u *unit) limited(n *conftree.Node, s *server, module, level string) {
	u.put(n, module+"_log_level", level)
	if u.pct(30) {
		u.put(n, module+"_status", u.pick("400", "429", "503", "599", "444", "404"))
	}
	if u.pct(20) {
		u.put(n, module+"_dry_run", "on")
	}
	if u.pct(60) {
		u.put(n, "add_header", "X-Limit $"+module+"_status always")
	}
	if u.pct(25) {
		u.put(n, "error_page", u.pick("503 =200 /a.txt", "503 429 /nope", "503 @u00_none"))
	}
	u.sprinkle(n, "location", s, 2)
}

// fLimitConn has a request under way, held by its body, while others come.
func (u *unit) fLimitConn() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	key, values := u.limitKey()
	for i := range u.in(1, 2) {
		if i > 0 {
			key = u.pick("$arg_j", "$http_x_b", "$server_name")
		}
		n.Add(u.dir("limit_conn", u.zone("limit_conn_zone", "c", key, "")+u.pick(" 1", " 1", " 1", " 2", " 65535")))
	}
	if u.ok("proxy_pass") {
		n.Add(u.dir("proxy_pass", u.originURL("good")))
	}
	u.limited(n, s, "limit_conn", u.pick("info", "notice", "warn", "error"))
	for range u.in(1, 2) {
		u.held(s, p+u.pick(values...), p+u.pick(values...))
	}
	for _, v := range values[:min(len(values), 3)] {
		u.hit(s, p+v)
	}
}

// held has a request held by its body while others are asked on a connection of their own, and asked once more when it is over.
// Its dozen waits for the server take about as long as timeouts of tens of milliseconds: which is first would be chance.
func (u *unit) held(s *server, first string, others ...string) {
	if s.timers {
		return
	}
	head := u.plainPost(s, first, 4)
	a := casefile.Section{Steps: []casefile.Step{step(casefile.Settle), send(head), step(casefile.Settle), send("ab"), step(casefile.Settle)}}
	b := casefile.Section{Steps: []casefile.Step{step(casefile.Settle), step(casefile.Settle), step(casefile.Settle)}}
	for _, uri := range others {
		b.Steps = append(b.Steps, send(u.plainGet(s, uri, "")), recv(casefile.Response))
		a.Steps = append(a.Steps, step(casefile.Settle), step(casefile.Settle))
	}
	switch u.n(5) {
	case 0: // the one that is held goes away
		a.Steps = append(a.Steps, u.abort()...)
	default:
		a.Steps = append(a.Steps, send("cd"), recv(casefile.Response))
	}
	b.Steps = append(b.Steps, step(casefile.Settle), step(casefile.Settle), step(casefile.Settle), recv(casefile.None), send(u.plainGet(s, first, "Connection: close\r\n")), recv(casefile.All))
	u.own = append(u.own, ownClients{s.port, []casefile.Section{a, b}})
}

func (u *unit) plainGet(s *server, uri, lines string) string {
	return "GET " + uri + " HTTP/1.1\r\nHost: " + s.hosts[0] + "\r\n" + lines + "\r\n"
}

func (u *unit) plainPost(s *server, uri string, length int) string {
	return "POST " + uri + " HTTP/1.1\r\nHost: " + s.hosts[0] + fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n", length)
}

// ownClients are clients that a feature has made itself; they play together.
type ownClients struct {
	port int
	list []casefile.Section
}

// ownOnes puts the clients of features behind the others.
func (u *unit) ownOnes() {
	for _, o := range u.own {
		for i, c := range o.list {
			c.Client, c.ID, c.Addr = true, len(u.clients)+1, fmt.Sprintf("127.0.0.1:%d", o.port)
			if i > 0 {
				c.With = u.clients[len(u.clients)-1].ID
			}
			u.clients = append(u.clients, c)
		}
	}
}

// fBalance has the ways of choosing among an upstream's servers. What is chosen by chance has one server that
// can be chosen.
func (u *unit) fBalance() {
	method := u.pick("hash", "hash", "ip_hash", "least_conn", "least_conn", "random", "")
	kinds := make([]string, u.in(2, 3))
	for i := range kinds {
		kinds[i] = u.pick("good", "good", "good", "refused", "status")
	}
	if method == "random" {
		kinds = kinds[:1]
	}
	name := u.upstreamBlock(kinds...)
	b := u.http[len(u.http)-1]
	if method == "hash" || method == "ip_hash" {
		for _, k := range b.Kids { // no backups with these, nor with random
			for i, w := range k.Words {
				if w == "backup" {
					k.Words[i] = "weight=4"
				}
			}
			k.Words = onceOnly(k.Words)
		}
	}
	var front []*conftree.Node
	if u.pct(60) && u.ok("zone") {
		front = append(front, u.dir("zone", "u00_z"+itoa(len(u.upstreams))+" "+u.pick("32k", "64k", "256k")))
	}
	switch {
	case method == "" || !u.ok(method):
	case method == "hash":
		front = append(front, u.dir("hash", u.pick("$arg_a", "$uri", `"$arg_a$uri"`, "$http_x_a")+u.pick("", " consistent")))
	case method == "random":
		front = append(front, u.dir("random", u.pick("", "two", "two least_conn")))
	default:
		front = append(front, u.dir(method, ""))
	}
	b.Kids = append(front, b.Kids...)
	s, n, p := u.proxyTo(name)
	if n == nil {
		return
	}
	u.sprinkleProxy(n, s, 3)
	if u.pct(30) && u.ok("proxy_request_buffering") { // an origin that has a request under way
		has := false
		for _, k := range n.Kids {
			has = has || k.Name() == "proxy_request_buffering"
		}
		if !has {
			n.Add(u.dir("proxy_request_buffering", "off"))
		}
		u.held(s, p+"?a=1", p+"?a=2", p+"?a=1")
	}
	for range u.in(3, 6) {
		u.proxied(s, p+u.pick("?a=", "?a=", "x?a=", "y?a=")+itoa(u.n(10)))
	}
}

// onceOnly drops a second argument of one name.
func onceOnly(words []string) (out []string) {
	seen := map[string]bool{}
	for _, w := range words {
		name, _, is := strings.Cut(w, "=")
		if is && seen[name] {
			continue
		}
		seen[name] = is
		out = append(out, w)
	}
	return out
}

// fBuffers has sizes of buffers that agree with each other, from one byte over what a header needs.
func (u *unit) fBuffers() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	n.Add(u.dir("proxy_pass", u.originURL(u.pick("good", "good", "mixed"))))
	// The header's buffer; number and size of the others; what may be busy sending: at least the largest, at most all but one.
	f := strings.Fields(u.pick("512 5 512 1024", "1k 4 1k 1k", "1k 4 1k 3k", "1k 8 512 2k", "4k 4 4k 8k", "1k 3 4k 4k", "1k 3 4k 8k", "2k 8 1k 2k",
		"4k 2 16k 16k", "300 3 700 700", "16k 8 4k 28k", "256 2 1k 1k", "700 4 512 701"))
	n.Add(u.dir("proxy_buffer_size", f[0]), u.dir("proxy_buffers", f[1]+" "+f[2]))
	u.put(n, "proxy_busy_buffers_size", f[3])
	if u.pct(40) {
		u.put(n, "proxy_max_temp_file_size", u.pick("0", "16k", "64k"))
	}
	u.put(n, "proxy_temp_file_write_size", u.pick("16k", "16k", "64k"))
	u.put(n, "proxy_buffering", u.pick("on", "on", "off"))
	u.sprinkleProxy(n, s, 2)
	for range u.in(2, 4) {
		u.proxied(s, p+u.suffix(""))
	}
}

// fStore keeps what an origin answers, and answers with it.
func (u *unit) fStore() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	u.put(n, "root", "u00/html")
	n.Add(u.dir("proxy_pass", u.originURL(u.pick("good", "good", "mixed"))), u.dir("proxy_store", u.pick("on", "/cell/u00/html/st$uri", "u00/html/st/$arg_a", "off")))
	u.put(n, "proxy_store_access", u.pick("user:rw", "user:rw group:rw all:r", "all:r"))
	u.put(n, "proxy_temp_path", "/cell/u00/tp")
	u.sprinkleProxy(n, s, 2)
	for range u.in(2, 3) {
		u.proxied(s, p+u.pick("x.txt", "kept/y.txt", "?a=z", "x.txt?a=b", ""))
	}
	u.hit(s, "/x.txt")
}

// fTunnel changes protocols: what comes behind the answer 101 is carried in both directions until one side ends.
func (u *unit) fTunnel() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil || len(u.origins) >= 4 {
		return
	}
	n.Add(u.dir("proxy_pass", originAsURL(u.newOrigin("tunnel"))))
	if !u.pct(10) {
		n.Add(u.dir("proxy_http_version", "1.1"))
	}
	if !u.pct(10) {
		n.Add(u.dir("proxy_set_header", "Upgrade "+u.pick("$http_upgrade", "x")))
	}
	n.Add(u.dir("proxy_set_header", "Connection "+u.pick("upgrade", "Upgrade", "$http_connection")))
	u.sprinkleProxy(n, s, 2)
	for range u.in(1, 2) {
		u.own = append(u.own, ownClients{s.port, []casefile.Section{{Steps: u.tunnelClient(s, p)}}})
	}
}

// tunnelClient asks for another protocol, and speaks it: at once, later, or in pieces.
func (u *unit) tunnelClient(s *server, uri string) []casefile.Step {
	lines := u.pick("Upgrade: x\r\nConnection: Upgrade\r\n", "Upgrade: x\r\nConnection: upgrade\r\n", "Connection: keep-alive, Upgrade\r\nUpgrade: x, y\r\n", "Upgrade: x\r\n", "")
	head, rest := u.plainGet(s, uri, lines), []string{"ping"}
	switch u.n(4) {
	case 0: // with the request: nginx has read it before it knows what it is
		head, rest = head+"ping", nil
	case 1:
		head, rest = head+"pi", []string{"ng"}
	case 2:
		rest = []string{"pi", "ng", "and " + u.pick("more", strings.Repeat("m", u.pick16()))}
	}
	steps := []casefile.Step{step(casefile.Settle), send(head), step(casefile.Settle)}
	for _, r := range rest {
		steps = append(steps, send(r), step(casefile.Settle))
	}
	if u.pct(50) {
		return append(steps, recv(casefile.None), step(casefile.Close))
	}
	return append(steps, u.abort()...)
}

// tunnelScript answers 101 and goes on with bytes of its own.
func (u *unit) tunnelScript() []casefile.Step {
	answer := "HTTP/1.1 101 Switching Protocols\r\n" + u.pick("Upgrade: x\r\nConnection: Upgrade\r\n", "Upgrade: x\r\nConnection: Upgrade\r\n", "Upgrade: x\r\n", "Connection: upgrade\r\n", "") +
		u.pick("", "", "Content-Length: 3\r\n", "X-A: 1\r\n") + "\r\n"
	four := recv(casefile.Bytes)
	four.N = 4
	steps := append([]casefile.Step{recv(casefile.Headers)}, u.pieces(answer+u.pick("", "", "early", strings.Repeat("e", u.pick16())))...)
	if u.pct(25) {
		steps = append(steps, send("later")) // nobody has asked
	}
	if u.pct(75) {
		steps = append(steps, four, send("pong"))
	}
	if u.pct(60) {
		return append(steps, step(casefile.Settle), step(u.endOp()))
	}
	return steps
}

// fInclude has parts of a server in other files.
func (u *unit) fInclude() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	for _, name := range []string{"one", "two"} {
		path := "u00/inc/" + name + ".conf"
		if _, ok := u.byPath[path]; ok {
			return
		}
		text := u.fill(u.pick("add_header {hname} {text} always;\n", "# nothing\n", "add_header X-"+name+" \"a\n b\";", "\n\nadd_header X-I "+name+" ; # more\n", ""), s)
		u.file(path, text, 0, 0)
	}
	n.Add(u.dir("include", u.pick("/cell/u00/inc/*.conf", "u00/inc/*.conf", "u00/inc/one.conf", "u00/inc/n*.conf", "u00/inc/[ot]*.conf", "u00/inc/t?o.conf", "u00/inc/*/", "u00/*/one.conf", "u00/i*/t*.conf", "u00/inc/*/x.conf", "u00//in?//o*")))
	u.put(n, "return", `200 "i $uri"`)
	u.hit(s, p)
}

// fLogPath has a log whose name hangs on the request.
func (u *unit) fLogPath() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	u.put(n, "access_log", u.pick("logs/u00_$arg_l.log", "logs/u00_$arg_l.log combined", "logs/u00_${arg_l}x.log combined if=$arg_m"))
	u.put(n, "open_log_file_cache", u.pick("off", "max=1", "max=10 inactive=20s valid=1m min_uses=2"))
	u.sprinkle(n, "location", s, 2)
	for range u.in(2, 5) {
		u.hit(s, p+u.pick("?l=a", "?l=b", "?l=", "", "?l=a&m=1", "?l=nope/x", "?l=%2e"))
	}
}

// fFileCache has open files kept between requests, and asks twice.
func (u *unit) fFileCache() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	u.put(n, "alias", u.pick("u00/html/", "/cell/u00/html/"))
	n.Add(u.dir("open_file_cache", u.pick("max=1", "max=2 inactive=20s", "max=100", "off")))
	u.put(n, "open_file_cache_errors", u.pick("on", "off"))
	u.put(n, "open_file_cache_min_uses", u.pick("1", "2", "3"))
	u.put(n, "open_file_cache_events", u.pick("on", "off"))
	u.put(n, "open_file_cache_valid", u.pick("60s", "1h"))
	u.sprinkle(n, "location", s, 3)
	for range u.in(2, 4) {
		uri := p + u.pick("a.txt", "nope", "dir", "dir/c.txt", "index.html", "")
		u.hit(s, uri)
		u.hit(s, uri)
	}
}
