package importer

import (
	"fmt"
	"maps"
	"regexp/syntax"
	"slices"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// Bounds of the probes: one connection a path of a server, each with all kinds of requests.
const (
	maxPaths = 40  // a server
	maxConns = 300 // in all
)

// server is what the requests are made of.
type server struct {
	addrs, hosts, paths []string
}

// servers reads the http blocks' servers.
func (m *importer) servers(top []*conftree.Node) (list []server) {
	for _, h := range top {
		if h.Name() != "http" {
			continue
		}
		for _, n := range h.Kids {
			if n.Name() != "server" || !n.Block {
				continue
			}
			var s server
			s.paths = []string{"/"}
			for _, k := range n.Kids {
				switch k.Name() {
				case "listen":
					if len(k.Words) > 1 { // nginx has a message for one that names nothing
						s.addrs = append(s.addrs, dial(conftree.Value(k.Words[1])))
					}
				case "server_name":
					for _, w := range k.Words[1:] {
						s.hosts = append(s.hosts, hostOf(conftree.Value(w))...)
					}
				}
			}
			if len(s.addrs) == 0 { // nginx's own default is *:80, or *:8000 where it is not root, as in a cell
				s.addrs = []string{dial("80")}
				n.Kids = append([]*conftree.Node{conftree.N("listen", "80")}, n.Kids...)
				m.note("a server without listen listens at *:80, as it does under root")
			}
			s.hosts = append(s.hosts, "no-such-host.test")
			m.locations(n.Kids, &s)
			for _, f := range m.res.Case.Files { // documents, by their names below each root
				for _, root := range roots(h.Kids, n.Kids) {
					if rest, ok := strings.CutPrefix("/cell/"+f.Path, strings.TrimSuffix(root, "/")+"/"); ok && !f.Dir && len(s.paths) < maxPaths {
						s.paths = append(s.paths, "/"+rest)
					}
				}
			}
			s.paths = append(s.paths, "/no-such-file", "/a/../b//c%20d", "/%2e%2e/x")
			list = append(list, s)
		}
	}
	return list
}

// roots are the document roots at the levels of a server.
func roots(levels ...[]*conftree.Node) (list []string) {
	for _, level := range levels {
		for _, n := range level {
			if n.Name() == "root" && len(n.Words) == 2 {
				list = append(list, conftree.Value(n.Words[1]))
			}
		}
	}
	return list
}

func hostOf(name string) []string {
	switch {
	case strings.HasPrefix(name, "~"):
		return sample(name[1:])
	case strings.HasPrefix(name, "*."):
		return []string{"a" + name[1:]}
	case strings.HasPrefix(name, "."):
		return []string{name[1:], "a" + name}
	case strings.HasSuffix(name, ".*"):
		return []string{name[:len(name)-1] + "test"}
	case name == "" || name == "_":
		return nil
	}
	return []string{name}
}

// locations adds a path for each location, and one behind it.
func (m *importer) locations(list []*conftree.Node, s *server) {
	for _, n := range list {
		if n.Name() != "location" || len(n.Words) < 2 {
			continue
		}
		last := conftree.Value(n.Words[len(n.Words)-1])
		kind := ""
		if len(n.Words) > 2 {
			kind = n.Words[1]
		}
		switch {
		case strings.HasPrefix(last, "@"):
		case strings.HasPrefix(kind, "~"):
			s.paths = append(s.paths, sample(last)...)
		case kind == "=":
			s.paths = append(s.paths, last)
		default:
			s.paths = append(s.paths, last, strings.TrimSuffix(last, "/")+"/x.html")
		}
		m.locations(n.Kids, s)
	}
}

// sample gives texts that a pattern is likely to match; none for one that Go's reader of patterns cannot read.
func sample(pattern string) []string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	text := grow(re.Simplify())
	if !strings.HasPrefix(text, "/") && !strings.HasPrefix(pattern, "^") {
		return []string{"/a" + text}
	}
	return []string{text}
}

