// Package engine starts and stops one configuration in a cell: a closed place
// with only a loopback interface and a private work tree at /cell, identical
// from inside for every target. Two kinds of cell (container, local) speak one
// protocol to an agent, which is the oracle's own binary run as process 1.
package engine

import (
	"context"
	"time"
)

// Target says which server a cell runs.
type Target struct {
	Name string // "nginx", "proxy", "nginx:1.22", or a path; as shown to people
	// Root is the folder that holds the server's file system ("" = this machine's own);
	// Argv0 the server's path inside the cell.
	Root  string
	Argv0 string
	Image string // container cells: the image
}

// Info is what a cell knows of its target; it goes into every observation.
type Info struct {
	Target  string
	Kind    string // "local" or "container"
	Version string // first line of -v
	V       string // -V, whole
	SHA256  string // of the server's binary
}

// File is one entry written into /cell before a start.
type File struct {
	Path  string // relative to /cell
	Data  []byte
	Mode  uint32
	MTime int64 // unix seconds
	Link  string
	Dir   bool
}

// Exit is how a process ended.
type Exit struct {
	Exited bool // false: still running
	Code   int
	Signal int // killed by it, 0 = none
	Core   bool
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
	Command(ctx context.Context, args ...string) (Output, error)
	// Start starts the server in the foreground and returns when it accepts connections
	// on all of wait, or has exited, whichever is first.
	Start(ctx context.Context, wait []string, args ...string) (Server, error)
	// Dial opens n connections inside the cell, in one round trip, and returns their descriptors
	// (non-blocking, close-on-exec, owned by the caller). addr is host:port or unix:PATH.
	Dial(ctx context.Context, addr string, n int) ([]int, error)
	// Listen opens a listening socket inside the cell.
	Listen(ctx context.Context, addr string) (int, error)
	// Tree reads what /cell holds now, files' contents included.
	Tree(ctx context.Context) ([]File, error)
	// Do carries out one change of the work tree (write, remove, rename, chmod, as in the case format).
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
// a timer when every thread of every server process sleeps in epoll_wait (or its
// like) and none of its sockets has bytes to read or unacknowledged bytes to send.
type Rest struct {
	Asleep bool // all threads of all server processes sleep
	RecvQ  int  // bytes the server has not read yet, over all its sockets
	SendQ  int  // bytes not yet acknowledged by the peer
	Alive  bool // the main process is alive
	FDs    int  // open descriptors over all server processes
	Procs  int
}
