package server

import (
	"os"
	"runtime"
	"strings"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/modules/events"
	main_ "nginxoracle/proxy/modules/main"
)

// worker is one event loop on a thread of its own, with its own reading of the configuration.
type worker struct {
	n     int
	cycle *module.Cycle
	sys   *ev.Epoll
	loop  *ev.Loop
	done  chan struct{}

	exiting bool // told to; for the master's use

	// Of the loop's thread:
	terminate, drain bool
	quit             func() // begins the graceful end, once the turn in which it was asked for is over
	shutdown         ev.Event
}

// workerCycle reads the configuration once more for a worker, from what the first reading kept.
func (s *server) workerCycle(first *module.Cycle, n int) (*module.Cycle, error) {
	if n == 0 {
		return first, nil
	}
	c := s.newCycle(first.Old)
	c.First, c.Worker = first, n
	c.Log = &elog.Log{Sink: &elog.List{}}
	test, quiet := s.opt.test, s.opt.quiet
	err := s.read(c)
	s.opt.test, s.opt.quiet = test, quiet
	if err != nil {
		return nil, err
	}
	openDefaultLog(c)
	for _, f := range c.Files {
		if f.Name != "" {
			f.FD = first.OpenFile(f.Name).FD
		}
	}
	c.Log = &elog.Log{Sink: c.NewLog}
	for i, ls := range c.Listen {
		ls.FD = first.Listen[i].FD
	}
	for _, z := range c.Zones {
		if z.Init == nil {
			continue
		}
		for _, o := range first.Zones {
			if o.Name == z.Name {
				if err := z.Init(z, o.Data); err != nil {
					return nil, err
				}
			}
		}
	}
	return c, nil
}

// startWorkers starts the workers of a cycle and returns when all accept.
func (s *server) startWorkers(first *module.Cycle) {
	m := main_.Of(first)
	first.Log.Err(elog.Notice, nil, "start worker processes")
	n := m.Workers
	if m.Master == 0 {
		n = 1
	}
	// A loop that waits in the kernel keeps its place in the Go scheduler until that takes it away,
	// which lasts; with places to spare nobody waits for that: the loops, as many that are leaving, the
	// master, signals, what is done beside the loops.
	if p := runtime.GOMAXPROCS(0); p < 2*n+4 {
		runtime.GOMAXPROCS(2*n + 4)
	}
	for i := 0; i < n; i++ {
		c, err := s.workerCycle(first, i)
		if err != nil {
			first.Log.Err(elog.Alert, nil, "could not read the configuration for worker %d", i)
			continue
		}
		w := &worker{n: i, cycle: c, done: make(chan struct{})}
		up := make(chan struct{})
		go w.run(m, n, up)
		<-up
		s.workers = append(s.workers, w)
	}
}

// fatal ends the process as a worker that cannot start does; nginx's master would start it again and
// again, and there is nothing to serve with.
func fatal() { os.Exit(2) }

// run is the worker's life (ngx_process_cycle.c, ngx_worker_process_cycle).
func (w *worker) run(m *main_.Conf, workers int, up chan<- struct{}) {
	runtime.LockOSThread()
	defer close(w.done)
	if m.Master == 1 {
		w.becomeWorker(m)
	}
	w.listen(m, workers)
	close(up)
	log := w.cycle.Log
	for {
		if w.loop.Exiting && w.loop.NoTimersLeft() {
			log.Err(elog.Notice, nil, "exiting")
			break
		}
		if w.drain && w.idle() {
			break
		}
		w.loop.Turn()
		if w.terminate {
			log.Err(elog.Notice, nil, "exiting")
			break
		}
		if f := w.quit; f != nil {
			w.quit = nil
			f()
		}
	}
	w.end()
}

// becomeWorker gives up the master's rights (ngx_worker_process_init).
func (w *worker) becomeWorker(m *main_.Conf) {
	log := w.cycle.Log
	if m.Priority != 0 {
		if err := ev.SetThreadPriority(m.Priority); err != nil {
			log.Err(elog.Alert, err, "setpriority(%d) failed", m.Priority)
		}
	}
	if m.RlimitNofile != module.Unset {
		if err := ev.SetNofileLimit(uint64(m.RlimitNofile)); err != nil {
			log.Err(elog.Alert, err, "setrlimit(RLIMIT_NOFILE, %d) failed", m.RlimitNofile)
		}
	}
	if m.RlimitCore != module.Unset {
		if err := ev.SetCoreLimit(uint64(m.RlimitCore)); err != nil {
			log.Err(elog.Alert, err, "setrlimit(RLIMIT_CORE, %d) failed", m.RlimitCore)
		}
	}
	if m.WorkDir.V != "" {
		// Before the rights are gone, for having a folder of one's own may need them.
		if err := ev.OwnFolder(); err != nil && !w.absolute() {
			log.Err(elog.Alert, err, "unshare() failed")
		}
	}
	if ev.Euid() == 0 {
		if call, err := ev.BecomeUser(m.Username, m.UID, m.GID); err != nil {
			log.Err(elog.Emerg, err, "%s failed", call)
			fatal()
		}
	}
	if cpus := m.Affinity(w.n); cpus != nil {
		if err := ev.SetThreadAffinity(cpus); err != nil {
			log.Err(elog.Alert, err, "sched_setaffinity() failed")
		}
	}
	if err := ev.KeepDumpable(); err != nil {
		log.Err(elog.Alert, err, "prctl(PR_SET_DUMPABLE) failed")
	}
	if m.WorkDir.V != "" {
		if err := ev.Chdir(m.WorkDir.V); err != nil {
			log.Err(elog.Alert, err, `chdir("%s") failed`, m.WorkDir.V)
			fatal()
		}
	}
}

