package http

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http/pcre"
	"nginxoracle/proxy/module"
)

// Regex is a compiled pattern with its named groups' variables (ngx_http_regex_t).
type Regex struct {
	Name      string
	NCaptures int
	re        *pcre.Regexp
	vars      []regexVar
}

type regexVar struct{ group, index int }

// CompileRegex compiles a pattern of the configuration; its named groups become
// variables (ngx_http_regex_compile). What PCRE2 says of a bad pattern is logged.
func CompileRegex(cf *module.Conf, pattern string, caseless bool) (*Regex, error) {
	c, err := pcre.Compile(pattern, caseless)
	if err != nil {
		return nil, cf.Emerg("%s", err)
	}
	re := &Regex{Name: pattern, NCaptures: c.Captures, re: c}
	cmcf := coreMainOf(cf)
	cmcf.NCaptures = max(cmcf.NCaptures, c.Captures)
	for _, n := range c.Names {
		v, err := AddVariable(cf, n.Name, VarChangeable)
		if err != nil {
			return nil, err
		}
		i, err := VariableIndex(cf, n.Name)
		if err != nil {
			return nil, err
		}
		re.vars = append(re.vars, regexVar{group: n.Group, index: i})
		v.Get = func(r *Request, v *VarValue, data any) Rc { return v.Missing() }
	}
	return re, nil
}

// Pattern is the pattern alone: matching it sets nothing in a request.
func (re *Regex) Pattern() *pcre.Regexp { return re.re }

// Exec matches s and sets the request's captures and the named variables: OK, Declined
// or Error (ngx_http_regex_exec). Captures and variables are pieces of s.
func (re *Regex) Exec(r *Request, s []byte) Rc {
	var groups []int
	if re.NCaptures > 0 {
		want := 2 * (r.CoreMain().NCaptures + 1)
		if cap(r.Captures) < want || r.RealloCaptures {
			r.RealloCaptures = false
			// Others may hold the old ones: a subrequest shares its parent's.
			r.Captures = make([]int, 0, want)
		}
		groups = r.Captures[:2*(re.NCaptures+1)]
	}
	rc := re.re.Exec(s, groups)
	if rc == pcre.NoMatch {
		return Declined
	}
	if rc < 0 {
		r.Conn.Log.Err(elog.Alert, nil, `pcre2_match() failed: %d on "%s" using "%s"`, rc, s, re.Name)
		return Error
	}
	for _, v := range re.vars {
		r.Variables[v.index].Set(cut(s, groups[2*v.group], groups[2*v.group+1]))
	}
	if cap(r.Captures) < 2 {
		r.Captures = make([]int, 0, 2)
	}
	// Groups of an earlier pattern beyond those of this one are not reachable: their
	// number is what this match found.
	r.Captures = r.Captures[:min(2*rc, cap(r.Captures))]
	r.CapturesData = s
	return OK
}

// NotCaptured forgets the number of captures, as a condition that does not match does.
func (r *Request) NotCaptured() { r.Captures = r.Captures[:0] }

// Capture gives group n of the last match; nil when there is none.
func (r *Request) Capture(n int) []byte {
	if 2*n >= len(r.Captures) {
		return nil
	}
	return cut(r.CapturesData, r.Captures[2*n], r.Captures[2*n+1])
}

// cut is s[from:to] for the offsets of a group; a group without a part, or one that
// \K turned around, is empty.
func cut(s []byte, from, to int) []byte {
	if from < 0 || to < from || to > len(s) {
		return []byte{}
	}
	return s[from:to:to]
}
