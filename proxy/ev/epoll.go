package ev

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// WakeSlot is the Slot of a report that only says that Wake was called.
const WakeSlot = ^uint32(0)

// Epoll is the kernel: the real Sys. Calls that cannot block are raw, so that the Go scheduler is not
// told of each.
type Epoll struct {
	ep, wake int
	events   []unix.EpollEvent
	iov      []unix.Iovec
	short    [2048]byte
	raw      unix.RawSockaddrAny
	start    time.Time
	last     time.Time
	load     load
}

// NewEpoll makes an epoll instance that reports up to events descriptors at once
// (epoll_events; nginx's default is 512).
func NewEpoll(events int) (*Epoll, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(ep)
		return nil, err
	}
	e := &Epoll{ep: ep, wake: wake, events: make([]unix.EpollEvent, events), start: time.Now()}
	ee := unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, wake, &ee); err != nil {
		e.Free()
		return nil, err
	}
	return e, nil
}

// NewSockets is the kernel without an epoll instance, for those who only open sockets.
func NewSockets() *Epoll { return &Epoll{ep: -1, wake: -1, start: time.Now()} }

// Free closes the instance's own descriptors.
func (e *Epoll) Free() {
	unix.Close(e.ep)
	unix.Close(e.wake)
}

func errnoErr(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

func ptr(p []byte) uintptr {
	if len(p) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(&p[0]))
}

func (e *Epoll) Read(fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), ptr(p), uintptr(len(p)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func (e *Epoll) Peek(fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), ptr(p), uintptr(len(p)), unix.MSG_PEEK, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func (e *Epoll) Write(fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), ptr(p), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// maxIov is how many pieces one Writev sends at most (IOV_MAX).
const maxIov = 1024

// Writev sends a short whole with one send: joining costs less than what the kernel does for a list.
func (e *Epoll) Writev(fd int, iov [][]byte) (int, error) {
	size := 0
	for _, p := range iov {
		size += len(p)
	}
	if size <= len(e.short) {
		b := e.short[:0]
		for _, p := range iov {
			b = append(b, p...)
		}
		if len(b) == 0 {
			return 0, nil
		}
		return e.Write(fd, b)
	}
	e.iov = e.iov[:0]
	for _, p := range iov {
		if len(p) == 0 {
			continue
		}
		v := unix.Iovec{Base: &p[0]}
		v.SetLen(len(p))
		e.iov = append(e.iov, v)
		if len(e.iov) == maxIov {
			break
		}
	}
	if len(e.iov) == 0 {
		return 0, nil
	}
	n, _, errno := unix.RawSyscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&e.iov[0])), uintptr(len(e.iov)))
	clear(e.iov)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func (e *Epoll) Sendfile(out, in int, off *int64, n int) (int, error) {
	r, _, errno := unix.RawSyscall6(unix.SYS_SENDFILE, uintptr(out), uintptr(in), uintptr(unsafe.Pointer(off)), uintptr(n), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}

func (e *Epoll) Accept(fd int) (int, Addr, error) {
	n := uint32(unix.SizeofSockaddrAny)
	var a Addr
	s, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(&e.raw)), uintptr(unsafe.Pointer(&n)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	if errno != 0 {
		return -1, a, errno
	}
	a.decode(&e.raw, n)
	return int(s), a, nil
}

func (e *Epoll) Socket(a Addr) (int, error) {
	s, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(a.Family), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(s), nil
}

func (e *Epoll) Connect(fd int, a Addr) error {
	n := a.encode(&e.raw)
	_, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&e.raw)), n)
	return errnoErr(errno)
}

func (e *Epoll) Bind(fd int, a Addr) error {
	n := a.encode(&e.raw)
	_, _, errno := unix.RawSyscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&e.raw)), n)
	return errnoErr(errno)
}

func (e *Epoll) Listen(fd, backlog int) error { return unix.Listen(fd, backlog) }

func (e *Epoll) SockError(fd int) error {
	v, err := e.GetInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	return errnoErr(syscall.Errno(v))
}

