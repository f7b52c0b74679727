// Package importer brings a person's own nginx configuration into a case: includes are
// read in, files are copied, addresses are moved to the cell's loopback, and requests are made from
// its server names, locations and files. What cannot be brought into a cell is refused by name.
package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// Limits of what is copied into a cell, whose tree is small.
const (
	maxFile  = 1 << 20  // bytes of one file
	maxFiles = 16 << 20 // bytes of all files
	maxEach  = 200      // files of one folder
)

// Result is a case and what was changed to make it one.
type Result struct {
	Case  *casefile.Case
	Notes []string // what was changed or left out, for the person
}

// Refusal says that a configuration cannot be brought into a cell, and why: place, thing, next step.
type Refusal struct {
	File string
	Line int
	Why  string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s:%d: %s", r.File, r.Line, r.Why) }

// refused are directives that would need what a cell has not.
var refused = map[string]string{
	"load_module": "a module of another program: remove the line, or check without it",
	"mail":        "mail is not compared",
	"stream":      "stream is not compared",
}

// dropped are directives that mean the machine and not the behaviour.
var dropped = []string{"user", "pid", "daemon", "lock_file", "worker_processes", "worker_cpu_affinity", "worker_priority", "worker_rlimit_nofile",
	"worker_rlimit_core", "working_directory", "pcre_jit", "ssl_engine", "thread_pool", "resolver", "resolver_timeout", "error_log"}

// files are directives whose argument (by number; -1: the last) names a file that must be there.
var files = map[string]int{
	"auth_basic_user_file": 1, "ssl_certificate": 1, "ssl_certificate_key": 1, "ssl_dhparam": 1, "ssl_trusted_certificate": 1, "ssl_client_certificate": 1,
	"ssl_crl": 1, "ssl_password_file": 1, "proxy_ssl_certificate": 1, "proxy_ssl_certificate_key": 1, "proxy_ssl_trusted_certificate": 1, "geoip_country": 1,
	"geoip_city": 1, "ssl_session_ticket_key": 1,
}

// folders are directives whose argument names a folder of documents, copied as far as it is there.
var folders = map[string]int{"root": 1, "alias": 1}

// writes are directives whose argument names a place that the server writes to.
var writes = map[string]int{"access_log": 1, "client_body_temp_path": 1, "proxy_temp_path": 1, "proxy_cache_path": 1, "fastcgi_temp_path": 1, "uwsgi_temp_path": 1, "scgi_temp_path": 1}

type importer struct {
	prefix string // where relative names begin: the configuration's folder
	res    Result
	size   int
	copied map[string]string         // path on this machine -> in the cell
	from   map[*conftree.Node]string // the file that an included directive stands in, for errors
	hosts  map[string]string         // upstream address -> the origin's
	named  map[string]bool           // upstream blocks
	depth  int
	shown  map[string]bool
}

// Options of an import.
type Options struct {
	// HideVersion turns server_tokens off: two versions of one server differ in that for certain, and
	// it would hide what else a response's header has.
	HideVersion bool
}

// Import reads the configuration at name. What cannot be brought into a cell is a *Refusal.
func Import(name string, o Options) (*Result, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	m := &importer{prefix: filepath.Dir(abs), copied: map[string]string{}, from: map[*conftree.Node]string{}, hosts: map[string]string{}, named: map[string]bool{}, shown: map[string]bool{}}
	m.res.Case = &casefile.Case{Name: name, Title: "the configuration " + filepath.Base(name)}
	top, err := m.read(abs)
	if err != nil {
		return nil, err
	}
	conftree.Walk(top, "", func(n *conftree.Node, parent string) bool {
		if n.Name() == "upstream" && len(n.Words) > 1 {
			m.named[conftree.Value(n.Words[1])] = true
		}
		return true
	})
	if top, err = m.adapt(top, "", abs); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(top, func(n *conftree.Node) bool { return n.Name() == "events" }) {
		top = append([]*conftree.Node{conftree.B([]string{"events"})}, top...)
	}
	if o.HideVersion {
		m.hideVersion(top)
	}
	servers := m.servers(top)
	if len(servers) == 0 {
		return nil, &Refusal{File: name, Line: 1, Why: "no server block: there is nothing to ask"}
	}
	m.res.Case.Files = append([]casefile.File{{Path: "nginx.conf", Data: conftree.Print(top)}}, m.res.Case.Files...)
	m.origins()
	m.probes(servers)
	return &m.res, nil
}

func (m *importer) hideVersion(top []*conftree.Node) {
	conftree.Walk(top, "", func(n *conftree.Node, parent string) bool {
		n.Kids = slices.DeleteFunc(n.Kids, func(k *conftree.Node) bool { return k.Name() == "server_tokens" })
		if n.Name() == "http" && parent == "" {
			n.Kids = append([]*conftree.Node{conftree.N("server_tokens", "off")}, n.Kids...)
		}
		return true
	})
	m.note("server_tokens is off: the two versions are known to differ")
}

func (m *importer) note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if !m.shown[s] {
		m.shown[s] = true
		m.res.Notes = append(m.res.Notes, s)
	}
}

