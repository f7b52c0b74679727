package ev

import (
	"net"
	"strings"
	"testing"

	"nginxoracle/proxy/elog"
)

type memory []string

func (m *memory) WriteLine(b []byte) error { *m = append(*m, string(b)); return nil }

func testLog() (*elog.Log, *memory) {
	m := &memory{}
	list := &elog.List{}
	list.Insert(&elog.Target{Level: elog.Info, W: m})
	return &elog.Log{Sink: list}, m
}

// realLoop listens on a free port of the loopback and runs handler for each connection.
func realLoop(t *testing.T, conns int, handler func(*Conn)) (*Loop, string, *memory) {
	t.Helper()
	sys, err := NewEpoll(64)
	if err != nil {
		t.Fatal(err)
	}
	log, out := testLog()
	l := NewLoop(sys, conns, log)
	a := Addr{Family: INET, IP: [16]byte{127, 0, 0, 1}}
	fd, err := sys.Socket(a)
	if err == nil {
		err = sys.Bind(fd, a)
	}
	if err == nil {
		err = sys.Listen(fd, 16)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, _ = sys.LocalAddr(fd)
	if err := l.Listen(&Listener{FD: fd, Addr: a, Handler: handler}); err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	go func() { l.Run(); close(done) }()
	t.Cleanup(func() {
		l.Stop()
		<-done
		sys.Close(fd)
		sys.Free()
	})
	return l, a.Text(), out
}

// echo answers what it reads, and closes at the end of the stream.
func echo(c *Conn) {
	var pending []byte
	var pump func(e *Event)
	pump = func(e *Event) {
		for {
			for len(pending) > 0 {
				n := c.Send(pending)
				if n == Again {
					return
				}
				if n < 0 {
					c.Loop.CloseConn(c)
					return
				}
				pending = pending[n:]
			}
			buf := make([]byte, 1000)
			n := c.Recv(buf)
			if n == Again {
				return
			}
			if n <= 0 {
				c.Loop.CloseConn(c)
				return
			}
			pending = buf[:n]
		}
	}
	c.Read.Handler, c.Write.Handler = pump, pump
	if c.Loop.Add(c) != nil {
		c.Loop.CloseConn(c)
	}
}

func exchange(t *testing.T, addr, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte(text))
	c.(*net.TCPConn).CloseWrite()
	var b strings.Builder
	buf := make([]byte, 65536)
	for {
		n, err := c.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

func TestEchoOverEpoll(t *testing.T) {
	_, addr, _ := realLoop(t, 16, echo)
	text := strings.Repeat("0123456789", 100000)
	for i := 0; i < 3; i++ {
		if got := exchange(t, addr, text); got != text {
			t.Fatalf("got %d bytes, want %d", len(got), len(text))
		}
	}
}

func TestPanicCostsOneConnection(t *testing.T) {
	first := true
	_, addr, out := realLoop(t, 16, func(c *Conn) {
		if first {
			first = false
			panic("oops")
		}
		echo(c)
	})
	if got := exchange(t, addr, "a"); got != "" {
		t.Errorf("the broken connection answered %q", got)
	}
	if got := exchange(t, addr, "b"); got != "b" {
		t.Errorf("the next one answered %q", got)
	}
	if len(*out) != 1 || !strings.Contains((*out)[0], "[alert]") || !strings.Contains((*out)[0], "oops") {
		t.Errorf("logged %q", *out)
	}
}

func TestAddrText(t *testing.T) {
	for _, tc := range []struct{ ip, want string }{
		{"::", "[::]:80"},
		{"::1", "[::1]:80"},
		{"::ffff:1.2.3.4", "[::ffff:1.2.3.4]:80"},
		{"::1.2.3.4", "[::1.2.3.4]:80"},
		{"2001:db8::", "[2001:db8::]:80"},
		{"1:0:0:2:0:0:0:3", "[1:0:0:2::3]:80"},
		{"1:0:2:3:4:5:6:7", "[1:0:2:3:4:5:6:7]:80"},
	} {
		a := Addr{Family: INET6, Port: 80}
		copy(a.IP[:], net.ParseIP(tc.ip).To16())
		if got := a.Text(); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.ip, got, tc.want)
		}
	}
}

func TestFnmatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.conf", "a.conf", true}, {"*.conf", ".conf", false}, {".*", ".a", true}, {"a?c", "abc", true},
		{"[a-c]x", "bx", true}, {"[!a-c]x", "bx", false}, {"[]x]", "]", true}, {"[a", "[a", true},
		{`\*`, "*", true}, {`\*`, "a", false}, {"*", "", true}, {"?", "", false}, {"**b", "aab", true},
	} {
		if got := Fnmatch(tc.pattern, tc.name); got != tc.want {
			t.Errorf("%s on %s: %v", tc.pattern, tc.name, got)
		}
	}
}
