package http

import (
	"strings"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http/parse"
	"nginxoracle/proxy/module"
)

// Texts with variables, compiled once and evaluated in two passes as nginx does: first the
// length, then the bytes. The passes matter: what a variable does when it is made (captures
// that it changes, say) is seen by the second pass only (ngx_http_script.c).

type partKind uint8

const (
	partText partKind = iota
	partVar
	partCapture
	partArgs
)

type part struct {
	kind partKind
	text string
	n    int // variable's index or group
}

// Script is a compiled text.
type Script struct {
	parts      []part
	Variables  int  // variables in it
	DupCapture bool // the same group twice
	Args       bool // a "?" was seen
	prefix     string
	fullName   bool
}

// ScriptState is what evaluation carries from one text to the next: whether captures
// go into arguments (after the "?"), and whether they go into a redirect.
type ScriptState struct {
	IsArgs, Quote bool
	ArgsAt        int // where the arguments began in the output of the last Append, -1 = nowhere
}

// ComplexValue is a text with variables, compiled (ngx_http_complex_value_t).
type ComplexValue struct {
	Text   string
	Static bool  // no variables
	Size   int64 // of a static size (ComplexSizeSlot)

	value   []byte
	flushes []int
	script  *Script
}

// ScriptVariablesCount is the number of variables in a text: of its "$".
func ScriptVariablesCount(text string) int { return strings.Count(text, "$") }

// CompileScript compiles a text; with args the first "?" begins the arguments
// (ngx_http_script_compile).
func CompileScript(cf *module.Conf, text string, args bool) (*Script, error) {
	s := &Script{}
	captures := 0
	for i := 0; i < len(text); {
		if text[i] == '$' {
			i++
			if i == len(text) {
				return nil, cf.Emerg("invalid variable name")
			}
			if c := text[i]; c >= '1' && c <= '9' {
				bit := 1 << (c - '0')
				s.DupCapture = s.DupCapture || captures&bit != 0
				captures |= bit
				s.parts = append(s.parts, part{kind: partCapture, n: int(c - '0')})
				i++
				continue
			}
			bracket := text[i] == '{'
			if bracket {
				i++
				if i == len(text) {
					return nil, cf.Emerg("invalid variable name")
				}
			}
			start := i
			for i < len(text) && isNameByte(text[i]) {
				i++
			}
			name := text[start:i]
			if bracket {
				if i == len(text) || text[i] != '}' {
					return nil, cf.Emerg(`the closing bracket in "%s" variable is missing`, name)
				}
				i++
			}
			if name == "" {
				return nil, cf.Emerg("invalid variable name")
			}
			s.Variables++
			n, err := VariableIndex(cf, name)
			if err != nil {
				return nil, err
			}
			s.parts = append(s.parts, part{kind: partVar, n: n})
			continue
		}
		if text[i] == '?' && args {
			s.Args, args = true, false
			s.parts = append(s.parts, part{kind: partArgs})
			i++
			continue
		}
		start := i
		for i < len(text) && text[i] != '$' {
			if text[i] == '?' {
				s.Args = true
				if args {
					break
				}
			}
			i++
		}
		s.parts = append(s.parts, part{kind: partText, text: text[start:i]})
	}
	return s, nil
}

func isNameByte(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_'
}

func (r *Request) scriptVar(i int, flushed bool) []byte {
	var v *VarValue
	if flushed {
		v = r.IndexedVariable(i)
	} else {
		v = r.FlushedVariable(i)
	}
	if v == nil || v.NotFound {
		return nil
	}
	return v.V
}

// escapes tells whether a capture is escaped where it goes.
func (st *ScriptState) escapes(r *Request) bool {
	return (st.IsArgs || st.Quote) && (r.QuotedURI || r.PlusInURI)
}

// Len makes the variables and gives the length of the text. flushed says that changeable
// variables have been forgotten already and are made once.
func (s *Script) Len(r *Request, st ScriptState, flushed bool) int {
	n := 0
	for i := range s.parts {
		switch p := &s.parts[i]; p.kind {
		case partText:
			n += len(p.text)
		case partVar:
			n += len(r.scriptVar(p.n, flushed))
		case partArgs:
			st.IsArgs = true
			n++
		case partCapture:
			c := r.Capture(p.n)
			n += len(c)
			if st.escapes(r) {
				n += 2 * parse.EscapeCount(c, parse.EscapeArgs)
			}
		}
	}
	return n
}

// Append appends the text to dst, up to limit bytes of it: where the second pass makes more
// than the first had counted, nginx (as Debian patches it) gives up, and so do we: ok is
// false, and it has been logged.
func (s *Script) Append(r *Request, dst []byte, limit int, st *ScriptState, flushed bool) (out []byte, ok bool) {
	for i := range s.parts {
		var b []byte
		switch p := &s.parts[i]; p.kind {
		case partText:
			if len(dst)+len(p.text) > limit {
				return dst, r.noRoom()
			}
			dst = append(dst, p.text...)
			continue
		case partVar:
			b = r.scriptVar(p.n, flushed)
		case partArgs:
			st.IsArgs = true
			st.ArgsAt = len(dst)
			continue
		case partCapture:
			b = r.Capture(p.n)
			if st.escapes(r) {
				if n := len(b) + 2*parse.EscapeCount(b, parse.EscapeArgs); len(dst)+n > limit {
					return dst, r.noRoom()
				}
				dst = parse.Escape(dst, b, parse.EscapeArgs)
				continue
			}
		}
		if len(dst)+len(b) > limit {
			return dst, r.noRoom()
		}
		dst = append(dst, b...)
	}
	return dst, true
}

