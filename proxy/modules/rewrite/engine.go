package rewrite

import (
	"bytes"
	"math"
	"sync"
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/http/parse"
	"nginxoracle/proxy/openfile"
)

type op uint8

const (
	opEnd op = iota
	opRewrite
	opReturn
	opBreak
	opIf
	opVar     // push a variable
	opValue   // push a text
	opComplex // push a text with variables
	opEqual
	opMatch
	opFile
	opSet
	opSetBy // set through the variable's own setter
)

type fileTest struct {
	kind byte // f, d, e, x
	not  bool
}

// step is one instruction; each uses its own fields (ngx_http_script.h, the *_code_t).
type step struct {
	op        op
	next      int // where a rewrite or an if that does not apply goes on
	n         int // variable's index
	name      string
	regex     *http.Regex
	script    *http.Script
	twoPasses bool
	status    int
	text      *http.ComplexValue
	value     []byte
	loc       *http.CoreLoc
	variable  *http.Variable
	file      fileTest

	addArgs, redirect, breakCycle, negative bool
}

// engine is the state of one run (ngx_http_script_engine_t).
type engine struct {
	r     *http.Request
	stack [10]http.VarValue
	sp    int
	state http.ScriptState
	log   bool
	rc    http.Rc
}

var engines = sync.Pool{New: func() any { return new(engine) }}

// handler runs the steps of the server in its phase, of the location in its own
// (ngx_http_rewrite_handler).
func handler(r *http.Request) http.Rc {
	if r.InLocationRewrite() && r.Core == r.CoreSrv().Ctx.Loc[0].(*http.CoreLoc) {
		return http.Declined
	}
	c := r.LocConf[Module.Index].(*conf)
	if c.steps == nil {
		return http.Declined
	}
	e := engines.Get().(*engine)
	e.r, e.sp, e.log, e.rc = r, 0, c.log == 1, http.Declined
	e.state = http.ScriptState{Quote: true, ArgsAt: -1}
	e.run(*c.steps)
	rc := e.rc
	e.r = nil
	clear(e.stack[:])
	engines.Put(e)
	return rc
}

func (e *engine) push(v http.VarValue) {
	e.stack[e.sp] = v
	e.sp++
}

func (e *engine) pop() *http.VarValue {
	e.sp--
	return &e.stack[e.sp]
}

func truth(b bool) http.VarValue {
	if b {
		return http.VarTrue
	}
	return http.VarNull
}

func (e *engine) run(steps []step) {
	r := e.r
	for i := 0; i < len(steps); {
		s := &steps[i]
		i++
		switch s.op {
		case opEnd:
			return
		case opRewrite:
			applied, more := e.rewrite(s)
			if !more {
				return
			}
			if !applied {
				i = s.next
			}
		case opReturn:
			e.ret(s)
			return
		case opBreak:
			if r.URIChanged {
				r.ValidLocation, r.URIChanged = false, false
			}
			return
		case opIf:
			if v := e.pop(); len(v.V) == 0 || string(v.V) == "0" {
				i = s.next
			} else if s.loc != nil {
				r.SetLocation(s.loc)
				r.UpdateLocationConfig()
			}
		case opVar:
			if v := r.FlushedVariable(s.n); v != nil && !v.NotFound {
				e.push(*v)
			} else {
				e.push(http.VarNull)
			}
		case opValue:
			e.push(http.VarValue{V: s.value, Valid: true})
		case opComplex:
			if !e.complex(s) {
				e.rc = 500
				return
			}
		case opEqual:
			v := e.pop()
			res := &e.stack[e.sp-1]
			*res = truth(bytes.Equal(v.V, res.V) != s.negative)
		case opMatch:
			line := e.pop().V
			rc := e.match(s, line)
			if rc == http.Error {
				e.rc = 500
				return
			}
			e.push(truth((rc == http.OK) != s.negative))
		case opFile:
			e.testFile(s)
		case opSet:
			r.Variables[s.n].Set(e.pop().V)
		case opSetBy:
			s.variable.Set(r, e.pop(), s.variable.Data)
		}
	}
}

func (e *engine) complex(s *step) bool {
	n := s.script.Len(e.r, http.ScriptState{Quote: e.state.Quote}, false)
	b, ok := s.script.Append(e.r, e.r.Alloc(n)[:0], n, &e.state, false)
	e.push(http.VarValue{V: b, Valid: true})
	return ok
}

// match runs a regular expression and logs what rewrite_log asks for.
func (e *engine) match(s *step, line []byte) http.Rc {
	rc := s.regex.Exec(e.r, line)
	switch rc {
	case http.Declined:
		if e.log {
			e.r.Conn.Log.Err(elog.Notice, nil, `"%s" does not match "%s"`, s.name, line)
		}
		e.r.NotCaptured()
	case http.OK:
		if e.log {
			e.r.Conn.Log.Err(elog.Notice, nil, `"%s" matches "%s"`, s.name, line)
		}
	}
	return rc
}

