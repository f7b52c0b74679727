// Package resolver asks name servers for addresses over UDP, on the loop, and remembers what they said
// (nginx: src/core/ngx_resolver.c; RFC 1035). Answers that are cut short are not asked for again over TCP:
// they count as a server failure.
package resolver

import (
	"math/rand/v2"
	"strings"
	"syscall"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
)

// Codes of a failed query (NGX_RESOLVE_*); 1 to 5 are DNS's own.
const (
	ServFail = 2
	NXDomain = 3
	TimedOut = int(syscall.ETIMEDOUT)
)

// Strerror is the text of a code (ngx_resolver_strerror).
func Strerror(code int) string {
	switch code {
	case 1:
		return "Format error"
	case ServFail:
		return "Server failure"
	case NXDomain:
		return "Host not found"
	case 4:
		return "Unimplemented"
	case 5:
		return "Operation refused"
	case TimedOut:
		return "Operation timed out"
	}
	return "Unknown error"
}

// Resolver is a set of name servers with a cache. It belongs to one loop.
type Resolver struct {
	Servers    []Server
	Valid      int64 // s, 0 = what the answers say
	IPv4, IPv6 bool

	names map[string]*name
	last  int
}

// Server is one name server.
type Server struct {
	Addr ev.Addr
	Name string
	conn *ev.Conn
	log  elog.Log
}

// AppendLog is the context of the server's errors (ngx_resolver_log_error).
func (s *Server) AppendLog(b []byte) []byte {
	return append(append(b, ", resolver: "...), s.Name...)
}

// Query is a question that is waiting for its answer.
type Query struct {
	Code  int       // 0, or why there are no addresses
	Addrs []ev.Addr // without ports

	done  func(q *Query)
	name  *name
	timer ev.Event
}

// question is one of the two that are asked for a name.
type question struct {
	id   uint16
	sent bool // and not answered
	kind uint16
}

// name is what is known of a name.
type name struct {
	text    string
	res     *Resolver
	loop    *ev.Loop
	addrs   []ev.Addr
	code    int
	expire  int64 // ms; answered until then
	asking  bool
	ask     [2]question
	ttl     int64
	server  int
	waiting []*Query
	resend  ev.Event
}

const (
	typeA    = 1
	typeAAAA = 28
	resendMs = 5000
)

// Resolve asks for a name; done is called once, at once when the answer is known. It returns nil in
// that case, else the query, which Cancel ends.
func (r *Resolver) Resolve(loop *ev.Loop, text string, timeout int64, done func(q *Query)) *Query {
	text = ascii.Lower(strings.TrimSuffix(text, "."))
	if r.names == nil {
		r.names = map[string]*name{}
	}
	n := r.names[text]
	if n == nil {
		n = &name{text: text, res: r, loop: loop}
		r.names[text] = n
	}
	q := &Query{done: done, name: n}
	if !n.asking && n.code == 0 && len(n.addrs) > 0 && loop.Mono() < n.expire {
		q.Addrs = n.rotated()
		done(q)
		return nil
	}
	n.waiting = append(n.waiting, q)
	q.timer.Handler = func(*ev.Event) {
		q.Code = TimedOut
		q.finish()
	}
	loop.AddTimer(&q.timer, timeout)
	if !n.asking {
		n.start()
	}
	return q
}

// Cancel forgets a query; its done is not called.
func (q *Query) Cancel() {
	for i, w := range q.name.waiting {
		if w == q {
			q.name.waiting = append(q.name.waiting[:i], q.name.waiting[i+1:]...)
			break
		}
	}
	if q.timer.TimerSet {
		q.name.loop.DelTimer(&q.timer)
	}
}

func (q *Query) finish() {
	q.Cancel()
	q.done(q)
}

// rotated is the addresses, each family from a random place on.
func (n *name) rotated() []ev.Addr {
	var v4, v6 []ev.Addr
	for _, a := range n.addrs {
		if a.Family == syscall.AF_INET {
			v4 = append(v4, a)
		} else {
			v6 = append(v6, a)
		}
	}
	return append(rotate(v4), rotate(v6)...)
}

