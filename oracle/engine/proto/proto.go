// Package proto is what the oracle and the agent inside a cell say to each
// other: one request, one answer, over a Unix stream socket; descriptors travel
// beside the answers (SCM_RIGHTS).
package proto

import "time"

// Op names a request.
type Op string

const (
	OpHello   Op = "hello"   // -> Handles
	OpReset   Op = "reset"   // Files
	OpTree    Op = "tree"    // -> Files, Kept
	OpDo      Op = "do"      // Name, Args, Data
	OpCommand Op = "command" // Args, Limit -> Exit, Stdout, Stderr
	OpStart   Op = "start"   // Args, Wait, Limit -> Pid, Ready, Exit; descriptor of stderr's file
	OpSignal  Op = "signal"  // N
	OpWait    Op = "wait"    // Limit -> Exit
	OpStop    Op = "stop"    // -> Exit, Left
	OpSockets Op = "sockets" // Name (tcp4, tcp6), N -> descriptors, unconnected
	OpDial    Op = "dial"    // Addr (unix:), N -> descriptors, connected
	OpListen  Op = "listen"  // Addr (unix:) -> descriptor
	OpProbe   Op = "probe"   // Mine -> Probe
	OpFreeze  Op = "freeze"  // N: 1 = every process of the server stops, 0 = goes on
	OpKill    Op = "kill"    // Args[0] a process title's prefix, N the signal: for tests and fault injection
)

// Request is a question to the agent. Unused fields stay zero.
type Request struct {
	Op    Op
	Name  string
	Addr  string
	Args  []string
	Wait  []string
	Data  []byte
	Files []File
	N     int
	Pid   int
	Limit time.Duration
	Mine  []uint32 // inodes of Unix sockets that belong to the oracle
}

// Answer is the agent's reply. Err is empty on success; then FDs descriptors
// travel with it.
type Answer struct {
	Err    string
	Errno  int // of Err, when a system call failed
	FDs    int
	Pid    int
	Ready  bool
	Stuck  string // what a server does that neither listens nor rests nor exits
	Exit   Exit
	Stdout []byte
	Stderr []byte
	Left   []string
	Files  []File
	Kept   []int // those of Files, by index, that are as the last Reset wrote them: they come without their Data
	Probe  Probe
	SHA256 string
}

// File mirrors engine.File.
type File struct {
	Path  string
	Data  []byte
	Mode  uint32
	MTime int64
	Link  string
	Dir   bool
	Size  int64 // Tree only: the size, also when Data is cut
}

// Exit mirrors engine.Exit.
type Exit struct {
	Exited bool
	Code   int
	Signal int
	Core   bool
}

// Probe mirrors engine.Rest.
type Probe struct {
	Asleep bool
	RecvQ  int
	SendQ  int
	Alive  bool
	FDs    int
	Procs  int
	Flying int
	Own    int
	Corked int
	Timer  int
}

// Spec tells an agent what to build. It travels as JSON in the agent's argument.
type Spec struct {
	Kind       string   // "local" or "container"
	Socket     string   // container: the Unix socket to connect to; local: descriptor 3 is used
	Mountpoint string   // local: an empty folder on which the root is assembled
	Root       string   // local: the folder whose file system the cell shows read-only ("/" = the machine's own)
	Binary     string   // local: the server's binary on the host, shown as Server
	Env        []string // added to the server's environment
	Server     string   // path of the server inside the cell
	TreeBytes  int64    // bound of /cell, in bytes
	Euid       int      // the user the server runs as
	Egid       int
}

// Inside a cell.
const (
	ServerPath = "/usr/sbin/nginx" // the server's binary, the same for every target
	CellDir    = "/cell"           // the work tree
	AgentDir   = "/oracle"         // container: the agent's own files, out of the server's reach
	UID        = 33                // www-data, in Debian's images and in our cells alike
	GID        = 33
	Mark       = 0x6f7263 // SO_MARK of the oracle's own sockets: tells them from the server's
	MaxFDs     = 250      // descriptors that fit one message (the kernel's limit is 253)
)
