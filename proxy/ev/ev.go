// Package ev is the event loop: epoll, timers, posted events and the table of
// connections, behind a seam (Sys) that evsim implements with virtual sockets
// and a virtual clock. All of the proxy's system calls are made here.
// (nginx: src/event/ngx_event.c, modules/ngx_epoll_module.c, core/ngx_connection.c)
package ev

import "nginxoracle/proxy/elog"

// Sys is the seam between the loop and the kernel. Errors are syscall.Errno.
type Sys interface {
	Read(fd int, p []byte) (int, error)
	Write(fd int, p []byte) (int, error)
	Writev(fd int, iov [][]byte) (int, error)
	Sendfile(out, in int, off *int64, n int) (int, error)
	Accept(fd int) (nfd int, peer Addr, err error) // non-blocking, close-on-exec
	Socket(a Addr) (fd int, err error)             // non-blocking, close-on-exec
	Connect(fd int, a Addr) error                  // EINPROGRESS is the usual answer
	Bind(fd int, a Addr) error
	SockError(fd int) error // SO_ERROR
	SetInt(fd, level, opt, v int) error
	Shutdown(fd, how int) error
	Close(fd int) error
	LocalAddr(fd int) (Addr, error)

	EpollAdd(fd int, slot, gen uint32, read, write bool) error // edge-triggered, EPOLLRDHUP
	EpollDel(fd int) error
	EpollWait(evs []Ready, timeoutMs int) (int, error) // -1 = for ever; Wake interrupts it
	Wake()                                             // from any goroutine (eventfd)

	Now() (sec int64, msec int) // wall clock, as ngx_time_update
	Mono() int64                // monotonic milliseconds, for timers (ngx_current_msec)
}

// Ready is one reported descriptor.
type Ready struct {
	Slot, Gen         uint32
	Read, Write       bool
	Hup, Error, RdHup bool
}

// Addr is a socket address; Text is as nginx prints it ("127.0.0.1:80", "unix:/path", "[::1]:80").
type Addr struct {
	Family int // AF_INET, AF_INET6, AF_UNIX
	IP     [16]byte
	Port   int
	Path   string
}

// Event is one direction of a connection, or a timer or posted event on its own
// (ngx_event_t).
type Event struct {
	Handler func(*Event)
	Data    any // owner's
	Conn    *Conn
	Write   bool

	Ready    bool
	Active   bool
	EOF      bool // RDHUP/EOF seen pending
	Error    bool
	TimedOut bool
	Delayed  bool
	TimerSet bool
	Posted   bool

	timerKey int64 // monotonic ms
	heapIdx  int
}

// Rc of reads and writes, as in nginx.
const (
	OK       = 0
	Err      = -1
	Again    = -2
	Busy     = -3
	Done     = -4
	Declined = -5
	Abort    = -6
)

// IO is the layer through which bytes reach a connection; the plain socket is one,
// TLS will be another.
type IO interface {
	// Recv returns n > 0, 0 at the end of the stream, Again, or Err (errno is then in c.Errno).
	Recv(c *Conn, p []byte) int
	// Send returns n > 0, Again, or Err.
	Send(c *Conn, p []byte) int
	// Writev sends the pieces with one system call; same results as Send.
	Writev(c *Conn, iov [][]byte) int
	// Sendfile sends n bytes of file from *off on; not every layer can (ok false).
	Sendfile(c *Conn, file int, off *int64, n int) (sent int, ok bool)
}

// Conn is a connection: a descriptor, its two events, and its place in the table.
// Its identity in epoll is slot and generation, never the descriptor.
type Conn struct {
	FD    int
	Read  Event
	Write Event
	Data  any // the owner's: *http.Connection, *http.Request, *upstream.Upstream
	IO    IO
	Loop  *Loop
	Log   *elog.Log
	Errno error // of the last Err

	Number   uint64 // ngx_connection_t.number, for "*N" in logs
	Peer     Addr
	Local    Addr
	PeerText string // without the port
	Listener *Listener
	Sent     int64
	Requests int
	StartMs  int64 // Mono at accept

	Idle, Reusable, Close, Destroyed, Shared bool
	Buffered                                 int // bits: bytes wait in a filter or in the layer
	TCPNodelay, TCPNopush                    int8
	SendLowat                                bool
	Error                                    bool
	NeedLastBuf, NeedFlushBuf                bool

	slot, gen uint32
	next      *Conn
}

// Listener is a listening socket.
type Listener struct {
	FD      int
	Addr    Addr
	Text    string
	Backlog int
	Handler func(*Conn) // a new connection
	Data    any         // http: the addresses and servers of the port
	Log     *elog.Log
	Opts    any
}

// Contract (owner: p1). Loop is one per worker, on a locked thread:
//
//	func NewLoop(sys Sys, connections int, log *elog.Log) *Loop
//	func (l *Loop) Run()                      // until Stop
//	func (l *Loop) Now() (sec int64, msec int) // cached, updated once a turn
//	func (l *Loop) Mono() int64
//	func (l *Loop) NewConn(fd int) *Conn       // nil when worker_connections are not enough (logs nginx's text); registers nothing
//	func (l *Loop) Add(c *Conn) error          // epoll, both directions, once
//	func (l *Loop) CloseConn(c *Conn)          // del timers and posted events, close(fd), free slot (generation++)
//	func (l *Loop) AddTimer(e *Event, ms int64); DelTimer(e *Event)
//	func (l *Loop) Post(e *Event); PostNext(e *Event)
//	func (l *Loop) Call(f func())              // from another goroutine: run f on the loop
//	func (l *Loop) Reusable(c *Conn, on bool)  // the queue of idle connections (ngx_reusable_connection)
//	func (c *Conn) Recv(p []byte) int … Send, Writev, Sendfile: through c.IO
//	files, never through Loop since they do not block for long: ev.Open, Fstat, Stat, Lstat, Pread, Pwrite, WriteFD, CloseFD,
//	Unlink, Mkdir, Rename, ReadDir … thin wrappers of x/sys/unix that retry EINTR.
