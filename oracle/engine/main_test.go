package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/reference"
)

func TestMain(m *testing.M) {
	engine.Agent()
	if os.Args[0] == "/usr/sbin/nginx" {
		hostile(os.Args[1])
	}
	if kind := os.Getenv("ENGINE_TEST_HOLD"); kind != "" {
		os.Exit(hold(kind))
	}
	os.Exit(m.Run())
}

// deadline bounds a wait for something that must come; a test fails by it, never passes.
const deadline = 20 * time.Second

// eachKind runs f as a subtest in both kinds of cell. A kind that this machine
// does not have is skipped, with the reason.
func eachKind(t *testing.T, o engine.Options, f func(t *testing.T, c engine.Cell)) {
	t.Helper()
	for _, kind := range []string{engine.Local, engine.Container} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f(t, open(t, kind, o))
		})
	}
}

func open(t *testing.T, kind string, o engine.Options) engine.Cell {
	t.Helper()
	p, err := reference.Resolve(t.Context(), "nginx", "nginx", kind, func(s string) { t.Log(s) })
	if errors.Is(err, reference.ErrNoContainers) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Reference.TreeBytes = o.TreeBytes
	c, err := engine.Open(context.Background(), p.Reference)
	if errors.Is(err, engine.ErrNotStatic) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

var serve = []string{"-p", "/cell/", "-c", "/cell/nginx.conf", "-e", "stderr", "-g", "daemon off;"}

// start starts nginx with http as the body of its http block.
func start(t *testing.T, c engine.Cell, http string, wait ...string) engine.Server {
	t.Helper()
	conf := "error_log stderr info; events {} http { access_log off; " + http + " }"
	if err := c.Reset(t.Context(), []engine.File{{Path: "nginx.conf", Data: []byte(conf)}}); err != nil {
		t.Fatal(err)
	}
	if wait == nil {
		wait = []string{"127.0.0.1:8080"}
	}
	s, err := c.Start(t.Context(), wait, serve...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, _, err := s.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	if e, err := s.Wait(t.Context(), 0); err != nil || e.Exited {
		text, _ := s.Stderr(t.Context())
		t.Fatalf("the server did not start: %+v, %v:\n%s", e, err, text)
	}
	return s
}

// stop stops s and checks that it ended well.
func stop(t *testing.T, s engine.Server) {
	t.Helper()
	e, left, err := s.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if e != (engine.Exit{Exited: true}) || len(left) > 0 {
		t.Errorf("the server ended as %+v and left %q, want code 0 and nothing", e, left)
	}
}

// dial connects to addr; the file's deadline is set.
func dial(t *testing.T, c engine.Cell, addr string) *os.File {
	t.Helper()
	fds, err := c.Dial(t.Context(), addr, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), addr)
	t.Cleanup(func() { f.Close() })
	if err := f.SetDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	return f
}

func send(t *testing.T, f *os.File, s string) {
	t.Helper()
	if _, err := io.WriteString(f, s); err != nil {
		t.Fatal(err)
	}
}

// get asks for uri over a new connection.
func get(t *testing.T, c engine.Cell, addr, uri string) (status int, body string) {
	t.Helper()
	f := dial(t, c, addr)
	defer f.Close()
	send(t, f, "GET "+uri+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	return response(t, f)
}

func response(t *testing.T, f *os.File) (status int, body string) {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(f), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// eventually waits until f says so; what names it.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !f(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, deadline)
		}
		unix.Poll(nil, 1) // leaves the processor to whom we wait for
	}
}

// rest waits until the server is at rest.
func rest(t *testing.T, c engine.Cell) engine.Rest {
	t.Helper()
	var r engine.Rest
	eventually(t, "rest", func() bool {
		var err error
		if r, err = c.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r.Asleep
	})
	return r
}

func says(t *testing.T, s engine.Server, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q on standard error", text), func() bool {
		b, err := s.Stderr(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(b, []byte(text))
	})
}
