package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/reference"
)

// hostile is a server that does wrong what its first argument says; the test
// binary itself is the target then.
func hostile(what string) {
	switch what {
	case "-V":
		fmt.Fprintln(os.Stderr, "nginx version: hostile/1.0")
		os.Exit(0)
	case "flood":
		line := bytes.Repeat([]byte("x"), 64<<10)
		for {
			if _, err := os.Stderr.Write(line); err != nil {
				spin()
			}
		}
	case "children":
		child := &exec.Cmd{Path: "/proc/self/exe", Args: []string{os.Args[0], "spin"}}
		if err := child.Start(); err != nil {
			panic(err)
		}
		os.Exit(3)
	case "spin":
		signal.Ignore(syscall.SIGQUIT, syscall.SIGTERM)
	}
	spin()
}

func spin() {
	for {
	}
}

// openHostile opens a cell whose target is the test binary.
func openHostile(t *testing.T, kind string) engine.Cell {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := reference.Resolve(t.Context(), "nginx", "nginx", kind, nil)
	if errors.Is(err, reference.ErrNoContainers) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := p.Reference
	o.Target.Name, o.Target.Binary = "hostile", self
	o.StartLimit, o.CommandLimit = 300*time.Millisecond, 300*time.Millisecond
	c, err := engine.Open(context.Background(), o)
	if errors.Is(err, engine.ErrNotStatic) || err != nil && strings.Contains(err.Error(), "exec /usr/sbin/nginx") {
		t.Skipf("the test binary is not static: %v", err)
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

func eachHostile(t *testing.T, f func(t *testing.T, c engine.Cell)) {
	for _, kind := range []string{engine.Local, engine.Container} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f(t, openHostile(t, kind))
		})
	}
}

// A target that never comes up is a finding, with a server to stop; the cell lives on.
func TestTargetHangs(t *testing.T) {
	eachHostile(t, func(t *testing.T, c engine.Cell) {
		s, err := c.Start(t.Context(), []string{"127.0.0.1:8080"}, "spin")
		if !errors.Is(err, engine.ErrNotReady) || s == nil || !strings.Contains(err.Error(), "runs") {
			t.Fatalf("start: %v, %v, want a server that is not ready, and what it does", s, err)
		}
		if e, left, err := s.Stop(t.Context()); err != nil || e.Signal != int(syscall.SIGKILL) || len(left) > 0 {
			t.Errorf("stop: %+v, left %q, %v, want it killed", e, left, err)
		}
		out, err := c.Command(t.Context(), "spin")
		if err != nil || out.Exit != (engine.Exit{}) {
			t.Errorf("command: %+v, %v, want that it did not end", out.Exit, err)
		}
		if err := c.Reset(t.Context(), nil); err != nil {
			t.Errorf("the cell after it: %v", err)
		}
	})
}

// A target that floods its output fills a bounded file and nothing else.
func TestTargetFloods(t *testing.T) {
	eachHostile(t, func(t *testing.T, c engine.Cell) {
		for range 3 { // what was filled is free again
			s, err := c.Start(t.Context(), nil, "flood")
			if !errors.Is(err, engine.ErrNotReady) {
				t.Fatalf("start: %v, want that it is not ready", err)
			}
			if _, _, err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			b, err := s.Stderr(t.Context())
			if err != nil || len(b) < 1<<20 || len(b) > 16<<20 {
				t.Errorf("standard error has %d bytes, %v, want some, and at most 16 MiB", len(b), err)
			}
		}
	})
}

// Children that outlive their server are named and ended.
func TestTargetLeavesChildren(t *testing.T) {
	eachHostile(t, func(t *testing.T, c engine.Cell) {
		s, err := c.Start(t.Context(), nil, "children")
		if err != nil {
			t.Fatal(err)
		}
		e, left, err := s.Stop(t.Context())
		if err != nil || e != (engine.Exit{Exited: true, Code: 3}) || len(left) != 1 || left[0] != "/usr/sbin/nginx spin" {
			t.Errorf("stop: %+v, left %q, %v, want code 3 and the child", e, left, err)
		}
		if r, err := c.Probe(t.Context()); err != nil || r.Procs != 0 {
			t.Errorf("probe: %+v, %v, want no process", r, err)
		}
	})
}

// An agent that is gone is a broken rig: every call says so at once.
func TestAgentIsKilled(t *testing.T) {
	for _, kind := range []string{engine.Local, engine.Container} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := openHostile(t, kind)
			engine.KillAgent(c)
			if err := c.Reset(t.Context(), nil); !errors.Is(err, engine.ErrCellGone) {
				t.Errorf("reset: %v, want that the cell is gone", err)
			}
		})
	}
}

// An ended context ends a call that the target holds up.
func TestContextEndsCall(t *testing.T) {
	eachHostile(t, func(t *testing.T, c engine.Cell) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Command(ctx, "spin"); !errors.Is(err, context.Canceled) {
			t.Errorf("command: %v, want that it was cancelled", err)
		}
	})
}
