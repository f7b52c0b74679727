package http

import (
	"bytes"
	"sort"
	"strings"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/module"
)

// NameTable finds a value by an exact name, a "*.example.com" or a "www.example.*", in
// this order (ngx_hash_combined_t). Keys and names looked up are in lower case.
type NameTable struct {
	exact map[string]any
	head  *wildNode // by labels from the last one
	tail  *wildNode // by labels from the first one
}

// wildNode is one label's entry of a wildcard tree. Its parts and the order in which
// they are tried are those of nginx's nested hashes (ngx_hash_wildcard_init).
type wildNode struct {
	value any // when nothing deeper matches
	next  map[string]*wildEntry
}

type wildEntry struct {
	leaf    any       // the value when sub is nil
	subOnly bool      // not the name itself, only what is below it
	sub     *wildNode // deeper labels
}

// Empty reports a table without any name.
func (t *NameTable) Empty() bool { return len(t.exact) == 0 && t.head == nil && t.tail == nil }

// Find looks a name up; nil when there is none (ngx_hash_find_combined).
func (t *NameTable) Find(name []byte) any {
	if v, ok := t.exact[string(name)]; ok {
		return v
	}
	if len(name) == 0 {
		return nil
	}
	if t.head != nil {
		if v := t.head.findHead(name); v != nil {
			return v
		}
	}
	if t.tail != nil {
		return t.tail.findTail(name)
	}
	return nil
}

func (n *wildNode) findHead(name []byte) any {
	dot := bytes.LastIndexByte(name, '.') + 1
	e := n.next[string(name[dot:])]
	switch {
	case e == nil:
		return n.value
	case e.sub != nil && dot == 0:
		if e.subOnly {
			return nil
		}
		return e.sub.value
	case e.sub != nil:
		if v := e.sub.findHead(name[:dot-1]); v != nil {
			return v
		}
		return e.sub.value
	case e.subOnly && dot == 0:
		return nil
	}
	return e.leaf
}

func (n *wildNode) findTail(name []byte) any {
	dot := bytes.IndexByte(name, '.')
	if dot < 0 {
		return nil
	}
	e := n.next[string(name[:dot])]
	if e == nil {
		return n.value
	}
	if e.sub == nil {
		return e.leaf
	}
	if v := e.sub.findTail(name[dot+1:]); v != nil {
		return v
	}
	return e.sub.value
}

// wildKey is a wildcard turned so that labels are read from its beginning: "*.example.com"
// is "com.example.", ".example.com" is "com.example", "www.example.*" is "www.example".
type wildKey struct {
	key   string
	value any
}

// NameBuilder collects the names of a table (ngx_hash_keys_arrays_t).
type NameBuilder struct {
	exact            map[string]any
	order            []string
	seen             map[string]bool // exact names, and those that ".name" covers
	seenHead, seenTl map[string]bool
	head, tail       []wildKey
}

// Results of Add.
const (
	NameAdded = iota
	NameInvalid
	NameConflict
)

// Add takes a name; with wildcards "*.x", ".x" and "x.*" are understood
// (ngx_hash_add_key, NGX_HASH_WILDCARD_KEY).
func (b *NameBuilder) Add(name string, value any, wildcards bool) int {
	if b.seen == nil {
		b.exact, b.seen = map[string]any{}, map[string]bool{}
		b.seenHead, b.seenTl = map[string]bool{}, map[string]bool{}
	}
	key := ascii.Lower(name)
	if wildcards {
		if strings.Count(key, "*") > 1 || strings.Contains(key, "..") || strings.Contains(key, "\x00") {
			return NameInvalid
		}
		switch {
		case len(key) > 1 && key[0] == '.':
			return b.addHead(key[1:], value, true)
		case len(key) > 2 && strings.HasPrefix(key, "*."):
			return b.addHead(key[2:], value, false)
		case len(key) > 2 && strings.HasSuffix(key, ".*"):
			base := key[:len(key)-2]
			if b.seenTl[base] {
				return NameConflict
			}
			b.seenTl[base] = true
			b.tail = append(b.tail, wildKey{base, value})
			return NameAdded
		case strings.Contains(key, "*"):
			return NameInvalid
		}
	}
	if b.seen[key] {
		return NameConflict
	}
	b.seen[key] = true
	b.exact[key] = value
	b.order = append(b.order, key)
	return NameAdded
}

func (b *NameBuilder) addHead(base string, value any, itself bool) int {
	if itself {
		if b.seen[base] {
			return NameConflict
		}
		b.seen[base] = true
	}
	if b.seenHead[base] {
		return NameConflict
	}
	b.seenHead[base] = true
	labels := strings.Split(base, ".")
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	key := strings.Join(labels, ".")
	if !itself {
		key += "."
	}
	b.head = append(b.head, wildKey{key, value})
	return NameAdded
}

// Table builds the table within the limits.
func (b *NameBuilder) Table(cf *module.Conf, limits HashLimits) (*NameTable, error) {
	t := &NameTable{exact: b.exact}
	if len(b.order) > 0 {
		if err := limits.Check(cf, b.order); err != nil {
			return nil, err
		}
	}
	w := wildBuilder{cf: cf, limits: limits}
	if len(b.head) > 0 {
		t.head = w.build(b.head)
	}
	if len(b.tail) > 0 && w.err == nil {
		t.tail = w.build(b.tail)
	}
	return t, w.err
}

type wildBuilder struct {
	cf     *module.Conf
	limits HashLimits
	err    error
}

// build nests the keys by their first labels. Keys are sorted with "." lowest, so that
// all that begin with one label stand together (ngx_hash_wildcard_init).
func (w *wildBuilder) build(keys []wildKey) *wildNode {
	sort.SliceStable(keys, func(i, j int) bool { return dnsLess(keys[i].key, keys[j].key) })
	return w.nest(keys)
}

