// Package server is the composition: the command line, the configuration's run, listening sockets,
// workers and signals (nginx: src/core/nginx.c, ngx_cycle.c, os/unix/ngx_process_cycle.c).
package server

import (
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/ev/rlimit"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	main_ "nginxoracle/proxy/modules/main"
)

// stderr is the standard error stream as a log.
var stderr = &module.File{FD: 2}

// Main runs the program and gives its exit status.
func Main(args []string) int {
	s := &server{args: args, sys: ev.NewSockets(), parent: os.Getppid(), gone: make(chan *leaving, 16)}
	if !s.opt.parse(args) {
		return 1
	}
	rlimit.Restore()
	http.Modules = httpModules
	http.IndexModules()
	http.BuildFilters()
	s.sets = moduleSets()
	if s.opt.directives {
		listDirectives(s.sets)
		return 0
	}
	if s.opt.version {
		showVersion(&s.opt)
		if !s.opt.test {
			return 0
		}
	}
	s.processOptions()
	file := s.initLog()
	s.inherit()
	if s.daemon && !s.upgraded {
		s.log.Sink = &elog.List{} // the half that started us has told all
	}
	c := s.initCycle(nil)
	if c == nil {
		if s.opt.test {
			console("configuration file " + s.confFile + " test failed")
		}
		return 1
	}
	s.cycle = c
	if s.opt.test {
		if !s.opt.quiet {
			console("configuration file " + s.confFile + " test is successful")
		}
		if s.opt.dump {
			dump(c)
		}
		return 0
	}
	if s.opt.signal != "" {
		return s.signal(c)
	}
	return s.serve(file)
}

func (s *server) serve(builtin *module.File) int {
	c := s.cycle
	m := main_.Of(c)
	osStatus(c.Log)
	signals := catchSignals()
	if !s.daemon && m.Daemon == 1 {
		return s.background()
	}
	if s.daemon {
		ev.Umask(0)
	}
	if s.createPid(m.Pid.V, c.Log) != nil {
		return 1
	}
	s.redirectStderr(c)
	if builtin.FD != 2 {
		ev.CloseFD(builtin.FD)
	}
	elog.Startup.On = false
	debug.SetGCPercent(400)
	time.AfterFunc(time.Hour, func() {}) // the runtime's own descriptors are made now rather than with a later timer
	s.startWorkers(c)
	s.settled()
	s.master(signals)
	return 0
}

// processOptions turns the command line into full names (nginx.c, ngx_process_options).
func (s *server) processOptions() {
	s.prefix, s.confPrefix = defaultPrefix, "/etc/nginx/"
	if p := s.opt.prefix; p != nil {
		s.prefix = *p
		if *p != "" && (*p)[len(*p)-1] != '/' {
			s.prefix += "/"
		}
		s.confPrefix = s.prefix
	}
	s.confFile = defaultConf
	if s.opt.conf != nil {
		s.confFile = *s.opt.conf
	}
	s.confFile = module.FullName(s.prefix, s.confFile)
	for i := len(s.confFile) - 1; i > 0; i-- {
		if s.confFile[i] == '/' {
			s.confPrefix = s.confFile[:i+1]
			break
		}
	}
	if s.opt.errorLog != nil {
		s.errorLog = *s.opt.errorLog
	}
}

// initLog opens the log that is written to until the configuration names others
// (ngx_log.c, ngx_log_init).
func (s *server) initLog() *module.File {
	elog.Startup.On, elog.Startup.W = true, stderr
	t := &elog.Target{Level: elog.Notice, W: stderr, Console: true}
	if s.opt.test {
		t.Level = elog.Info
	}
	list := &elog.List{}
	list.Insert(t)
	s.log = &elog.Log{Sink: list}
	if s.errorLog == "" {
		return stderr
	}
	prefix := s.prefix
	name := module.FullName(prefix, s.errorLog)
	fd, err := ev.Open(name, ev.WriteOnly|ev.Append|ev.Create, 0o644)
	if err != nil {
		console(string(elog.AppendErrno([]byte(`[alert] could not open error log file: open() "`+name+`" failed`), err, elog.MaxEntry)))
		return stderr
	}
	f := &module.File{Name: name, FD: fd}
	t.W, t.Console = f, false
	return f
}

func showVersion(o *options) {
	ev.WriteFD(2, []byte("nginx version: "+version+"\n"))
	if o.help {
		ev.WriteFD(2, []byte(usage))
	}
	if o.configure {
		text := "built with " + runtime.Version() + "\nthis is not nginx: a reimplementation of its HTTP proxy in Go, with the modules"
		for _, m := range http.Modules {
			text += "\n    " + m.Name
		}
		ev.WriteFD(2, []byte(text+"\n(--directives lists what they support)\n"))
	}
}

// listDirectives prints "name<TAB>module" of all that is supported.
func listDirectives(sets []*module.Set) {
	var out []byte
	for _, s := range sets {
		for i := range s.Directives {
			if s.Name != refused {
				out = append(out, s.Directives[i].Name+"\t"+s.Name+"\n"...)
			}
		}
	}
	ev.WriteFD(1, out)
}

// dump prints the files of the configuration (-T).
func dump(c *module.Cycle) {
	for _, d := range c.Dumps {
		ev.WriteFD(1, []byte("# configuration file "+d.Name+":\n"))
		for b := d.Text; len(b) > 0; {
			n, err := ev.WriteFD(1, b)
			if err != nil {
				return
			}
			b = b[n:]
		}
		ev.WriteFD(1, []byte("\n"))
	}
}

func osStatus(log *elog.Log) {
	log.Err(elog.Notice, nil, version)
	log.Err(elog.Notice, nil, "built by %s", runtime.Version())
	if cur, max, err := ev.NofileLimit(); err == nil {
		log.Err(elog.Notice, nil, "getrlimit(RLIMIT_NOFILE): %d:%d", cur, max)
	}
}
