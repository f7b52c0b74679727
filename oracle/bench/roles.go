package bench

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"syscall"
)

// The origin and the open-loop client are this program again, each on its own core: `oracle bench-role`.

// Origin answers every request on addr with a body of n bytes, kept alive unless the
// request is HTTP/1.0 or says close. One epoll loop, two system calls a request: it
// has to be far from the limit of what it serves.
func Origin(addr string, n int) error {
	runtime.LockOSThread()
	lfd, err := listen(addr)
	if err != nil {
		return fmt.Errorf("origin: listen %s: %w", addr, err)
	}
	body := bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n]
	keep := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", n, body)
	gone := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", n, body)
	ep, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	add := func(fd int) error {
		return syscall.EpollCtl(ep, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
	}
	if err := add(lfd); err != nil {
		return err
	}
	buf := make([]byte, 16<<10)
	evs := make([]syscall.EpollEvent, 256)
	pending := map[int][]byte{} // what did not fit the socket yet
	for {
		k, err := syscall.EpollWait(ep, evs, -1)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return err
		}
		for _, ev := range evs[:max(k, 0)] {
			fd := int(ev.Fd)
			if fd == lfd {
				for {
					c, _, err := syscall.Accept4(lfd, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
					if err != nil {
						break
					}
					if err := errors.Join(syscall.SetsockoptInt(c, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1), add(c)); err != nil {
						return err
					}
				}
				continue
			}
			out := pending[fd]
			closing := false
			if out == nil {
				n, err := syscall.Read(fd, buf)
				if err == syscall.EAGAIN {
					continue
				}
				if n <= 0 || err != nil {
					syscall.Close(fd)
					continue
				}
				out = keep
				if bytes.Contains(buf[:n], []byte(" HTTP/1.0\r\n")) || bytes.Contains(buf[:n], []byte("Connection: close\r\n")) {
					out, closing = gone, true
				}
			}
			m, err := syscall.Write(fd, out)
			if err != nil && err != syscall.EAGAIN {
				delete(pending, fd)
				syscall.Close(fd)
				continue
			}
			out = out[max(m, 0):]
			switch {
			case len(out) > 0 && !closing:
				pending[fd] = out
				err = syscall.EpollCtl(ep, syscall.EPOLL_CTL_MOD, fd, &syscall.EpollEvent{Events: syscall.EPOLLOUT, Fd: int32(fd)})
			case pending[fd] != nil:
				delete(pending, fd)
				err = syscall.EpollCtl(ep, syscall.EPOLL_CTL_MOD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
			case closing:
				err = syscall.Close(fd)
			default:
				err = nil
			}
			if err != nil {
				return err
			}
		}
	}
}

func listen(addr string) (int, error) {
	sa, err := sockaddr(addr)
	if err != nil {
		return 0, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	return fd, errors.Join(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), syscall.Bind(fd, sa), syscall.Listen(fd, 1024))
}

func sockaddr(addr string) (*syscall.SockaddrInet4, error) {
	var a, b, c, d byte
	var port int
	if _, err := fmt.Sscanf(addr, "%d.%d.%d.%d:%d", &a, &b, &c, &d, &port); err != nil {
		return nil, fmt.Errorf("address %q: want IPv4:PORT", addr)
	}
	return &syscall.SockaddrInet4{Addr: [4]byte{a, b, c, d}, Port: port}, nil
}
