package agent

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine/probe"
	"nginxoracle/oracle/engine/proto"
)

// Times of starting and stopping a server. None decides a verdict: a server that
// needs longer is reported as what it is.
const (
	startStep   = 500 * time.Microsecond // between two looks at a starting server
	startSlow   = 5 * time.Millisecond   // as slow as looking may be for a limit to count
	quitLimit   = 500 * time.Millisecond // for a graceful end
	termLimit   = 2 * time.Second        // for a fast end
	killLimit   = 5 * time.Second        // for the kernel to end a killed process
	leftLimit   = 100 * time.Millisecond // for children to follow their parent
	leftStep    = time.Millisecond
	freezeLimit = time.Second // for all processes to stand still
	maxOutputs  = 8 << 20     // bytes of a command's output that are handed out
)

// freezeStep is the pause between two looks at processes that are to stand still.
var freezeStep = unix.NsecToTimespec(int64(10 * time.Microsecond))

// environment is what every server sees, the same in every kind of cell. The C library is asked for large
// pages: nginx takes memory for every block of its configuration, and 8 of 10 of the page faults, a third of the time
// that a start with a hundred servers costs, go away.
var environment = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.top_pad=33554432"}

// spawn starts the server's binary as the server's user.
func (a *agent) spawn(args []string, stdout, stderr int) (int, error) {
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("start the server: open /dev/null: %w", err)
	}
	defer unix.Close(null)
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   append(environment[:len(environment):len(environment)], a.spec.Env...),
		Files: []uintptr{uintptr(null), uintptr(stdout), uintptr(stderr)},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	if a.drop {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(a.spec.Euid), Gid: uint32(a.spec.Egid)}
	}
	pid, err := syscall.ForkExec(proto.ServerPath, append([]string{proto.ServerPath}, args...), attr)
	if err != nil {
		return 0, fmt.Errorf("exec %s: %w", proto.ServerPath, err)
	}
	return pid, nil
}

// command runs the server's binary to its end. One that does not end within the
// limit is killed, and its Exit is the zero value.
func (a *agent) command(req *proto.Request) (ans proto.Answer, _ []int, err error) {
	stdout, err := a.output()
	if err != nil {
		return ans, nil, err
	}
	defer unix.Close(stdout)
	stderr, err := a.output()
	if err != nil {
		return ans, nil, err
	}
	defer unix.Close(stderr)
	pid, err := a.spawn(req.Args, stdout, stderr)
	if err != nil {
		return ans, nil, err
	}
	if ans.Exit = a.reaper.wait(pid, req.Limit); !ans.Exit.Exited {
		_ = unix.Kill(pid, unix.SIGKILL)
		a.reaper.wait(pid, killLimit)
	}
	if a.server == 0 { // it may have started a daemon, which nobody could stop later
		if _, err := a.killRest(); err != nil {
			return ans, nil, err
		}
	}
	if ans.Stdout, err = readAll(stdout); err == nil {
		ans.Stderr, err = readAll(stderr)
	}
	return ans, nil, err
}

func readAll(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("read a command's output: %w", err)
	}
	b := make([]byte, min(st.Size, maxOutputs))
	n, err := unix.Pread(fd, b, 0)
	if err != nil {
		return nil, fmt.Errorf("read a command's output: %w", err)
	}
	return b[:n], nil
}

// start starts the server and looks at it until it has exited, or listens where
// it should and is at rest (its workers wait for connections), or is at rest
// without listening there, or the limit is over.
func (a *agent) start(req *proto.Request) (ans proto.Answer, fds []int, err error) {
	if a.server != 0 {
		return ans, nil, errors.New("start: a server is still running")
	}
	addrs, err := parseAddrs(req.Wait)
	if err != nil {
		return ans, nil, err
	}
	out, err := a.output()
	if err != nil {
		return ans, nil, err
	}
	fds = []int{out}
	stdout, err := a.output()
	if err != nil {
		return ans, fds, err
	}
	defer unix.Close(stdout)
	if ans.Pid, err = a.spawn(req.Args, stdout, out); err != nil {
		return ans, fds, err
	}
	a.server = ans.Pid
	end := time.Now().Add(req.Limit)
	// A limit on the clock alone would blame the server for a machine that stood still (a virtual
	// machine that was paused): it must also have been looked at often enough.
	enough := int(req.Limit / startSlow)
	for looks, still := 0, 0; ; time.Sleep(startStep) {
		if ans.Exit = a.reaper.exit(a.server); ans.Exit.Exited {
			return ans, fds, nil
		}
		if looks++; looks > enough && time.Now().After(end) {
			ans.Stuck = cmp.Or(a.prober.Describe(), "no process")
			return ans, fds, nil
		}
		rest, err := a.prober.Rest(a.server, a.mine)
		if err != nil {
			return ans, fds, fmt.Errorf("start: %w", err)
		}
		if !rest.Asleep || !rest.Polling {
			still = 0
			continue
		}
		if ans.Ready, err = a.prober.Listening(addrs); err != nil {
			return ans, fds, fmt.Errorf("start: %w", err)
		}
		if still++; ans.Ready || still > 3 {
			return ans, fds, nil
		}
	}
}

