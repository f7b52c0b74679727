package evsim

import (
	"slices"
	"syscall"

	"nginxoracle/proxy/ev"
)

// The system calls. Errors are those of the kernel.

func (n *Net) get(fd int) (*socket, error) {
	n.Steps++
	s := n.fds[fd]
	if s == nil {
		return nil, syscall.EBADF
	}
	return s, nil
}

func (n *Net) Read(fd int, p []byte) (int, error) {
	s, err := n.get(fd)
	if err != nil {
		return 0, err
	}
	return n.read(s, p)
}

func (n *Net) Peek(fd int, p []byte) (int, error) {
	s, err := n.get(fd)
	if err != nil {
		return 0, err
	}
	if !s.reset && len(s.buf) > 0 {
		return copy(p, s.buf), nil
	}
	return n.read(s, p)
}

func (n *Net) read(s *socket, p []byte) (int, error) {
	if s.peer != nil && n.one(n.opt.Resets) {
		n.breakConn(s)
	}
	switch {
	case s.reset:
		s.reset, s.eof = false, true // told once
		s.shut = true
		return 0, syscall.ECONNRESET
	case len(s.buf) == 0 && s.eof:
		return 0, nil
	case len(s.buf) == 0:
		return 0, syscall.EAGAIN
	}
	full := len(s.buf) >= n.opt.Buffer
	k := n.part(min(len(p), len(s.buf)))
	copy(p, s.buf[:k])
	s.buf = slices.Delete(s.buf, 0, k)
	if full && s.peer != nil {
		n.notify(s.peer, false, true)
	}
	if k < len(p) && len(s.buf) > 0 {
		n.notify(s, true, false) // a short read: the rest comes as news
	}
	return k, nil
}

func (n *Net) Write(fd int, p []byte) (int, error) {
	s, err := n.get(fd)
	if err != nil {
		return 0, err
	}
	return n.write(s, p)
}

func (n *Net) write(s *socket, p []byte) (int, error) {
	if n.one(n.opt.Resets) {
		n.breakConn(s)
	}
	switch {
	case s.reset || s.shut:
		return 0, syscall.EPIPE
	case s.peer == nil:
		return 0, syscall.ENOTCONN
	case s.peer.closed:
		s.reset = true
		return 0, syscall.EPIPE
	}
	room := n.opt.Buffer - len(s.peer.buf)
	if room <= 0 {
		return 0, syscall.EAGAIN
	}
	k := n.part(min(len(p), room))
	s.peer.buf = append(s.peer.buf, p[:k]...)
	n.notify(s.peer, true, false)
	if k < len(p) && len(s.peer.buf) < n.opt.Buffer {
		n.notify(s, false, true) // a short write with room left: the kernel tells when there is more
	}
	return k, nil
}

func (n *Net) Writev(fd int, iov [][]byte) (int, error) {
	var all []byte
	for _, p := range iov {
		all = append(all, p...)
	}
	return n.Write(fd, all)
}

// Sendfile is not simulated: there are no files here.
func (n *Net) Sendfile(out, in int, off *int64, k int) (int, error) { return 0, syscall.EINVAL }

func (n *Net) Accept(fd int) (int, ev.Addr, error) {
	s, err := n.get(fd)
	if err != nil {
		return -1, ev.Addr{}, err
	}
	if len(s.queue) == 0 {
		return -1, ev.Addr{}, syscall.EAGAIN
	}
	c := s.queue[0]
	s.queue = s.queue[1:]
	return n.add(c), c.peer.addr, nil
}

func (n *Net) Socket(a ev.Addr) (int, error) {
	n.Steps++
	return n.add(&socket{}), nil
}

func (n *Net) Bind(fd int, a ev.Addr) error {
	s, err := n.get(fd)
	if err != nil {
		return err
	}
	if a.Port == 0 {
		n.port++
		a.Port = n.port
	}
	if n.names[a.Text()] != nil {
		return syscall.EADDRINUSE
	}
	s.addr = a
	return nil
}

func (n *Net) Listen(fd, backlog int) error {
	s, err := n.get(fd)
	if err != nil {
		return err
	}
	s.listening = true
	n.names[s.addr.Text()] = s
	return nil
}

// Connect meets a listening socket at once, or is refused.
func (n *Net) Connect(fd int, a ev.Addr) error {
	s, err := n.get(fd)
	if err != nil {
		return err
	}
	return n.connect(s, a)
}

func (n *Net) connect(s *socket, a ev.Addr) error {
	ls := n.names[a.Text()]
	if ls == nil {
		return syscall.ECONNREFUSED
	}
	n.port++
	s.addr = ev.Addr{Family: ev.INET, IP: [16]byte{127, 0, 0, 1}, Port: n.port}
	far := &socket{fd: -1, addr: a, peer: s}
	s.peer = far
	ls.queue = append(ls.queue, far)
	return nil
}

