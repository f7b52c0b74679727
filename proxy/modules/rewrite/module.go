// Package rewrite is ngx_http_rewrite_module: rewrite, return, break, if and set, compiled into
// one list of steps a block (src/http/modules/ngx_http_rewrite_module.c, ngx_http_script.c).
package rewrite

import (
	"strings"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_rewrite_module.
var Module = &http.Module{
	Name: "ngx_http_rewrite_module",
	CreateLoc: func(cf *module.Conf) any {
		return &conf{log: module.Unset, warn: module.Unset}
	},
	MergeLoc: func(cf *module.Conf, prevAny, confAny any) error {
		prev, c := prevAny.(*conf), confAny.(*conf)
		module.MergeInt(&c.log, prev.log, 0)
		module.MergeInt(&c.warn, prev.warn, 1)
		return nil
	},
}

// Steps look their block's configuration up by the module's place, so the module cannot name them.
func init() {
	Module.Directives = directives
	Module.Postconf = addHandlers
}

func addHandlers(cf *module.Conf) error {
	cmcf := cf.Ctx.(*http.ConfCtx).Main[0].(*http.CoreMain)
	for _, p := range []http.Phase{http.ServerRewritePhase, http.RewritePhase} {
		cmcf.Phases[p] = append(cmcf.Phases[p], handler)
	}
	return nil
}

// conf is a block's steps. An if block adds to those of the block around it.
type conf struct {
	steps     *[]step
	log, warn int
}

// add appends a step and gives its place; the list is made by the first.
func (c *conf) add(s step) int {
	if c.steps == nil {
		c.steps = &[]step{}
	}
	*c.steps = append(*c.steps, s)
	return len(*c.steps) - 1
}

const (
	inServer   = module.HTTPSrv | module.HTTPSif
	inLocation = module.HTTPLoc | module.HTTPLif
	anywhere   = module.HTTPMain | inServer | inLocation
)

var directives = []module.Directive{
	{Name: "rewrite", Where: inServer | inLocation, Args: module.Take23, Level: module.LocConf, Set: setRewrite},
	{Name: "return", Where: inServer | inLocation, Args: module.Take12, Level: module.LocConf, Set: setReturn},
	{Name: "break", Where: inServer | inLocation, Args: module.NoArgs, Level: module.LocConf,
		Set: func(cf *module.Conf, cmd *module.Directive, c any) error {
			c.(*conf).add(step{op: opBreak})
			return nil
		}},
	{Name: "if", Where: module.HTTPSrv | module.HTTPLoc, Args: module.Block | module.OneMore, Level: module.LocConf, Set: setIf},
	{Name: "set", Where: inServer | inLocation, Args: module.Take2, Level: module.LocConf, Set: setSet},
	{Name: "rewrite_log", Where: anywhere, Args: module.Flag, Level: module.LocConf,
		Set: module.FlagSlot(func(c *conf) *int { return &c.log })},
	{Name: "uninitialized_variable_warn", Where: anywhere, Args: module.Flag, Level: module.LocConf,
		Set: module.FlagSlot(func(c *conf) *int { return &c.warn })},
}

// isURL reports a text that goes to the client as it is: a redirect.
func isURL(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "$scheme")
}

func setRewrite(cf *module.Conf, cmd *module.Directive, confAny any) error {
	c := confAny.(*conf)
	pattern, to := cf.Args[1], cf.Args[2]
	if to == "" {
		return cf.Emerg("empty replacement")
	}
	re, err := http.CompileRegex(cf, pattern, false)
	if err != nil {
		return err
	}
	s := step{op: opRewrite, name: pattern, regex: re}
	if strings.HasSuffix(to, "?") {
		// A "?" at the end drops the request's own arguments.
		to = to[:len(to)-1]
	} else {
		s.addArgs = true
	}
	last := false
	if isURL(to) {
		s.status, s.redirect, last = 302, true, true
	}
	if len(cf.Args) == 4 {
		last = true
		switch module.CText(cf.Args[3]) {
		case "last":
		case "break":
			s.breakCycle = true
		case "redirect":
			s.status, s.redirect = 302, true
		case "permanent":
			s.status, s.redirect = 301, true
		default:
			return cf.Emerg(`invalid parameter "%s"`, cf.Args[3])
		}
	}
	if s.script, err = http.CompileScript(cf, to, !s.redirect); err != nil {
		return err
	}
	s.twoPasses = s.script.Variables > 0 || s.script.DupCapture
	at := c.add(s)
	if last {
		c.add(step{op: opEnd})
	}
	(*c.steps)[at].next = len(*c.steps)
	return nil
}

func setReturn(cf *module.Conf, cmd *module.Directive, confAny any) error {
	c := confAny.(*conf)
	s := step{op: opReturn}
	code := cf.Args[1]
	n, ok := module.Atoi(code)
	text := ""
	switch {
	case !ok && len(cf.Args) == 2 && isURL(code):
		s.status, text = 302, code
	case !ok || n > 999:
		return cf.Emerg(`invalid return code "%s"`, code)
	case len(cf.Args) == 2:
		s.status = n
		c.add(s)
		return nil
	default:
		s.status, text = n, cf.Args[2]
	}
	v, err := http.CompileComplexValue(cf, text)
	if err != nil {
		return err
	}
	s.text = v
	c.add(s)
	return nil
}

