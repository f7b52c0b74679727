// Package module is the vocabulary that every module of the proxy speaks:
// directives as rows of data, contexts, argument flags, and the state of the
// configuration being read (nginx: src/core/ngx_conf_file.h, ngx_conf_file.c).
package module

// Where a directive may stand (ngx_conf_file.h, ngx_http_config.h).
type Where uint32

const (
	Main Where = 1 << iota // NGX_MAIN_CONF
	Events
	HTTPMain // http {}
	HTTPSrv
	HTTPLoc
	HTTPUps // upstream {}
	HTTPSif // if in server
	HTTPLif // if in location
	HTTPLmt // limit_except
	StreamMain
	StreamSrv
	StreamUps
	MailMain
	MailSrv
	Any // include
	Direct
)

// Args says how many arguments a directive takes (NGX_CONF_*).
type Args uint32

const (
	NoArgs Args = 1 << iota
	Take1
	Take2
	Take3
	Take4
	Take5
	Take6
	Take7
	OneMore // at least one
	TwoMore
	AnyArgs
	Flag     // one argument, on or off
	Block    // opens a block
	Take12   = Take1 | Take2
	Take13   = Take1 | Take3
	Take23   = Take2 | Take3
	Take34   = Take3 | Take4
	Take123  = Take1 | Take2 | Take3
	Take1234 = Take1 | Take2 | Take3 | Take4
)

// Level says which of the three configurations of a module a setter is handed.
type Level int

const (
	NoConf Level = iota
	MainConf
	SrvConf
	LocConf
)

// Directive is one row of a module's table.
type Directive struct {
	Name  string
	Where Where
	Args  Args
	Level Level
	// Set reads cf.Args (Args[0] is the name) into conf, the module's configuration at
	// Level (nil for NoConf). An error that is not ErrReported is printed as nginx prints
	// what a setter returns: `"NAME" directive ERR in FILE:LINE`.
	Set func(cf *Conf, cmd *Directive, conf any) error
	// Post holds what a generic setter needs besides (bounds, enum tables).
	Post any
}

// ErrDuplicate is what setters return for a second setting of the same value.
var ErrDuplicate = Text("is duplicate")

// Text is an error that is its own text.
type Text string

func (t Text) Error() string { return string(t) }

// ErrReported says that the diagnostic has been written already (NGX_CONF_ERROR).
const ErrReported = Text("reported")

// Conf is the state of the configuration being read (ngx_conf_t).
type Conf struct {
	Args    []string             // the directive's words, the name first
	Where   Where                // the block that is being read (cmd_type)
	Type    Type                 // whose directives are looked up in it (module_type)
	Ctx     any                  // the block's configurations; for http *http.ConfCtx
	Cycle   *Cycle               // the paths, files, zones and modules of the run
	Handler func(cf *Conf) error // when set, gets every directive of the block raw (types, map, geo)

	src *source // nil outside any text
}

// Type is the kind of a module: which blocks its directives belong to (ngx_module_t.type).
type Type int

const (
	CoreModule Type = iota
	ConfModule      // include: looked up everywhere
	EventModule
	HTTPModule
	StreamModule
	MailModule
)

// Set is a module as the reader of configurations sees it: its directives and where each one's
// configuration is.
type Set struct {
	Name       string
	Type       Type
	Directives []Directive
	// Conf finds what a directive's setter is handed, in cf.Ctx; nil gives nil.
	Conf func(cf *Conf, cmd *Directive) any

	// Create and Init are of the core modules: the first makes the configuration that Cycle.Confs
	// holds, the second fills in defaults when all has been read (ngx_core_module_t).
	Create func(c *Cycle) any
	Init   func(c *Cycle, conf any) error
}

// Core is the Conf of a core module: the cycle's own configuration of it.
func Core(set *Set) func(cf *Conf, cmd *Directive) any {
	return func(cf *Conf, _ *Directive) any { return cf.Cycle.Confs[set] }
}

// Unset marks a number, a flag or a duration that no directive has set.
const Unset = -1

// Str is a string that knows whether it was set.
type Str struct {
	Set bool
	V   string
}

// Bufs is "number size" (proxy_buffers 8 4k).
type Bufs struct {
	Num  int
	Size int64
}

// Enum is one row of a table of words with their values.
type Enum struct {
	Name  string
	Value int
}