func (n *Net) SockError(fd int) error {
	s, err := n.get(fd)
	if err == nil && s.reset {
		return syscall.ECONNRESET
	}
	return err
}

func (n *Net) SetInt(fd, level, opt, v int) error     { _, err := n.get(fd); return err }
func (n *Net) GetInt(fd, level, opt int) (int, error) { _, err := n.get(fd); return 0, err }
func (n *Net) LingerReset(fd int) error               { _, err := n.get(fd); return err }
func (n *Net) LocalAddr(fd int) (a ev.Addr, err error) {
	s, err := n.get(fd)
	if err == nil {
		a = s.addr
	}
	return a, err
}

func (n *Net) Shutdown(fd, how int) error {
	s, err := n.get(fd)
	if err != nil {
		return err
	}
	if how != ev.ShutRead {
		n.finish(s)
	}
	return nil
}

// finish is a FIN to the peer.
func (n *Net) finish(s *socket) {
	s.shut = true
	if s.peer != nil && !s.peer.closed {
		s.peer.eof = true
		n.notify(s.peer, true, false)
	}
}

func (n *Net) Close(fd int) error {
	s, err := n.get(fd)
	if err != nil {
		return err
	}
	delete(n.fds, fd)
	delete(n.watch, fd)
	n.close(s)
	return nil
}

// close resets the peer when something was left unread, as TCP does.
func (n *Net) close(s *socket) {
	s.closed = true
	if s.listening {
		delete(n.names, s.addr.Text())
		return
	}
	if s.peer == nil || s.peer.closed {
		return
	}
	if len(s.buf) > 0 {
		s.peer.reset, s.peer.buf = true, nil
		n.notify(s.peer, true, true)
		return
	}
	s.peer.eof = true
	n.notify(s.peer, true, false)
}

func (n *Net) EpollAdd(fd int, slot, gen uint32, mode ev.Mode) error {
	s, err := n.get(fd)
	if err != nil {
		return err
	}
	if n.watch[fd] != nil {
		return syscall.EEXIST
	}
	w := &watched{slot: slot, gen: gen, mode: mode}
	n.watch[fd] = w
	if mode == ev.Both {
		n.mark(s, w, len(s.buf) > 0 || s.eof || s.reset, true)
	}
	return nil
}

func (n *Net) EpollDel(fd int) error {
	if n.watch[fd] == nil {
		return syscall.ENOENT
	}
	delete(n.watch, fd)
	return nil
}

// EpollWait reports edges in an order that the seed decides; when there are none, the virtual clock
// jumps to the next thing that happens.
func (n *Net) EpollWait(evs []ev.Ready, timeoutMs int) (int, error) {
	n.Steps++
	deadline := int64(-1)
	if timeoutMs >= 0 {
		deadline = n.clock + int64(timeoutMs)
	}
	for {
		for len(n.alarm) > 0 && n.alarm[0].at <= n.clock {
			a := n.alarm[0]
			n.alarm = n.alarm[1:]
			a.f()
		}
		if k := n.collect(evs); k > 0 || timeoutMs == 0 {
			return k, nil
		}
		switch {
		case len(n.alarm) > 0 && (deadline < 0 || n.alarm[0].at <= deadline):
			n.clock = n.alarm[0].at
		case deadline >= 0:
			n.clock = deadline
			return 0, nil
		default:
			return 0, syscall.EDEADLK // for ever
		}
	}
}

func (n *Net) collect(evs []ev.Ready) int {
	if n.woken {
		n.woken = false
		evs[0] = ev.Ready{Slot: ev.WakeSlot}
		return 1
	}
	fds := make([]int, 0, len(n.watch))
	for fd := range n.watch {
		fds = append(fds, fd)
	}
	slices.Sort(fds)
	if n.opt.Split {
		n.rng.Shuffle(len(fds), func(i, j int) { fds[i], fds[j] = fds[j], fds[i] })
	}
	k := 0
	for _, fd := range fds {
		w := n.watch[fd]
		if w.mode != ev.Both {
			if len(n.fds[fd].queue) > 0 && k < len(evs) {
				evs[k] = ev.Ready{Slot: w.slot, Gen: w.gen, Read: true}
				k++
			}
			continue
		}
		if (w.in || w.out) && k < len(evs) {
			evs[k] = ev.Ready{Slot: w.slot, Gen: w.gen, Read: w.in, Write: w.out, RdHup: w.rdhup, Hup: w.hup}
			w.in, w.out = false, false
			k++
		}
	}
	return k
}

// Wake makes the next EpollWait return.
func (n *Net) Wake() { n.woken = true }

func (n *Net) Now() (int64, int) { return n.opt.StartSec + n.clock/1000, int(n.clock % 1000) }
func (n *Net) Mono() int64       { return n.clock }