func grow(re *syntax.Regexp) string {
	var b strings.Builder
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			r := max(re.Rune[0], '!')
			for i := 0; i < len(re.Rune); i += 2 {
				if re.Rune[i] <= 'a' && 'a' <= re.Rune[i+1] {
					r = 'a'
				}
			}
			b.WriteRune(r)
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpCapture, syntax.OpPlus, syntax.OpConcat:
		for _, s := range re.Sub {
			b.WriteString(grow(s))
		}
	case syntax.OpAlternate:
		b.WriteString(grow(re.Sub[0]))
	case syntax.OpRepeat:
		for range re.Min {
			b.WriteString(grow(re.Sub[0]))
		}
	}
	return b.String()
}

// answer is what an upstream says: enough for a cache's and a rewriter's directives to have something to do.
const answer = "HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: text/html\r\nLast-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\nETag: \"origin\"\r\n" +
	"Set-Cookie: a=b; Path=/\r\nContent-Length: 12\r\n\r\nfrom origin\n"

func (m *importer) origins() {
	for _, addr := range slices.Sorted(maps.Keys(m.plays)) {
		m.res.Case.Origins = append(m.res.Case.Origins, casefile.Origin{Addr: addr, Conns: [][]casefile.Step{{
			{Op: casefile.Recv, What: casefile.Request}, {Op: casefile.Send, Data: [][]byte{[]byte(answer)}}, {Op: casefile.Again}}}})
	}
}

// variants are the requests made of each path: method, then further header lines.
var variants = []struct {
	method, fields, body string
}{
	{"GET", "", ""},
	{"HEAD", "", ""},
	{"GET", "Range: bytes=0-3\r\n", ""},
	{"GET", "Range: bytes=-2,0-0\r\n", ""},
	{"GET", "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n", ""},
	{"GET", "If-None-Match: *\r\n", ""},
	{"GET", "If-Match: \"none\"\r\n", ""},
	{"GET", "Accept-Encoding: gzip\r\nAuthorization: Basic YTpi\r\n", ""},
	{"OPTIONS", "", ""},
	{"POST", "Content-Length: 3\r\n", "a=b"},
	{"DELETE", "", ""},
}

// probes writes the clients: all variants on one connection a path, and one that is fresh and closes.
func (m *importer) probes(servers []server) {
	id, left := 0, 0
	defer func() {
		if left > 0 {
			m.note("%d connections are made, %d more are not: names and paths of the last servers are not asked for", id, left)
		}
	}()
	for _, s := range servers {
		slices.Sort(s.paths)
		s.paths = slices.Compact(s.paths)
		if len(s.paths) > maxPaths {
			m.note("only %d of %d paths of a server are asked for", maxPaths, len(s.paths))
			s.paths = s.paths[:maxPaths]
		}
		for i, p := range s.paths {
			for j, host := range s.hosts {
				if i > 0 && j > 0 { // every host is asked for one path, every path of the first
					continue
				}
				if id >= maxConns {
					left++
					continue
				}
				id++
				m.res.Case.Sections = append(m.res.Case.Sections, client(id, s.addrs[0], host, p))
			}
		}
		for _, addr := range s.addrs[1:] {
			id++
			m.res.Case.Sections = append(m.res.Case.Sections, client(id, addr, s.hosts[0], "/"))
		}
	}
}

func client(id int, addr, host, p string) casefile.Section {
	c := casefile.Section{Client: true, ID: id, Addr: addr}
	target := strings.NewReplacer(" ", "%20", "\r", "%0D", "\n", "%0A", "\t", "%09").Replace(p)
	for _, v := range variants {
		what := casefile.Response
		if v.method == "HEAD" {
			what = casefile.Head
		}
		c.Steps = append(c.Steps, casefile.Step{Op: casefile.Send, Data: [][]byte{fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", v.method, target, host, v.fields, v.body)}},
			casefile.Step{Op: casefile.Recv, What: what})
	}
	c.Steps = append(c.Steps, casefile.Step{Op: casefile.Close})
	return c
}
