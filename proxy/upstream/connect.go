package upstream

import (
	"errors"
	"strings"
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/inet"
	"nginxoracle/proxy/module"
)

// Local is proxy_bind's address (ngx_http_upstream_local_t).
type Local struct {
	Addr  ev.Addr
	Name  []byte
	Value *http.ComplexValue // nil when the address has no variables
}

// BindSlot sets *_bind (ngx_http_upstream_bind_set_slot). "transparent" needs a privilege that
// workers do not keep here: it is refused.
func BindSlot[T any](at func(*T) *Conf) func(cf *module.Conf, cmd *module.Directive, conf any) error {
	return func(cf *module.Conf, cmd *module.Directive, conf any) error {
		c := at(conf.(*T))
		if c.LocalSet {
			return module.ErrDuplicate
		}
		c.LocalSet = true
		text := cf.Args[1]
		if len(cf.Args) == 2 && module.Is(text, "off") {
			c.Local = nil
			return nil
		}
		v, err := http.CompileComplexValue(cf, text)
		if err != nil {
			return err
		}
		c.Local = &Local{Name: []byte(text)}
		if !v.Static {
			c.Local.Value = v
		} else {
			a, ok := inet.ParsePort(text)
			if !ok {
				return cf.Emerg("invalid address \"%s\"", text)
			}
			c.Local.Addr = a
		}
		if len(cf.Args) > 2 {
			if module.Is(cf.Args[2], "transparent") {
				return cf.NotSupported(strings.Join(cf.Args, " "))
			}
			return cf.Emerg("invalid parameter \"%s\"", cf.Args[2])
		}
		return nil
	}
}

// setLocal finds the address to bind to (ngx_http_upstream_set_local).
func (u *Upstream) setLocal(r *http.Request) http.Rc {
	local := u.Conf.Local
	u.Peer.Local = local
	if local == nil || local.Value == nil {
		return http.OK
	}
	u.Peer.Local = nil
	val, rc := r.Complex(local.Value)
	if rc != http.OK {
		return http.Error
	}
	if len(val) == 0 {
		return http.OK
	}
	a, ok := inet.ParsePort(val)
	if !ok {
		r.Conn.Log.Err(elog.Error, nil, "invalid local address \"%s\"", val)
		return http.OK
	}
	u.Peer.local = Local{Addr: a, Name: val}
	u.Peer.Local = &u.Peer.local
	return http.OK
}

// connect asks the balancing method for a peer and connects (ngx_event_connect_peer): OK and
// Done are connected, Again is on its way, Declined failed at once, Busy has no peer.
func (pc *Peer) connect() int {
	if rc := pc.get(); rc != ev.OK {
		return rc
	}
	sys := pc.Loop.Sys
	fd, err := sys.Socket(*pc.Addr)
	if err != nil {
		pc.Log.Err(elog.Alert, err, "socket() failed")
		return ev.Err
	}
	c := pc.Loop.NewConn(fd)
	if c == nil {
		if err := sys.Close(fd); err != nil {
			pc.Log.Err(elog.Alert, err, "close() socket failed")
		}
		return ev.Err
	}
	c.Log = pc.Log
	c.LogError = ev.ErrorErr
	if pc.Keepalive {
		if err := sys.SetInt(fd, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1); err != nil {
			pc.Log.Err(elog.Alert, err, "setsockopt(SO_KEEPALIVE) failed, ignored")
		}
	}
	if pc.Local != nil {
		if pc.Addr.Family != syscall.AF_UNIX && pc.Local.Addr.Port == 0 {
			const ipBindAddressNoPort = 24
			err := sys.SetInt(fd, syscall.IPPROTO_IP, ipBindAddressNoPort, 1)
			if err != nil && !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOPROTOOPT) {
				pc.Log.Err(elog.Alert, err, "setsockopt(IP_BIND_ADDRESS_NO_PORT) failed, ignored")
			}
		}
		if err := sys.Bind(fd, pc.Local.Addr); err != nil {
			pc.Log.Err(elog.Crit, err, "bind(%s) failed", pc.Local.Name)
			pc.Loop.CloseConn(c)
			return ev.Err
		}
	}
	if pc.Addr.Family == syscall.AF_UNIX {
		c.TCPNodelay = ev.TCPDisabled
		c.TCPNopush = ev.TCPDisabled
	}
	c.StartMs = pc.Loop.Mono()
	pc.Conn = c

	if err := pc.Loop.Add(c); err != nil {
		pc.close()
		return ev.Err
	}
	switch err := sys.Connect(fd, *pc.Addr); {
	case err == nil:
		c.Write.Ready = true
		return ev.OK
	case errors.Is(err, syscall.EINPROGRESS):
		return ev.Again
	default:
		pc.Log.Err(connectLevel(err), err, "connect() to %s failed", pc.Name)
		pc.close()
		return ev.Declined
	}
}

func (pc *Peer) close() {
	pc.Loop.CloseConn(pc.Conn)
	pc.Conn = nil
}

// connectLevel is what a failed connect is worth: what a network does is an error, the rest is
// critical. A full queue of a unix socket answers EAGAIN.
func connectLevel(err error) elog.Level {
	for _, e := range [...]syscall.Errno{
		syscall.ECONNREFUSED, syscall.EAGAIN, syscall.ECONNRESET, syscall.ENETDOWN,
		syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
	} {
		if errors.Is(err, e) {
			return elog.Error
		}
	}
	return elog.Crit
}

// testConnect finds how a connect on its way ended (ngx_http_upstream_test_connect).
func testConnect(c *ev.Conn) bool {
	err := c.Loop.Sys.SockError(c.FD)
	if err == nil {
		return true
	}
	c.Log.Action = "connecting to upstream"
	c.Fault(err, "connect() failed")
	return false
}