func (r *Request) noRoom() bool {
	r.Conn.Log.Err(elog.Alert, nil, "no buffer space in script copy")
	return false
}

// Run forgets the changeable variables and evaluates (ngx_http_script_run); reserve more
// bytes of capacity are kept.
func (s *Script) Run(r *Request, reserve int) (out []byte, ok bool) {
	r.flushAll()
	n := s.Len(r, ScriptState{}, true)
	st := ScriptState{ArgsAt: -1}
	return s.Append(r, r.Alloc(n + reserve)[:0], n+reserve, &st, true)
}

// CompileComplexValue compiles a text (ngx_http_compile_complex_value).
func CompileComplexValue(cf *module.Conf, text string) (*ComplexValue, error) {
	v := &ComplexValue{Text: text, value: []byte(text)}
	if ScriptVariablesCount(text) == 0 {
		v.Static = true
		return v, nil
	}
	s, err := CompileScript(cf, text, false)
	if err != nil {
		return nil, err
	}
	v.script = s
	for _, p := range s.parts {
		if p.kind == partVar {
			v.flushes = append(v.flushes, p.n)
		}
	}
	return v, nil
}

// CompileComplexPath is CompileComplexValue for a file's name: one that is not absolute is
// under the prefix, or with conf under the folder of nginx.conf.
func CompileComplexPath(cf *module.Conf, text string, conf bool) (*ComplexValue, error) {
	full := cf.Prefix
	if conf {
		full = cf.ConfPrefix
	}
	later := strings.HasPrefix(text, "$")
	if !later {
		text = full(text)
	}
	v, err := CompileComplexValue(cf, text)
	if err != nil || !later {
		return v, err
	}
	v.script.fullName, v.script.prefix = true, full("")
	return v, nil
}

// CompileRoot compiles a root or alias whose path depends on the request, also one without
// a variable.
func CompileRoot(cf *module.Conf, text string) (*ComplexValue, error) {
	s, err := CompileScript(cf, text, false)
	if err != nil {
		return nil, err
	}
	return &ComplexValue{Text: text, script: s}, nil
}

// Complex evaluates (ngx_http_complex_value). The bytes live as long as the request.
func (r *Request) Complex(v *ComplexValue) ([]byte, Rc) {
	r.FlushComplex(v)
	return r.ComplexFlushed(v)
}

// FlushComplex forgets the changeable variables that a value is made of.
func (r *Request) FlushComplex(v *ComplexValue) {
	for _, i := range v.flushes {
		r.flush(i)
	}
}

// ComplexFlushed evaluates with the variables as they were made since they were forgotten last, for
// those who evaluate several values as of one moment.
func (r *Request) ComplexFlushed(v *ComplexValue) ([]byte, Rc) {
	if v.Static {
		return v.value, OK
	}
	n := v.script.Len(r, ScriptState{}, true)
	st := ScriptState{ArgsAt: -1}
	b, ok := v.script.Append(r, r.Alloc(n)[:0], n, &st, true)
	if !ok {
		return nil, Error
	}
	if v.script.fullName && (len(b) == 0 || b[0] != '/') {
		b = append([]byte(v.script.prefix), b...)
	}
	return b, OK
}

// ComplexSize evaluates a size; def when there is none or it is wrong
// (ngx_http_complex_value_size).
func (r *Request) ComplexSize(v *ComplexValue, def int64) int64 {
	if v == nil {
		return def
	}
	if v.Static {
		return v.Size
	}
	b, rc := r.Complex(v)
	if rc != OK {
		return def
	}
	n, ok := module.ParseSize(string(b))
	if !ok {
		r.Conn.Log.Err(elog.Error, nil, `invalid size "%s"`, b)
		return def
	}
	return n
}

type setter = func(cf *module.Conf, cmd *module.Directive, conf any) error

// ComplexSlot stores a value with variables (ngx_http_set_complex_value_slot).
func ComplexSlot[T any](at func(*T) **ComplexValue) setter {
	return func(cf *module.Conf, cmd *module.Directive, conf any) error {
		f := at(conf.(*T))
		if *f != nil {
			return module.ErrDuplicate
		}
		v, err := CompileComplexValue(cf, cf.Args[1])
		if err != nil {
			return err
		}
		*f = v
		return nil
	}
}

// ComplexSizeSlot stores a size with variables (ngx_http_set_complex_value_size_slot).
func ComplexSizeSlot[T any](at func(*T) **ComplexValue) setter {
	set := ComplexSlot(at)
	return func(cf *module.Conf, cmd *module.Directive, conf any) error {
		if err := set(cf, cmd, conf); err != nil {
			return err
		}
		v := *at(conf.(*T))
		if !v.Static {
			return nil
		}
		n, ok := module.ParseSize(v.Text)
		if !ok {
			return module.Text("invalid value")
		}
		v.Size = n
		return nil
	}
}

// PredicateSlot appends values with variables (ngx_http_set_predicate_slot).
func PredicateSlot[T any](at func(*T) *[]*ComplexValue) setter {
	return func(cf *module.Conf, cmd *module.Directive, conf any) error {
		f := at(conf.(*T))
		for _, a := range cf.Args[1:] {
			v, err := CompileComplexValue(cf, a)
			if err != nil {
				return err
			}
			*f = append(*f, v)
		}
		return nil
	}
}

// TestPredicates is Declined when a value is neither empty nor "0" (ngx_http_test_predicates).
func (r *Request) TestPredicates(ps []*ComplexValue) Rc {
	for _, p := range ps {
		b, rc := r.Complex(p)
		if rc != OK {
			return Error
		}
		if len(b) > 0 && string(b) != "0" {
			return Declined
		}
	}
	return OK
}
