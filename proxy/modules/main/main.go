// Package main_ is the core module: the directives outside of any block
// (nginx: src/core/nginx.c, ngx_core_module; src/core/ngx_log.c, ngx_errlog_module).
package main_

import (
	"os"
	"runtime"
	"strings"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
)

// Conf is the core module's configuration (ngx_core_conf_t). Durations are in ms.
type Conf struct {
	Daemon, Master                   int
	TimerResolution, ShutdownTimeout int64
	Workers                          int
	DebugPoints                      int
	RlimitNofile                     int
	RlimitCore                       int64
	Priority                         int
	CPUs                             [][]int // by worker: the processors it may run on
	CPUAuto                          bool
	Pid, OldPid, LockFile, WorkDir   module.Str
	Username                         string
	UID, GID                         int // -1 = stay who we are
	Env                              []string
}

// Compiled-in paths of the Debian build.
const (
	PidPath  = "/run/nginx.pid"
	LockPath = "/var/lock/nginx.lock"
	User     = "nobody"
	Group    = "nogroup"
)

// Set is ngx_core_module.
var Set = &module.Set{Name: "ngx_core_module", Type: module.CoreModule, Create: create}

// Errlog is ngx_errlog_module.
var Errlog = &module.Set{
	Name: "ngx_errlog_module", Type: module.CoreModule,
	Directives: []module.Directive{{
		Name: "error_log", Where: module.Main, Args: module.OneMore,
		Set: func(cf *module.Conf, _ *module.Directive, _ any) error { return cf.SetLog(&cf.Cycle.NewLog) },
	}},
}

// Of is the core module's configuration in a cycle.
func Of(c *module.Cycle) *Conf { return c.Confs[Set].(*Conf) }

func init() {
	Set.Conf = module.Core(Set)
	Set.Init = initConf
	row := func(name string, args module.Args, set func(*module.Conf, *module.Directive, any) error) {
		Set.Directives = append(Set.Directives, module.Directive{Name: name, Where: module.Main | module.Direct, Args: args, Set: set})
	}
	row("daemon", module.Flag, module.FlagSlot(func(c *Conf) *int { return &c.Daemon }))
	row("master_process", module.Flag, module.FlagSlot(func(c *Conf) *int { return &c.Master }))
	row("timer_resolution", module.Take1, module.MsecSlot(func(c *Conf) *int64 { return &c.TimerResolution }))
	row("pid", module.Take1, module.StrSlot(func(c *Conf) *module.Str { return &c.Pid }))
	row("lock_file", module.Take1, module.StrSlot(func(c *Conf) *module.Str { return &c.LockFile }))
	row("worker_processes", module.Take1, setWorkers)
	row("debug_points", module.Take1, module.EnumSlot(func(c *Conf) *int { return &c.DebugPoints }, []module.Enum{{Name: "stop", Value: 1}, {Name: "abort", Value: 2}}))
	row("user", module.Take12, setUser)
	row("worker_priority", module.Take1, setPriority)
	row("worker_cpu_affinity", module.OneMore, setAffinity)
	row("worker_rlimit_nofile", module.Take1, module.NumSlot(func(c *Conf) *int { return &c.RlimitNofile }))
	row("worker_rlimit_core", module.Take1, module.OffSlot(func(c *Conf) *int64 { return &c.RlimitCore }))
	row("worker_shutdown_timeout", module.Take1, module.MsecSlot(func(c *Conf) *int64 { return &c.ShutdownTimeout }))
	row("working_directory", module.Take1, module.StrSlot(func(c *Conf) *module.Str { return &c.WorkDir }))
	row("env", module.Take1, setEnv)
	row("load_module", module.Take1, loadModule)
}

func create(*module.Cycle) any {
	const unset = module.Unset
	return &Conf{
		Daemon: unset, Master: unset, TimerResolution: unset, ShutdownTimeout: unset, Workers: unset,
		DebugPoints: unset, RlimitNofile: unset, RlimitCore: unset, UID: unset, GID: unset,
	}
}

func initConf(c *module.Cycle, conf any) error {
	m := conf.(*Conf)
	module.InitInt(&m.Daemon, 1)
	module.InitInt(&m.Master, 1)
	module.InitInt64(&m.TimerResolution, 0)
	module.InitInt64(&m.ShutdownTimeout, 0)
	module.InitInt(&m.Workers, 1)
	module.InitInt(&m.DebugPoints, 0)
	if n := len(m.CPUs); !m.CPUAuto && n > 1 && n != m.Workers {
		c.Log.Err(elog.Warn, nil, `the number of "worker_processes" is not equal to the number of "worker_cpu_affinity" masks, using last mask for remaining worker processes`)
	}
	if m.Pid.V == "" {
		m.Pid.V = PidPath
	}
	m.Pid.V = module.FullName(c.Prefix, m.Pid.V)
	m.OldPid.V = m.Pid.V + ".oldbin"
	if m.UID == module.Unset && ev.Euid() == 0 {
		uid, _, err := ev.LookupUser(User)
		if err != nil {
			c.Log.Err(elog.Emerg, ev.LookupErrno(err), `getpwnam("%s") failed`, User)
			return module.ErrReported
		}
		gid, err := ev.LookupGroup(Group)
		if err != nil {
			c.Log.Err(elog.Emerg, ev.LookupErrno(err), `getgrnam("%s") failed`, Group)
			return module.ErrReported
		}
		m.Username, m.UID, m.GID = User, uid, gid
	}
	if m.LockFile.V == "" {
		m.LockFile.V = LockPath
	}
	m.LockFile.V = module.FullName(c.Prefix, m.LockFile.V)
	if c.Old != nil && Of(c.Old).LockFile.V != m.LockFile.V {
		c.Log.Err(elog.Emerg, nil, `"lock_file" could not be changed, ignored`)
		m.LockFile.V = Of(c.Old).LockFile.V
	}
	return nil
}

