package server

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
	main_ "nginxoracle/proxy/modules/main"
)

// Signals as nginx uses them (ngx_config.h, ngx_process.c).
var signalNames = map[os.Signal]string{
	syscall.SIGHUP: "SIGHUP", syscall.SIGUSR1: "SIGUSR1", syscall.SIGWINCH: "SIGWINCH", syscall.SIGTERM: "SIGTERM",
	syscall.SIGQUIT: "SIGQUIT", syscall.SIGUSR2: "SIGUSR2", syscall.SIGALRM: "SIGALRM", syscall.SIGINT: "SIGINT",
	syscall.SIGIO: "SIGIO", syscall.SIGCHLD: "SIGCHLD",
}

// Exit ends the process; a build that measures has something to do before.
var Exit = os.Exit

// killAfter is how long workers may take over an immediate end; nginx kills them after about as long.
const killAfter = time.Second

// catchSignals begins to collect signals. SIGPIPE and SIGSYS mean nothing here.
func catchSignals() chan os.Signal {
	ch := make(chan os.Signal, 64)
	for s := range signalNames {
		signal.Notify(ch, s)
	}
	signal.Ignore(syscall.SIGPIPE, syscall.SIGSYS)
	return ch
}

// master does what signals ask for, until the process ends (ngx_master_process_cycle,
// ngx_single_process_cycle).
func (s *server) master(signals <-chan os.Signal) {
	single := main_.Of(s.cycle).Master == 0
	for {
		var sig os.Signal
		select {
		case sig = <-signals:
		case <-s.allDone:
			s.exit()
		case l := <-s.gone:
			s.release(l)
			continue
		case <-s.childDone:
			s.reap()
			continue
		}
		s.told(sig)
		switch sig {
		case syscall.SIGTERM, syscall.SIGINT:
			s.terminate()
		case syscall.SIGQUIT:
			if single {
				s.terminate()
			}
			s.quit()
		case syscall.SIGHUP:
			s.reload(single)
		case syscall.SIGUSR1:
			s.reopen()
		case syscall.SIGUSR2:
			s.upgrade()
		case syscall.SIGWINCH:
			if s.daemon && !single {
				s.noaccept = true
				for _, w := range s.workers {
					w.shutdownGracefully()
				}
			}
		}
	}
}

// told logs a signal; its sender is not known here.
func (s *server) told(sig os.Signal) {
	action := map[os.Signal]string{
		syscall.SIGQUIT: ", shutting down", syscall.SIGTERM: ", exiting", syscall.SIGINT: ", exiting",
		syscall.SIGHUP: ", reconfiguring", syscall.SIGUSR1: ", reopening logs", syscall.SIGUSR2: ", changing binary",
	}[sig]
	s.cycle.Log.Err(elog.Notice, nil, "signal %d (%s) received%s", int(sig.(syscall.Signal)), signalNames[sig], action)
}

// terminate ends all workers at once, and the process.
func (s *server) terminate() {
	for _, w := range s.workers {
		w.terminateNow()
	}
	late := time.After(killAfter)
	for _, w := range s.workers {
		select {
		case <-w.done:
		case <-late:
			s.exit()
		}
	}
	s.exit()
}

// quit lets the workers finish; the process ends after the last.
func (s *server) quit() {
	if s.allDone != nil {
		return
	}
	for _, w := range s.workers {
		w.shutdownGracefully()
	}
	closeListening(s.cycle, s.sys, s.shared())
	s.allDone = make(chan struct{})
	go func(workers []*worker) {
		for _, w := range workers {
			<-w.done
		}
		close(s.allDone)
	}(s.workers)
}

// shared says that another program has our sockets, too.
func (s *server) shared() bool { return s.newBinary != 0 || s.upgraded && os.Getppid() == s.parent }

func (s *server) exit() {
	s.deletePid(s.cycle)
	s.cycle.Log.Err(elog.Notice, nil, "exit")
	closeListening(s.cycle, s.sys, s.shared())
	Exit(0)
}

