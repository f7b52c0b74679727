package server

import (
	"strings"
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
	main_ "nginxoracle/proxy/modules/main"
)

// signal sends what -s names to the process that the pid file names (ngx_cycle.c, ngx_signal_process).
func (s *server) signal(c *module.Cycle) int {
	log := c.Log
	log.Err(elog.Notice, nil, "signal process started")
	name := main_.Of(c).Pid.V
	fd, err := ev.Open(name, ev.ReadOnly, 0)
	if err != nil {
		log.Err(elog.Error, err, `open() "%s" failed`, module.CText(name))
		return 1
	}
	defer ev.CloseFD(fd)
	buf := make([]byte, 22) // NGX_INT64_LEN + 2
	n, err := ev.Pread(fd, buf, 0)
	if err != nil {
		log.Err(elog.Crit, err, `pread() "%s" failed`, module.CText(name))
		return 1
	}
	text := strings.TrimRight(string(buf[:n]), "\r\n")
	pid, ok := module.Atoi(text)
	if !ok {
		log.Err(elog.Error, nil, `invalid PID number "%s" in "%s"`, text, name)
		return 1
	}
	sig := map[string]syscall.Signal{
		"reload": syscall.SIGHUP, "reopen": syscall.SIGUSR1, "stop": syscall.SIGTERM, "quit": syscall.SIGQUIT,
	}[s.opt.signal]
	if err := ev.Kill(pid, sig); err != nil {
		log.Err(elog.Alert, err, "kill(%d, %d) failed", pid, int(sig))
		return 1
	}
	return 0
}
