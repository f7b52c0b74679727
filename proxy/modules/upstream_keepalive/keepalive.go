// Package upstream_keepalive is ngx_http_upstream_keepalive_module: connections to servers are kept
// open for the next request.
package upstream_keepalive

import (
	"syscall"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/inet"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/upstream"
)

// Module is ngx_http_upstream_keepalive_module.
var Module = &http.Module{Name: "ngx_http_upstream_keepalive_module"}

// The rest of the table needs Module's place among the modules.
func init() {
	row := func(name string, set func(cf *module.Conf, cmd *module.Directive, conf any) error) module.Directive {
		return module.Directive{Name: name, Where: module.HTTPUps, Args: module.Take1, Level: module.SrvConf, Set: set}
	}
	Module.Directives = []module.Directive{
		row("keepalive", setKeepalive),
		row("keepalive_time", module.MsecSlot(func(c *srvConf) *int64 { return &c.time })),
		row("keepalive_timeout", module.MsecSlot(func(c *srvConf) *int64 { return &c.timeout })),
		row("keepalive_requests", module.NumSlot(func(c *srvConf) *int { return &c.requests })),
	}
	Module.CreateSrv = func(*module.Conf) any {
		return &srvConf{time: module.Unset, timeout: module.Unset, requests: module.Unset}
	}
}

type srvConf struct {
	max           int
	requests      int
	time, timeout int64 // ms

	byte  [1]byte
	cache []*item // the last used first
	free  []*item

	init     func(cf *module.Conf, us *upstream.SrvConf) error
	peerInit func(r *http.Request, u *upstream.Upstream, us *upstream.SrvConf) http.Rc
}

// item is one connection that waits.
type item struct {
	conf *srvConf
	conn *ev.Conn
	addr ev.Addr
}

func confOf(us *upstream.SrvConf) *srvConf { return us.SrvOf(Module).(*srvConf) }

func setKeepalive(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*srvConf)
	if c.max != 0 {
		return module.ErrDuplicate
	}
	n, ok := module.Atoi(cf.Args[1])
	if !ok || n == 0 {
		return cf.Emerg("invalid value \"%s\" in \"%s\" directive", cf.Args[1], cmd.Name)
	}
	c.max = n
	us := http.ConfSrv(cf, upstream.Module).(*upstream.SrvConf)
	c.init = us.Init
	if c.init == nil {
		c.init = upstream.InitRoundRobin
	}
	us.Init = initKeepalive
	return nil
}

func initKeepalive(cf *module.Conf, us *upstream.SrvConf) error {
	c := confOf(us)
	module.InitInt64(&c.time, 3600000)
	module.InitInt64(&c.timeout, 60000)
	module.InitInt(&c.requests, 1000)
	if err := c.init(cf, us); err != nil {
		return err
	}
	if !ev.Reserve(int64(uint64(c.max)*entrySize), cf.Log()) {
		return module.ErrReported
	}
	c.peerInit = us.PeerInit
	us.PeerInit = initPeer
	return nil
}

// entrySize is what nginx takes for a connection that may be kept (ngx_http_upstream_keepalive_cache_t), for all of them at once.
const entrySize = 152

func initPeer(r *http.Request, u *upstream.Upstream, us *upstream.SrvConf) http.Rc {
	c := confOf(us)
	if rc := c.peerInit(r, u, us); rc != http.OK {
		return rc
	}
	pc := &u.Peer
	pc.Cache = c
	pc.OrigGet, pc.OrigFree = pc.Get, pc.Free
	pc.Get, pc.Free = get, free
	return http.OK
}

// get takes a connection to the chosen server from the cache: Done
// (ngx_http_upstream_get_keepalive_peer).
func get(pc *upstream.Peer) int {
	if rc := pc.OrigGet(pc); rc != ev.OK {
		return rc
	}
	c := pc.Cache.(*srvConf)
	for i, it := range c.cache {
		if !inet.Same(it.addr, *pc.Addr, true) {
			continue
		}
		c.remove(i)
		conn := it.conn
		it.conn = nil
		conn.Idle = false
		conn.Sent = 0
		conn.Data = nil
		conn.Log = pc.Log
		if conn.Read.TimerSet {
			conn.Loop.DelTimer(&conn.Read)
		}
		pc.Conn = conn
		pc.Cached = true
		return ev.Done
	}
	return ev.OK
}

// remove takes item i out of the cache.
func (c *srvConf) remove(i int) {
	it := c.cache[i]
	copy(c.cache[i:], c.cache[i+1:])
	c.cache = c.cache[:len(c.cache)-1]
	c.free = append(c.free, it)
}

// free keeps the connection when it is still good (ngx_http_upstream_free_keepalive_peer).
func free(pc *upstream.Peer, state int) {
	c := pc.Cache.(*srvConf)
	conn := pc.Conn
	if state&upstream.PeerFailed == 0 && conn != nil && c.good(pc, conn) {
		c.keep(pc, conn)
	}
	pc.OrigFree(pc, state)
}

func (c *srvConf) good(pc *upstream.Peer, conn *ev.Conn) bool {
	r, w := &conn.Read, &conn.Write
	return !r.EOF && !r.Error && !r.TimedOut && !w.Error && !w.TimedOut &&
		conn.Requests < c.requests &&
		conn.Loop.Mono()-conn.StartMs <= c.time &&
		pc.Up.Keepalive && pc.Up.RequestBodySent &&
		!conn.Loop.Exiting
}

func (c *srvConf) keep(pc *upstream.Peer, conn *ev.Conn) {
	var it *item
	switch n := len(c.free); {
	case n > 0:
		it = c.free[n-1]
		c.free = c.free[:n-1]
	case len(c.cache) < c.max:
		it = &item{conf: c}
	default:
		n = len(c.cache) - 1
		it = c.cache[n]
		c.cache = c.cache[:n]
		it.conn.Loop.CloseConn(it.conn)
	}
	c.cache = append(c.cache, nil)
	copy(c.cache[1:], c.cache)
	c.cache[0] = it

	it.conn = conn
	it.addr = *pc.Addr
	pc.Conn = nil
	conn.Read.Delayed = false
	conn.Loop.AddTimer(&conn.Read, c.timeout)
	if conn.Write.TimerSet {
		conn.Loop.DelTimer(&conn.Write)
	}
	conn.Write.Handler = dummy
	conn.Read.Handler = closeHandler
	conn.Data = it
	conn.Idle = true
	conn.Log = conn.Loop.Log
	if conn.Read.Ready {
		closeHandler(&conn.Read)
	}
}

func dummy(*ev.Event) {}

// closeHandler gets what happens to a connection that waits: anything but a spurious event closes it
// (ngx_http_upstream_keepalive_close_handler).
func closeHandler(e *ev.Event) {
	conn := e.Conn
	it := conn.Data.(*item)
	if !conn.Close && !conn.Read.TimedOut {
		// A byte that comes now stays unread, so that the server is told with a reset; one of its own is
		// nobody's fault.
		if _, err := conn.Loop.Sys.Peek(conn.FD, it.conf.byte[:]); err == syscall.EAGAIN {
			e.Ready = false
			return
		}
	}
	conn.Loop.CloseConn(conn)
	it.conn = nil
	for i, other := range it.conf.cache {
		if other == it {
			it.conf.remove(i)
			return
		}
	}
}