// rewrite matches the URI and, if it does, makes another one or a redirect; more is false
// when the run ends here (ngx_http_script_regex_start_code, _end_code).
func (e *engine) rewrite(s *step) (applied, more bool) {
	r := e.r
	switch e.match(s, r.URI) {
	case http.Declined:
		return false, true
	case http.Error:
		e.rc = 500
		return false, false
	}
	if s.status != 0 {
		e.rc = http.Rc(s.status)
	}
	r.Internal = true
	r.ValidUnparsedURI = false
	if s.breakCycle {
		r.ValidLocation, r.URIChanged = false, false
	} else {
		r.URIChanged = true
	}
	room, limit := 128+len(r.Args)+1, math.MaxInt
	if s.twoPasses {
		room = s.script.Len(r, http.ScriptState{Quote: s.redirect}, false)
		if s.addArgs && len(r.Args) > 0 {
			room += len(r.Args) + 1
		}
		limit = room
	}
	e.state.Quote = s.redirect
	e.state.ArgsAt = -1
	b, ok := s.script.Append(r, r.Alloc(room)[:0], limit, &e.state, false)
	// What follows in the run is no argument any more (Debian's nginx resets it here too: a "set"
	// behind a rewrite with arguments takes its captures as they are).
	e.state.Quote, e.state.IsArgs = false, false
	if !ok {
		e.rc = 500
		return true, false
	}
	if s.redirect {
		return true, e.location(s, b, limit)
	}
	uri := b
	if at := e.state.ArgsAt; at >= 0 {
		if s.addArgs && len(r.Args) > 0 {
			if !e.roomForArgs(b, limit) {
				return true, false
			}
			b = append(append(b, '&'), r.Args...)
		}
		uri, r.Args = b[:at:at], b[at:]
	} else if !s.addArgs {
		r.Args = r.Args[:0]
	}
	if e.log {
		r.Conn.Log.Err(elog.Notice, nil, `rewritten data: "%s", args: "%s"`, uri, r.Args)
	}
	r.URI = uri
	if len(uri) == 0 {
		r.Conn.Log.Err(elog.Error, nil, "the rewritten URI has a zero length")
		e.rc = 500
		return true, false
	}
	r.SetExten()
	return true, true
}

// roomForArgs checks that the request's arguments still fit behind b.
func (e *engine) roomForArgs(b []byte, limit int) bool {
	if limit-len(b) > len(e.r.Args) {
		return true
	}
	e.r.Conn.Log.Err(elog.Alert, nil, "no buffer space in script copy")
	e.rc = 500
	return false
}

// location sets the Location of a redirect.
func (e *engine) location(s *step, b []byte, limit int) bool {
	r := e.r
	out, taken := parse.Unescape(b[:0], b, parse.UnescapeRedirectURI)
	b = append(out, b[taken:]...)
	if s.addArgs && len(r.Args) > 0 {
		if !e.roomForArgs(b, limit) {
			return false
		}
		sep := byte('?')
		if s.script.Args {
			sep = '&'
		}
		b = append(append(b, sep), r.Args...)
	}
	if e.log {
		r.Conn.Log.Err(elog.Notice, nil, `rewritten redirect: "%s"`, b)
	}
	r.ClearLocation()
	r.HeadersOut.Location = r.AddHeaderOut(keyLocation, b)
	return true
}

var keyLocation = []byte("Location")

// ret ends the request with a code or a text (ngx_http_script_return_code).
func (e *engine) ret(s *step) {
	if s.status >= 400 && (s.text == nil || s.text.Static && s.text.Text == "") {
		e.rc = http.Rc(s.status)
		return
	}
	r := e.r
	if e.rc = r.DiscardRequestBody(); e.rc != http.OK {
		return
	}
	// The text may ask for the status.
	r.HeadersOut.Status = s.status
	body := []byte{}
	if s.text != nil {
		if body, e.rc = r.Complex(s.text); e.rc != http.OK {
			e.rc = 500
			return
		}
	}
	e.rc = r.SendResponse(s.status, nil, body)
}

// testFile looks at a file; through open_file_cache, if the location has one
// (ngx_http_script_file_code).
func (e *engine) testFile(s *step) {
	v := &e.stack[e.sp-1]
	of := openfile.Info{TestOnly: true, FD: -1}
	found := false
	if _, ok := e.r.OpenFile(v.V, &of); !ok {
		if of.Err != syscall.ENOENT && of.Err != syscall.ENOTDIR && of.Err != syscall.ENAMETOOLONG {
			e.r.Conn.Log.Err(elog.Crit, of.Err, `%s "%s" failed`, of.Failed, v.V)
		}
	} else {
		switch s.file.kind {
		case 'f':
			found = of.IsFile
		case 'd':
			found = of.IsDir
		case 'e':
			found = of.IsFile || of.IsDir
		case 'x':
			found = of.IsExec
		}
	}
	*v = truth(found != s.file.not)
}
