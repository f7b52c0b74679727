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
	Ctx     any                  // the block's configurations; for http *http.ConfCtx
	Cycle   any                  // *server.Cycle, for those who need the paths and files of a run
	Module  any                  // the module whose directives are looked up (module_type)
	Handler func(cf *Conf) error // when set, gets every directive of the block raw (types, map, geo)

	reader reader
}

// reader is what conf gives: file, line, and the reading of a nested block. It is an
// interface so that module does not depend on how text is read.
type reader interface {
	File() string
	Line() int
	// Block reads up to the matching "}" with cf's current state.
	Block(cf *Conf) error
	// Include reads another file's directives in place.
	Include(cf *Conf, path string) error
	Emerg(text string)
	Warn(text string)
}

// Contracts, written beside this file (owner: p1), used by every module:
//
//	func (cf *Conf) Emerg(format string, args ...any) error   // writes `[emerg] … in FILE:LINE`, returns ErrReported
//	func (cf *Conf) EmergErrno(errno error, format string, args ...any) error
//	func (cf *Conf) Warn(format string, args ...any)          // `[warn] … in FILE:LINE`
//	func (cf *Conf) ReadBlock() error                         // parse "{ … }" of the current directive (ngx_conf_parse(cf, NULL))
//	func (cf *Conf) Log() *elog.Log
//	func (cf *Conf) Prefix(path string) string                // full name under the prefix (ngx_conf_full_name with conf_prefix=0)
//	func (cf *Conf) ConfPrefix(path string) string            // … under the folder of nginx.conf
//	func (cf *Conf) OpenFile(path string) *File               // a log file of the cycle, opened at the end, reopened on USR1 (ngx_conf_open_file)
//
// Unset values: numbers -1 (Unset), flags Flag -1, strings *string nil or Str{}, slices nil.
// Generic setters, each a function of a field accessor (ngx_conf_set_*_slot):
//
//	FlagSlot(func(c *T) *int) ; NumSlot(func(c *T) *int) ; StrSlot(func(c *T) *Str) ; SizeSlot(func(c *T) *int64) ; OffSlot
//	MsecSlot(func(c *T) *int64) ; SecSlot ; EnumSlot(func(c *T) *int, []Enum) ; BitmaskSlot(func(c *T) *int, []Enum)
//	BufsSlot(func(c *T) *Bufs) ; StrArraySlot ; KeyvalSlot
//	merges: MergeInt(conf *int, prev, def int), MergeInt64, MergeStr(conf *Str, prev Str, def string), MergePtr …
//	parsers: ParseSize(string) (int64, bool), ParseOffset, ParseTime(s string, sec bool) (int64, bool), Atoi(string) (int, bool)  — as ngx_parse_*.

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
