// Package agent is the oracle's hand inside a cell: process 1 there. It starts
// and stops servers, reports how processes ended, keeps the work tree, and makes
// the sockets that the oracle then uses by itself. It ends when the oracle's
// socket closes, and the kernel ends everything else in the cell with it.
package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine/probe"
	"nginxoracle/oracle/engine/proto"
)

// Arg is the argument that makes the oracle's binary an agent.
const Arg = "cell-agent"

// Try is the argument with which an agent only tries whether it could build a cell.
const Try = "try"

// collectAt is how far an agent's heap grows before it is collected, in percent of what is in use: that is next to nothing
// between two requests, and a request may bring a thousand files.
const collectAt = 800

// socketFD is where a local cell's agent finds its socket.
const socketFD = 3

type agent struct {
	spec    proto.Spec
	conn    *proto.Conn
	reaper  *reaper
	prober  *probe.Prober
	outputs int // folder for the outputs of processes, out of the server's reach
	drop    bool

	folders map[string]bool   // while a reset writes: those that are there
	written map[string]uint64 // inodes of the files that the last reset wrote, by path
	wrote   unix.Timespec     // when it had: a later change gives a file a change time that is no earlier

	server int // main process of the running server, 0 = none
	mine   probe.Mine
}

// Main runs the agent described by the JSON in args[0] until the oracle's
// socket closes, and returns the process's exit code.
func Main(args []string) int {
	// Namespaces and capabilities belong to threads: all work stays on this one.
	runtime.LockOSThread()
	debug.SetGCPercent(collectAt)
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "cell-agent: want one argument; it is started by the oracle itself")
		return 2
	}
	if args[0] == Try {
		return try()
	}
	a := &agent{drop: unix.Geteuid() == 0, written: map[string]uint64{}}
	if err := json.Unmarshal([]byte(args[0]), &a.spec); err != nil {
		fmt.Fprintf(os.Stderr, "cell-agent: specification: %v\n", err)
		return 2
	}
	if err := a.connect(); err != nil {
		fmt.Fprintf(os.Stderr, "cell-agent: %v\n", err)
		return 3
	}
	requests := a.listenForRequests()
	if err := a.setup(); err != nil {
		<-requests // the oracle asks first, and is told why there is no cell
		_ = a.conn.Send(&proto.Answer{Err: err.Error(), Errno: errno(err)})
		<-requests
		return 3
	}
	for req := range requests {
		if err := a.answer(req); err != nil {
			return 3 // nobody is left to be told
		}
	}
	return 0
}

// try does what a system may forbid inside of namespaces.
func try() int {
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		err = tmpfs("/dev", "size=1m")
	}
	if err == nil {
		err = mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
	if err == nil {
		err = linkUp("lo")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (a *agent) connect() error {
	if a.spec.Kind == "local" {
		unix.CloseOnExec(socketFD)
		a.conn = proto.NewConn(socketFD)
		return nil
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: a.spec.Socket}); err != nil {
		return fmt.Errorf("connect %s: %w", a.spec.Socket, err)
	}
	a.conn = proto.NewConn(fd)
	return nil
}

// listenForRequests reads requests beside the work, so that the end of the
// oracle is noticed at once even while a command runs.
func (a *agent) listenForRequests() <-chan *proto.Request {
	c := make(chan *proto.Request)
	go func() {
		for {
			req := new(proto.Request)
			if err := a.conn.Recv(req); err != nil {
				os.Exit(0) // process 1 ends: the kernel kills all others of the cell
			}
			c <- req
		}
	}()
	return c
}

func (a *agent) setup() error {
	for _, r := range []struct {
		what int
		v    uint64
	}{
		{unix.RLIMIT_CORE, 0},
		// The same everywhere, since nginx warns when worker_connections exceeds it.
		{unix.RLIMIT_NOFILE, 4096},
	} {
		if err := unix.Setrlimit(r.what, &unix.Rlimit{Cur: r.v, Max: r.v}); err != nil {
			return fmt.Errorf("set limit %d to %d: %w", r.what, r.v, err)
		}
	}
	unix.Umask(0o022)
	if a.spec.Kind == "local" {
		if err := a.buildRoot(); err != nil {
			return fmt.Errorf("build the cell's root: %w", err)
		}
		if err := a.buildNet(); err != nil {
			return fmt.Errorf("build the cell's network: %w", err)
		}
	} else if err := a.enterContainer(); err != nil {
		return fmt.Errorf("enter the container: %w", err)
	}
	// A server must not get back what the agent may do.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl no_new_privs: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl ambient capabilities: %w", err)
	}
	// Where memory runs out, a target is ended rather than a campaign.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	a.reaper = newReaper()
	proc, diag, err := a.handles()
	if err != nil {
		return err
	}
	if a.prober, err = probe.New(proc, diag); err != nil {
		return err
	}
	return a.resetScratch()
}