func setIf(cf *module.Conf, cmd *module.Directive, confAny any) error {
	c := confAny.(*conf)
	ctx, loc, parent := http.NewLocation(cf)
	loc.Name, loc.Noname = parent.Name, true
	http.AddLocation(cf, parent, loc)
	if err := condition(cf, c); err != nil {
		return err
	}
	s := step{op: opIf}
	where := module.HTTPSif
	if cf.Where != module.HTTPSrv {
		where = module.HTTPLif
		s.loc = loc
	}
	at := c.add(s)
	inner := ctx.Loc[Module.Index].(*conf)
	inner.steps = c.steps
	if err := http.ReadInside(cf, ctx, where); err != nil {
		return err
	}
	inner.steps = nil
	(*c.steps)[at].next = len(*c.steps)
	return nil
}

// fileTests are the conditions on files: what is looked for, whether it must not be.
var fileTests = map[string]fileTest{
	"-f": {kind: 'f'}, "-d": {kind: 'd'}, "-e": {kind: 'e'}, "-x": {kind: 'x'},
	"!-f": {kind: 'f', not: true}, "!-d": {kind: 'd', not: true}, "!-e": {kind: 'e', not: true}, "!-x": {kind: 'x', not: true},
}

// condition reads the condition of an if (ngx_http_rewrite_if_condition).
func condition(cf *module.Conf, c *conf) error {
	words := append([]string(nil), cf.Args[1:]...)
	invalid := func(w string) error { return cf.Emerg(`invalid condition "%s"`, w) }
	if !strings.HasPrefix(words[0], "(") {
		return invalid(words[0])
	}
	first := 0
	if words[0] == "(" {
		first = 1
	} else {
		words[0] = words[0][1:]
	}
	last := len(words) - 1
	if !strings.HasSuffix(words[last], ")") {
		return invalid(words[last])
	}
	if words[last] == ")" {
		last--
	} else {
		words[last] = words[last][:len(words[last])-1]
	}
	if first >= len(words) {
		return invalid("")
	}
	w := words[first]
	if len(w) > 1 && w[0] == '$' {
		if first != last && first+2 != last {
			return invalid(w)
		}
		n, err := http.VariableIndex(cf, w[1:])
		if err != nil {
			return err
		}
		c.add(step{op: opVar, n: n})
		if first == last {
			return nil
		}
		switch op := words[first+1]; op {
		case "=", "!=":
			if err := value(cf, c, words[last]); err != nil {
				return err
			}
			c.add(step{op: opEqual, negative: op == "!="})
		case "~", "~*", "!~", "!~*":
			re, err := http.CompileRegex(cf, words[last], strings.HasSuffix(op, "*"))
			if err != nil {
				return err
			}
			c.add(step{op: opMatch, name: words[last], regex: re, negative: op[0] == '!'})
		default:
			return cf.Emerg(`unexpected "%s" in condition`, op)
		}
		return nil
	}
	if len(w) == 2 && w[0] == '-' || len(w) == 3 && w[0] == '!' && w[1] == '-' {
		if first+1 != last {
			return invalid(w)
		}
		if err := value(cf, c, words[last]); err != nil {
			return err
		}
		t, ok := fileTests[w]
		if !ok {
			return invalid(w)
		}
		c.add(step{op: opFile, file: t})
		return nil
	}
	return invalid(w)
}

// value adds the step that puts a text on the stack (ngx_http_rewrite_value).
func value(cf *module.Conf, c *conf, text string) error {
	if http.ScriptVariablesCount(text) == 0 {
		c.add(step{op: opValue, value: []byte(text)})
		return nil
	}
	s, err := http.CompileScript(cf, text, false)
	if err != nil {
		return err
	}
	c.add(step{op: opComplex, script: s})
	return nil
}

func setSet(cf *module.Conf, cmd *module.Directive, confAny any) error {
	c := confAny.(*conf)
	name := cf.Args[1]
	if !strings.HasPrefix(name, "$") {
		return cf.Emerg(`invalid variable name "%s"`, name)
	}
	v, err := http.AddVariable(cf, name[1:], http.VarChangeable|http.VarWeak)
	if err != nil {
		return err
	}
	n, err := http.VariableIndex(cf, name[1:])
	if err != nil {
		return err
	}
	if v.Get == nil {
		v.Get, v.Data = uninitialized, n
	}
	if err := value(cf, c, cf.Args[2]); err != nil {
		return err
	}
	if v.Set != nil {
		c.add(step{op: opSetBy, variable: v})
	} else {
		c.add(step{op: opSet, n: n})
	}
	return nil
}

// uninitialized is the value of a variable that set has not set in this request
// (ngx_http_rewrite_var).
func uninitialized(r *http.Request, v *http.VarValue, data any) http.Rc {
	if r.LocConf[Module.Index].(*conf).warn != 0 {
		r.Conn.Log.Err(elog.Warn, nil, `using uninitialized "%s" variable`, r.CoreMain().Variables[data.(int)].Name)
	}
	*v = http.VarNull
	return http.OK
}