// parseAddrs reads host:port and unix:PATH.
func parseAddrs(list []string) ([]probe.Addr, error) {
	var addrs []probe.Addr
	for _, s := range list {
		if path, ok := strings.CutPrefix(s, "unix:"); ok {
			addrs = append(addrs, probe.Addr{Path: path})
			continue
		}
		ap, err := netip.ParseAddrPort(s)
		if err != nil {
			return nil, fmt.Errorf("start: address %q: want IP:PORT or unix:PATH", s)
		}
		addrs = append(addrs, probe.AddrOf(ap))
	}
	return addrs, nil
}

func (a *agent) signal(sig unix.Signal) error {
	if a.server == 0 {
		return errors.New("signal: no server was started")
	}
	if err := unix.Kill(a.server, sig); err != nil {
		return fmt.Errorf("signal %d to process %d: %w", sig, a.server, err)
	}
	return nil
}

// stop ends the server: gracefully, then fast, then by force. left names the
// processes that outlived it; they are killed.
func (a *agent) stop(pid int) (e proto.Exit, left []string, err error) {
	for _, step := range []struct {
		sig   unix.Signal
		limit time.Duration
	}{{unix.SIGQUIT, quitLimit}, {unix.SIGTERM, termLimit}, {unix.SIGKILL, killLimit}} {
		if e = a.reaper.exit(pid); e.Exited {
			break
		}
		_ = unix.Kill(pid, step.sig) // fails only when it has just ended
		if e = a.reaper.wait(pid, step.limit); e.Exited {
			break
		}
	}
	if !e.Exited {
		return e, nil, fmt.Errorf("stop: process %d does not end, not even killed", pid)
	}
	a.server = 0
	left, err = a.killRest()
	return e, left, err
}

// killRest waits a moment for the processes that are left to end by themselves,
// names those that do not, and kills them.
func (a *agent) killRest() (left []string, err error) {
	end := time.Now().Add(leftLimit)
	var pids []int
	for {
		if pids, err = others(); err != nil {
			return nil, err
		}
		if len(pids) == 0 {
			return left, nil
		}
		if time.Now().After(end) {
			if left != nil {
				return left, fmt.Errorf("stop: processes %v do not end, not even killed", pids)
			}
			for _, pid := range pids {
				left = append(left, title(pid))
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			end = time.Now().Add(killLimit)
		}
		time.Sleep(leftStep)
	}
}

// freeze stops every process of the cell but the agent's own, and returns when none of them runs, or lets
// them go on. A server notices nothing but that its waits are interrupted. After an error they go on.
func (a *agent) freeze(on bool) error {
	if !on {
		return thaw()
	}
	if err := a.standStill(); err != nil {
		return fmt.Errorf("freeze: %w", errors.Join(err, thaw()))
	}
	return nil
}

func thaw() error {
	if err := unix.Kill(-1, unix.SIGCONT); err != nil && err != unix.ESRCH {
		return fmt.Errorf("thaw: %w", err)
	}
	return nil
}

func (a *agent) standStill() error {
	if err := unix.Kill(-1, unix.SIGSTOP); err != nil && err != unix.ESRCH {
		return err
	}
	for end := time.Now().Add(freezeLimit); ; {
		stopped, err := a.prober.Stopped()
		if err != nil || stopped {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s does not stop", a.prober.Describe())
		}
		// The processor may be the one that a process needs to stop.
		_ = unix.Nanosleep(&freezeStep, nil) // time.Sleep would hand this thread's work to others
	}
}

// others lists the processes of the cell but the agent's own.
func others() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// title is a process's command line, or its name where it has none (a zombie).
func title(pid int) string {
	b, err := os.ReadFile(procPath(pid, "cmdline"))
	if t := string(bytes.TrimRight(bytes.ReplaceAll(b, []byte{0}, []byte{' '}), " ")); err == nil && t != "" {
		return t
	}
	b, err = os.ReadFile(procPath(pid, "comm"))
	if err != nil {
		return "process " + strconv.Itoa(pid)
	}
	return "[" + strings.TrimSpace(string(b)) + "]"
}

// killTitled sends sig to the first process whose title starts with prefix.
func killTitled(prefix string, sig unix.Signal) (int, error) {
	pids, err := others()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		if strings.HasPrefix(title(pid), prefix) {
			if err := unix.Kill(pid, sig); err != nil {
				return 0, fmt.Errorf("kill %d: %w", pid, err)
			}
			return pid, nil
		}
	}
	return 0, fmt.Errorf("kill %q: %w", prefix, fs.ErrNotExist)
}
