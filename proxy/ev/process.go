package ev

import (
	"errors"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// What a process asks of the system about itself, its user and its limits.

// Euid is the effective user.
func Euid() int { return unix.Geteuid() }

// Errno finds the error number in an error.
func Errno(err error) (syscall.Errno, bool) {
	var e syscall.Errno
	ok := errors.As(err, &e)
	return e, ok
}

// EEXIST is what Mkdir says of a name that is there.
const EEXIST = unix.EEXIST

// ErrNoEntry says that a name is not in the user or group file.
var ErrNoEntry = errors.New("no such entry")

// LookupErrno is what C's errno is after such a failure: none when the name just is not there.
func LookupErrno(err error) error {
	if err == ErrNoEntry {
		return nil
	}
	return err
}

// entry finds the line of a name in a file of colon-separated fields.
func entry(file, name string, fields int) ([]string, error) {
	b, err := ReadFile(file)
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(string(b), "\n") {
		f := strings.Split(line, ":")
		if f[0] == name && len(f) >= fields {
			return f, nil
		}
	}
	return nil, ErrNoEntry
}

// LookupUser is getpwnam(3) over /etc/passwd.
func LookupUser(name string) (uid, gid int, err error) {
	f, err := entry("/etc/passwd", name, 4)
	if err != nil {
		return 0, 0, err
	}
	uid, err1 := strconv.Atoi(f[2])
	gid, err2 := strconv.Atoi(f[3])
	if err1 != nil || err2 != nil {
		return 0, 0, ErrNoEntry
	}
	return uid, gid, nil
}

// LookupGroup is getgrnam(3) over /etc/group.
func LookupGroup(name string) (int, error) {
	f, err := entry("/etc/group", name, 3)
	if err != nil {
		return 0, err
	}
	gid, err := strconv.Atoi(f[2])
	if err != nil {
		return 0, ErrNoEntry
	}
	return gid, nil
}

// groupsOf are the groups that a user is a member of, with gid (initgroups(3)).
func groupsOf(user string, gid int) []int {
	groups := []int{gid}
	b, err := ReadFile("/etc/group")
	if err != nil {
		return groups
	}
	for _, line := range strings.Split(string(b), "\n") {
		f := strings.Split(line, ":")
		if len(f) < 4 {
			continue
		}
		n, err := strconv.Atoi(f[2])
		if err != nil || n == gid {
			continue
		}
		for _, m := range strings.Split(f[3], ",") {
			if m == user {
				groups = append(groups, n)
			}
		}
	}
	return groups
}

// ReadFile reads a whole file.
func ReadFile(name string) ([]byte, error) {
	fd, err := Open(name, ReadOnly, 0)
	if err != nil {
		return nil, err
	}
	defer CloseFD(fd)
	var out []byte
	buf := make([]byte, 8192)
	for {
		n, err := ReadFD(fd, buf)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return out, nil
		}
		out = append(out, buf[:n]...)
	}
}

// BecomeUser makes the calling thread, and only it, run as a user: the master keeps its rights. The
// caller is locked to its thread and never unlocks it. The error names the call that failed.
func BecomeUser(user string, uid, gid int) (call string, err error) {
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)); e != 0 {
		return "setgid(" + strconv.Itoa(gid) + ")", e
	}
	groups := groupsOf(user, gid)
	raw := make([]uint32, len(groups))
	for i, g := range groups {
		raw[i] = uint32(g)
	}
	if err := setgroups(raw); err != nil {
		return "initgroups(" + user + ", " + strconv.Itoa(gid) + ")", err
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 {
		return "setuid(" + strconv.Itoa(uid) + ")", e
	}
	return "", nil
}

// SetThreadPriority sets the calling thread's nice value.
func SetThreadPriority(n int) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, n) }

// SetThreadAffinity binds the calling thread to processors.
func SetThreadAffinity(cpus []int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	return unix.SchedSetaffinity(0, &set)
}

// Limits of descriptors.
func NofileLimit() (cur, max uint64, err error) {
	var r unix.Rlimit
	err = unix.Getrlimit(unix.RLIMIT_NOFILE, &r)
	return r.Cur, r.Max, err
}

// SetNofileLimit and SetCoreLimit set both the soft and the hard limit.
func SetNofileLimit(n uint64) error {
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: n})
}

func SetCoreLimit(n uint64) error {
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: n, Max: n})
}

// Dup3 makes to another name of from, in one step: to always names a file.
func Dup3(from, to int, cloexec bool) error {
	flags := 0
	if cloexec {
		flags = unix.O_CLOEXEC
	}
	return retry(func() error { return unix.Dup3(from, to, flags) })
}

// KeepOverExec clears close-on-exec.
func KeepOverExec(fd int, keep bool) error {
	v := unix.FD_CLOEXEC
	if keep {
		v = 0
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, v)
	return err
}

// Kill sends a signal.
func Kill(pid int, sig syscall.Signal) error { return unix.Kill(pid, sig) }

// Hostname is gethostname(2).
func Hostname() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Nodename[:])
}

// Chdir, Setsid and Umask are the system calls.
func Chdir(dir string) error { return unix.Chdir(dir) }
func Setsid() error          { _, err := unix.Setsid(); return err }
func Umask(mask int)         { unix.Umask(mask) }

// OwnFolder lets the calling thread have a working directory of its own.
func OwnFolder() error { return unix.Unshare(unix.CLONE_FS) }

// KeepDumpable undoes what becoming another user does to /proc/self and core dumps.
func KeepDumpable() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }

// Spawn starts a program; files become its descriptors 0, 1, 2, …
func Spawn(path string, argv, env []string, files []int, session bool) (pid int, err error) {
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = uintptr(f)
	}
	return syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env: env, Files: fds, Sys: &syscall.SysProcAttr{Setsid: session},
	})
}

// WaitPid waits for a child's end.
func WaitPid(pid int) {
	var st unix.WaitStatus
	retry(func() error { _, err := unix.Wait4(pid, &st, 0, nil); return err })
}

// Pipe makes a pipe, close-on-exec.
func Pipe() (r, w int, err error) {
	var p [2]int
	err = unix.Pipe2(p[:], unix.O_CLOEXEC)
	return p[0], p[1], err
}

// Sleep stops the calling thread. Unlike time.Sleep it leaves the runtime's own waiting out of it.
func Sleep(ms int64) {
	t := unix.NsecToTimespec(ms * 1e6)
	retry(func() error { return unix.Nanosleep(&t, &t) })
}
