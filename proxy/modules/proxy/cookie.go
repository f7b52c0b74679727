package proxy

import (
	"bytes"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// What proxy_cookie_flags asks for.
const (
	secureOn = 1 << iota
	secureOff
	httpOnlyOn
	httpOnlyOff
	sameSiteStrict
	sameSiteLax
	sameSiteNone
	sameSiteOff
)

var cookieFlagNames = []struct {
	name string
	mask int
}{
	{"secure", secureOn}, {"nosecure", secureOff},
	{"httponly", httpOnlyOn}, {"nohttponly", httpOnlyOff},
	{"samesite=strict", sameSiteStrict}, {"samesite=lax", sameSiteLax},
	{"samesite=none", sameSiteNone}, {"nosamesite", sameSiteOff},
}

type cookieFlagRule struct {
	regex *http.Regex
	name  *http.ComplexValue
	flags []*http.ComplexValue
}

func setCookieFlags(cf *module.Conf, cmd *module.Directive, conf any) error {
	l := &conf.(*locConf).cookieFlags
	if l.set && l.rules == nil {
		return module.ErrDuplicate
	}
	if len(cf.Args) == 2 {
		err := setOff(cf, l.set)
		l.set = true
		return err
	}
	rule := &cookieFlagRule{}
	var err error
	if name := cf.Args[1]; name != "" && name[0] == '~' {
		rule.regex, err = http.CompileRegex(cf, name[1:], true)
	} else {
		rule.name, err = http.CompileComplexValue(cf, name)
	}
	if err != nil {
		return err
	}
	for _, f := range cf.Args[2:] {
		v, err := http.CompileComplexValue(cf, f)
		if err != nil {
			return err
		}
		rule.flags = append(rule.flags, v)
	}
	l.set = true
	l.rules = append(l.rules, rule)
	return nil
}

// attr is a part of a Set-Cookie line; a nil value is one without "=", a nil key is taken out.
type attr struct{ key, value []byte }

// parseCookie splits a Set-Cookie value (ngx_http_proxy_parse_cookie).
func parseCookie(v []byte) []attr {
	var attrs []attr
	for {
		part, rest, more := bytes.Cut(v, []byte(";"))
		key, val, has := bytes.Cut(trimLeft(part), []byte("="))
		a := attr{key: trimRight(key)}
		if a.key == nil {
			a.key = []byte{}
		}
		if has {
			a.value = trimRight(trimLeft(val))
			if a.value == nil {
				a.value = []byte{}
			}
		}
		attrs = append(attrs, a)
		if !more {
			return attrs
		}
		v = rest
	}
}

func trimLeft(b []byte) []byte  { return bytes.TrimLeft(b, " ") }
func trimRight(b []byte) []byte { return bytes.TrimRight(b, " ") }

// rewriteCookie is what proxy_cookie_domain, _path and _flags do to a Set-Cookie line
// (ngx_http_proxy_rewrite_cookie).
func rewriteCookie(r *http.Request, h *http.Header) http.Rc {
	c := locOf(r)
	attrs := parseCookie(h.Value)
	if attrs[0].value == nil {
		return http.Declined
	}
	rv := http.Declined
	note := func(rc http.Rc) bool {
		if rc != http.Declined {
			rv = rc
		}
		return rc != http.Error
	}
	for i := 1; i < len(attrs); i++ {
		a := &attrs[i]
		if a.value == nil {
			continue
		}
		if c.cookieDomains.rules != nil && equalFold(a.key, []byte("domain")) {
			if !note(applyFirst(r, c.cookieDomains.rules, &a.value, 0)) {
				return http.Error
			}
		}
		if c.cookiePaths.rules != nil && equalFold(a.key, []byte("path")) {
			if !note(applyFirst(r, c.cookiePaths.rules, &a.value, 0)) {
				return http.Error
			}
		}
	}
	if c.cookieFlags.rules != nil {
		var rc http.Rc
		attrs, rc = c.rewriteFlags(r, attrs)
		if !note(rc) {
			return http.Error
		}
	}
	if rv != http.OK {
		return rv
	}
	var b []byte
	for i, a := range attrs {
		if a.key == nil {
			continue
		}
		if i > 0 {
			b = append(b, "; "...)
		}
		b = append(b, a.key...)
		if a.value != nil {
			b = append(append(b, '='), a.value...)
		}
	}
	h.Value = b
	return http.OK
}

// rewriteFlags applies the first rule of proxy_cookie_flags that names the cookie.
func (c *locConf) rewriteFlags(r *http.Request, attrs []attr) ([]attr, http.Rc) {
	var rule *cookieFlagRule
	for _, f := range c.cookieFlags.rules {
		if f.regex != nil {
			rc := f.regex.Exec(r, attrs[0].key)
			if rc == http.Error {
				return attrs, rc
			}
			if rc == http.OK {
				rule = f
				break
			}
			continue
		}
		name, rc := r.Complex(f.name)
		if rc != http.OK {
			return attrs, http.Error
		}
		if equalFold(name, attrs[0].key) {
			rule = f
			break
		}
	}
	if rule == nil {
		return attrs, http.Declined
	}
	flags := 0
	for _, f := range rule.flags {
		v, rc := r.Complex(f)
		if rc != http.OK {
			return attrs, http.Error
		}
		for _, n := range cookieFlagNames {
			if equalFold(v, []byte(n.name)) {
				flags |= n.mask
				break
			}
		}
	}
	if flags == 0 {
		return attrs, http.Declined
	}
	return editFlags(attrs, flags), http.OK
}

var sameSiteValues = []struct {
	mask  int
	value string
}{{sameSiteStrict, "Strict"}, {sameSiteLax, "Lax"}, {sameSiteNone, "None"}}

// editFlags takes flags out of a cookie, changes and adds them (ngx_http_proxy_edit_cookie_flags).
func editFlags(attrs []attr, flags int) []attr {
	toggle := func(a *attr, on, off int) {
		if flags&on != 0 {
			flags &^= on
		} else if flags&off != 0 {
			a.key = nil
		}
	}
	for i := 1; i < len(attrs); i++ {
		a := &attrs[i]
		switch {
		case equalFold(a.key, []byte("secure")):
			toggle(a, secureOn, secureOff)
		case equalFold(a.key, []byte("httponly")):
			toggle(a, httpOnlyOn, httpOnlyOff)
		case equalFold(a.key, []byte("samesite")):
			done := false
			for _, s := range sameSiteValues {
				if flags&s.mask == 0 {
					continue
				}
				flags &^= s.mask
				if !equalFold(a.value, []byte(s.value)) {
					a.key, a.value = []byte("SameSite"), []byte(s.value)
				}
				done = true
				break
			}
			if !done && flags&sameSiteOff != 0 {
				a.key = nil
			}
		}
	}
	if flags&secureOn != 0 {
		attrs = append(attrs, attr{key: []byte("Secure")})
	}
	if flags&httpOnlyOn != 0 {
		attrs = append(attrs, attr{key: []byte("HttpOnly")})
	}
	for _, s := range sameSiteValues {
		if flags&s.mask != 0 {
			attrs = append(attrs, attr{key: []byte("SameSite"), value: []byte(s.value)})
			break
		}
	}
	return attrs
}
