package module

import (
	"strings"

	"nginxoracle/proxy/elog"
)

// SetLog adds what an error_log directive says to a list, which it makes when there is none
// (ngx_log.c, ngx_log_set_log).
func (cf *Conf) SetLog(head **elog.List) error {
	if *head == nil {
		*head = &elog.List{}
	}
	t := &elog.Target{}
	where := cf.Args[1]
	switch {
	case Is(where, "stderr"):
		cf.Cycle.UseStderr = true
		t.W = cf.OpenFile("")
		t.Console = true
	case strings.HasPrefix(where, "memory:"):
		size, ok := ParseSize(where[len("memory:"):])
		if !ok || size < int64(len("MEMLOG  :\n")+1+len(cf.File())+20+20+elog.MaxEntry) {
			return cf.Emerg(`invalid buffer size "%s"`, where[len("memory:"):])
		}
		t.W = nowhere{}
	case strings.HasPrefix(where, "syslog:"):
		return cf.NotSupported("error_log syslog:")
	default:
		t.W = cf.OpenFile(where)
	}
	level, err := cf.logLevel()
	if err != nil {
		return err
	}
	t.Level = level
	(*head).Insert(t)
	return nil
}

// nowhere is the log in memory, which only a debugger could read.
type nowhere struct{}

func (nowhere) WriteLine([]byte) error { return nil }

// debugLevels are parts of debug, which may be given together.
var debugLevels = map[string]bool{
	"debug_core": true, "debug_alloc": true, "debug_mutex": true, "debug_event": true,
	"debug_http": true, "debug_mail": true, "debug_stream": true,
}

func (cf *Conf) logLevel() (elog.Level, error) {
	if len(cf.Args) == 2 {
		return elog.Error, nil
	}
	var level elog.Level // 0 = none yet
	parts := false
	for _, w := range cf.Args[2:] {
		l, ok := elog.LevelByName(CText(w))
		switch {
		case ok && (level != 0 || parts):
			return 0, cf.Emerg(`duplicate log level "%s"`, w)
		case ok:
			level = l
		case debugLevels[CText(w)] && level == 0:
			parts = true
		default:
			return 0, cf.Emerg(`invalid log level "%s"`, w)
		}
	}
	if parts {
		level = elog.Debug
	}
	return level, nil
}

// NotSupported refuses what nginx knows and this program does not.
func (cf *Conf) NotSupported(what string) error {
	return cf.Emerg(`directive "%s" is not supported`, what)
}
