// Package enginetest has a cell without processes, namespaces or an nginx, for
// unit tests of what stands on cells. Its server is a function that is handed one
// end of every connection; everything it is told to fail at, it fails at.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine"
)

// Cell is a fake engine.Cell. The zero value has a server that accepts everywhere
// and closes every connection at once.
type Cell struct {
	Target engine.Info
	// Serve plays the server on one connection; addr is what was dialed.
	Serve func(addr string, c io.ReadWriteCloser)
	// OnCommand answers Command; nil: exit code 0 and no output.
	OnCommand func(args []string) engine.Output
	// OnStart is how the started server ends at once; the zero value: it runs.
	OnStart engine.Exit
	// Said is what the server writes to standard error.
	Said string
	// OnStop is how a running server ends when it is stopped, and what it leaves behind.
	OnStop engine.Exit
	Left   []string
	// Fail is the error of a method, by its name ("Reset", "Start", "Dial", …): the rig is broken there.
	Fail map[string]error
	// Calls are the methods called so far, with their main argument.
	Calls []string

	files   []engine.File
	running *Server
	serving sync.WaitGroup
	reading atomic.Int64 // connections on which the server waits for bytes
	open    atomic.Int64 // connections that the server has
}

var _ engine.Cell = (*Cell)(nil)

func (c *Cell) call(name, what string) error {
	c.Calls = append(c.Calls, strings.TrimSpace(name+" "+what))
	if err := c.Fail[name]; err != nil {
		return fmt.Errorf("fake cell: %w", err)
	}
	return nil
}

func (c *Cell) Info() engine.Info { return c.Target }

func (c *Cell) Reset(_ context.Context, files []engine.File) error {
	if err := c.call("Reset", fmt.Sprint(len(files))); err != nil {
		return err
	}
	if c.running != nil {
		return errors.New("fake cell: reset: a server is still running")
	}
	c.files = slices.Clone(files)
	return nil
}

func (c *Cell) Command(_ context.Context, args ...string) (engine.Output, error) {
	if err := c.call("Command", strings.Join(args, " ")); err != nil {
		return engine.Output{}, err
	}
	if c.OnCommand == nil {
		return engine.Output{Exit: engine.Exit{Exited: true}}, nil
	}
	return c.OnCommand(args), nil
}

func (c *Cell) Start(_ context.Context, wait []string, args ...string) (engine.Server, error) {
	if err := c.call("Start", strings.Join(wait, " ")); err != nil {
		return nil, err
	}
	s := &Server{cell: c, exit: c.OnStart}
	if !s.exit.Exited {
		c.running = s
	}
	return s, nil
}

// Dial makes socket pairs; the server's ends go to Serve.
func (c *Cell) Dial(_ context.Context, addr string, n int) ([]int, error) {
	if err := c.call("Dial", addr); err != nil {
		return nil, err
	}
	if c.running == nil {
		return nil, fmt.Errorf("fake cell: dial %s: %w", addr, syscall.ECONNREFUSED)
	}
	var fds []int
	for range n {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return fds, fmt.Errorf("fake cell: socketpair: %w", err)
		}
		fds = append(fds, pair[0])
		c.open.Add(1)
		end := &conn{cell: c, f: os.NewFile(uintptr(pair[1]), addr)}
		c.serving.Go(func() {
			defer end.Close()
			if c.Serve != nil {
				c.Serve(addr, end)
			}
		})
	}
	return fds, nil
}

// Listen opens a real socket on this machine's loopback at a free port: nothing
// of the fake calls there unless the test does.
func (c *Cell) Listen(_ context.Context, addr string) (int, error) {
	if err := c.call("Listen", addr); err != nil {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("fake cell: socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("fake cell: bind: %w", err)
	}
	return fd, unix.Listen(fd, 16)
}

func (c *Cell) Tree(context.Context) ([]engine.File, error) {
	if err := c.call("Tree", ""); err != nil {
		return nil, err
	}
	return slices.Clone(c.files), nil
}

// Do carries out write and remove; the other changes are only noted in Calls.
func (c *Cell) Do(_ context.Context, op string, args []string, data []byte) error {
	if err := c.call("Do", op+" "+strings.Join(args, " ")); err != nil {
		return err
	}
	if len(args) > 0 && (op == "write" || op == "remove") {
		c.files = slices.DeleteFunc(c.files, func(f engine.File) bool { return f.Path == args[0] })
	}
	if len(args) > 0 && op == "write" {
		c.files = append(c.files, engine.File{Path: args[0], Data: data, Mode: 0o644, Size: int64(len(data))})
	}
	return nil
}

// Probe finds the server at rest when it waits for bytes on every connection it has.
func (c *Cell) Probe(context.Context) (engine.Rest, error) {
	if err := c.Fail["Probe"]; err != nil { // not noted: it is called as often as it takes
		return engine.Rest{}, fmt.Errorf("fake cell: %w", err)
	}
	r := engine.Rest{Alive: c.running != nil, FDs: int(c.open.Load()), Asleep: c.reading.Load() == c.open.Load()}
	if r.Alive {
		r.Procs = 1
	}
	return r, nil
}

// Close waits for the end of all of Serve.
func (c *Cell) Close() error {
	c.serving.Wait()
	return c.call("Close", "")
}

// Server is a started fake.
type Server struct {
	cell    *Cell
	exit    engine.Exit
	Signals []int
}

func (s *Server) Pid() int { return 7 }

func (s *Server) Signal(_ context.Context, sig int) error {
	s.Signals = append(s.Signals, sig)
	return s.cell.call("Signal", fmt.Sprint(sig))
}

func (s *Server) Wait(context.Context, time.Duration) (engine.Exit, error) {
	return s.exit, s.cell.call("Wait", "")
}

func (s *Server) Stderr(context.Context) ([]byte, error) {
	return []byte(s.cell.Said), s.cell.call("Stderr", "")
}

func (s *Server) Stop(context.Context) (engine.Exit, []string, error) {
	if err := s.cell.call("Stop", ""); err != nil {
		return engine.Exit{}, nil, err
	}
	if !s.exit.Exited {
		s.exit = s.cell.OnStop
		s.exit.Exited = true
	}
	s.cell.running = nil
	return s.exit, s.cell.Left, nil
}

// conn counts where the server waits for bytes.
type conn struct {
	cell *Cell
	f    *os.File
	once sync.Once
}

func (c *conn) Read(p []byte) (int, error) {
	c.cell.reading.Add(1)
	defer c.cell.reading.Add(-1)
	return c.f.Read(p)
}

func (c *conn) Write(p []byte) (int, error) { return c.f.Write(p) }

func (c *conn) Close() error {
	c.once.Do(func() { c.cell.open.Add(-1) })
	return c.f.Close()
}
