package engine_test

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine"
)

// eachProber runs f with the oracle looking into the cell itself, and with the
// agent doing it.
func eachProber(t *testing.T, f func(t *testing.T, c engine.Cell)) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		t.Run("itself", func(t *testing.T) { f(t, c) })
		engine.ProbeByAgent(c)
		t.Run("agent", func(t *testing.T) { f(t, c) })
	})
}

// What the server could not send yet keeps it from being at rest, though it sleeps.
func TestUnsentBytesAreSeen(t *testing.T) {
	eachProber(t, func(t *testing.T, c engine.Cell) {
		s := start(t, c, "server { listen 127.0.0.1:8080; root /cell; }")
		if err := c.Do(t.Context(), "write", []string{"big"}, bytes.Repeat([]byte("x"), 16<<20)); err != nil {
			t.Fatal(err)
		}
		f := dial(t, c, "127.0.0.1:8080")
		send(t, f, "GET /big HTTP/1.0\r\n\r\n")
		eventually(t, "a full send queue", func() bool { return rest(t, c).SendQ > 0 })
		if r := rest(t, c); r.Corked != 0 {
			t.Errorf("%+v: behind a full window nothing is corked", r)
		}
		f.Close()
		eventually(t, "an empty send queue", func() bool { return rest(t, c).SendQ == 0 })
		stop(t, s)
	})
}

// What the kernel holds back for a server (TCP_CORK) is told from what a full window does.
func TestCorkedBytesAreSeen(t *testing.T) {
	eachProber(t, func(t *testing.T, c engine.Cell) {
		for _, listen := range []string{"127.0.0.1:8080", "[::]:8080 ipv6only=off"} {
			s := start(t, c, "tcp_nopush on; sendfile on; server { listen "+listen+"; root /cell; }")
			if err := c.Do(t.Context(), "write", []string{"small"}, []byte("x")); err != nil {
				t.Fatal(err)
			}
			if err := c.Do(t.Context(), "write", []string{"big"}, bytes.Repeat([]byte("x"), 16<<20)); err != nil {
				t.Fatal(err)
			}
			unread := dial(t, c, "127.0.0.1:8080") // another one's full window does not hide it
			send(t, unread, "GET /big HTTP/1.0\r\n\r\n")
			eventually(t, "a full send queue", func() bool { return rest(t, c).SendQ > 0 })
			f := dial(t, c, "127.0.0.1:8080")
			seen := false
			for try := 0; try < 20 && !seen; try++ { // it lasts for 200 ms
				send(t, f, "GET /small HTTP/1.1\r\nHost: a\r\n\r\n\r\n") // what nginx takes for the next request's begin keeps the cork in
				for !seen && !readable(t, int(f.Fd())) {
					seen = rest(t, c).Corked > 0
				}
				response(t, f)
			}
			if !seen {
				t.Errorf("listen %s: corked bytes were not seen", listen)
			}
			unread.Close()
			f.Close()
			stop(t, s)
		}
	})
}

// Only the server's queues count: a client's and an origin's are the oracle's own business.
func TestOwnQueuesDoNotCount(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:9001", "unix:/cell/o.sock"} {
		t.Run(strings.ReplaceAll(addr, "/", "_"), func(t *testing.T) {
			eachProber(t, func(t *testing.T, c engine.Cell) {
				if err := c.Reset(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				s := start(t, c, "upstream u { server "+addr+"; } server { listen 127.0.0.1:8080; location / { return 200 hello; } location /p { proxy_pass http://u; } }")
				fd, err := c.Listen(t.Context(), addr)
				if err != nil {
					t.Fatal(err)
				}
				defer unix.Close(fd)

				a := dial(t, c, "127.0.0.1:8080") // its response is never read
				send(t, a, "GET / HTTP/1.0\r\n\r\n")
				b := dial(t, c, "127.0.0.1:8080") // its request waits in the origin's accept queue
				send(t, b, "GET /p HTTP/1.0\r\n\r\n")
				eventually(t, "a waiting origin connection", func() bool {
					return readable(t, fd) && readable(t, int(a.Fd()))
				})
				if r := rest(t, c); r.RecvQ != 0 || r.SendQ != 0 {
					t.Errorf("before the accept: %+v, want empty queues", r)
				}
				up, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
				if err != nil {
					t.Fatal(err)
				}
				eventually(t, "a request at the origin", func() bool { return readable(t, up) })
				if r := rest(t, c); r.RecvQ != 0 || r.SendQ != 0 {
					t.Errorf("after the accept: %+v, want empty queues", r)
				}
				unix.Close(up)
				stop(t, s)
			})
		})
	}
}

// A glance behind a doze says whether the server has slept since, however briefly it ran and however still it is now.
func TestGlanceGoesOnFromADoze(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		s := start(t, c, "server { listen 127.0.0.1:8080; return 200 hello; }")
		g := c.(interface {
			Doze(context.Context) (engine.Rest, error)
			Glance(context.Context) (engine.Rest, error)
		})
		asleep := func(look func(context.Context) (engine.Rest, error)) bool {
			r, err := look(t.Context())
			if err != nil || !r.Alive {
				t.Fatalf("a look at the server: %+v, %v", r, err)
			}
			return r.Asleep
		}
		eventually(t, "sleep", func() bool { return asleep(g.Doze) && asleep(g.Glance) })
		eventually(t, "a doze", func() bool { return asleep(g.Doze) })
		get(t, c, "127.0.0.1:8080", "/")
		for range 100 { // Asleep looks at the threads alone, and leaves the doze as it is
			if a, err := c.(interface {
				Asleep(context.Context) (bool, error)
			}).Asleep(t.Context()); err != nil {
				t.Fatal(err)
			} else if a {
				break
			}
		}
		if asleep(g.Glance) {
			t.Error("the server has answered between doze and glance, and is said to have slept")
		}
		eventually(t, "sleep again", func() bool { return asleep(g.Doze) && asleep(g.Glance) })
		stop(t, s)
	})
}