func rotate(a []ev.Addr) []ev.Addr {
	if len(a) < 2 {
		return a
	}
	k := rand.IntN(len(a))
	return append(append([]ev.Addr(nil), a[k:]...), a[:k]...)
}

func (n *name) start() {
	r := n.res
	n.asking, n.addrs, n.code, n.ttl = true, nil, 0, -1
	n.ask = [2]question{}
	if r.IPv4 {
		n.ask[0] = question{id: uint16(rand.Uint32()), sent: true, kind: typeA}
	}
	if r.IPv6 {
		n.ask[1] = question{id: uint16(rand.Uint32()), sent: true, kind: typeAAAA}
	}
	n.server = r.last % len(r.Servers)
	r.last++
	n.loop.AddTimer(n.again(), resendMs)
	if !n.send() {
		// once more at once
		n.server = (n.server + 1) % len(r.Servers)
		n.send()
	}
}

// send asks what has not been answered; false when the server cannot be reached.
func (n *name) send() bool {
	s := &n.res.Servers[n.server]
	for i := range n.ask {
		if q := &n.ask[i]; q.sent && !s.write(n.loop, n.res, appendQuery(nil, q.id, n.text, q.kind)) {
			return false
		}
	}
	return true
}

// again is the timer that asks the next server while there is no answer.
func (n *name) again() *ev.Event {
	n.resend.Handler = func(*ev.Event) {
		if len(n.waiting) == 0 {
			n.asking = false
			return
		}
		n.server = (n.server + 1) % len(n.res.Servers)
		n.send()
		n.loop.AddTimer(&n.resend, resendMs)
	}
	return &n.resend
}

// answered takes one answer; with the last one, or one that is an error, the waiting queries end
// (ngx_resolver_process_a).
func (n *name) answered(i int, m *message) {
	n.ask[i].sent = false
	n.addrs = append(n.addrs, m.addrs...)
	if m.code != 0 {
		n.code, n.addrs = m.code, nil
		n.ask = [2]question{}
	}
	if len(m.addrs) > 0 && (n.ttl < 0 || m.ttl < n.ttl) {
		n.ttl = m.ttl
	}
	if n.ask[0].sent || n.ask[1].sent {
		return
	}
	n.asking = false
	if n.resend.TimerSet {
		n.loop.DelTimer(&n.resend)
	}
	if len(n.addrs) == 0 && n.code == 0 {
		n.code = NXDomain
	}
	ttl := n.ttl
	if n.res.Valid > 0 {
		ttl = n.res.Valid
	}
	n.expire = n.loop.Mono() + ttl*1000
	list := n.waiting
	n.waiting = nil
	for _, q := range list {
		q.Code = n.code
		if n.code == 0 {
			q.Addrs = n.rotated()
		}
		q.finish()
	}
}

// write sends a question, on a socket that is made when it is first needed.
func (s *Server) write(loop *ev.Loop, r *Resolver, b []byte) bool {
	if s.conn == nil {
		s.log = elog.Log{Sink: loop.Log.Sink, Action: "resolving", Ctx: s}
		c, err := loop.Datagram(s.Addr, &s.log)
		if err != nil {
			return false
		}
		c.Read.Handler = func(*ev.Event) { s.read(r) }
		c.Write.Handler = func(*ev.Event) {}
		s.conn = c
	}
	if s.conn.Send(b) == ev.Err {
		s.conn.Loop.CloseConn(s.conn)
		s.conn = nil
		return false
	}
	return true
}

// read takes all answers that have come.
func (s *Server) read(r *Resolver) {
	var buf [4096]byte
	for s.conn != nil {
		n, err := s.conn.Loop.Sys.Read(s.conn.FD, buf[:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			s.conn.Read.Ready = false
			return
		case err != nil:
			s.conn.Fault(err, "recv() failed")
			s.conn.Loop.CloseConn(s.conn)
			s.conn = nil
			return
		}
		m, ok := parse(buf[:n])
		if !ok {
			continue
		}
		if nm := r.names[m.name]; nm != nil {
			for i := range nm.ask {
				if q := &nm.ask[i]; q.sent && q.id == m.id && q.kind == m.kind {
					nm.answered(i, m)
					break
				}
			}
		}
	}
}
