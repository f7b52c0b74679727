package ev

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// VectorReader is a Sys that can read into several pieces at once.
type VectorReader interface {
	Readv(fd int, iov [][]byte) (int, error)
}

// Readv reads into several pieces with one system call where the layer and the kernel's seam can, else
// into the first one. Results are those of Recv (os/unix/ngx_readv_chain.c).
func (c *Conn) Readv(iov [][]byte) int {
	sys, ok := c.Loop.Sys.(VectorReader)
	if _, bare := c.IO.(plain); !bare || !ok {
		return c.IO.Recv(c, iov[0])
	}
	rev := &c.Read
	if rev.drained && !rev.PendingEOF {
		rev.Ready = false
		return Again
	}
	size := 0
	for _, p := range iov {
		size += len(p)
	}
	for {
		n, err := sys.Readv(c.FD, iov)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			rev.Ready = false
			return Again
		case err != nil:
			rc := c.Fault(err, "readv() failed")
			rev.Ready = false
			if rc == Err {
				rev.Error = true
			}
			return rc
		case n == 0:
			rev.Ready, rev.EOF = false, true
			return 0
		}
		rev.got(n, size)
		return n
	}
}

// Readv is the kernel's.
func (e *Epoll) Readv(fd int, iov [][]byte) (int, error) {
	e.iov = e.iov[:0]
	for _, p := range iov {
		if len(p) == 0 || len(e.iov) == maxIov {
			continue
		}
		v := unix.Iovec{Base: &p[0]}
		v.SetLen(len(p))
		e.iov = append(e.iov, v)
	}
	if len(e.iov) == 0 {
		return 0, nil
	}
	n, _, errno := unix.RawSyscall(unix.SYS_READV, uintptr(fd), uintptr(unsafe.Pointer(&e.iov[0])), uintptr(len(e.iov)))
	clear(e.iov)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