func (e *Epoll) SetInt(fd, level, opt, v int) error {
	n := int32(v)
	_, _, errno := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(opt), uintptr(unsafe.Pointer(&n)), 4, 0)
	return errnoErr(errno)
}

func (e *Epoll) GetInt(fd, level, opt int) (int, error) {
	var v int32
	size := uint32(4)
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(opt), uintptr(unsafe.Pointer(&v)), uintptr(unsafe.Pointer(&size)), 0)
	return int(v), errnoErr(errno)
}

func (e *Epoll) LingerReset(fd int) error {
	return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}

func (e *Epoll) Shutdown(fd, how int) error {
	_, _, errno := unix.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), uintptr(how), 0)
	return errnoErr(errno)
}

func (e *Epoll) Close(fd int) error {
	_, _, errno := unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	return errnoErr(errno)
}

func (e *Epoll) LocalAddr(fd int) (Addr, error) {
	n := uint32(unix.SizeofSockaddrAny)
	var a Addr
	_, _, errno := unix.RawSyscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&e.raw)), uintptr(unsafe.Pointer(&n)))
	if errno != 0 {
		return a, errno
	}
	a.decode(&e.raw, n)
	return a, nil
}

// modes by Mode.
var modes = [...]uint32{
	Both:            unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff,
	Accept:          unix.EPOLLIN | unix.EPOLLRDHUP,
	AcceptExclusive: unix.EPOLLIN | unix.EPOLLEXCLUSIVE,
}

// The data of an epoll entry are the slot (Fd) and the generation (Pad).

func (e *Epoll) EpollAdd(fd int, slot, gen uint32, mode Mode) error {
	ee := unix.EpollEvent{Events: modes[mode], Fd: int32(slot), Pad: int32(gen)}
	_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(e.ep), unix.EPOLL_CTL_ADD, uintptr(fd), uintptr(unsafe.Pointer(&ee)), 0, 0)
	return errnoErr(errno)
}

func (e *Epoll) EpollDel(fd int) error {
	var ee unix.EpollEvent
	return unix.EpollCtl(e.ep, unix.EPOLL_CTL_DEL, fd, &ee)
}

func (e *Epoll) EpollWait(evs []Ready, timeoutMs int) (int, error) {
	buf := e.events
	if len(evs) < len(buf) {
		buf = buf[:len(evs)]
	}
	var n int
	var errno syscall.Errno
	if timeoutMs == 0 || e.load.hidden(e.last) {
		most := min(uint(timeoutMs), hiddenMost) // -1 is for ever
		var r uintptr
		r, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(e.ep), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), uintptr(most), 0, 0)
		n = int(r)
	} else {
		var err error
		n, err = unix.EpollWait(e.ep, buf, timeoutMs)
		if err != nil {
			errno = err.(syscall.Errno)
		}
	}
	if errno == 0 {
		e.load.add(n)
	}
	if errno != 0 {
		return 0, errno
	}
	out := 0
	for i := 0; i < n; i++ {
		b := &buf[i]
		if uint32(b.Fd) == WakeSlot {
			var x [8]byte
			unix.Read(e.wake, x[:])
			evs[out] = Ready{Slot: WakeSlot}
			out++
			continue
		}
		evs[out] = Ready{
			Slot: uint32(b.Fd), Gen: uint32(b.Pad),
			Read: b.Events&unix.EPOLLIN != 0, Write: b.Events&unix.EPOLLOUT != 0,
			Hup: b.Events&unix.EPOLLHUP != 0, Error: b.Events&unix.EPOLLERR != 0, RdHup: b.Events&unix.EPOLLRDHUP != 0,
		}
		out++
	}
	return out, nil
}

func (e *Epoll) Wake() {
	x := [8]byte{1}
	unix.Write(e.wake, x[:])
}

func (e *Epoll) Now() (int64, int) {
	e.last = time.Now()
	e.load.at(e.last)
	return e.last.Unix(), e.last.Nanosecond() / 1e6
}

// Mono is of the instant of the last Now: one reading of the clock serves both.
func (e *Epoll) Mono() int64 {
	if e.last.IsZero() {
		e.last = time.Now()
	}
	return e.last.Sub(e.start).Milliseconds()
}
