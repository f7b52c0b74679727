package probe

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// firstPid is the position in /proc's listing from which on only processes come
// (FIRST_PROCESS_ENTRY in the kernel's fs/proc/internal.h); skipping the static
// entries makes a listing several times cheaper. A kernel that counted otherwise
// would show more names, which are skipped by their form.
const firstPid = 256

// process is one process of the cell with what is kept open of it. Files of
// /proc/PID stay bound to that process: a reused pid cannot be taken for it.
type process struct {
	pid     int
	task    int // /proc/PID/task
	nlink   uint64
	threads []thread
	seen    bool
}

type thread struct {
	tid   int
	call  int // /proc/PID/task/TID/syscall
	sched int // /proc/PID/task/TID/schedstat; -1 where the kernel has none
	stat  int // /proc/PID/task/TID/stat
	turns uint64
	timer int  // of epoll_wait, milliseconds; -1 = none
	idle  bool // slept, as idle says, when it had had turns
}

func (t *thread) close() {
	unix.Close(t.call)
	unix.Close(t.stat)
	if t.sched >= 0 {
		unix.Close(t.sched)
	}
}

func (q *process) close() {
	unix.Close(q.task)
	for i := range q.threads {
		q.threads[i].close()
	}
}

// gone tells whether a file of /proc says that its process has ended.
func gone(err error) bool { return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) }

// list brings p.procs up to date: every process but process 1, which is the agent.
func (p *Prober) list() error {
	if _, err := unix.Seek(p.proc, firstPid, 0); err != nil {
		return fmt.Errorf("list processes: seek: %w", err)
	}
	for _, q := range p.procs {
		q.seen = false
	}
	for {
		n, err := unix.Getdents(p.proc, p.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("list processes: getdents: %w", err)
		}
		if n <= 0 {
			break
		}
		for b := p.buf[:n]; len(b) > 0; {
			var pid int
			pid, b = direntNumber(b)
			if pid <= 1 {
				continue
			}
			q := p.procs[pid]
			if q == nil {
				if q, err = p.open(pid); gone(err) {
					continue
				} else if err != nil {
					return err
				}
				p.procs[pid] = q
			}
			q.seen = true
		}
	}
	for pid, q := range p.procs {
		if !q.seen {
			q.close()
			delete(p.procs, pid)
		}
	}
	return nil
}

// direntNumber is the first entry's name of a getdents64 buffer as a number (0
// if it is none), and the rest of the buffer.
func direntNumber(b []byte) (int, []byte) {
	const nameAt = 19 // offset of d_name
	if len(b) < nameAt {
		return 0, nil
	}
	size := int(b[16]) | int(b[17])<<8
	if size < nameAt || size > len(b) {
		return 0, nil
	}
	n := 0
	for _, c := range b[nameAt:size] {
		if c == 0 {
			break
		}
		if c < '0' || c > '9' {
			return 0, b[size:]
		}
		n = n*10 + int(c-'0')
	}
	return n, b[size:]
}

