package importer

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"nginxoracle/oracle/minimize/conftree"
)

// addrs are the addresses of a configuration and what stands for them in the cell.
type addrs struct {
	hosts map[string]string // upstream address -> the origin's, or where nothing answers
	plays map[string]bool   // of them, those that an origin plays
	local map[string]string // address listened on -> one of the cell's loopback
	ports map[int]bool      // ports listened on: no origin goes there
}

func newAddrs() addrs {
	return addrs{hosts: map[string]string{}, plays: map[string]bool{}, local: map[string]string{}, ports: map[int]bool{}}
}

// passes are the directives that name a server to pass requests to.
var passes = map[string]bool{"proxy_pass": true, "fastcgi_pass": true, "uwsgi_pass": true, "scgi_pass": true, "grpc_pass": true, "memcached_pass": true}

// splitListen cuts the address of a listen directive as nginx does (ngx_inet.c, ngx_parse_url): a port alone, a host
// alone, or both. A missing port is 80; a range of ports stays a text.
func splitListen(value string) (host, port string) {
	if i := strings.LastIndexByte(value, ':'); i >= 0 && !strings.HasSuffix(value, "]") {
		return value[:i], value[i+1:]
	}
	if from, to, ok := strings.Cut(value, "-"); digits(from) && (!ok || digits(to)) {
		return "*", value
	}
	return value, "80"
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// taken notes the ports of a listen directive.
func (m *importer) taken(value string) {
	_, port := splitListen(value)
	from, to, _ := strings.Cut(port, "-")
	first, err := strconv.Atoi(from)
	if err != nil {
		return
	}
	last, err := strconv.Atoi(to)
	if err != nil {
		last = first
	}
	for p := first; p <= min(last, 65535); p++ {
		m.ports[p] = true
	}
}

// listen moves an address to the cell's loopback: each one to its own. Ports stay, since a server may listen on any in a
// cell, and so do addresses that mean all and those that are of the loopback already.
func (m *importer) listen(n *conftree.Node, name string) error {
	value := conftree.Value(n.Words[1])
	for _, w := range n.Words[2:] {
		switch w {
		case "quic":
			return &Refusal{File: name, Line: n.Line, Why: "listen … quic: HTTP/3 is not compared: take the line out"}
		case "ssl":
			m.note("listen %s ssl: the requests are not encrypted: only how they are refused is compared", value)
		}
	}
	if strings.HasPrefix(value, "unix:") {
		n.Words[1] = m.at("listen", value, func(i int) string { return fmt.Sprintf("unix:/cell/listen-%d.sock", i) })
		return nil
	}
	host, port := splitListen(value)
	from, to, isRange := strings.Cut(port, "-")
	first, err := strconv.Atoi(from)
	last := first
	if err == nil && isRange {
		last, err = strconv.Atoi(to)
	}
	if err != nil || first < 1 || last < first || last > 65535 {
		return &Refusal{File: name, Line: n.Line, Why: fmt.Sprintf("listen %s: want a port from 1 to 65535, or a range of ports", value)}
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	switch {
	case host == "*" || err == nil && (a.IsUnspecified() || a.IsLoopback() && (a.Is4() || a == netip.IPv6Loopback())):
		return nil
	case err != nil && !hostName.MatchString(host):
		return nil // nginx's own message is the better one
	case host == "localhost":
		host = "127.0.0.1"
	default:
		host = m.at("listen address", host, func(i int) string { return fmt.Sprintf("127.77.%d.%d", i>>8&255, i&255) })
	}
	n.Words[1] = host + ":" + port
	n.Words = slices.DeleteFunc(n.Words, func(w string) bool { return strings.HasPrefix(w, "ipv6only=") })
	return nil
}

// hostName matches what may be a host's name, or an address of IPv4.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// upstream tells whether a text may be an upstream's address. One that cannot is left as it is: nginx has a message for it.
func upstream(addr string) bool {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return path != ""
	}
	host, port := addr, "80"
	if i := strings.LastIndexByte(addr, ':'); i >= 0 && !strings.HasSuffix(addr, "]") {
		host, port = addr[:i], addr[i+1:]
	}
	n, err := strconv.Atoi(port)
	_, ip := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && n > 0 && n <= 65535 && (ip == nil || hostName.MatchString(host))
}

// at is what stands for something that is listened on; make makes it out of a number.
func (m *importer) at(what, value string, make func(int) string) string {
	if m.local[value] == "" {
		m.local[value] = make(len(m.local) + 1)
		m.note("%s %s is %s in the cell", what, value, m.local[value])
	}
	return m.local[value]
}

// dial is where a client reaches a server that listens at an address of the cell.
func dial(listen string) string {
	if strings.HasPrefix(listen, "unix:") {
		return listen
	}
	host, port := splitListen(listen)
	port, _, _ = strings.Cut(port, "-")
	switch a, err := netip.ParseAddr(strings.Trim(host, "[]")); {
	case err == nil && a.Is6():
		host = "[::1]"
	case err != nil || a.IsUnspecified():
		host = "127.0.0.1"
	}
	return host + ":" + port
}

// pass points a directive such as proxy_pass at an origin, unless it names an upstream block or variables. An origin speaks
// HTTP: what another protocol would reach is an address at which nothing answers.
func (m *importer) pass(n *conftree.Node) {
	value := conftree.Value(n.Words[1])
	scheme, rest, ok := strings.Cut(value, "://")
	switch {
	case !ok:
		scheme, rest = "", value
	default:
		scheme += "://"
	}
	host, uri := rest, ""
	if path, isUnix := strings.CutPrefix(rest, "unix:"); isUnix {
		if i := strings.IndexByte(path, ':'); i >= 0 { // unix:/run/x.sock:/uri
			host, uri = rest[:len("unix:")+i], path[i:]
		}
	} else if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, uri = rest[:i], rest[i:]
	}
	switch http := n.Name() == "proxy_pass" && scheme == "http://"; {
	case strings.Contains(host, "$"):
		m.note("left as it is: %s %s names variables; no origin answers there", n.Name(), value)
	case m.named[host] && !http:
		m.note("%s %s: the origins of upstream %s speak plain HTTP: a 502 is compared", n.Name(), value, host)
	case m.named[host] || !upstream(host):
	case http:
		n.Words[1] = conftree.Quote(scheme + m.origin(host) + uri)
	default:
		n.Words[1] = conftree.Quote(scheme + m.nobody(n.Name()+" "+value, host) + uri)
	}
}

// origin is the address in the cell that stands for an upstream's.
func (m *importer) origin(addr string) string {
	if m.hosts[addr] == "" {
		m.hosts[addr] = m.free(strings.HasPrefix(addr, "unix:"))
		m.plays[m.hosts[addr]] = true
		m.note("upstream %s is an origin of the oracle's, %s, in the cell", addr, m.hosts[addr])
	}
	return m.hosts[addr]
}

// nobody is an address in the cell at which nothing answers.
func (m *importer) nobody(what, addr string) string {
	key := "nobody " + addr
	if m.hosts[key] == "" {
		m.hosts[key] = m.free(strings.HasPrefix(addr, "unix:"))
	}
	m.note("%s is %s in the cell, where nothing answers: a 502 is compared", what, m.hosts[key])
	return m.hosts[key]
}

// firstPort is where origins' ports begin.
const firstPort = 30001

// free is an address that nobody has.
func (m *importer) free(socket bool) string {
	if socket {
		return fmt.Sprintf("unix:/cell/origin-%d.sock", len(m.hosts)+1)
	}
	port := firstPort
	for m.ports[port] {
		port++
	}
	m.ports[port] = true
	return fmt.Sprintf("127.0.0.1:%d", port)
}
