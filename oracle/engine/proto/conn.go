package proto

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"
)

// Conn carries values and descriptors over a blocking Unix stream socket. Send
// and Recv may be used from different goroutines, each by one at a time.
type Conn struct {
	fd  int
	enc *gob.Encoder
	dec *gob.Decoder
	raw rawWriter
	buf *bufio.Writer
	in  reader

	once sync.Once
}

// NewConn takes over fd.
func NewConn(fd int) *Conn {
	c := &Conn{fd: fd}
	c.raw.fd, c.in.fd = fd, fd
	c.buf = bufio.NewWriterSize(&c.raw, 64<<10)
	c.enc = gob.NewEncoder(c.buf)
	c.dec = gob.NewDecoder(bufio.NewReaderSize(&c.in, 64<<10))
	return c
}

// FD is the socket's descriptor, to poll for the peer's end.
func (c *Conn) FD() int { return c.fd }

// Close shuts the connection down; a blocked Recv returns. The descriptor stays
// valid until then, so that it cannot be reused under a reader.
func (c *Conn) Close() error {
	var err error
	c.once.Do(func() {
		_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
		err = unix.Close(c.fd)
		for _, fd := range c.in.fds {
			unix.Close(fd)
		}
		c.in.fds = nil
	})
	return err
}

// Shutdown ends both directions without closing the descriptor.
func (c *Conn) Shutdown() { _ = unix.Shutdown(c.fd, unix.SHUT_RDWR) }

// Send writes v; the descriptors fds (at most MaxFDs) travel with its first byte
// and stay open here.
func (c *Conn) Send(v any, fds ...int) error {
	if len(fds) > MaxFDs {
		return fmt.Errorf("send %d descriptors: at most %d fit", len(fds), MaxFDs)
	}
	c.raw.fds, c.raw.close = fds, false
	return c.send(v)
}

// SendAway is Send with descriptors that end here: they are closed before the last byte goes, so that
// the receiver of the whole value is the only one who holds them. A copy that is closed a moment later would
// keep a connection open that the receiver has closed.
func (c *Conn) SendAway(v any, fds ...int) error {
	if len(fds) > MaxFDs {
		return fmt.Errorf("send %d descriptors: at most %d fit", len(fds), MaxFDs)
	}
	c.raw.fds, c.raw.close = fds, true
	err := c.send(v)
	c.raw.closeAll() // not sent
	return err
}

func (c *Conn) send(v any) error {
	if err := c.enc.Encode(v); err != nil {
		return fmt.Errorf("send %T: %w", v, err)
	}
	if err := c.buf.Flush(); err != nil {
		return fmt.Errorf("send %T: %w", v, err)
	}
	return nil
}

// Recv reads the next value into v. io.EOF means that the peer is gone.
func (c *Conn) Recv(v any) error {
	err := c.dec.Decode(v)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.ECONNRESET) {
		return io.EOF
	}
	if err != nil {
		return fmt.Errorf("receive %T: %w", v, err)
	}
	return nil
}

// TakeFDs hands out n descriptors that came with the values received so far.
func (c *Conn) TakeFDs(n int) ([]int, error) {
	if n > len(c.in.fds) {
		return nil, fmt.Errorf("receive descriptors: %d announced, %d came (is RLIMIT_NOFILE too low?)", n, len(c.in.fds))
	}
	fds := append([]int(nil), c.in.fds[:n]...)
	c.in.fds = append(c.in.fds[:0], c.in.fds[n:]...)
	return fds, nil
}

type rawWriter struct {
	fd    int
	fds   []int // sent with the next byte
	close bool  // once they are sent
}

func (w *rawWriter) closeAll() {
	if w.close {
		for _, fd := range w.fds {
			unix.Close(fd)
		}
	}
	w.fds = nil
}

func (w *rawWriter) Write(p []byte) (int, error) {
	total := 0
	for len(p) > 0 {
		var oob []byte
		now := p
		if len(w.fds) > 0 {
			oob = unix.UnixRights(w.fds...)
			now = p[:1] // what makes the value whole comes behind
		}
		n, err := unix.SendmsgN(w.fd, now, oob, nil, unix.MSG_NOSIGNAL)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return total, fmt.Errorf("sendmsg: %w", err)
		}
		w.closeAll()
		total += n
		p = p[n:]
	}
	return total, nil
}

type reader struct {
	fd  int
	fds []int
	oob []byte
}

func (r *reader) Read(p []byte) (int, error) {
	if r.oob == nil {
		r.oob = make([]byte, unix.CmsgSpace(4*MaxFDs))
	}
	for {
		n, oobn, flags, _, err := unix.Recvmsg(r.fd, p, r.oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("recvmsg: %w", err)
		}
		if oobn > 0 {
			if err := r.take(r.oob[:oobn]); err != nil {
				return 0, err
			}
		}
		if flags&unix.MSG_CTRUNC != 0 {
			return 0, errors.New("recvmsg: descriptors were cut off (RLIMIT_NOFILE)")
		}
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}
}

func (r *reader) take(oob []byte) error {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("recvmsg: control message: %w", err)
	}
	for i := range msgs {
		fds, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			return fmt.Errorf("recvmsg: descriptors: %w", err)
		}
		r.fds = append(r.fds, fds...)
	}
	return nil
}