// Bytes that the server leaves unread are seen.
func TestUnreadBytesAreSeen(t *testing.T) {
	eachProber(t, func(t *testing.T, c engine.Cell) {
		s := start(t, c, `server { listen 127.0.0.1:8080; client_max_body_size 0; location / {
			proxy_request_buffering off; proxy_pass http://127.0.0.1:9001; } }`)
		fd, err := c.Listen(t.Context(), "127.0.0.1:9001") // takes nothing off its queue
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		f := dial(t, c, "127.0.0.1:8080")
		send(t, f, "POST / HTTP/1.0\r\nContent-Length: 100000000\r\n\r\n")
		fill(t, f)
		eventually(t, "unread bytes at the server", func() bool { return rest(t, c).RecvQ > 0 })
		f.Close()
		stop(t, s)
	})
}

// A client's half-close is no byte to read.
func TestHalfCloseIsNoByte(t *testing.T) {
	eachProber(t, func(t *testing.T, c engine.Cell) {
		s := start(t, c, "server { listen 127.0.0.1:8080; location / { proxy_ignore_client_abort on; proxy_pass http://127.0.0.1:9001; } }")
		fd, err := c.Listen(t.Context(), "127.0.0.1:9001")
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		f := dial(t, c, "127.0.0.1:8080")
		send(t, f, "GET / HTTP/1.0\r\n\r\n")
		if err := unix.Shutdown(int(f.Fd()), unix.SHUT_WR); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a request at the origin", func() bool { return readable(t, fd) })
		eventually(t, "rest with empty queues", func() bool { r := rest(t, c); return r.RecvQ == 0 && r.SendQ == 0 })
		stop(t, s)
	})
}

// A connection that was not accepted is not at rest, though the worker sleeps.
func TestWaitingConnectionsAreSeen(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:8080", "unix:/cell/s.sock"} {
		t.Run(strings.ReplaceAll(addr, "/", "_"), func(t *testing.T) {
			eachProber(t, func(t *testing.T, c engine.Cell) {
				if err := c.Reset(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				s := start(t, c, "server { listen "+addr+"; return 200 hello; }", addr)
				if _, err := engine.KillTitled(t.Context(), c, "nginx: worker", int(unix.SIGSTOP)); err != nil {
					t.Fatal(err)
				}
				f := dial(t, c, addr)
				eventually(t, "a connection to accept", func() bool { return rest(t, c).RecvQ == 1 })
				if _, err := engine.KillTitled(t.Context(), c, "nginx: worker", int(unix.SIGCONT)); err != nil {
					t.Fatal(err)
				}
				eventually(t, "an empty accept queue", func() bool { return rest(t, c).RecvQ == 0 })
				send(t, f, "GET / HTTP/1.0\r\n\r\n")
				if status, _ := response(t, f); status != 200 {
					t.Errorf("status %d, want 200", status)
				}
				stop(t, s)
			})
		})
	}
}

// fill writes until nothing more fits.
func fill(t *testing.T, f *os.File) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	quiet := 0
	err = raw.Write(func(fd uintptr) bool {
		for quiet < 20 {
			if _, err := unix.Write(int(fd), chunk); err == unix.EAGAIN {
				quiet++
				unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(10*time.Millisecond/time.Millisecond))
			} else if err != nil {
				t.Errorf("write: %v", err)
				return true
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
}

func readable(t *testing.T, fd int) bool {
	t.Helper()
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	if err != nil && err != unix.EINTR {
		t.Fatal(err)
	}
	return n > 0
}

// A server that is frozen reads nothing, and goes on with what has come meanwhile.
func TestFrozenServerReadsNothing(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		s := start(t, c, "server { listen 127.0.0.1:8080; location / { return 200 hello; } }")
		f := dial(t, c, "127.0.0.1:8080")
		eventually(t, "rest", func() bool { return rest(t, c).Asleep })
		if err := engine.Freeze(c, true); err != nil {
			t.Fatal(err)
		}
		for _, title := range []string{"nginx: master", "nginx: worker"} {
			pid, err := engine.KillTitled(t.Context(), c, title, 0)
			if err != nil {
				t.Fatal(err)
			}
			stat, err := engine.ReadProc(c, strconv.Itoa(pid)+"/stat")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(stat, []byte(") T ")) {
				t.Errorf("%s: %s, want state T (stopped)", title, stat)
			}
		}
		send(t, f, "GET / HTTP/1.0\r\n\r\n")
		if q := rest(t, c).RecvQ; q == 0 {
			t.Error("a frozen server has read what was sent")
		}
		if err := engine.Freeze(c, false); err != nil {
			t.Fatal(err)
		}
		eventually(t, "an answer", func() bool { return readable(t, int(f.Fd())) })
		stop(t, s)
	})
}
