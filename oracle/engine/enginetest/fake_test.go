package enginetest

import (
	"errors"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"

	"nginxoracle/oracle/engine"
)

func TestFake(t *testing.T) {
	ctx := t.Context()
	c := &Cell{Serve: func(addr string, conn io.ReadWriteCloser) {
		b := make([]byte, 4)
		if _, err := io.ReadFull(conn, b); err == nil {
			_, _ = io.WriteString(conn, addr+" "+string(b))
		}
	}}
	if _, err := c.Dial(ctx, "a:1", 1); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial without a server: %v, want ECONNREFUSED", err)
	}
	if err := c.Reset(ctx, []engine.File{{Path: "nginx.conf"}}); err != nil {
		t.Fatal(err)
	}
	s, err := c.Start(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reset(ctx, nil); err == nil {
		t.Error("reset under a running server succeeded")
	}
	fds, err := c.Dial(ctx, "a:1", 1)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "client")
	defer f.Close()
	for { // until the server waits for its request
		r, err := c.Probe(ctx)
		if err != nil || !r.Alive || r.FDs != 1 {
			t.Fatalf("probe: %+v, %v, want one connection", r, err)
		}
		if r.Asleep {
			break
		}
	}
	if _, err := f.WriteString("ping"); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); err != nil || string(b) != "a:1 ping" {
		t.Errorf("answer %q, %v, want a:1 ping", b, err)
	}
	if err := c.Do(ctx, "write", []string{"x"}, []byte("y")); err != nil {
		t.Fatal(err)
	}
	if files, err := c.Tree(ctx); err != nil || len(files) != 2 || string(files[1].Data) != "y" {
		t.Errorf("tree %+v, %v, want nginx.conf and x", files, err)
	}
	if e, _, err := s.Stop(ctx); err != nil || !e.Exited {
		t.Errorf("stop: %+v, %v", e, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if !slices.Contains(c.Calls, "Dial a:1") || !slices.Contains(c.Calls, "Stop") {
		t.Errorf("calls %q lack some", c.Calls)
	}
}

func TestFakeFails(t *testing.T) {
	c := &Cell{Fail: map[string]error{"Start": engine.ErrCellGone}, OnStart: engine.Exit{Exited: true, Code: 1}}
	if _, err := c.Start(t.Context(), nil); !errors.Is(err, engine.ErrCellGone) {
		t.Errorf("start: %v, want what it was told to fail with", err)
	}
	c.Fail = nil
	s, err := c.Start(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := s.Wait(t.Context(), 0); err != nil || e.Code != 1 {
		t.Errorf("wait: %+v, %v, want code 1", e, err)
	}
	if r, err := c.Probe(t.Context()); err != nil || r.Alive {
		t.Errorf("probe: %+v, %v, want it not alive", r, err)
	}
}