// handles opens what a prober needs.
func (a *agent) handles() (proc, diag int, err error) {
	proc, err = unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("open /proc: %w", err)
	}
	if diag, err = probe.OpenDiag(); err != nil {
		unix.Close(proc)
		return -1, -1, err
	}
	return proc, diag, nil
}

// answer carries out one request; an error means that the connection is gone.
func (a *agent) answer(req *proto.Request) error {
	ans, fds, err := a.do(req)
	if err != nil {
		closeAll(fds)
		ans, fds = proto.Answer{Err: err.Error(), Errno: errno(err)}, nil
	}
	ans.FDs = len(fds)
	return a.conn.SendAway(&ans, fds...)
}

func (a *agent) do(req *proto.Request) (ans proto.Answer, fds []int, err error) {
	switch req.Op {
	case proto.OpHello:
		return a.hello()
	case proto.OpReset:
		err = a.reset(req.Files)
	case proto.OpTree:
		ans.Files, ans.Kept, err = a.tree()
	case proto.OpDo:
		err = a.change(req.Name, req.Args, req.Data)
	case proto.OpCommand:
		return a.command(req)
	case proto.OpStart:
		return a.start(req)
	case proto.OpSignal:
		err = a.signal(unix.Signal(req.N))
	case proto.OpWait:
		ans.Exit = a.reaper.wait(req.Pid, req.Limit)
	case proto.OpStop:
		ans.Exit, ans.Left, err = a.stop(req.Pid)
	case proto.OpSockets:
		fds, err = sockets(req.Name, req.N)
	case proto.OpDial:
		fds, err = dialUnix(req.Addr, req.N)
	case proto.OpListen:
		fds, err = a.listenUnix(req.Addr)
	case proto.OpProbe:
		ans.Probe, err = a.probe(req)
	case proto.OpFreeze:
		err = a.freeze(req.N != 0)
	case proto.OpKill:
		ans.Pid, err = killTitled(req.Name, unix.Signal(req.N))
	default:
		err = fmt.Errorf("request %q is unknown: oracle and agent are of different builds", req.Op)
	}
	return ans, fds, err
}

func (a *agent) hello() (proto.Answer, []int, error) {
	sum, err := hash(proto.ServerPath)
	if err != nil {
		return proto.Answer{}, nil, err
	}
	proc, diag, err := a.handles()
	if err != nil {
		return proto.Answer{}, nil, err
	}
	return proto.Answer{SHA256: sum}, []int{proc, diag}, nil
}

func (a *agent) probe(req *proto.Request) (proto.Probe, error) {
	mine := probe.Mine{Inodes: map[uint32]bool{}, Paths: map[string]bool{}}
	for _, i := range req.Mine {
		mine.Inodes[i] = true
	}
	for _, p := range req.Args {
		mine.Paths[p] = true
	}
	r, err := a.prober.Rest(a.server, mine)
	return r.Probe, err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

func errno(err error) int {
	var e unix.Errno
	if errors.As(err, &e) {
		return int(e)
	}
	return 0
}
