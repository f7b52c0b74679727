package wire

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of the player, each naming itself in its error. Descriptors
// are non-blocking and watched edge-triggered: a connection remembers that it
// is readable until a read comes up short.

// quick makes a system call that never waits. Go's scheduler is not told, as it would be of one that may block:
// of some hundred thousand a second each would have its monitor look whether it takes long.
func quick(call uintptr, fd int, b unsafe.Pointer, n, flags int) (int, error) {
	r, _, errno := unix.RawSyscall6(call, uintptr(fd), uintptr(b), uintptr(n), uintptr(flags), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}

func newEpoll() (int, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("epoll_create1: %w", err)
	}
	return fd, nil
}

func watch(ep, fd int, slot int32) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | edge, Fd: slot}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// watchWrite has a blocked send told when it can go on.
func watchWrite(ep, fd int, slot int32) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | edge, Fd: slot}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_MOD, fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// edge is EPOLLET, which the package's constant holds as a negative number.
const edge = uint32(1 << 31)

// nap waits up to d for an event of ep, finer than epoll_wait's milliseconds.
func nap(ep int, d time.Duration) error {
	ts := unix.NsecToTimespec(int64(d))
	if _, err := unix.Ppoll([]unix.PollFd{{Fd: int32(ep), Events: unix.POLLIN}}, &ts, nil); err != nil && err != unix.EINTR {
		return fmt.Errorf("ppoll: %w", err)
	}
	return nil
}

// epollWait waits up to ms milliseconds (0 = look only).
func epollWait(ep int, evs []unix.EpollEvent, ms int) (int, error) {
	wait := unix.EpollWait
	if ms == 0 {
		wait = look
	}
	n, err := wait(ep, evs, ms)
	if err == unix.EINTR {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("epoll_wait: %w", err)
	}
	return n, nil
}

func look(ep int, evs []unix.EpollEvent, _ int) (int, error) {
	return quick(unix.SYS_EPOLL_PWAIT, ep, unsafe.Pointer(unsafe.SliceData(evs)), len(evs), 0)
}

// sendSome writes what the kernel takes now. n may be short of len(b) with a nil error.
func sendSome(fd int, b []byte) (int, error) {
	for {
		n, err := quick(unix.SYS_SENDTO, fd, unsafe.Pointer(unsafe.SliceData(b)), len(b), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		switch err {
		case nil:
			return n, nil
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return 0, nil
		}
		return 0, err
	}
}

// recvSome reads what is there. again is true when nothing is there now.
func recvSome(fd int, b []byte) (n int, again bool, err error) {
	for {
		n, err := quick(unix.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(b)), len(b), 0)
		switch err {
		case nil:
			return n, false, nil
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return 0, true, nil
		}
		return 0, false, err
	}
}

// accept takes one connection, -1 when none waits.
func accept(fd int) (int, error) {
	for {
		c, _, err := unix.Accept4(fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
			return c, nil
		case unix.EINTR, unix.ECONNABORTED:
			continue
		case unix.EAGAIN:
			return -1, nil
		}
		return -1, fmt.Errorf("accept: %w", err)
	}
}

// noDelay has every write go out at once: a script's send is a segment of its own
// where the network allows. It means nothing for a Unix socket, which refuses it.
func noDelay(fd int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
}

// acknowledge sends the acknowledgement that the kernel may be holding back.
// A connection that is over, and a Unix socket, refuse it and need none.
func acknowledge(fd int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
}

// onWay tells whether bytes written to fd are about to move: some have not left, and
// others that have are not acknowledged. Bytes that have all left are in the peer's
// queue when the cell says that nothing is on its way, however late their
// acknowledgement; bytes that stay with nothing under way are held by a closed window.
func onWay(fd int) bool {
	waiting, err := unix.IoctlGetInt(fd, unix.SIOCOUTQNSD)
	if err != nil || waiting == 0 {
		return false // a reset connection has no queue
	}
	written, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	return err == nil && written > waiting
}

// localPort is the port of this end, 0 for a Unix socket.
func localPort(fd int) int {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return 0 // a connection that is reset already has no port to know
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return sa.Port
	case *unix.SockaddrInet6:
		return sa.Port
	}
	return 0
}

// resetClose ends a connection with RST instead of FIN.
func resetClose(fd int) error {
	err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	return errors.Join(err, unix.Close(fd))
}

func isRefused(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT)
}
