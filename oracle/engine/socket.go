package engine

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// backlog of an origin's listening socket.
const backlog = 511

// pollStep bounds how long a connect waits before it looks at its context again.
const pollStep = 50 * time.Millisecond

func family(ap netip.AddrPort) string {
	if ap.Addr().Is4() {
		return "tcp4"
	}
	return "tcp6"
}

func sockaddr(ap netip.AddrPort) unix.Sockaddr {
	if ap.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}
}

// connect connects a non-blocking socket. On loopback the handshake is over when
// connect(2) returns, though it says EINPROGRESS; the second call tells how it
// went. Only with a full accept queue is there something to wait for.
func connect(ctx context.Context, fd int, to unix.Sockaddr) error {
	for {
		switch err := unix.Connect(fd, to); err {
		case nil, unix.EISCONN:
			return nil
		case unix.EINTR, unix.EINPROGRESS:
			continue
		case unix.EALREADY:
		default:
			return fmt.Errorf("connect: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if _, err := unix.Poll(p, int(pollStep/time.Millisecond)); err != nil && err != unix.EINTR {
			return fmt.Errorf("connect: poll: %w", err)
		}
	}
}

func listen(fd int, at unix.Sockaddr) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("set SO_REUSEADDR: %w", err)
	}
	if err := unix.Bind(fd, at); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
