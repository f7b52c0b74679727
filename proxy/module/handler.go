package module

import (
	"errors"
	"strings"

	"nginxoracle/proxy/conf"
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
)

// blockKind is what a reading of directives is about.
type blockKind int

const (
	wholeFile blockKind = iota
	block
	parameter
)

// ReadBlock reads "{ … }" of the current directive with cf's present state; cf.Args are then those of
// the last directive inside (ngx_conf_parse with no name).
func (cf *Conf) ReadBlock() error { return cf.read(block) }

// ReadParam reads the argument of -g (ngx_conf_param).
func (cf *Conf) ReadParam(text string) error {
	if text == "" {
		return nil
	}
	cf.src = &source{r: conf.NewParameter(text)}
	err := cf.read(parameter)
	cf.src = nil
	return err
}

// file is an open configuration file.
type file struct {
	fd   int
	size int64
}

func (f *file) Size() int64                             { return f.size }
func (f *file) ReadAt(p []byte, off int64) (int, error) { return ev.Pread(f.fd, p, off) }

// kept is the text of a file from the first reading.
type kept []byte

func (k kept) Size() int64                             { return int64(len(k)) }
func (k kept) ReadAt(p []byte, off int64) (int, error) { return copy(p, k[off:]), nil }

// ReadFile reads a file of directives in place (ngx_conf_parse with a name). An error has been
// reported.
func (cf *Conf) ReadFile(name string) error {
	prev := cf.src
	defer func() { cf.src = prev }()
	if first := cf.Cycle.First; first != nil {
		if d := first.dump(name); d != nil {
			cf.src = &source{name: name, r: conf.NewReader(kept(d.Text))}
			return cf.read(wholeFile)
		}
	}
	fd, err := ev.Open(name, ev.ReadOnly, 0)
	if err != nil {
		return cf.EmergErrno(err, `open() "%s" failed`, CText(name))
	}
	defer ev.CloseFD(fd)
	st, err := ev.Fstat(fd)
	if err != nil {
		cf.Log().Err(elog.Emerg, err, `fstat() "%s" failed`, CText(name))
	}
	cf.src = &source{name: name, r: conf.NewReader(&file{fd, st.Size})}
	var dump *Dump
	if cf.Cycle.dump(name) == nil {
		dump = &Dump{Name: name}
		cf.Cycle.Dumps = append(cf.Cycle.Dumps, dump)
		cf.src.r.KeepDump = true
	}
	err = cf.read(wholeFile)
	if dump != nil {
		dump.Text = cf.src.r.Dump
	}
	return err
}

// read handles directives up to the end of the file, the block or the parameter.
func (cf *Conf) read(kind blockKind) error {
	for {
		words, what, err := cf.src.r.Next()
		if err != nil {
			var re *conf.ReadError
			if errors.As(err, &re) {
				cf.Log().Err(elog.Crit, re.Err, `pread() "%s" failed`, CText(cf.src.name))
				return ErrReported
			}
			return cf.Emerg("%s", err)
		}
		cf.Args = words
		switch what {
		case conf.BlockDone:
			if kind != block {
				return cf.Emerg(`unexpected "}"`)
			}
			return nil
		case conf.FileDone:
			if kind == block {
				return cf.Emerg(`unexpected end of file, expecting "}"`)
			}
			return nil
		case conf.BlockStart:
			if kind == parameter {
				return cf.Emerg("block directives are not supported in -g option")
			}
		}
		if cf.Handler != nil {
			if what == conf.BlockStart {
				return cf.Emerg(`unexpected "{"`)
			}
			if err := cf.Handler(cf); err == ErrReported {
				return err
			} else if err != nil {
				return cf.Emerg("%s", err)
			}
			continue
		}
		if err := cf.dispatch(what); err != nil {
			return err
		}
	}
}

// maxArgs is the most words of a directive with a fixed number of them (NGX_CONF_MAX_ARGS).
const maxArgs = 8

// dispatch finds the directive's row and calls its setter (ngx_conf_file.c, ngx_conf_handler).
func (cf *Conf) dispatch(what conf.Kind) error {
	name := cf.Args[0]
	found := false
	for _, set := range cf.Cycle.Sets {
		for i := range set.Directives {
			cmd := &set.Directives[i]
			if cmd.Name != name {
				continue
			}
			found = true
			if set.Type != ConfModule && set.Type != cf.Type {
				continue
			}
			if cmd.Where&cf.Where == 0 && cmd.Where&Any == 0 {
				continue
			}
			return cf.apply(set, cmd, what)
		}
	}
	if found {
		return cf.Emerg(`"%s" directive is not allowed here`, CText(name))
	}
	return cf.Emerg(`unknown directive "%s"`, CText(name))
}

func (cf *Conf) apply(set *Set, cmd *Directive, what conf.Kind) error {
	name := CText(cf.Args[0])
	if cmd.Args&Block == 0 && what == conf.BlockStart {
		return cf.Emerg(`directive "%s" is not terminated by ";"`, name)
	}
	if cmd.Args&Block != 0 && what != conf.BlockStart {
		return cf.Emerg(`directive "%s" has no opening "{"`, name)
	}
	if !cmd.Args.allow(len(cf.Args) - 1) {
		return cf.Emerg(`invalid number of arguments in "%s" directive`, name)
	}
	var c any
	if set.Conf != nil {
		c = set.Conf(cf, cmd)
	}
	err := cmd.Set(cf, cmd, c)
	if err == nil || err == ErrReported {
		return err
	}
	return cf.Emerg(`"%s" directive %s`, name, err)
}

// allow says whether a directive may have n arguments.
func (a Args) allow(n int) bool {
	switch {
	case a&AnyArgs != 0:
		return true
	case a&Flag != 0:
		return n == 1
	case a&OneMore != 0:
		return n >= 1
	case a&TwoMore != 0:
		return n >= 2
	case n >= maxArgs:
		return false
	}
	return a&(NoArgs<<n) != 0
}

// Include reads the files that a pattern names, in order; a pattern with no match is fine, a plain
// name that is not there is not (ngx_conf_include).
func (cf *Conf) Include(name string) error {
	name = CText(cf.ConfPrefix(name))
	if !strings.ContainsAny(name, "*?[") {
		return cf.ReadFile(name)
	}
	for _, f := range cf.Cycle.glob(name) {
		if err := cf.ReadFile(f); err != nil {
			return err
		}
	}
	return nil
}

// IncludeSet is the directive that is known everywhere.
var IncludeSet = &Set{
	Name: "ngx_conf_module",
	Type: ConfModule,
	Directives: []Directive{{
		Name:  "include",
		Where: Any,
		Args:  Take1,
		Set:   func(cf *Conf, cmd *Directive, _ any) error { return cf.Include(cf.Args[1]) },
	}},
}
