package gen

import (
	"fmt"
	"strings"

	"nginxoracle/fuzz/grammar"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// Ports of a unit at slot 0: listenPort+0..4 for servers, originPort+0..4 for
// origins. Slot s has them at +10*s, so that every name of a unit has the same
// length in every slot, and renaming never changes a length that a case states.
const (
	listenPort = 20000
	originPort = 20005
)

// unit is one generated server group: one to three server blocks on their own
// ports, with their own folder, upstreams, maps, logs, origins and clients.
type unit struct {
	*rnd
	w         *world
	http      []*conftree.Node
	servers   []*server
	files     []casefile.File
	byPath    map[string]int // files by path
	origins   []casefile.Origin
	clients   []casefile.Section
	messy     []bool   // clients that the server may linger with
	vars      []string // declared variables, without $
	targets   []target
	upstreams []string
	named     []string
	formats   int
	buffered  string // the parameters of the unit's log that buffer it
	zones     int    // for limits
	own       []ownClients
	timers    int // how many clients may still wait for a short timer
}

// world is what units share: tables, and rows by context.
type world struct {
	t       *grammar.Tables
	known   func(string) bool
	byCtx   map[string][]grammar.Row
	deckCtx map[string]*deck
}

func newWorld(known func(string) bool) (*world, error) {
	t, err := grammar.Load()
	if err != nil {
		return nil, err
	}
	if known == nil {
		known = func(string) bool { return true }
	}
	w := &world{t: t, known: known, byCtx: map[string][]grammar.Row{}, deckCtx: map[string]*deck{}}
	for _, ctx := range []string{"http", "server", "location", "if-in-location", "if-in-server", "upstream", "limit_except"} {
		rows := t.Sprinkled(ctx, known)
		weights := make([]int, len(rows))
		for i, r := range rows {
			weights[i] = r.Weight
		}
		w.byCtx[ctx], w.deckCtx[ctx] = rows, newDeck(weights)
	}
	return w, nil
}

// server is one server block while it is built.
type server struct {
	node  *conftree.Node
	port  int
	hosts []string // Host values that select it, first the plainest
	seen  map[string]bool
	uris  []string // URIs that mean something in it

	timers bool // its clients' timeouts are tens of milliseconds
}

// target is something a request can hit.
type target struct {
	srv     *server
	uri     string
	file    int // index into files, or -1
	method  string
	headers []string
	body    bool // wants a request body
	proxied bool
	slow    bool // only a short timer brings the answer
}

func (u *unit) ok(names ...string) bool {
	for _, n := range names {
		if !u.w.known(n) {
			return false
		}
	}
	return true
}

// dir makes a simple directive from a name and the raw text of its arguments.
func (u *unit) dir(name, args string) *conftree.Node {
	list, err := conftree.Parse([]byte(name + " " + args + ";"))
	if err != nil || len(list) != 1 {
		panic(fmt.Sprintf("gen: directive %q %q: %v", name, args, err))
	}
	return list[0]
}

// put adds name args to a block unless the directive is not known to the candidate.
func (u *unit) put(n *conftree.Node, name, args string) {
	if u.ok(name) {
		u.add(n, u.dir(name, args))
	}
}

// Duplicates tells which directives may stand twice in a block. A second one of
// the others is nginx's "duplicate", which the grammar of wrong configurations covers.
func Duplicates(name string) bool {
	switch name {
	case "add_header", "add_trailer", "allow", "deny", "set", "error_page", "proxy_set_header", "proxy_hide_header",
		"proxy_pass_header", "proxy_redirect", "rewrite", "sub_filter", "set_real_ip_from", "return", "break", "access_log", "error_log", "if", "location",
		"index", "limit_conn", "limit_req":
		return true
	}
	return false
}

// sprinkle puts up to k random directives into a block.
func (u *unit) sprinkle(n *conftree.Node, ctx string, srv *server, k int) {
	rows := u.w.byCtx[ctx]
	if len(rows) == 0 {
		return
	}
	have := map[string]bool{}
	for _, kid := range n.Kids {
		have[kid.Name()] = true
	}
	for range u.n(k + 1) {
		row := rows[u.w.deckCtx[ctx].deal(u.rnd)]
		if have[row.Name] && !Duplicates(row.Name) || (row.Name == "root" && have["alias"]) {
			continue
		}
		if row.Name == "proxy_redirect" && have[row.Name] {
			continue
		}
		have[row.Name] = true
		u.add(n, u.dir(row.Name, u.fill(u.pick(row.Forms...), srv)))
	}
}

// add puts a directive into a block unless the candidate refuses its arguments.
func (u *unit) add(n, d *conftree.Node) {
	if u.ok(strings.Join(d.Words, " ")) {
		n.Add(d)
	}
}

// location makes a location block in a server or a location; the same one
// twice would be an error, so a second is refused with nil.
func (u *unit) location(srv *server, in *conftree.Node, kind, path string) *conftree.Node {
	key := kind + " " + path
	if kind == "" || kind == "^~" {
		key = "prefix " + path // nginx takes a prefix once, with ^~ or without
	}
	if srv.seen[key] && kind != "~" && kind != "~*" {
		return nil
	}
	srv.seen[key] = true
	words := []string{"location"}
	if kind != "" {
		words = append(words, kind)
	}
	n := conftree.B(append(words, conftree.Quote(path)))
	in.Add(n)
	return n
}

func (u *unit) hit(srv *server, uri string) *target {
	u.targets = append(u.targets, target{srv: srv, uri: uri, file: -1})
	srv.uris = append(srv.uris, uri)
	return &u.targets[len(u.targets)-1]
}

// newVar declares a variable of the unit.
func (u *unit) newVar() string {
	for _, s := range u.rand().Perm(8) {
		v := "u00_" + string(rune('a'+s))
		if !contains(u.vars, v) {
			u.vars = append(u.vars, v)
			return v
		}
	}
	return pickOf(u.rnd, u.vars)
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func (u *unit) server() *server { return pickOf(u.rnd, u.servers) }

// build makes the whole unit, with the given feature cards.
func (u *unit) build(cards []int) {
	u.byPath = map[string]int{}
	u.tree()
	u.makeServers()
	for _, c := range cards {
		f := features[c]
		if !u.ok(f.needs...) {
			continue
		}
		f.make(u)
	}
	for _, s := range u.servers {
		u.sprinkle(s.node, "server", s, 4)
		if u.pct(70) {
			u.fileTargets(s)
		}
	}
	u.declare()
	u.makeClients()
}

// declare gives a value to the variables that were chosen, but whose directive
// was dropped on the way: an unknown variable would spoil the whole batch.
func (u *unit) declare() {
	var text strings.Builder
	for _, n := range u.http {
		text.Write(conftree.Print([]*conftree.Node{n}))
	}
	for _, s := range u.servers {
		text.Write(conftree.Print([]*conftree.Node{s.node}))
	}
	t := text.String()
	for _, v := range u.vars {
		if !strings.Contains(t, "set $"+v+" ") && !strings.Contains(t, "(?<"+v+">") && !strings.Contains(t, " $"+v+" {") {
			u.servers[0].node.Add(u.dir("set", "$"+v+` ""`))
		}
	}
}

func (u *unit) makeServers() {
	n := []int{1, 1, 1, 1, 1, 1, 2, 2, 2, 3}[u.n(10)]
	for i := range n {
		port := listenPort
		if i > 0 && u.pct(30) {
			port += i
		}
		s := &server{node: conftree.B([]string{"server"}), port: port, seen: map[string]bool{}}
		listen := fmt.Sprintf("127.0.0.1:%d", port)
		switch {
		case u.pct(10):
			listen = itoa(port)
		case u.pct(8):
			listen = fmt.Sprintf("*:%d", port)
		}
		first := true
		for _, o := range u.servers {
			if o.port == port {
				first = false
				listen = strings.Fields(strings.Join(o.node.Kids[0].Words[1:], " "))[0]
			}
		}
		if first && u.pct(15) {
			listen += u.pick(" default_server", " backlog=64", " reuseport", " sndbuf=64k", " so_keepalive=on", " deferred", " default")
		}
		s.node.Add(u.dir("listen", listen))
		if first && u.pct(6) {
			s.node.Add(u.dir("listen", fmt.Sprintf("127.0.0.1:%d", port+4-i)))
		}
		u.names(s, i)
		if u.pct(92) {
			u.put(s.node, "root", u.pick("u00/html", "u00/html", "u00/html", "/cell/u00/html", "u00/html/"))
		}
		u.put(s.node, "access_log", u.accessLog())
		u.servers = append(u.servers, s)
	}
}

func (u *unit) names(s *server, i int) {
	plain := fmt.Sprintf("s%d.u00.test", i)
	s.hosts = []string{plain}
	if i == 0 && u.pct(50) {
		s.hosts = []string{"localhost", "example.test", plain}
		return
	}
	names := []string{plain}
	add := func(p int, name string, hosts ...string) {
		if u.pct(p) {
			names = append(names, name)
			s.hosts = append(s.hosts, hosts...)
		}
	}
	add(25, fmt.Sprintf("*.s%d.u00.test", i), fmt.Sprintf("a.s%d.u00.test", i), fmt.Sprintf("a.b.s%d.u00.test", i))
	add(15, fmt.Sprintf("s%d.u00.*", i), fmt.Sprintf("s%d.u00.org", i), fmt.Sprintf("s%d.u00.co.uk", i))
	add(12, fmt.Sprintf(".dot%d.u00.test", i), fmt.Sprintf("dot%d.u00.test", i), fmt.Sprintf("x.dot%d.u00.test", i))
	add(8, `""`, "")
	add(8, "_", "_")
	add(8, fmt.Sprintf("UP%d.U00.Test", i), fmt.Sprintf("up%d.u00.test", i), fmt.Sprintf("Up%d.u00.TEST", i))
	add(6, "127.0.0.1", "127.0.0.1")
	if u.pct(15) {
		v := u.newVar()
		names = append(names, fmt.Sprintf(`"~^(?<%s>[a-z]+)\.re%d\.u00\.test$"`, v, i))
		s.hosts = append(s.hosts, fmt.Sprintf("cap.re%d.u00.test", i), fmt.Sprintf("CAP.re%d.u00.test", i))
	}
	if u.pct(6) {
		names = append(names, fmt.Sprintf(`~^(.+)\.r%d\.`, i))
		s.hosts = append(s.hosts, fmt.Sprintf("one.r%d.x", i))
	}
	u.put(s.node, "server_name", strings.Join(names, " "))
}

// accessLog makes the arguments of an access_log, with its own format half of the time.
func (u *unit) accessLog() string {
	if u.pct(8) {
		return "off"
	}
	log := "logs/u00.log"
	switch {
	case u.pct(25):
		return log
	case u.pct(15):
		return log + " combined" + u.logBuffer("", " buffer=4k", " buffer=64k flush=5m", " if=$arg_log", " if=$http_x_a")
	}
	u.formats++
	name := "u00_f" + itoa(u.formats)
	var parts []string
	for range u.in(1, 3) {
		parts = append(parts, u.text(true))
	}
	if u.pct(4) {
		parts = append(parts, `" $`+u.pick(volatile...)+`"`)
	}
	u.http = append(u.http, u.dir("log_format", name+" "+u.pick("", "", "escape=json ", "escape=none ", "escape=default ")+strings.Join(parts, " ")))
	return log + " " + name + u.logBuffer("", "", "", " buffer=4k", " if=$arg_log", " if=$status")
}

// logBuffer picks the parameters of the unit's log. A second buffer must be as the first (src/http/modules/
// ngx_http_log_module.c, "conflicting parameters"): conflicts are among the wrong configurations.
func (u *unit) logBuffer(list ...string) string {
	p := u.pick(list...)
	if !strings.Contains(p, "buffer=") {
		return p
	}
	if u.buffered == "" {
		u.buffered = p
	}
	return u.buffered
}
