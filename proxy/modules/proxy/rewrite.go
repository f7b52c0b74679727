package proxy

import (
	"bytes"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// rewriteRule changes a Location or an attribute of a cookie (ngx_http_proxy_rewrite_t).
type rewriteRule struct {
	domain      bool // the whole, without regard to case and to a "." in front
	regex       *http.Regex
	pattern     *http.ComplexValue
	replacement *http.ComplexValue
}

func static(text string) *http.ComplexValue { return http.StaticValue(text) }

// defaultRedirect turns what proxy_pass names into the location (proxy_redirect default).
func (c *locConf) defaultRedirect() *rewriteRule {
	if len(c.vars.uri) > 0 {
		return &rewriteRule{pattern: static(c.url), replacement: static(c.location)}
	}
	return &rewriteRule{pattern: static(c.url + "/"), replacement: static("/")}
}

// setRedirect is proxy_redirect.
func setRedirect(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.redirect == 0 {
		return module.ErrDuplicate
	}
	c.redirect = 1
	if len(cf.Args) == 2 {
		switch module.CText(cf.Args[1]) {
		case "off":
			if c.redirects != nil {
				return module.ErrDuplicate
			}
			c.redirect = 0
			return nil
		case "default":
			if c.pass != nil {
				return cf.Emerg("\"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with variables")
			}
			if c.url == "" {
				return cf.Emerg("\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive")
			}
			c.redirects = append(c.redirects, c.defaultRedirect())
			return nil
		}
		return cf.Emerg("invalid parameter \"%s\"", cf.Args[1])
	}
	rule, err := compileRule(cf, cf.Args[1], cf.Args[2], true)
	if err != nil {
		return err
	}
	c.redirects = append(c.redirects, rule)
	return nil
}

// compileRule compiles "~regex", "~*regex" (when star) or a text with variables, and its replacement.
func compileRule(cf *module.Conf, pattern, replacement string, star bool) (*rewriteRule, error) {
	rule := &rewriteRule{}
	var err error
	if pattern != "" && pattern[0] == '~' {
		pattern = pattern[1:]
		caseless := !star
		if star && pattern != "" && pattern[0] == '*' {
			pattern, caseless = pattern[1:], true
		}
		rule.regex, err = http.CompileRegex(cf, pattern, caseless)
	} else {
		rule.pattern, err = http.CompileComplexValue(cf, pattern)
	}
	if err != nil {
		return nil, err
	}
	rule.replacement, err = http.CompileComplexValue(cf, replacement)
	return rule, err
}

// setOff deals with the one-word form of the proxy_cookie_* directives.
func setOff(cf *module.Conf, set bool) error {
	if !module.Is(cf.Args[1], "off") {
		return cf.Emerg("invalid parameter \"%s\"", cf.Args[1])
	}
	if set {
		return module.ErrDuplicate
	}
	return nil
}

// add is what proxy_cookie_domain and proxy_cookie_path share.
func (l *cookieRules) add(cf *module.Conf, compile func() (*rewriteRule, error)) error {
	if l.set && l.rules == nil {
		return module.ErrDuplicate
	}
	if len(cf.Args) == 2 {
		err := setOff(cf, l.set)
		l.set = true
		return err
	}
	rule, err := compile()
	if err != nil {
		return err
	}
	l.set = true
	l.rules = append(l.rules, rule)
	return nil
}

func setCookieDomain(cf *module.Conf, cmd *module.Directive, conf any) error {
	return conf.(*locConf).cookieDomains.add(cf, func() (*rewriteRule, error) {
		pattern, replacement := cf.Args[1], cf.Args[2]
		regex := pattern != "" && pattern[0] == '~'
		if !regex {
			pattern = trimDot(pattern)
			replacement = trimDot(replacement)
		}
		rule, err := compileRule(cf, pattern, replacement, false)
		if err == nil {
			rule.domain = !regex
		}
		return rule, err
	})
}

func trimDot(s string) string {
	if s != "" && s[0] == '.' {
		return s[1:]
	}
	return s
}

func setCookiePath(cf *module.Conf, cmd *module.Directive, conf any) error {
	return conf.(*locConf).cookiePaths.add(cf, func() (*rewriteRule, error) {
		return compileRule(cf, cf.Args[1], cf.Args[2], true)
	})
}

// apply rewrites value[prefix:] when the rule matches: OK, Declined or Error.
func (rule *rewriteRule) apply(r *http.Request, value *[]byte, prefix int) http.Rc {
	v := (*value)[prefix:]
	n := len(v)
	switch {
	case rule.regex != nil:
		if rule.regex.Exec(r, v) != http.OK {
			return http.Declined
		}
	case rule.domain:
		pattern, rc := r.Complex(rule.pattern)
		if rc != http.OK {
			return http.Error
		}
		if n > 0 && v[0] == '.' {
			v = v[1:]
			prefix++
			n--
		}
		if !equalFold(pattern, v) {
			return http.Declined
		}
	default:
		pattern, rc := r.Complex(rule.pattern)
		if rc != http.OK {
			return http.Error
		}
		if !bytes.HasPrefix(v, pattern) {
			return http.Declined
		}
		n = len(pattern)
	}
	replacement, rc := r.Complex(rule.replacement)
	if rc != http.OK {
		return http.Error
	}
	old := *value
	if n == len(old) {
		*value = replacement
		return http.OK
	}
	if len(replacement) <= n {
		// In place, with the byte behind: what $upstream_http_location still points at changes, too.
		full := old[:len(old)+1]
		k := copy(full[prefix:], replacement)
		copy(full[prefix+k:], full[prefix+n:])
		*value = old[:len(old)-n+k]
		return http.OK
	}
	b := r.Alloc(len(replacement) + len(old) - n + 1)[:0]
	b = append(b, old[:prefix]...)
	b = append(b, replacement...)
	*value = append(b, old[prefix+n:]...)
	return http.OK
}

// applyFirst tries the rules in turn.
func applyFirst(r *http.Request, rules []*rewriteRule, value *[]byte, prefix int) http.Rc {
	for _, rule := range rules {
		if rc := rule.apply(r, value, prefix); rc != http.Declined {
			return rc
		}
	}
	return http.Declined
}

func rewriteRedirect(r *http.Request, h *http.Header, prefix int) http.Rc {
	return applyFirst(r, locOf(r).redirects, &h.Value, prefix)
}

// equalFold compares without regard to the case of ASCII letters.
func equalFold(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if 'A' <= x && x <= 'Z' {
			x |= 0x20
		}
		if 'A' <= y && y <= 'Z' {
			y |= 0x20
		}
		if x != y {
			return false
		}
	}
	return true
}
