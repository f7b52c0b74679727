// Package importer brings a person's own nginx configuration into a case: includes are
// read in, files are copied, addresses are moved to the cell's loopback, and requests are made from
// its server names, locations and files. What cannot be brought into a cell is refused by name.
package importer

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
	Case   *casefile.Case
	Notes  []string // what was changed or left out, for the person
	Places []Place  // of each line of the case's nginx.conf, from the first
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
	named  map[string]bool           // upstream blocks
	depth  int
	shown  map[string]bool
	addrs
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
	m := &importer{prefix: filepath.Dir(abs), copied: map[string]string{}, from: map[*conftree.Node]string{}, named: map[string]bool{}, shown: map[string]bool{}, addrs: newAddrs()}
	m.res.Case = &casefile.Case{Name: name, Title: "the configuration " + filepath.Base(name)}
	top, err := m.read(abs)
	if err != nil {
		return nil, err
	}
	if top, err = m.whole(top, abs); err != nil {
		return nil, err
	}
	conftree.Walk(top, "", func(n *conftree.Node, parent string) bool {
		if len(n.Words) > 1 {
			switch n.Name() {
			case "upstream":
				m.named[conftree.Value(n.Words[1])] = true
			case "listen":
				m.taken(conftree.Value(n.Words[1]))
			}
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
	m.places(top, abs)
	m.origins()
	m.probes(servers)
	return &m.res, nil
}

// whole makes a file that another one includes into http a configuration of its own.
func (m *importer) whole(top []*conftree.Node, name string) ([]*conftree.Node, error) {
	has := func(word string) int {
		return slices.IndexFunc(top, func(n *conftree.Node) bool { return n.Name() == word && n.Block })
	}
	if has("http") >= 0 || has("events") >= 0 {
		return top, nil
	}
	if has("server") >= 0 {
		m.note("%s has no http block: it is put into one, as the nginx.conf does that includes it (what else stands there is not known)", filepath.Base(name))
		return []*conftree.Node{conftree.B([]string{"http"}, top...)}, nil
	}
	if i := has("location"); i >= 0 {
		return nil, &Refusal{File: cmp.Or(m.from[top[i]], name), Line: top[i].Line, Why: "location stands outside of a server: give the nginx.conf that includes this file"}
	}
	return top, nil
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
	text, err := load(name)
	if err != nil {
		return nil, err
	}
	list, err := conftree.Parse(text)
	if e := (*conftree.Error)(nil); errors.As(err, &e) {
		return nil, &Refusal{File: name, Line: e.Line, Why: e.Err.Error()}
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
			return nil, &Refusal{File: name, Line: n.Line, Why: fmt.Sprintf("include %s: no such file (relative names begin at %s)", pattern, m.prefix)}
		}
		for _, f := range found {
			more, err := m.read(f)
			if e := (*unread)(nil); errors.As(err, &e) {
				return nil, &Refusal{File: name, Line: n.Line, Why: "include: " + err.Error()}
			}
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
		case word == "server" && parent == "upstream" && len(n.Words) > 1 && upstream(conftree.Value(n.Words[1])):
			n.Words[1] = m.origin(conftree.Value(n.Words[1]))
		case passes[word] && len(n.Words) > 1:
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
