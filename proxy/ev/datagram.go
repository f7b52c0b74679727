package ev

import (
	"errors"

	"nginxoracle/proxy/elog"

	"golang.org/x/sys/unix"
)

// datagramSys is a Sys that has UDP.
type datagramSys interface {
	SocketDatagram(a Addr) (fd int, err error)
}

// SocketDatagram is the kernel's.
func (e *Epoll) SocketDatagram(a Addr) (int, error) {
	return unix.Socket(a.Family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
}

// Datagram makes a connected UDP socket that the loop watches (ngx_resolver.c, ngx_udp_connect).
// Errors are logged as nginx does. One report may stand for several datagrams: read them through
// Loop.Sys until EAGAIN.
func (l *Loop) Datagram(a Addr, log *elog.Log) (*Conn, error) {
	sys, ok := l.Sys.(datagramSys)
	if !ok {
		return nil, errors.New("datagram: the loop's kernel has no UDP")
	}
	fd, err := sys.SocketDatagram(a)
	if err != nil {
		log.Err(elog.Alert, err, "socket() failed")
		return nil, err
	}
	c := l.NewConn(fd)
	if c == nil {
		l.Sys.Close(fd)
		return nil, errors.New("datagram: no free connection")
	}
	c.Log = log
	c.LogError = ErrorErr
	if err := l.Sys.Connect(fd, a); err != nil {
		log.Err(elog.Crit, err, "connect() failed")
		l.CloseConn(c)
		return nil, err
	}
	if err := l.Add(c); err != nil {
		l.CloseConn(c)
		return nil, err
	}
	c.Write.Ready = true
	return c, nil
}
