package server

import (
	"fmt"
	"os"
	"syscall"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/modules/events"
	main_ "nginxoracle/proxy/modules/main"
)

// server is the process.
type server struct {
	opt  options
	args []string
	sys  *ev.Epoll // for listening sockets
	log  *elog.Log // before there is a cycle
	sets []*module.Set

	prefix, confPrefix, confFile, errorLog string

	cycle     *module.Cycle
	inherited []*module.Listening // sockets that another process opened
	upgraded  bool                // they come from an older binary
	daemon    bool                // we are the background half
	ready     int                 // descriptor to close when all is up, -1 = none

	workers   []*worker
	allDone   chan struct{} // closed when the last worker of a graceful end is done
	newBinary int           // the pid of a newer binary, 0 = none
	childDone chan struct{} // it has ended
	gone      chan *leaving // runs whose last worker has ended
	parent    int           // who started us
	noaccept  bool
}

// newCycle makes an empty cycle that stands where the command line says. Its log is the one of the
// cycle before.
func (s *server) newCycle(old *module.Cycle) *module.Cycle {
	c := module.NewCycle(s.sets)
	c.Prefix, c.ConfPrefix, c.ConfFile = s.prefix, s.confPrefix, s.confFile
	c.ConfParam, c.ErrorLog = s.opt.params, s.errorLog
	c.Hostname = ascii.Lower(ev.Hostname())
	c.TestConfig = s.opt.test
	c.Old = old
	c.Log = s.log
	if old != nil {
		c.Log = old.Log
	}
	return c
}

// read reads the configuration into a cycle; a fault has been told.
func (s *server) read(c *module.Cycle) error {
	cf := &module.Conf{Where: module.Main, Type: module.CoreModule, Cycle: c}
	if err := cf.ReadParam(c.ConfParam); err != nil {
		return err
	}
	if err := cf.ReadFile(c.ConfFile); err != nil {
		return err
	}
	if s.opt.test && !s.opt.quiet {
		console("the configuration file " + c.ConfFile + " syntax is ok")
	}
	for _, set := range s.sets {
		if set.Init == nil {
			continue
		}
		if err := set.Init(c, c.Confs[set]); err != nil {
			return err
		}
	}
	return nil
}

// initCycle reads the configuration and opens all that it asks for; nil when it failed, and then the
// old cycle goes on as it was (ngx_cycle.c, ngx_init_cycle).
func (s *server) initCycle(old *module.Cycle) *module.Cycle {
	c := s.newCycle(old)
	if s.read(c) != nil {
		return nil
	}
	if s.opt.signal != "" {
		return c
	}
	if err := s.openAll(c, old); err != nil {
		s.rollback(c)
		return nil
	}
	if !elog.Startup.On {
		s.redirectStderr(c)
	}
	s.checkLimits(c)
	return c
}

func (s *server) openAll(c, old *module.Cycle) error {
	m := main_.Of(c)
	log := c.Log
	if s.opt.test {
		if err := s.createPid(m.Pid.V, log); err != nil {
			return err
		}
	} else if old != nil && m.Pid.V != main_.Of(old).Pid.V {
		if err := s.createPid(m.Pid.V, log); err != nil {
			return err
		}
		s.deletePid(old)
	}
	if err := createPaths(c, m.UID); err != nil {
		return err
	}
	openDefaultLog(c)
	for _, f := range c.Files {
		if f.Name == "" {
			continue
		}
		fd, err := ev.Open(f.Name, ev.WriteOnly|ev.Append|ev.Create, 0o644)
		if err != nil {
			log.Err(elog.Emerg, err, `open() "%s" failed`, module.CText(f.Name))
			return module.ErrReported
		}
		f.FD = fd
	}
	c.Log = &elog.Log{Sink: c.NewLog}
	if err := initZones(c, old, log); err != nil {
		return err
	}
	before := s.inherited
	if old != nil {
		before = old.Listen
	}
	matchListening(c, before)
	if err := openListening(c, s.sys); err != nil {
		return err
	}
	if !s.opt.test {
		configureListening(c, s.sys)
	}
	return nil
}

// rollback closes what a cycle that failed has opened.
func (s *server) rollback(c *module.Cycle) {
	for _, f := range c.Files {
		if f.FD > 2 {
			ev.CloseFD(f.FD)
			f.FD = -1
		}
	}
	for _, z := range c.Zones {
		if z.Lost { // nginx gives back what it has not got; its log files are closed by then
			c.Log.Err(elog.Alert, syscall.EINVAL, "munmap(%X, %d) failed", ^uintptr(0), z.Size)
		}
	}
	for _, ls := range c.Listen {
		if ls.Open && ls.FD != -1 {
			s.sys.Close(ls.FD)
		}
	}
}