// read parses a file and puts what it includes in its place (ngx_conf_file.c, ngx_conf_include).
func (m *importer) read(name string) ([]*conftree.Node, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	list, err := conftree.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if m.depth++; m.depth > 20 {
		return nil, &Refusal{File: name, Line: 1, Why: "includes are nested more than 20 deep"}
	}
	defer func() { m.depth-- }()
	return m.expand(list, name)
}

func (m *importer) expand(list []*conftree.Node, name string) ([]*conftree.Node, error) {
	var out []*conftree.Node
	for _, n := range list {
		if n.Name() != "include" || n.Block || len(n.Words) != 2 {
			kids, err := m.expand(n.Kids, name)
			if err != nil {
				return nil, err
			}
			n.Kids = kids
			out = append(out, n)
			continue
		}
		pattern := m.absolute(conftree.Value(n.Words[1]))
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 && !strings.ContainsAny(pattern, "*?[") {
			return nil, &Refusal{File: name, Line: n.Line, Why: fmt.Sprintf("include %s: no such file", pattern)}
		}
		for _, f := range found {
			more, err := m.read(f)
			if err != nil {
				return nil, err
			}
			for _, n := range more {
				if m.from[n] == "" {
					m.from[n] = f
				}
			}
			out = append(out, more...)
		}
	}
	return out, nil
}

func (m *importer) absolute(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(m.prefix, name)
}

// adapt changes what names this machine into what names the cell.
func (m *importer) adapt(list []*conftree.Node, parent, name string) ([]*conftree.Node, error) {
	var out []*conftree.Node
	for _, n := range list {
		name := cmp.Or(m.from[n], name)
		word := n.Name()
		data := parent == "types" || parent == "map" || parent == "geo" || parent == "split_clients" || parent == "charset_map"
		switch {
		case data:
		case refused[word] != "" && (parent == "" || word == "load_module"):
			return nil, &Refusal{File: name, Line: n.Line, Why: word + " cannot be brought into a cell: " + refused[word]}
		case slices.Contains(dropped, word):
			m.note("left out: %s", word)
			continue
		case files[word] != 0 && len(n.Words) > files[word]:
			if err := m.file(n, files[word], name); err != nil {
				return nil, err
			}
		case folders[word] != 0 && len(n.Words) > 1:
			if err := m.folder(n, name); err != nil {
				return nil, err
			}
		case writes[word] != 0 && len(n.Words) > 1:
			m.writable(n)
		case word == "listen" && len(n.Words) > 1:
			if err := m.listen(n, name); err != nil {
				return nil, err
			}
		case word == "server" && parent == "upstream" && len(n.Words) > 1:
			n.Words[1] = m.origin(conftree.Value(n.Words[1]))
		case word == "proxy_pass" && len(n.Words) > 1:
			m.pass(n)
		}
		kids, err := m.adapt(n.Kids, word, name)
		if err != nil {
			return nil, err
		}
		n.Kids = kids
		out = append(out, n)
	}
	return out, nil
}

// file copies a file that a directive names; without it there is no such server.
func (m *importer) file(n *conftree.Node, arg int, name string) error {
	value := conftree.Value(n.Words[arg])
	if strings.Contains(value, "$") || value == "off" || strings.HasPrefix(value, "data:") {
		return nil
	}
	src := m.absolute(value)
	in, ok := m.copied[src]
	if !ok {
		b, err := os.ReadFile(src)
		if err != nil {
			return &Refusal{File: name, Line: n.Line, Why: fmt.Sprintf("%s: %v: put the file there (a test one will do), or take the line out", n.Name(), err)}
		}
		in = "files" + src
		if err := m.put(in, b, n, name); err != nil {
			return err
		}
		m.copied[src] = in
	}
	n.Words[arg] = conftree.Quote("/cell/" + in)
	return nil
}

func (m *importer) put(in string, b []byte, n *conftree.Node, name string) error {
	if m.size += len(b); m.size > maxFiles {
		return &Refusal{File: name, Line: n.Line, Why: fmt.Sprintf("%s: more than %d MB would go into the cell: give a smaller folder", n.Name(), maxFiles>>20)}
	}
	if m.res.Case.File(in) == nil {
		m.res.Case.Files = append(m.res.Case.Files, casefile.File{Path: in, Data: b, Quoted: true})
	}
	return nil
}

