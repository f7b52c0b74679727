package ev

import (
	"syscall"

	"nginxoracle/proxy/elog"

	"golang.org/x/sys/unix"
)

// Plain is the layer that is none: bytes go as they are.
var Plain IO = plain{}

type plain struct{}

// Fault logs an error of a connection as gravely as the error and the connection's LogError ask for,
// and keeps it in Errno. It returns Err, or 0 for a reset that is to be ignored
// (ngx_connection.c, ngx_connection_error).
func (c *Conn) Fault(err error, text string) int {
	c.Errno = err
	if err == syscall.ECONNRESET && c.LogError == ErrorIgnoreReset {
		return 0
	}
	level := elog.Alert
	switch err {
	case nil, syscall.ECONNRESET, syscall.EPIPE, syscall.ENOTCONN, syscall.ETIMEDOUT, syscall.ECONNREFUSED,
		syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH:
		level = elog.Error
		if c.LogError == ErrorInfo || c.LogError == ErrorIgnoreReset {
			level = elog.Info
		}
	}
	c.Log.Err(level, err, "%s", text)
	return Err
}

// Recv reads: n > 0, 0 at the end of the stream, Again, or Err. After a short read the kernel is not
// asked again until it reports (os/unix/ngx_recv.c).
func (plain) Recv(c *Conn, p []byte) int {
	rev := &c.Read
	if rev.drained && !rev.PendingEOF {
		rev.Ready = false
		return Again
	}
	for {
		var n int
		var err error
		if c.ahead {
			c.ahead = false
			n, err = c.aheadN, c.aheadErr
		} else {
			n, err = c.Loop.Sys.Read(c.FD, p)
		}
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			rev.Ready = false
			return Again
		case err != nil:
			rc := c.Fault(err, "recv() failed")
			rev.Ready = false
			if rc == Err {
				rev.Error = true
			}
			return rc
		case n == 0:
			rev.Ready, rev.EOF = false, true
			return 0
		}
		rev.got(n, len(p))
		return n
	}
}

// got keeps the books after n of size bytes were read. The kernel is asked again after a full read,
// except the first one of a deferred connection: one byte was known to wait, and what came with it
// has its event still to come.
func (e *Event) got(n, size int) {
	if e.deferred {
		e.deferred = false
		e.drained = true
		if n > 1 {
			e.Ready = false
		}
	}
	if n < size {
		if !e.PendingEOF {
			e.Ready = false
		}
		e.drained = true
	}
}

// Send writes once (os/unix/ngx_send.c). A short write means that the socket is full.
func (plain) Send(c *Conn, p []byte) int {
	wev := &c.Write
	for {
		n, err := c.Loop.Sys.Write(c.FD, p)
		switch {
		case err == syscall.EINTR:
			wev.Ready = false
			continue
		case err == syscall.EAGAIN:
			wev.Ready = false
			return Again
		case err != nil:
			wev.Error = true
			c.Fault(err, "send() failed")
			return Err
		case n == 0:
			c.Log.Err(elog.Alert, nil, "send() returned zero")
			wev.Ready = false
			return 0
		}
		if n < len(p) {
			wev.Ready = false
		}
		c.Sent += int64(n)
		return n
	}
}

// Writev writes once. Sent is counted here, unlike in ngx_writev; Ready stays as it is after a short
// write, for the caller tries again until Again (os/unix/ngx_writev_chain.c).
func (plain) Writev(c *Conn, iov [][]byte) int {
	for {
		n, err := c.Loop.Sys.Writev(c.FD, iov)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			c.Write.Ready = false
			return Again
		case err != nil:
			c.Write.Error = true
			c.Fault(err, "writev() failed")
			return Err
		}
		c.Sent += int64(n)
		return n
	}
}

// Sendfile sends n bytes of a file from *off on, and moves *off: the number sent, 0 when the file is
// shorter than that (the caller has its name for the log), Again, or Err
// (os/unix/ngx_linux_sendfile_chain.c).
func (plain) Sendfile(c *Conn, file int, off *int64, n int) (int, bool) {
	for {
		sent, err := c.Loop.Sys.Sendfile(c.FD, file, off, n)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			c.Write.Ready = false
			return Again, true
		case err != nil:
			c.Write.Error = true
			c.Fault(err, "sendfile() failed")
			return Err, true
		}
		c.Sent += int64(sent)
		return sent, true
	}
}

// Recv, Send, Writev and Sendfile go through the connection's layer.
func (c *Conn) Recv(p []byte) int       { return c.IO.Recv(c, p) }
func (c *Conn) Send(p []byte) int       { c.Loop.Flush(); return c.IO.Send(c, p) }
func (c *Conn) Writev(iov [][]byte) int { c.Loop.Flush(); return c.IO.Writev(c, iov) }
func (c *Conn) Sendfile(file int, off *int64, n int) (int, bool) {
	c.Loop.Flush()
	return c.IO.Sendfile(c, file, off, n)
}

// SetNodelay sets TCP_NODELAY unless it is or cannot be (ngx_connection.c, ngx_tcp_nodelay).
func (c *Conn) SetNodelay() bool {
	if c.TCPNodelay != TCPUnset {
		return true
	}
	if err := c.Loop.Sys.SetInt(c.FD, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		c.Fault(err, "setsockopt(TCP_NODELAY) failed")
		return false
	}
	c.TCPNodelay = TCPSet
	return true
}

// Cork sets or clears TCP_CORK (ngx_tcp_nopush, ngx_tcp_push).
func (c *Conn) Cork(on bool) error {
	c.Loop.Flush()
	v := 0
	if on {
		v = 1
	}
	return c.Loop.Sys.SetInt(c.FD, unix.IPPROTO_TCP, unix.TCP_CORK, v)
}

// ClearNodelay clears TCP_NODELAY, which excludes TCP_CORK.
func (c *Conn) ClearNodelay() error {
	return c.Loop.Sys.SetInt(c.FD, unix.IPPROTO_TCP, unix.TCP_NODELAY, 0)
}

// LingerReset makes the close that follows a reset (reset_timedout_connection).
func (c *Conn) LingerReset() error { return c.Loop.Sys.LingerReset(c.FD) }
