package module

import (
	"sync/atomic"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
)

// Cycle is one run of the configuration: the paths it stands on, and what reading it asks for,
// to be opened when all has been read (ngx_cycle_t).
type Cycle struct {
	Prefix     string // "-p", ends in "/"
	ConfPrefix string // the folder of nginx.conf, ends in "/"
	ConfFile   string
	ConfParam  string // "-g"
	ErrorLog   string // "-e": the log when no error_log is set
	Hostname   string // lower case
	TestConfig bool

	Log       *elog.Log // where diagnostics go while reading; the error_log of the main level afterwards
	NewLog    *elog.List
	UseStderr bool // some error_log is stderr

	Sets  []*Set       // all modules, in nginx's order
	Confs map[*Set]any // of the core modules (conf_ctx)

	Connections int // worker_connections

	Files  []*File
	Paths  []*Path
	Zones  []*Zone
	Listen []*Listening

	// AtExit is what a worker does at its end, on its own thread: where nginx's process ends and with
	// it all that it had open, ours stays.
	AtExit []func()

	Dumps []*Dump // -T
	Used  bool    // some module's directive has been met: load_module comes too late

	// Worker is which of the run's readings of the configuration this is; each worker has its own,
	// so that modules may keep state in their configurations without locks. The first reading is
	// from the files, the others repeat it from what it kept in Dumps and globs.
	Worker int
	First  *Cycle // nil for the first reading
	Old    *Cycle // the run before, nil at the start

	globs map[string][]string
}

// NewCycle makes an empty cycle.
func NewCycle(sets []*Set) *Cycle {
	c := &Cycle{Sets: sets, Confs: map[*Set]any{}, globs: map[string][]string{}, NewLog: &elog.List{}}
	for _, s := range sets {
		if s.Create != nil {
			c.Confs[s] = s.Create(c)
		}
	}
	return c
}

// glob expands a pattern, or repeats what the first reading saw.
func (c *Cycle) glob(pattern string) []string {
	if c.First != nil {
		return c.First.globs[pattern]
	}
	names := ev.Glob(pattern)
	c.globs[pattern] = names
	return names
}

// dump is the kept text of a file.
func (c *Cycle) dump(name string) *Dump {
	for _, d := range c.Dumps {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// Dump is the text of a configuration file as it was read.
type Dump struct {
	Name string
	Text []byte
}

// Listening is a listening socket that a module asks for (ngx_listening_t).
type Listening struct {
	Addr ev.Addr
	Text string

	Backlog, Rcvbuf, Sndbuf, FastOpen       int // Rcvbuf, Sndbuf, FastOpen: -1 where not given
	Keepalive, KeepIdle, KeepIntvl, KeepCnt int // Keepalive: 0 not given, 1 on, 2 off; the others 0 where not given
	Deferred, Reuseport, IPv6Only           bool
	Wildcard                                bool // stands for many local addresses

	Handler  func(*ev.Conn)
	Servers  any // *http.ConfPort: becomes ev.Listener.Data
	ErrorLog any // *elog.List: of the default server

	Worker int // reuseport: whose socket
	FD     int // -1 until opened

	// What the opening does, decided by comparing with the run before.
	Open, Inherited, Remain, Relisten         bool
	AddDeferred, DeleteDeferred, AddReuseport bool
}

// File is a log file: opened when the configuration has been read, reopened on USR1 without a change
// of its descriptor (ngx_open_file_t).
type File struct {
	Name  string // full; empty is standard error
	FD    int
	Flush func(*File) // write out what is buffered: before a reopening, and at the end
	Data  any
}

// Path is a folder for temporary files with its levels (ngx_path_t).
type Path struct {
	Name  string
	Made  string // the name that the folder is made and told of by: an absolute one ends in the slash that Name is without
	Level [3]int
	Len   int // bytes that the levels add to a name
	Data  any // of a cache
	File  string
	Line  int
}

// Zone is shared by the workers and by runs that follow each other (ngx_shm_zone_t).
type Zone struct {
	Name    string
	Size    int64
	Tag     any // the module
	Data    any
	NoReuse bool
	Lost    bool // the kernel had no memory for it
	// Init gets the Data of the same zone of the run before, or nil.
	Init func(z *Zone, old any) error
}

// FullName puts prefix before a name that is not absolute (ngx_file.c, ngx_get_full_name).
func FullName(prefix, name string) string {
	if name != "" && name[0] == '/' {
		return name
	}
	return prefix + name
}

// WriteLine appends to the file with one system call.
func (f *File) WriteLine(b []byte) error {
	_, err := ev.WriteFD(f.FD, b)
	return err
}

// OpenFile asks for a log file; the same name gives the same file (ngx_conf_open_file). An empty name
// is standard error.
func (c *Cycle) OpenFile(name string) *File {
	if name == "" {
		f := &File{FD: 2}
		c.Files = append(c.Files, f)
		return f
	}
	name = FullName(c.Prefix, name)
	for _, f := range c.Files {
		if f.Name == name {
			return f
		}
	}
	f := &File{Name: name, FD: -1}
	c.Files = append(c.Files, f)
	return f
}

var tempNumber, collisionStep atomic.Uint32

func init() { collisionStep.Store(123456) }

// SeedTempNumber sets the step that a collision of temporary names makes (ngx_random_number).
func SeedTempNumber(n uint32) { collisionStep.Store(n) }

// NextTempNumber numbers temporary files, over all workers (ngx_file.c, ngx_next_temp_number).
func NextTempNumber(collision bool) uint32 {
	if collision {
		return tempNumber.Add(collisionStep.Load())
	}
	return tempNumber.Add(1)
}