// folder copies a folder of documents.
func (m *importer) folder(n *conftree.Node, name string) error {
	value := conftree.Value(n.Words[1])
	if strings.Contains(value, "$") {
		m.note("left as it is: %s %s names variables; its files are not in the cell", n.Name(), value)
		return nil
	}
	src := m.absolute(value)
	in := path.Join("files", src)
	if m.copied[src] == "" {
		m.copied[src] = in
		count := 0
		err := filepath.WalkDir(src, func(p string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && p == src {
				m.note("%s %s is not there: an empty folder stands for it", n.Name(), src)
				return nil
			}
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil || !info.Mode().IsRegular() {
				return err
			}
			if count++; count > maxEach || info.Size() > maxFile {
				m.note("left out: some files of %s (at most %d, of at most %d bytes, are copied)", src, maxEach, maxFile)
				return nil
			}
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			return m.put("files"+p, b, n, name)
		})
		var r *Refusal
		if errors.As(err, &r) {
			return err
		}
		if err != nil {
			return &Refusal{File: name, Line: n.Line, Why: fmt.Sprintf("%s: %v", n.Name(), err)}
		}
		if count == 0 && m.res.Case.File(in) == nil {
			m.res.Case.Files = append(m.res.Case.Files, casefile.File{Path: in, Dir: true})
		}
	}
	slash := ""
	if strings.HasSuffix(value, "/") {
		slash = "/"
	}
	n.Words[1] = conftree.Quote("/cell/" + in + slash)
	return nil
}

// writable moves a log or a temporary folder below the cell's logs.
func (m *importer) writable(n *conftree.Node) {
	value := conftree.Value(n.Words[1])
	if value == "off" || strings.Contains(value, "$") || strings.HasPrefix(value, "syslog:") {
		return
	}
	n.Words[1] = conftree.Quote("/cell/logs/" + strings.Trim(strings.ReplaceAll(value, "/", "-"), "-"))
}

// lowPorts is added to ports that only root may listen on: no server of a cell is root.
const lowPorts = 8000

// listen moves an address to the cell's loopback.
func (m *importer) listen(n *conftree.Node, name string) error {
	value := conftree.Value(n.Words[1])
	for _, w := range n.Words[2:] {
		if w == "quic" {
			return &Refusal{File: name, Line: n.Line, Why: "listen … quic: HTTP/3 is not compared: take the line out"}
		}
	}
	if strings.HasPrefix(value, "unix:") {
		return &Refusal{File: name, Line: n.Line, Why: "listen " + value + ": a Unix socket outside of the cell: give a port"}
	}
	host, port := value, "80"
	if i := strings.LastIndexByte(value, ':'); i >= 0 && !strings.HasSuffix(value, "]") {
		host, port = value[:i], value[i+1:]
	} else if _, err := strconv.Atoi(value); err == nil {
		host, port = "*", value
	} else if from, to, ok := strings.Cut(value, "-"); ok && digits(from) && digits(to) {
		port = value // a range
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 1 || number > 65535 {
		return &Refusal{File: name, Line: n.Line, Why: fmt.Sprintf("listen %s: want one port", value)}
	}
	if number < 1024 {
		m.note("port %d is %d in the cell", number, number+lowPorts)
		number += lowPorts
	}
	switch {
	case strings.HasPrefix(host, "["):
		host = "[::1]"
	case host == "*" || host == "0.0.0.0":
		host = "127.0.0.1"
	default:
		if a, err := netip.ParseAddr(host); err != nil || !a.IsLoopback() {
			m.note("listen address %s is 127.0.0.1 in the cell", host)
			host = "127.0.0.1"
		}
	}
	n.Words[1] = fmt.Sprintf("%s:%d", host, number)
	n.Words = slices.DeleteFunc(n.Words, func(w string) bool { return strings.HasPrefix(w, "ipv6only=") || w == "reuseport" })
	return nil
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// pass points a proxy_pass at an origin, unless it names an upstream block or variables.
func (m *importer) pass(n *conftree.Node) {
	value := conftree.Value(n.Words[1])
	rest, ok := strings.CutPrefix(value, "http://")
	if !ok || strings.Contains(rest, "$") || strings.HasPrefix(rest, "unix:") {
		m.note("left as it is: proxy_pass %s", value)
		return
	}
	host, uri := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, uri = rest[:i], rest[i:]
	}
	if !m.named[host] {
		n.Words[1] = conftree.Quote("http://" + m.origin(host) + uri)
	}
}

// origin is the address in the cell that stands for an upstream's.
func (m *importer) origin(addr string) string {
	if m.hosts[addr] == "" {
		m.hosts[addr] = fmt.Sprintf("127.0.0.1:%d", 30001+len(m.hosts))
		m.note("upstream %s is an origin of the oracle's, %s, in the cell", addr, m.hosts[addr])
	}
	return m.hosts[addr]
}