func (w *wildBuilder) nest(keys []wildKey) *wildNode {
	node := &wildNode{next: map[string]*wildEntry{}}
	var labels []string
	for n := 0; n < len(keys); {
		first := keys[n]
		label, _, dot := strings.Cut(first.key, ".")
		length := len(label)
		if dot {
			length++
		}
		var deeper []wildKey
		if len(first.key) != length {
			deeper = append(deeper, wildKey{first.key[length:], first.value})
		}
		i := n + 1
		for ; i < len(keys); i++ {
			k := keys[i].key
			if !strings.HasPrefix(k, first.key[:length]) {
				break
			}
			if !dot && len(k) > length && k[length] != '.' {
				break
			}
			deeper = append(deeper, wildKey{k[min(len(label)+1, len(k)):], keys[i].value})
		}
		e := &wildEntry{leaf: first.value, subOnly: dot}
		if deeper != nil {
			e.sub = w.nest(deeper)
			if w.err != nil {
				return nil
			}
			if len(first.key) == length {
				e.sub.value = first.value
			}
		}
		if _, dup := node.next[label]; !dup {
			node.next[label] = e
		}
		labels = append(labels, label)
		n = i
	}
	w.err = w.limits.Check(w.cf, labels)
	return node
}

// dnsLess orders with "." before every other byte (ngx_dns_strcmp).
func dnsLess(a, b string) bool {
	rank := func(s string, i int) int {
		switch {
		case i >= len(s):
			return 0
		case s[i] == '.':
			return ' '
		}
		return int(s[i])
	}
	for i := 0; ; i++ {
		x, y := rank(a, i), rank(b, i)
		if x != y {
			return x < y
		}
		if x == 0 {
			return false
		}
	}
}

// ServerNames finds a server by host: by name, then by regular expression in the order
// of the configuration (ngx_http_virtual_names_t).
type ServerNames struct {
	table *NameTable
	regex []ServerName
}

// buildServerNames makes the table of an address (ngx_http_server_names).
func buildServerNames(cf *module.Conf, addr *ConfAddr) error {
	if len(addr.Servers) == 1 && !addr.Default.Captures {
		return nil
	}
	cmcf := addr.Default.Ctx.Main[0].(*CoreMain)
	var b NameBuilder
	names := &ServerNames{}
	for _, srv := range addr.Servers {
		for _, n := range srv.Names {
			if n.Regex != nil {
				names.regex = append(names.regex, n)
				continue
			}
			switch b.Add(n.Name, n.Srv, true) {
			case NameInvalid:
				cf.Log().Err(elog.Emerg, nil, `invalid server name or wildcard "%s" on %s`, n.Name, addr.Text)
				return module.ErrReported
			case NameConflict:
				cf.Log().Err(elog.Warn, nil, `conflicting server name "%s" on %s, ignored`, n.Name, addr.Text)
			}
		}
	}
	table, err := b.Table(cf, HashLimits{Name: "server_names_hash", Max: cmcf.ServerNamesHashMaxSize, BucketSize: cmcf.ServerNamesHashBucketSize})
	if err != nil {
		return err
	}
	names.table = table
	if !names.table.Empty() || names.regex != nil {
		addr.Names = names
	}
	return nil
}

// SetVirtualServer chooses the server by host; without a match the connection's default
// stays (ngx_http_set_virtual_server).
func (r *Request) SetVirtualServer(host []byte) Rc {
	addr := r.HC.AddrConf
	if addr == nil || addr.Names == nil {
		return OK
	}
	srv, rc := addr.Names.find(r, host)
	if rc == Error {
		return Error
	}
	if srv == nil {
		return OK
	}
	r.SrvConf = srv.Ctx.Srv
	r.setLoc(srv.Ctx.Loc)
	setLog(r.Conn, r.Core)
	return OK
}

func (n *ServerNames) find(r *Request, host []byte) (*CoreSrv, Rc) {
	if v := n.table.Find(host); v != nil {
		return v.(*CoreSrv), OK
	}
	if len(host) == 0 {
		return nil, Declined
	}
	for i := range n.regex {
		switch n.regex[i].Regex.Exec(r, host) {
		case OK:
			return n.regex[i].Srv, OK
		case Error:
			return nil, Error
		}
	}
	return nil, Declined
}

// ValidateHost checks a host and gives it without port and final dot, in lower case:
// Declined when it is bad (ngx_http_validate_host). A host that is in lower case already is
// a piece of the one given.
func ValidateHost(host []byte) ([]byte, Rc) {
	const (
		usual = iota
		literal
		rest
	)
	dot, end, state, upper := len(host), len(host), usual, false
	for i, ch := range host {
		switch ch {
		case '.':
			if dot == i-1 {
				return nil, Declined
			}
			dot = i
		case ':':
			if state == usual {
				end, state = i, rest
			}
		case '[':
			if i == 0 {
				state = literal
			}
		case ']':
			if state == literal {
				end, state = i+1, rest
			}
		default:
			if ch == '/' || ch <= 0x20 || ch == 0x7f {
				return nil, Declined
			}
			upper = upper || ch >= 'A' && ch <= 'Z'
		}
	}
	if dot == end-1 {
		end--
	}
	if end <= 0 {
		return nil, Declined
	}
	host = host[:end]
	if upper {
		low := make([]byte, end)
		for i, ch := range host {
			if ch >= 'A' && ch <= 'Z' {
				ch |= 0x20
			}
			low[i] = ch
		}
		host = low
	}
	return host, OK
}
