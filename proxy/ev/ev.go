// Package ev is the event loop: epoll, timers, posted events and the table of
// connections, behind a seam (Sys) that evsim implements with virtual sockets
// and a virtual clock. All of the proxy's system calls are made here.
// (nginx: src/event/ngx_event.c, modules/ngx_epoll_module.c, core/ngx_connection.c)
package ev

import "nginxoracle/proxy/elog"

// Sys is the seam between the loop and the kernel. Errors are syscall.Errno.
type Sys interface {
	Read(fd int, p []byte) (int, error)
	Peek(fd int, p []byte) (int, error) // what Read would give, and leaves it there
	Write(fd int, p []byte) (int, error)
	Writev(fd int, iov [][]byte) (int, error)
	Sendfile(out, in int, off *int64, n int) (int, error)
	Accept(fd int) (nfd int, peer Addr, err error) // non-blocking, close-on-exec
	Socket(a Addr) (fd int, err error)             // non-blocking, close-on-exec
	Connect(fd int, a Addr) error                  // EINPROGRESS is the usual answer
	Bind(fd int, a Addr) error
	SockError(fd int) error // SO_ERROR
	SetInt(fd, level, opt, v int) error
	LingerReset(fd int) error // SO_LINGER of 0 seconds: the close is a reset
	Shutdown(fd, how int) error
	Close(fd int) error
	LocalAddr(fd int) (Addr, error)

	Listen(fd, backlog int) error
	GetInt(fd, level, opt int) (int, error)

	EpollAdd(fd int, slot, gen uint32, mode Mode) error
	EpollDel(fd int) error
	EpollWait(evs []Ready, timeoutMs int) (int, error) // -1 = for ever; Wake interrupts it
	Wake()                                             // from any goroutine (eventfd)

	Now() (sec int64, msec int) // wall clock, as ngx_time_update
	Mono() int64                // monotonic milliseconds, for timers (ngx_current_msec)
}

// Mode is how a descriptor is watched.
type Mode int

const (
	Both            Mode = iota // a connection: reading, writing and RDHUP, edge-triggered
	Accept                      // a listening socket: reading, level-triggered
	AcceptExclusive             // the same, waking one of the workers that watch it
)

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
	Ahead   bool // may be read before its handler is called (Loop.Ahead)

	Ready  bool
	Active bool
	EOF    bool // the end of the stream has been read
	// PendingEOF: the peer has closed its side (RDHUP); what is left can still be read.
	PendingEOF bool
	// Cancelable timers do not keep a worker that is shutting down.
	Cancelable bool
	Error      bool
	// Unwatched: nginx has not yet asked the kernel about a connection of a deferred accept, and knows
	// nothing of it but what it reads (ngx_handle_read_event).
	Unwatched bool
	Asked     bool // nginx has asked the kernel about writing
	TimedOut  bool
	Delayed   bool
	TimerSet  bool
	Posted    bool

	timerKey   int64 // monotonic ms
	timerSeq   uint64
	heapIdx    int
	drained    bool // nothing more to read until the kernel reports
	deferred   bool // of a deferred accept: a byte is known to wait, no more
	accept     bool // of a listening socket
	queue      *queue
	prev, next *Event
}

// Watch says that nginx asks the kernel for the event from here on, where it is not ready.
func (e *Event) Watch() {
	if !e.Ready {
		e.Unwatched = false
	}
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

// LogError says how grave a fault of a connection is (NGX_ERROR_*).
type LogError int8

const (
	ErrorAlert LogError = iota
	ErrorErr
	ErrorInfo
	ErrorIgnoreReset // ECONNRESET is no fault
)

// Conn is a connection: a descriptor, its two events, and its place in the table.
// Its identity in epoll is slot and generation, never the descriptor.
type Conn struct {
	FD    int // -1 = closed
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
	PeerText string // without the port; lives as long as the connection
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
	LogError                                 LogError

	slot, gen            uint32
	next                 *Conn // free list
	reusePrev, reuseNext *Conn
	log                  elog.Log
	text                 [64]byte
	bound                bool // Local is known
	ahead                bool // aheadN and aheadErr are what the next read gives
	aheadN               int
	aheadErr             error
}

// Values of TCPNodelay and TCPNopush (ngx_connection.h).
const (
	TCPUnset = iota
	TCPSet
	TCPDisabled
)

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

	Wildcard bool // the local address of a connection has to be asked for
	Deferred bool // TCP_DEFER_ACCEPT: there is something to read at once

	conn *Conn
}