// initZones gives each zone its data, taken over from the run before where it is the same zone.
func initZones(c, old *module.Cycle, log *elog.Log) error {
	for _, z := range c.Zones {
		if z.Size == 0 {
			log.Err(elog.Emerg, nil, `zero size shared memory zone "%s"`, z.Name)
			return module.ErrReported
		}
		var data any
		if old != nil {
			for _, o := range old.Zones {
				if o.Name == z.Name && o.Tag == z.Tag && o.Size == z.Size && !z.NoReuse {
					data = o.Data
				}
			}
		}
		if data == nil {
			if err := ev.Mappable(z.Size); err != nil {
				log.Err(elog.Alert, err, "mmap(MAP_ANON|MAP_SHARED, %d) failed", z.Size)
				z.Lost = true
				return module.ErrReported
			}
		}
		if z.Init == nil {
			continue
		}
		if err := z.Init(z, data); err != nil {
			return err
		}
	}
	return nil
}

// checkLimits warns of more connections than descriptors (ngx_event.c, ngx_event_module_init).
func (s *server) checkLimits(c *module.Cycle) {
	e, m := events.Of(c), main_.Of(c)
	if !s.opt.test {
		c.Log.Err(elog.Notice, nil, `using the "%s" event method`, e.Use)
	}
	cur, _, err := ev.NofileLimit()
	if err != nil {
		c.Log.Err(elog.Alert, err, "getrlimit(RLIMIT_NOFILE) failed, ignored")
		return
	}
	if uint64(e.Connections) > cur && (m.RlimitNofile == module.Unset || e.Connections > m.RlimitNofile) {
		limit := int64(cur)
		if m.RlimitNofile != module.Unset {
			limit = int64(m.RlimitNofile)
		}
		c.Log.Err(elog.Warn, nil, "%d worker_connections exceed open file resource limit: %d", e.Connections, limit)
	}
}

// openDefaultLog adds the error log of the command line when no error_log directive names a file
// (ngx_log.c, ngx_log_open_default).
func openDefaultLog(c *module.Cycle) {
	for _, t := range c.NewLog.Targets {
		if _, ok := t.W.(*module.File); ok {
			return
		}
	}
	f := c.OpenFile(c.ErrorLog)
	c.NewLog.Insert(&elog.Target{Level: elog.Error, W: f, Console: f.FD == 2})
}

// redirectStderr makes standard error the first log file, unless some log is standard error itself
// (ngx_log.c, ngx_log_redirect_stderr).
func (s *server) redirectStderr(c *module.Cycle) {
	if c.UseStderr {
		return
	}
	for _, t := range c.NewLog.Targets {
		f, ok := t.W.(*module.File)
		if !ok {
			continue
		}
		if f.FD != 2 {
			if err := ev.Dup3(f.FD, 2, false); err != nil {
				c.Log.Err(elog.Alert, err, "dup2(STDERR) failed")
			}
		}
		return
	}
}

// createPid writes the process number; a test only opens the file (ngx_create_pidfile).
func (s *server) createPid(name string, log *elog.Log) error {
	mode := ev.ReadWrite | ev.Create
	if !s.opt.test {
		mode |= ev.Truncate
	}
	fd, err := ev.Open(name, mode, 0o644)
	if err != nil {
		log.Err(elog.Emerg, err, `open() "%s" failed`, module.CText(name))
		return module.ErrReported
	}
	defer ev.CloseFD(fd)
	if s.opt.test {
		return nil
	}
	if _, err := ev.Pwrite(fd, fmt.Appendf(nil, "%d\n", os.Getpid()), 0); err != nil {
		log.Err(elog.Crit, err, `pwrite() "%s" failed`, module.CText(name))
		return module.ErrReported
	}
	return nil
}

func (s *server) deletePid(c *module.Cycle) {
	name := main_.Of(c).Pid.V
	if s.newBinary != 0 {
		name = main_.Of(c).OldPid.V
	}
	if err := ev.Unlink(name); err != nil {
		c.Log.Err(elog.Alert, err, `unlink() "%s" failed`, module.CText(name))
	}
}

// createPaths makes the folders for temporary files, for the workers' user (ngx_create_paths).
func createPaths(c *module.Cycle, uid int) error {
	fail := func(err error, what string, args ...any) error {
		c.Log.Err(elog.Emerg, err, what, args...)
		return module.ErrReported
	}
	for _, p := range c.Paths {
		if err := ev.Mkdir(p.Made, 0o700); err != nil {
			if e, _ := ev.Errno(err); e != ev.EEXIST {
				return fail(err, `mkdir() "%s" failed`, module.CText(p.Made))
			}
		}
		if uid == module.Unset {
			continue
		}
		st, err := ev.Stat(p.Made)
		if err != nil {
			return fail(err, `stat() "%s" failed`, module.CText(p.Made))
		}
		if int(st.UID) != uid {
			if err := ev.Chown(p.Made, uid, -1); err != nil {
				return fail(err, `chown("%s", %d) failed`, module.CText(p.Made), uid)
			}
		}
		if st.Mode&0o700 != 0o700 {
			if err := ev.Chmod(p.Made, st.Mode&0o7777|0o700); err != nil {
				return fail(err, `chmod() "%s" failed`, module.CText(p.Made))
			}
		}
	}
	return nil
}
