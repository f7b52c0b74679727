package server

import (
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
)

// bindTries and bindPause: an address in use is tried again, for it may be about to be freed
// (ngx_connection.c, ngx_open_listening_sockets).
const (
	bindTries = 5
	bindPause = 500 // ms
)

// matchListening finds for each new socket the open one of the run before, and decides what remains
// to be done to it (ngx_cycle.c, ngx_init_cycle).
func matchListening(c *module.Cycle, old []*module.Listening) {
	for _, ls := range old {
		ls.Remain = false
	}
	for _, n := range c.Listen {
		for _, ls := range old {
			if ls.Remain || ls.FD == -1 || !sameAddr(&n.Addr, &ls.Addr) {
				continue
			}
			n.FD, n.Inherited = ls.FD, ls.Inherited
			ls.Remain = true
			n.Relisten = ls.Backlog != n.Backlog
			switch {
			case ls.Deferred && !n.Deferred:
				n.DeleteDeferred = true
			case ls.Deferred != n.Deferred:
				n.AddDeferred = true
			}
			n.AddReuseport = n.Reuseport && !ls.Reuseport
			break
		}
		if n.FD == -1 {
			n.Open = true
			n.AddDeferred = n.Deferred
		}
	}
}

func sameAddr(a, b *ev.Addr) bool {
	return a.Family == b.Family && a.IP == b.IP && a.Port == b.Port && a.Path == b.Path
}

// openListening binds what is not open yet.
func openListening(c *module.Cycle, sys ev.Sys) error {
	log := c.Log
	for tries := bindTries; ; tries-- {
		failed := false
		for _, ls := range c.Listen {
			if ls.AddReuseport {
				if err := sys.SetInt(ls.FD, ev.SolSocket, ev.SoReuseport, 1); err != nil {
					log.Err(elog.Alert, err, "setsockopt(SO_REUSEPORT) %s failed, ignored", ls.Text)
				}
				ls.AddReuseport = false
			}
			if ls.FD != -1 {
				continue
			}
			again, err := openOne(c, sys, ls)
			if err != nil {
				return err
			}
			failed = failed || again
		}
		if !failed {
			return nil
		}
		log.Err(elog.Notice, nil, "try again to bind() after 500ms")
		ev.Sleep(bindPause)
		if tries == 1 {
			log.Err(elog.Emerg, nil, "still could not bind()")
			return module.ErrReported
		}
	}
}

// openOne binds one socket; again says that its address is in use for now.
func openOne(c *module.Cycle, sys ev.Sys, ls *module.Listening) (again bool, err error) {
	log := c.Log
	fd, err := sys.Socket(ls.Addr)
	if err != nil {
		log.Err(elog.Emerg, err, "socket() %s failed", ls.Text)
		return false, module.ErrReported
	}
	closeIt := func() {
		if err := sys.Close(fd); err != nil {
			log.Err(elog.Emerg, err, "close() socket %s failed", ls.Text)
		}
	}
	if err := sys.SetInt(fd, ev.SolSocket, ev.SoReuseaddr, 1); err != nil {
		log.Err(elog.Emerg, err, "setsockopt(SO_REUSEADDR) %s failed", ls.Text)
		closeIt()
		return false, module.ErrReported
	}
	if ls.Reuseport && !c.TestConfig {
		if err := sys.SetInt(fd, ev.SolSocket, ev.SoReuseport, 1); err != nil {
			log.Err(elog.Emerg, err, "setsockopt(SO_REUSEPORT) %s failed", ls.Text)
			closeIt()
			return false, module.ErrReported
		}
	}
	if ls.Addr.Family == ev.INET6 {
		v := 0
		if ls.IPv6Only {
			v = 1
		}
		if err := sys.SetInt(fd, ev.IPProtoIPv6, ev.IPv6V6only, v); err != nil {
			log.Err(elog.Emerg, err, "setsockopt(IPV6_V6ONLY) %s failed, ignored", ls.Text)
		}
	}
	refused := func(err error, what string, args ...any) (bool, error) {
		if err != syscall.EADDRINUSE || !c.TestConfig {
			log.Err(elog.Emerg, err, what, args...)
		}
		closeIt()
		if err != syscall.EADDRINUSE {
			return false, module.ErrReported
		}
		return !c.TestConfig, nil
	}
	if err := sys.Bind(fd, ls.Addr); err != nil {
		return refused(err, "bind() to %s failed", ls.Text)
	}
	if ls.Addr.Family == ev.UNIX {
		if err := ev.Chmod(ls.Addr.Path, 0o666); err != nil {
			log.Err(elog.Emerg, err, `chmod() "%s" failed`, ls.Addr.Path)
		}
		if c.TestConfig {
			if err := ev.Unlink(ls.Addr.Path); err != nil {
				log.Err(elog.Emerg, err, "unlink() %s failed", ls.Addr.Path)
			}
		}
	}
	if err := sys.Listen(fd, ls.Backlog); err != nil {
		return refused(err, "listen() to %s, backlog %d failed", ls.Text, ls.Backlog)
	}
	ls.Relisten = true
	ls.FD = fd
	return false, nil
}