// reload starts workers on a new reading of the configuration and lets the old ones finish; when the
// reading fails, nothing changes.
func (s *server) reload(single bool) {
	if s.newBinary != 0 && !single {
		s.startWorkers(s.cycle)
		s.noaccept = false
		return
	}
	s.cycle.Log.Err(elog.Notice, nil, "reconfiguring")
	old := s.cycle
	c := s.initCycle(old)
	if c == nil {
		return
	}
	before := s.workers
	s.workers = nil
	s.cycle = c
	s.startWorkers(c)
	for _, w := range before {
		if single {
			w.stopAccepting()
		} else {
			w.shutdownGracefully()
		}
	}
	closeUnneeded(old.Listen, c.Log, s.sys)
	s.workers = append(s.workers, before...)
	c.Old = nil
	go func(l *leaving) {
		for _, w := range l.workers {
			<-w.done
		}
		s.gone <- l
	}(&leaving{old, ofCycle(before, old)})
}

// leaving is a run of the configuration whose workers have been told to finish.
type leaving struct {
	cycle   *module.Cycle
	workers []*worker
}

// ofCycle are the workers of a run; each has a cycle of its own that stems from it.
func ofCycle(workers []*worker, c *module.Cycle) (out []*worker) {
	for _, w := range workers {
		if w.cycle == c || w.cycle.First == c {
			out = append(out, w)
		}
	}
	return out
}

// release forgets a run's workers and closes its files. From then on their numbers are others'.
func (s *server) release(l *leaving) {
	s.workers = slices.DeleteFunc(s.workers, func(w *worker) bool { return slices.Contains(l.workers, w) })
	for _, f := range l.cycle.Files {
		if f.FD > 2 {
			ev.CloseFD(f.FD)
		}
	}
}

// reopen opens the log files anew under their names, after what is buffered has gone to the old ones
// (ngx_cycle.c, ngx_reopen_files). A file keeps its descriptor, so that workers need not be told.
func (s *server) reopen() {
	c := s.cycle
	c.Log.Err(elog.Notice, nil, "reopening logs")
	for _, w := range s.workers {
		w.command(w.flush)
	}
	uid := main_.Of(c).UID
	if main_.Of(c).Master == 0 {
		uid = module.Unset
	}
	seen := map[int]bool{}
	for _, w := range s.workers {
		for _, f := range w.cycle.Files {
			if f.Name != "" && !seen[f.FD] {
				seen[f.FD] = true
				reopenFile(c, f, uid)
			}
		}
	}
	s.redirectStderr(c)
}

func reopenFile(c *module.Cycle, f *module.File, uid int) {
	log := c.Log
	fd, err := ev.Open(f.Name, ev.WriteOnly|ev.Append|ev.Create, 0o644)
	if err != nil {
		log.Err(elog.Emerg, err, `open() "%s" failed`, module.CText(f.Name))
		return
	}
	defer ev.CloseFD(fd)
	if uid != module.Unset {
		st, err := ev.Stat(f.Name)
		if err != nil {
			log.Err(elog.Emerg, err, `stat() "%s" failed`, module.CText(f.Name))
			return
		}
		if int(st.UID) != uid {
			if err := ev.Chown(f.Name, uid, -1); err != nil {
				log.Err(elog.Emerg, err, `chown("%s", %d) failed`, f.Name, uid)
				return
			}
		}
		if st.Mode&0o600 != 0o600 {
			if err := ev.Chmod(f.Name, st.Mode&0o7777|0o600); err != nil {
				log.Err(elog.Emerg, err, `chmod() "%s" failed`, module.CText(f.Name))
				return
			}
		}
	}
	if err := ev.Dup3(fd, f.FD, true); err != nil {
		log.Err(elog.Emerg, err, `dup() "%s" failed`, module.CText(f.Name))
	}
}
