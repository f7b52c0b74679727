// Package events is the events block: how connections are watched and how many there may be
// (nginx: src/event/ngx_event.c, modules/ngx_epoll_module.c).
package events

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/inet"
	"nginxoracle/proxy/module"
	main_ "nginxoracle/proxy/modules/main"
)

// Conf is the block's configuration (ngx_event_conf_t, ngx_epoll_conf_t).
type Conf struct {
	Connections      int
	Use              string
	MultiAccept      int
	AcceptMutex      int
	AcceptMutexDelay int64 // ms
	Debug            []inet.CIDR

	EpollEvents, AioRequests int
}

// Set is ngx_events_module; Core and Epoll are what is inside the block.
var (
	Set   = &module.Set{Name: "ngx_events_module", Type: module.CoreModule}
	Core  = &module.Set{Name: "ngx_event_core_module", Type: module.EventModule, Conf: inBlock}
	Epoll = &module.Set{Name: "ngx_epoll_module", Type: module.EventModule, Conf: inBlock}
)

func inBlock(cf *module.Conf, _ *module.Directive) any { return cf.Ctx }

// Of is the block's configuration in a cycle.
func Of(c *module.Cycle) *Conf { return c.Confs[Set].(*Conf) }

func init() {
	Set.Init = initConf
	Set.Directives = []module.Directive{{
		Name: "events", Where: module.Main, Args: module.Block | module.NoArgs, Set: block,
	}}
	row := func(set *module.Set, name string, args module.Args, f func(*module.Conf, *module.Directive, any) error) {
		set.Directives = append(set.Directives, module.Directive{Name: name, Where: module.Events, Args: args, Set: f})
	}
	row(Core, "worker_connections", module.Take1, setConnections)
	row(Core, "use", module.Take1, setUse)
	row(Core, "multi_accept", module.Flag, module.FlagSlot(func(c *Conf) *int { return &c.MultiAccept }))
	row(Core, "accept_mutex", module.Flag, module.FlagSlot(func(c *Conf) *int { return &c.AcceptMutex }))
	row(Core, "accept_mutex_delay", module.Take1, module.MsecSlot(func(c *Conf) *int64 { return &c.AcceptMutexDelay }))
	row(Core, "debug_connection", module.Take1, setDebugConnection)
	row(Epoll, "epoll_events", module.Take1, module.NumSlot(func(c *Conf) *int { return &c.EpollEvents }))
	row(Epoll, "worker_aio_requests", module.Take1, module.NumSlot(func(c *Conf) *int { return &c.AioRequests }))
}

func block(cf *module.Conf, _ *module.Directive, _ any) error {
	if cf.Cycle.Confs[Set] != nil {
		return module.ErrDuplicate
	}
	cf.Cycle.Used = true
	const unset = module.Unset
	c := &Conf{Connections: unset, MultiAccept: unset, AcceptMutex: unset, AcceptMutexDelay: unset, EpollEvents: unset, AioRequests: unset}
	cf.Cycle.Confs[Set] = c
	saved := *cf
	cf.Ctx, cf.Type, cf.Where = c, module.EventModule, module.Events
	err := cf.ReadBlock()
	*cf = saved
	if err != nil {
		return err
	}
	module.InitInt(&c.Connections, 512)
	cf.Cycle.Connections = c.Connections
	if c.Use == "" {
		c.Use = "epoll"
	}
	module.InitInt(&c.MultiAccept, 0)
	module.InitInt(&c.AcceptMutex, 0)
	module.InitInt64(&c.AcceptMutexDelay, 500)
	module.InitInt(&c.EpollEvents, 512)
	module.InitInt(&c.AioRequests, 32)
	return nil
}

func initConf(c *module.Cycle, _ any) error {
	if c.Confs[Set] == nil {
		c.Log.Err(elog.Emerg, nil, `no "events" section in configuration`)
		return module.ErrReported
	}
	if c.Connections < len(c.Listen)+1 {
		c.Log.Err(elog.Emerg, nil, "%d worker_connections are not enough for %d listening sockets", c.Connections, len(c.Listen))
		return module.ErrReported
	}
	m := main_.Of(c)
	if c.TestConfig || m.Master == 0 {
		return nil
	}
	for _, ls := range c.Listen[:len(c.Listen):len(c.Listen)] {
		if !ls.Reuseport || ls.Worker != 0 {
			continue
		}
		for n := 1; n < m.Workers; n++ {
			clone := *ls
			clone.Worker = n
			c.Listen = append(c.Listen, &clone)
		}
	}
	return nil
}

func setConnections(cf *module.Conf, _ *module.Directive, conf any) error {
	c := conf.(*Conf)
	if c.Connections != module.Unset {
		return module.ErrDuplicate
	}
	n, ok := module.Atoi(cf.Args[1])
	if !ok {
		return cf.Emerg(`invalid number "%s"`, cf.Args[1])
	}
	c.Connections = n
	cf.Cycle.Connections = n
	return nil
}

func setUse(cf *module.Conf, _ *module.Directive, conf any) error {
	c := conf.(*Conf)
	if c.Use != "" {
		return module.ErrDuplicate
	}
	switch cf.Args[1] {
	case "epoll":
		c.Use = "epoll"
		return nil
	case "event_core": // which nginx takes here, only to fall over when it starts
		return cf.NotSupported("use event_core")
	}
	return cf.Emerg(`invalid event type "%s"`, cf.Args[1])
}

func setDebugConnection(cf *module.Conf, _ *module.Directive, conf any) error {
	c := conf.(*Conf)
	if module.Is(cf.Args[1], "unix:") {
		c.Debug = append(c.Debug, inet.CIDR{Family: ev.UNIX})
		return nil
	}
	cidr, lowBits, ok := inet.ParseCIDR(cf.Args[1])
	if !ok {
		return cf.NotSupported("debug_connection " + cf.Args[1]) // a name to look up
	}
	if lowBits {
		cf.Warn("low address bits of %s are meaningless", cf.Args[1])
	}
	c.Debug = append(c.Debug, cidr)
	return nil
}

// Accepted makes the log of a connection from the networks of debug_connection talk of everything
// (ngx_event_accept.c, ngx_debug_accepted_connection).
func (c *Conf) Accepted(conn *ev.Conn) {
	for i := range c.Debug {
		n := &c.Debug[i]
		if n.Family == conn.Peer.Family && (n.Family == ev.UNIX || n.Match6(conn.Peer)) {
			conn.Log.All = true
			return
		}
	}
}