// absolute reports whether the master's own paths would survive that a worker takes the whole process
// to another folder, as it does where a system (a container's seccomp profile) forbids unshare().
func (w *worker) absolute() bool {
	for _, path := range []string{w.cycle.Prefix, w.cycle.ConfFile, os.Args[0]} {
		if !strings.HasPrefix(path, "/") {
			return false
		}
	}
	return true
}

// listen makes the loop and puts the sockets into it (ngx_event_process_init).
func (w *worker) listen(m *main_.Conf, workers int) {
	c := w.cycle
	e := events.Of(c)
	sys, err := ev.NewEpoll(max(e.EpollEvents, 1))
	if err != nil {
		c.Log.Err(elog.Emerg, err, "epoll_create() failed")
		fatal()
	}
	w.sys = sys
	w.loop = ev.NewLoop(sys, e.Connections, c.Log)
	w.loop.Panicked = http.Panicked
	w.loop.MultiAccept = e.MultiAccept == 1
	w.loop.AcceptDelay = e.AcceptMutexDelay
	w.loop.PostEvents = m.Master == 1 && workers > 1 && e.AcceptMutex == 1
	w.loop.Exclusive = workers > 1
	w.loop.Resolution = m.TimerResolution
	if e.Debug != nil {
		w.loop.Accepted = e.Accepted
	}
	for _, ls := range c.Listen {
		if ls.Reuseport && ls.Worker != w.n {
			continue
		}
		log := &elog.Log{Sink: c.NewLog, Action: "accepting new connection on " + ls.Text}
		if list, ok := ls.ErrorLog.(*elog.List); ok && list != nil {
			log.Sink = list
		}
		l := &ev.Listener{
			FD: ls.FD, Addr: ls.Addr, Text: ls.Text, Backlog: ls.Backlog, Handler: ls.Handler, Data: ls.Servers,
			Log: log, Wildcard: ls.Wildcard, Deferred: ls.Deferred,
		}
		if err := w.loop.Listen(l); err != nil {
			fatal()
		}
	}
	if m.Master == 1 {
		w.loop.Reserve() // nginx's channel to the master
	}
}

// command runs f on the worker's thread and waits for it, unless the worker has ended.
func (w *worker) command(f func()) {
	ran := make(chan struct{})
	w.loop.Call(func() { f(); close(ran) })
	select {
	case <-ran:
	case <-w.done:
	}
}

// terminateNow ends a worker at once.
func (w *worker) terminateNow() {
	w.exiting = true
	w.loop.Call(func() { w.terminate = true })
}

// shutdownGracefully lets a worker finish what it has begun. It returns when nothing is accepted any
// more. What the loop learned in one turn with the signal is served as before it, the requests that wait
// in a pipeline included.
func (w *worker) shutdownGracefully() {
	if w.exiting {
		return
	}
	w.exiting = true
	began := make(chan struct{})
	w.loop.Call(func() {
		w.quit = func() {
			w.beginShutdown()
			close(began)
		}
	})
	select {
	case <-began:
	case <-w.done:
	}
}

func (w *worker) beginShutdown() {
	w.cycle.Log.Err(elog.Notice, nil, "gracefully shutting down")
	if t := main_.Of(w.cycle).ShutdownTimeout; t != 0 {
		w.shutdown = ev.Event{Handler: w.shutdownTimeout, Cancelable: true}
		w.loop.AddTimer(&w.shutdown, t)
	}
	w.loop.Shutdown()
}

// shutdownTimeout closes what is left (ngx_cycle.c, ngx_shutdown_timer_handler).
func (w *worker) shutdownTimeout(*ev.Event) {
	w.loop.Each(func(c *ev.Conn) {
		c.Close, c.Error = true, true
		if c.Read.Handler != nil {
			c.Read.Handler(&c.Read)
		}
	})
}

// stopAccepting lets a worker serve the connections that it has, as long as they last.
func (w *worker) stopAccepting() {
	w.exiting = true
	w.command(func() { w.drain = true; w.loop.StopListening() })
}

func (w *worker) idle() bool {
	any := false
	w.loop.Each(func(*ev.Conn) { any = true })
	return !any
}

// flush writes out what the worker's logs hold.
func (w *worker) flush() {
	for _, f := range w.cycle.Files {
		if f.Flush != nil {
			f.Flush(f)
		}
	}
}

// end is what nginx does when a worker process exits; here the process stays, so descriptors are
// closed one by one.
func (w *worker) end() {
	log := w.cycle.Log
	w.flush()
	left := false
	w.loop.Each(func(c *ev.Conn) {
		if w.loop.Exiting && !w.terminate {
			log.Err(elog.Alert, nil, "*%d open socket #%d left in connection %d", c.Number, c.FD, c.Slot())
			left = true
		}
		w.sys.Close(c.FD)
	})
	if left {
		log.Err(elog.Alert, nil, "aborting")
	}
	w.loop.StopListening()
	for _, f := range w.cycle.AtExit {
		f()
	}
	w.sys.Free()
	log.Err(elog.Notice, nil, "exit")
}