func (p *Prober) open(pid int) (*process, error) {
	task, err := unix.Openat(p.proc, strconv.Itoa(pid)+"/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	return &process{pid: pid, task: task}, nil
}

// refresh reads the threads of q anew when their number changed or force is set.
func (p *Prober) refresh(q *process, force bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(q.task, &st); err != nil {
		return fmt.Errorf("process %d: %w", q.pid, err)
	}
	if !force && uint64(st.Nlink) == q.nlink {
		return nil
	}
	q.nlink = uint64(st.Nlink)
	for i := range q.threads {
		q.threads[i].close()
	}
	q.threads = q.threads[:0]
	if _, err := unix.Seek(q.task, 0, 0); err != nil {
		return fmt.Errorf("process %d: threads: %w", q.pid, err)
	}
	for {
		n, err := unix.Getdents(q.task, p.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("process %d: threads: %w", q.pid, err)
		}
		if n <= 0 {
			if uint64(len(q.threads)+2) != q.nlink { // threads came or went meanwhile: list them again next time
				q.nlink = 0
			}
			return nil
		}
		for b := p.buf[:n]; len(b) > 0; {
			var tid int
			if tid, b = direntNumber(b); tid == 0 {
				continue
			}
			t := thread{tid: tid, timer: -1}
			name := strconv.Itoa(tid)
			if t.call, err = unix.Openat(q.task, name+"/syscall", unix.O_RDONLY|unix.O_CLOEXEC, 0); gone(err) {
				continue
			} else if err != nil {
				return fmt.Errorf("process %d: thread %d: open syscall: %w", q.pid, tid, err)
			}
			if t.stat, err = unix.Openat(q.task, name+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
				unix.Close(t.call)
				if gone(err) {
					continue
				}
				return fmt.Errorf("process %d: thread %d: open stat: %w", q.pid, tid, err)
			}
			if t.sched, err = unix.Openat(q.task, name+"/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
				t.sched = -1
			}
			q.threads = append(q.threads, t)
		}
	}
}

// read reads a file of the kernel's from its beginning.
func read(fd int, b []byte) (int, error) { return call(unix.SYS_PREAD64, fd, b, 0) }

// call makes a system call that waits for nothing; a look makes twenty and more, a microsecond each. Go's scheduler is
// not told, as it would be of one that may block.
func call(nr uintptr, fd int, b []byte, flags int) (int, error) {
	n, _, errno := unix.RawSyscall6(nr, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), uintptr(flags), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// turns is how often the thread was given a processor. It stays the same exactly
// as long as the thread does not run. Without schedstat it is 0.
func (p *Prober) turns(t *thread) (uint64, error) {
	if t.sched < 0 {
		return 0, nil
	}
	n, err := read(t.sched, p.small[:])
	if err != nil {
		return 0, err
	}
	f := bytes.TrimRight(p.small[:n], "\n")
	i := bytes.LastIndexByte(f, ' ')
	var v uint64
	for _, c := range f[i+1:] {
		v = v*10 + uint64(c-'0')
	}
	return v, nil
}

// woken tells whether the thread is about to run. One that another processor has woken is still
// in its system call, as /proc/PID/syscall has it, until its own processor has heard of it (TASK_WAKING in the kernel's
// try_to_wake_up), which on a virtual machine can take a while; /proc/PID/stat counts it as running.
func (p *Prober) woken(t *thread) (bool, error) {
	n, err := read(t.stat, p.small[:])
	if err != nil {
		return false, err
	}
	return stateIn(p.small[:n]) == 'R', nil
}

// Stopped tells whether no thread of any process runs or could: each stands still (SIGSTOP) or has ended.
func (p *Prober) Stopped() (bool, error) {
	if err := p.list(); err != nil {
		return false, err
	}
	for _, q := range p.procs {
		if err := p.refresh(q, false); gone(err) {
			p.stale = true
			continue
		} else if err != nil {
			return false, err
		}
		for i := range q.threads {
			n, err := read(q.threads[i].stat, p.small[:])
			if gone(err) { // whether another one has come in its place is seen by the next look
				return false, p.forget(q)
			}
			if err != nil {
				return false, fmt.Errorf("thread %d: read stat: %w", q.threads[i].tid, err)
			}
			if s := stateIn(p.small[:n]); !bytes.ContainsAny([]byte{s}, "TtZX") {
				return false, nil
			}
		}
	}
	return true, nil
}

// stateIn is the letter of a thread's state in its stat, 0 without one. The name before it, in parentheses, may hold anything.
func stateIn(stat []byte) byte {
	if i := bytes.LastIndex(stat, []byte(") ")); i >= 0 && i+2 < len(stat) {
		return stat[i+2]
	}
	return 0
}

// sleep is what a thread does.
type sleep int

const (
	awake    sleep = iota
	idle           // sleeps until a signal, a timer or another thread wakes it
	polling        // sleeps in epoll_wait or its like
	vanished       // the thread has ended
)

// state asks what the thread does now: the number of the system call in which it
// sleeps (proc(5), /proc/PID/syscall), or "running".
func (p *Prober) state(t *thread) (sleep, error) {
	t.timer = -1
	n, err := read(t.call, p.small[:])
	switch {
	case gone(err):
		return vanished, nil
	case err != nil:
		return awake, fmt.Errorf("thread %d: read syscall: %w", t.tid, err)
	case n == 0:
		return vanished, nil
	}
	nr := -1
	for _, c := range p.small[:n] {
		if c < '0' || c > '9' {
			break
		}
		if nr < 0 {
			nr = 0
		}
		nr = nr*10 + int(c-'0')
	}
	if nr < 0 {
		return awake, nil // "running", or a sleep outside any system call
	}
	s := sleepOf(nr)
	if s == polling && (nr == unix.SYS_EPOLL_PWAIT || nr == epollWait) {
		t.timer = timeout(p.small[:n])
	}
	return s, nil
}

// timeout is the fourth argument of epoll_wait and epoll_pwait in a line of
// /proc/PID/syscall, in milliseconds; -1 for none.
func timeout(line []byte) int {
	words := bytes.Fields(line)
	if len(words) < 5 {
		return -1
	}
	v, err := strconv.ParseUint(string(bytes.TrimPrefix(words[4], []byte("0x"))), 16, 64)
	if err != nil {
		return -1
	}
	return int(int32(v)) // the register's upper half is of no account
}

// sleepOf tells a sleep that only the outside ends from a sleep inside some work
// (a write to a pipe that is full, a lock on a disk, …), which counts as awake.
func sleepOf(nr int) sleep {
	for _, c := range pollCalls {
		if c == nr {
			return polling
		}
	}
	for _, c := range idleCalls {
		if c == nr {
			return idle
		}
	}
	return awake
}

// idleCalls are the calls in which a thread waits for another thread, a signal
// or a timer; nginx's master sleeps in rt_sigsuspend, Go's idle threads in futex.
var idleCalls = []int{
	unix.SYS_FUTEX, unix.SYS_RT_SIGSUSPEND, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_NANOSLEEP,
	unix.SYS_CLOCK_NANOSLEEP, unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_RESTART_SYSCALL,
}

// fds counts the open descriptors of a process.
func (p *Prober) fds(q *process) (int, error) {
	name := strconv.Itoa(q.pid) + "/fd"
	var st unix.Stat_t
	if err := unix.Fstatat(p.proc, name, &st, 0); err != nil {
		return 0, fmt.Errorf("process %d: descriptors: %w", q.pid, err)
	}
	if st.Size > 0 { // since Linux 6.2 the size is their number
		return int(st.Size), nil
	}
	fd, err := unix.Openat(p.proc, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("process %d: descriptors: %w", q.pid, err)
	}
	d := os.NewFile(uintptr(fd), name)
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0, fmt.Errorf("process %d: descriptors: %w", q.pid, err)
	}
	return len(names), nil
}

// Describe says what every thread does, for the error about a server that does
// not come to rest: "process 7: thread 7 in system call 281, thread 9 runs".
func (p *Prober) Describe() string {
	var b strings.Builder
	for _, pid := range slices.Sorted(maps.Keys(p.procs)) {
		q := p.procs[pid]
		fmt.Fprintf(&b, "process %d:", pid)
		for i := range q.threads {
			t := &q.threads[i]
			n, err := read(t.call, p.small[:])
			switch what, _, _ := strings.Cut(strings.TrimSpace(string(p.small[:max(n, 0)])), " "); {
			case err != nil || what == "":
				fmt.Fprintf(&b, " thread %d has ended,", t.tid)
			case what == "running":
				fmt.Fprintf(&b, " thread %d runs,", t.tid)
			default:
				fmt.Fprintf(&b, " thread %d in system call %s,", t.tid, what)
			}
		}
	}
	return strings.TrimSuffix(b.String(), ",")
}
