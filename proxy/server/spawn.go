package server

import (
	"os"
	"strconv"
	"strings"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
	main_ "nginxoracle/proxy/modules/main"
)

// A Go program cannot fork: what nginx does with a fork, going into the background, is done by starting
// the program again with the open sockets, which is what nginx itself does to change its binary.
const (
	socketsVar = "NGINX"        // "6;7;": listening sockets of an older binary (NGINX_VAR)
	daemonVar  = "NGINX_DAEMON" // "3;4;": ours, of the half that started us; the last is the pipe
)

// inherit takes over the sockets that the environment names (nginx.c, ngx_add_inherited_sockets).
func (s *server) inherit() {
	s.ready = -1
	if v := os.Getenv(daemonVar); v != "" {
		os.Unsetenv(daemonVar)
		fds := s.numbers(v)
		s.daemon = true
		if n := len(fds); n > 0 {
			s.ready = fds[n-1]
			ev.KeepOverExec(s.ready, false)
			s.takeSockets(fds[:n-1])
		}
	}
	v, ok := os.LookupEnv(socketsVar)
	if !ok {
		return
	}
	os.Unsetenv(socketsVar)
	s.log.Err(elog.Notice, nil, `using inherited sockets from "%s"`, v)
	s.upgraded, s.daemon = true, true
	s.takeSockets(s.numbers(v))
}

func (s *server) numbers(v string) (fds []int) {
	for v != "" {
		i := strings.IndexAny(v, ":;")
		if i < 0 {
			s.log.Err(elog.Emerg, nil, `invalid socket number "%s" in NGINX environment variable, ignoring`, v)
			return fds
		}
		n, ok := module.Atoi(v[:i])
		if !ok {
			s.log.Err(elog.Emerg, nil, `invalid socket number "%s" in NGINX environment variable, ignoring the rest of the variable`, v)
			return fds
		}
		fds = append(fds, n)
		v = v[i+1:]
	}
	return fds
}

func (s *server) takeSockets(fds []int) {
	for _, fd := range fds {
		a, err := s.sys.LocalAddr(fd)
		if err != nil {
			s.log.Err(elog.Crit, err, "getsockname() of the inherited socket #%d failed", fd)
			continue
		}
		ev.KeepOverExec(fd, false)
		ls := &module.Listening{Addr: a, Text: a.Text(), FD: fd, Inherited: s.upgraded, Backlog: 511}
		if v, err := s.sys.GetInt(fd, ev.SolSocket, ev.SoReuseport); err == nil {
			ls.Reuseport = v != 0
		}
		if v, err := s.sys.GetInt(fd, ev.IPProtoTCP, ev.TCPDeferAccept); err == nil {
			ls.Deferred = v != 0
		}
		s.inherited = append(s.inherited, ls)
	}
}

// socketFiles lists a cycle's sockets as the descriptors from first on of a new process.
func socketFiles(c *module.Cycle, files []int) (all []int, names string) {
	for _, ls := range c.Listen {
		if ls.FD == -1 {
			continue
		}
		names += strconv.Itoa(len(files)) + ";"
		files = append(files, ls.FD)
	}
	return files, names
}

// background starts the half that stays, waits until it is up, and tells the exit status
// (ngx_daemon.c, ngx_daemon).
func (s *server) background() int {
	fail := func(err error, what string) int {
		s.cycle.Log.Err(elog.Emerg, err, "%s failed", what)
		return 1
	}
	null, err := ev.Open("/dev/null", ev.ReadWrite, 0)
	if err != nil {
		return fail(err, `open("/dev/null")`)
	}
	r, w, err := ev.Pipe()
	if err != nil {
		return fail(err, "pipe()")
	}
	files, names := socketFiles(s.cycle, []int{null, null, 2})
	names += strconv.Itoa(len(files)) + ";"
	files = append(files, w)
	if _, err := ev.Spawn("/proc/self/exe", os.Args, append(os.Environ(), daemonVar+"="+names), files, true); err != nil {
		return fail(err, "fork()")
	}
	ev.CloseFD(w)
	var b [1]byte
	ev.ReadFD(r, b[:])
	return 0
}

// settled tells the half that started us that all is up.
func (s *server) settled() {
	if s.ready != -1 {
		ev.CloseFD(s.ready)
		s.ready = -1
	}
}

// upgrade starts the program's file anew, on our sockets (nginx.c, ngx_exec_new_binary).
func (s *server) upgrade() {
	log := s.cycle.Log
	if s.newBinary != 0 || s.upgraded && os.Getppid() == s.parent {
		log.Err(elog.Crit, nil, "the changing binary signal is ignored: you should shutdown or terminate before either old or new binary's process")
		return
	}
	log.Err(elog.Notice, nil, "changing binary")
	m := main_.Of(s.cycle)
	path := os.Args[0]
	if err := ev.Rename(m.Pid.V, m.OldPid.V); err != nil {
		log.Err(elog.Alert, err, `rename() %s to %s failed before executing new binary process "%s"`, m.Pid.V, m.OldPid.V, path)
		return
	}
	files, names := socketFiles(s.cycle, []int{0, 1, 2})
	pid, err := ev.Spawn(path, os.Args, append(m.Environ(), socketsVar+"="+names), files, false)
	if err != nil {
		log.Err(elog.Alert, err, `execve() failed while executing new binary process "%s"`, path)
		s.renameBack("an attempt to execute new binary process \"" + path + "\"")
		return
	}
	s.newBinary = pid
	s.childDone = make(chan struct{})
	go func(done chan struct{}) {
		ev.WaitPid(pid)
		close(done)
	}(s.childDone)
}

func (s *server) renameBack(after string) {
	m := main_.Of(s.cycle)
	if err := ev.Rename(m.OldPid.V, m.Pid.V); err != nil {
		s.cycle.Log.Err(elog.Alert, err, "rename() %s back to %s failed after %s", m.OldPid.V, m.Pid.V, after)
	}
}

// reap is for the newer binary having ended: its name and its work are ours again.
func (s *server) reap() {
	s.childDone = nil
	s.renameBack(`the new binary process "` + os.Args[0] + `" exited`)
	s.newBinary = 0
	if s.noaccept {
		s.noaccept = false
		s.startWorkers(s.cycle)
	}
}