// option is a socket option of a listening socket that nginx only complains about when it fails.
type option struct {
	set        bool
	level      int
	opt        int
	value      int
	name, for_ string
}

// configureListening sets the options (ngx_configure_listening_sockets).
func configureListening(c *module.Cycle, sys ev.Sys) {
	for _, ls := range c.Listen {
		keep := 0
		if ls.Keepalive == 1 {
			keep = 1
		}
		for _, o := range []option{
			{ls.Rcvbuf != -1, ev.SolSocket, ev.SoRcvbuf, ls.Rcvbuf, "SO_RCVBUF", ""},
			{ls.Sndbuf != -1, ev.SolSocket, ev.SoSndbuf, ls.Sndbuf, "SO_SNDBUF", ""},
			{ls.Keepalive != 0, ev.SolSocket, ev.SoKeepalive, keep, "SO_KEEPALIVE", ""},
			{ls.KeepIdle != 0, ev.IPProtoTCP, ev.TCPKeepidle, ls.KeepIdle, "TCP_KEEPIDLE", ""},
			{ls.KeepIntvl != 0, ev.IPProtoTCP, ev.TCPKeepintvl, ls.KeepIntvl, "TCP_KEEPINTVL", ""},
			{ls.KeepCnt != 0, ev.IPProtoTCP, ev.TCPKeepcnt, ls.KeepCnt, "TCP_KEEPCNT", ""},
			{ls.FastOpen != -1, ev.IPProtoTCP, ev.TCPFastopen, ls.FastOpen, "TCP_FASTOPEN", ""},
		} {
			o.apply(c, sys, ls)
		}
		if ls.Relisten {
			if err := sys.Listen(ls.FD, ls.Backlog); err != nil {
				c.Log.Err(elog.Alert, err, "listen() to %s, backlog %d failed, ignored", ls.Text, ls.Backlog)
			}
		}
		if ls.AddDeferred || ls.DeleteDeferred {
			v := 0
			if ls.AddDeferred {
				v = 1
			}
			o := option{true, ev.IPProtoTCP, ev.TCPDeferAccept, v, "TCP_DEFER_ACCEPT", "for "}
			o.apply(c, sys, ls)
		}
	}
}

func (o *option) apply(c *module.Cycle, sys ev.Sys, ls *module.Listening) {
	if !o.set {
		return
	}
	if err := sys.SetInt(ls.FD, o.level, o.opt, o.value); err != nil {
		c.Log.Err(elog.Alert, err, "setsockopt(%s, %d) %s%s failed, ignored", o.name, o.value, o.for_, ls.Text)
	}
}

// closeUnneeded closes the sockets of a run that the next one did not take over.
func closeUnneeded(old []*module.Listening, log *elog.Log, sys ev.Sys) {
	for _, ls := range old {
		if ls.Remain || ls.FD == -1 {
			continue
		}
		if err := sys.Close(ls.FD); err != nil {
			log.Err(elog.Emerg, err, "close() socket listening socket on %s failed", ls.Text)
		}
		if ls.Addr.Family == ev.UNIX {
			log.Err(elog.Warn, nil, "deleting socket %s", ls.Addr.Path)
			if err := ev.Unlink(ls.Addr.Path); err != nil {
				log.Err(elog.Emerg, err, "unlink() %s failed", ls.Addr.Path)
			}
		}
	}
}

// closeListening closes all sockets when no more is to be accepted, and removes those in the file
// system, unless another program may have them (ngx_close_listening_sockets).
func closeListening(c *module.Cycle, sys ev.Sys, shared bool) {
	for _, ls := range c.Listen {
		if ls.FD == -1 {
			continue
		}
		if err := sys.Close(ls.FD); err != nil {
			c.Log.Err(elog.Emerg, err, "close() socket %s failed", ls.Text)
		}
		if ls.Addr.Family == ev.UNIX && !shared {
			if err := ev.Unlink(ls.Addr.Path); err != nil {
				c.Log.Err(elog.Emerg, err, "unlink() %s failed", ls.Addr.Path)
			}
		}
		ls.FD = -1
	}
}
