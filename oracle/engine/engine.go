// Package engine starts and stops one configuration in a cell: a closed place
// with only a loopback interface and a private work tree at /cell, identical
// from inside for every target. Two kinds of cell (container, local) speak one
// protocol to an agent, which is the oracle's own binary run as process 1.
package engine

import (
	"context"
	"fmt"
	"time"
)

// Target says which server a cell runs.
type Target struct {
	Name string // "nginx", "proxy", "nginx:1.22", or a path; as shown to people
	// Root is the folder whose file system the cell shows, read-only ("" = this machine's own).
	// A candidate is given the reference's Root, so that both see the same files.
	Root string
	// Binary is the server's binary on this machine. Inside every cell it is /usr/sbin/nginx,
	// whatever the target. "" with an Image: the image's own.
	Binary string
	Image  string // container cells: the image
	// Env is added to the server's environment ("NAME=value"): what an instrument built into it needs.
	Env []string
}

// Info is what a cell knows of its target; it goes into every observation.
type Info struct {
	Target  string
	Kind    string // "local" or "container"
	Version string // first line of -v
	V       string // -V, whole
	SHA256  string // of the server's binary
}

// AsideDir is a folder of a cell where a target's instruments write: a debug log, coverage counters.
// Reset empties it, and it is outside of the work tree, so that no configuration serves it.
const AsideDir = "/tmp"

// File is one entry written into /cell before a start.
type File struct {
	Path  string // relative to /cell
	Data  []byte
	Mode  uint32
	MTime int64 // unix seconds
	Link  string
	Dir   bool
	Size  int64 // Tree only; Data is shorter where a tree holds more than 256 MiB (a sparse file)
}

// Exit is how a process ended.
type Exit struct {
	Exited bool // false: still running
	Code   int
	Signal int // killed by it, 0 = none
	Core   bool
}

func (e Exit) String() string {
	switch {
	case !e.Exited:
		return "it did not end"
	case e.Signal != 0:
		return fmt.Sprintf("signal %d", e.Signal)
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Output is one finished command: its exit, stdout and stderr.
type Output struct {
	Exit   Exit
	Stdout []byte
	Stderr []byte
}

// Cell is a place a target runs in. A cell is used by one goroutine at a time,
// is kept alive between cases, and holds at most one running server.
type Cell interface {
	Info() Info
	// Reset empties /cell and writes files; it fails if a server is still running.
	Reset(ctx context.Context, files []File) error
	// Command runs the server's binary with args and waits for its end ("-t", "-T", "-s", "-V").
	// One that does not end within CommandLimit is killed; its Exit is the zero value.
	Command(ctx context.Context, args ...string) (Output, error)
	// Start starts the server with args, which must keep it in the foreground ("daemon off;"), and
	// returns when it accepts connections on all of wait ("IP:PORT", "unix:PATH"), or is at rest without
	// listening there (a case may want a refused connection), or has exited (see Server.Wait).
	// An error that wraps ErrNotReady comes with a Server: it hangs, and must still be stopped.
	Start(ctx context.Context, wait []string, args ...string) (Server, error)
	// Dial opens n connections inside the cell, in one round trip, and returns their descriptors
	// (non-blocking, close-on-exec, owned by the caller). addr is IP:PORT or unix:PATH.
	// A refused connection gives an error that wraps syscall.ECONNREFUSED.
	Dial(ctx context.Context, addr string, n int) ([]int, error)
	// Listen opens a listening socket inside the cell (non-blocking, owned by the caller).
	Listen(ctx context.Context, addr string) (int, error)
	// Tree reads what /cell holds now, files' contents included.
	Tree(ctx context.Context) ([]File, error)
	// Do carries out one change of the work tree: write PATH [MODE], remove PATH, rename PATH PATH,
	// chmod PATH MODE, mkdir PATH.
	Do(ctx context.Context, op string, args []string, data []byte) error
	// Probe tells whether the server is at rest: see Rest.
	Probe(ctx context.Context) (Rest, error)
	Close() error
}

// Server is a started server inside a cell.
type Server interface {
	// Pid is the main process's id as seen inside the cell.
	Pid() int
	// Signal sends a signal to the main process.
	Signal(ctx context.Context, sig int) error
	// Wait waits for the end, up to d.
	Wait(ctx context.Context, d time.Duration) (Exit, error)
	// Stderr is what the server has written to standard error so far.
	Stderr(ctx context.Context) ([]byte, error)
	// Stop ends the server (QUIT or TERM, then KILL) and reports how it ended, and which
	// processes of the cell were left.
	Stop(ctx context.Context) (Exit, []string, error)
}

// Rest is what the kernel says of the server: nothing more will come from it but
// by a timer when every thread of every server process sleeps in epoll_wait (or its
// like) and none of its sockets has bytes to read or bytes that wait to be sent.
// A connection that waits to be accepted counts as one byte. RecvQ and SendQ are 0
// while Asleep is false. Bytes that the peer's kernel has, though it has not
// acknowledged them yet, are not waiting: they can be read there.
type Rest struct {
	Asleep bool // all threads of all server processes sleep, and slept while the queues were read
	RecvQ  int  // bytes the server has not read yet, over all its sockets
	SendQ  int  // bytes the server has written that have not left (the peer does not read)
	Alive  bool // the main process is alive
	FDs    int  // open descriptors over all server processes
	Procs  int
	// Flying counts what the server has sent and nobody has acknowledged yet, and the ends of
	// the oracle's closed connections that have not been: on a busy machine a segment can
	// be on its way through the kernel while everybody sleeps.
	Flying int
	Own    int // bytes and ends that the oracle's sockets have written and nobody has acknowledged
	// Corked counts those of SendQ whose peer has read all that came: no full window holds them back, but
	// the kernel, for a while (TCP_CORK, 200 ms; see nginx's tcp_nopush).
	Corked int
	// Timer is the shortest time in milliseconds after which a sleeping thread wakes by
	// itself, as it was when the thread fell asleep; -1 when none has a timer.
	Timer int
}
