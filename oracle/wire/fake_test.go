package wire

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/engine"
)

// fake is a cell on loopback whose server runs only while it is probed: a probe
// lets it take one turn, and it sleeps when the turn had nothing to do. There are no
// goroutines, so every test is deterministic.
type fake struct {
	t       *testing.T
	ln      int
	addr    unix.SockaddrInet4
	conns   []*peer
	serve   func(*peer) // called whenever a connection is new, has new bytes, or has ended
	dead    bool
	awake   bool // never rests
	down    bool // refuses connections
	origins map[string]int
	timer   int // milliseconds, -1 = none
	probes  int
}

// peer is the server's side of one connection.
type peer struct {
	fd     int
	in     []byte
	eof    bool
	data   any
	closed bool
}

func newFake(t *testing.T, serve func(*peer)) *fake {
	f := &fake{t: t, serve: serve, timer: -1, origins: map[string]int{}}
	f.ln = f.listen()
	sa, err := unix.Getsockname(f.ln)
	if err != nil {
		t.Fatal(err)
	}
	f.addr = *sa.(*unix.SockaddrInet4)
	t.Cleanup(func() {
		unix.Close(f.ln)
		for _, c := range f.conns {
			c.close()
		}
	})
	return f
}

func (f *fake) listen() int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = unix.Listen(fd, 128)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return fd
}

func (f *fake) connect(sa unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, sa); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, unix.SetNonblock(fd, true)
}

func (f *fake) Dial(_ context.Context, addr string, n int) ([]int, error) {
	if f.down {
		return nil, unix.ECONNREFUSED
	}
	fd, err := f.connect(&f.addr)
	return []int{fd}, err
}

func (f *fake) Listen(_ context.Context, addr string) (int, error) {
	f.origins[addr] = f.listen()
	return f.origins[addr], nil
}

// upstream opens a connection from the server to an origin.
func (f *fake) upstream(addr string) *peer {
	sa, err := unix.Getsockname(f.origins[addr])
	if err != nil {
		f.t.Fatal(err)
	}
	fd, err := f.connect(sa)
	if err != nil {
		f.t.Fatal(err)
	}
	p := &peer{fd: fd}
	f.conns = append(f.conns, p)
	return p
}

func (f *fake) Probe(context.Context) (engine.Rest, error) {
	f.probes++
	if f.dead {
		return engine.Rest{}, nil
	}
	moved := false
	for {
		fd, err := accept(f.ln)
		if err != nil || fd < 0 {
			break
		}
		p := &peer{fd: fd}
		f.conns = append(f.conns, p)
		f.serve(p)
		moved = true
	}
	for _, p := range f.conns {
		if p.read() {
			moved = true
			f.serve(p)
		}
	}
	return engine.Rest{Alive: true, Asleep: !moved && !f.awake, Timer: f.timer}, nil
}

func (p *peer) read() bool {
	if p.closed || p.eof {
		return false
	}
	buf := make([]byte, 64<<10)
	moved := false
	for {
		n, again, err := recvSome(p.fd, buf)
		switch {
		case again:
			return moved
		case n == 0 || err != nil:
			p.eof = true
			return true
		}
		p.in = append(p.in, buf[:n]...)
		moved = true
	}
}

func (p *peer) send(s string) {
	for b := []byte(s); len(b) > 0; {
		n, err := sendSome(p.fd, b)
		if err != nil || n == 0 {
			return
		}
		b = b[n:]
	}
}

func (p *peer) close() {
	if !p.closed {
		unix.Close(p.fd)
		p.closed = true
	}
}

func (p *peer) reset() {
	if !p.closed {
		resetClose(p.fd)
		p.closed = true
	}
}

// play runs a case's text against f and returns the record.
func play(t *testing.T, f *fake, text string, tune ...func(*Player)) Record {
	t.Helper()
	ctx := context.Background()
	c, err := casefile.Parse("case", []byte("-- nginx.conf --\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlayer(ctx, f, c.Origins)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.patient = time.Hour // a test that would need the last resort hangs, and is seen
	for _, tu := range tune {
		tu(p)
	}
	for i := 0; i < len(c.Sections); {
		n := i + 1
		for n < len(c.Sections) && c.Sections[n].With != 0 {
			n++
		}
		if err := p.Play(ctx, c.Sections[i:n]); err != nil {
			t.Fatal(err)
		}
		i = n
	}
	r, err := p.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var errBroken = errors.New("the cell is broken")