func setWorkers(cf *module.Conf, _ *module.Directive, conf any) error {
	m := conf.(*Conf)
	if m.Workers != module.Unset {
		return module.ErrDuplicate
	}
	if module.Is(cf.Args[1], "auto") {
		m.Workers = runtime.NumCPU()
		return nil
	}
	n, ok := module.Atoi(cf.Args[1])
	if !ok {
		return module.Text("invalid value")
	}
	m.Workers = n
	return nil
}

func setUser(cf *module.Conf, _ *module.Directive, conf any) error {
	m := conf.(*Conf)
	if m.UID != module.Unset {
		return module.ErrDuplicate
	}
	if ev.Euid() != 0 {
		cf.Warn(`the "user" directive makes sense only if the master process runs with super-user privileges, ignored`)
		return nil
	}
	user := module.CText(cf.Args[1])
	group := module.CText(cf.Args[len(cf.Args)-1])
	m.Username = user
	uid, _, err := ev.LookupUser(user)
	if err != nil {
		return cf.EmergErrno(ev.LookupErrno(err), `getpwnam("%s") failed`, user)
	}
	m.UID = uid
	gid, err := ev.LookupGroup(group)
	if err != nil {
		return cf.EmergErrno(ev.LookupErrno(err), `getgrnam("%s") failed`, group)
	}
	m.GID = gid
	return nil
}

func setPriority(cf *module.Conf, _ *module.Directive, conf any) error {
	m := conf.(*Conf)
	if m.Priority != 0 {
		return module.ErrDuplicate
	}
	digits, sign := cf.Args[1], 1
	if digits != "" && (digits[0] == '-' || digits[0] == '+') {
		if digits[0] == '-' {
			sign = -1
		}
		digits = digits[1:]
	}
	n, ok := module.Atoi(digits)
	if !ok {
		return module.Text("invalid number")
	}
	// An int, in which some numbers look like ngx_atoi's error, and others are nice ones.
	if m.Priority = int(int32(n)); m.Priority == -1 {
		return module.Text("invalid number")
	}
	m.Priority *= sign
	return nil
}

// maxCPUs is the width of a mask (CPU_SETSIZE).
const maxCPUs = 1024

func setAffinity(cf *module.Conf, _ *module.Directive, conf any) error {
	m := conf.(*Conf)
	if m.CPUs != nil {
		return module.ErrDuplicate
	}
	masks := cf.Args[1:]
	m.CPUs = make([][]int, 0, len(masks))
	if module.Is(masks[0], "auto") {
		if len(masks) > 2 {
			return cf.Emerg(`invalid number of arguments in "worker_cpu_affinity" directive`)
		}
		m.CPUAuto = true
		var all []int
		for i := 0; i < min(runtime.NumCPU(), maxCPUs); i++ {
			all = append(all, i)
		}
		m.CPUs = append(m.CPUs, all)
		masks = masks[1:]
	}
	for _, w := range masks {
		if len(w) > maxCPUs {
			return cf.Emerg(`"worker_cpu_affinity" supports up to %d CPUs only`, maxCPUs)
		}
		var set []int
		bit := 0
		for i := len(w) - 1; i >= 0; i-- {
			switch w[i] {
			case ' ':
				continue
			case '1':
				set = append(set, bit)
			case '0':
			default:
				return cf.Emerg(`invalid character "%s" in "worker_cpu_affinity"`, w[i:i+1])
			}
			bit++
		}
		m.CPUs = append(m.CPUs, set)
	}
	return nil
}

// Affinity is the processors of worker n; nil leaves it free (ngx_get_cpu_affinity).
func (m *Conf) Affinity(n int) []int {
	switch {
	case m.CPUs == nil:
		return nil
	case m.CPUAuto:
		mask := m.CPUs[len(m.CPUs)-1]
		if len(mask) == 0 {
			return nil
		}
		return mask[n%len(mask) : n%len(mask)+1]
	case n < len(m.CPUs):
		return m.CPUs[n]
	}
	return m.CPUs[len(m.CPUs)-1]
}

func setEnv(cf *module.Conf, _ *module.Directive, conf any) error {
	m := conf.(*Conf)
	m.Env = append(m.Env, cf.Args[1])
	return nil
}

// loadModule refuses: a compiled C module cannot be loaded here. What nginx itself refuses is told
// as nginx does.
func loadModule(cf *module.Conf, _ *module.Directive, _ any) error {
	if cf.Cycle.Used {
		return module.Text("is specified too late")
	}
	file := module.CText(cf.Prefix(cf.Args[1]))
	if _, err := ev.Stat(file); err != nil {
		if text, ok := dlopenText(err); ok {
			return cf.Emerg(`dlopen() "%s" failed (%s: cannot open shared object file: %s)`, file, file, text)
		}
	}
	return cf.NotSupported("load_module")
}

func dlopenText(err error) (string, bool) {
	e, ok := ev.Errno(err)
	if !ok {
		return "", false
	}
	return elog.Strerror(e), true
}

// Environ is the environment that the env directives leave (nginx.c, ngx_set_environment).
func (m *Conf) Environ() (env []string) {
	vars := m.Env
	tz := false
	for _, v := range vars {
		tz = tz || v == "TZ" || strings.HasPrefix(v, "TZ=")
	}
	if !tz {
		vars = append(vars[:len(vars):len(vars)], "TZ")
	}
	for _, v := range vars {
		if strings.Contains(v, "=") {
			env = append(env, v)
		} else if value, ok := os.LookupEnv(v); ok {
			env = append(env, v+"="+value)
		}
	}
	return env
}
