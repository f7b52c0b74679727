// Package auth_basic is ngx_http_auth_basic_module: Basic authentication against a file of
// users (src/http/modules/ngx_http_auth_basic_module.c).
package auth_basic

import (
	"bytes"
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_auth_basic_module.
var Module = &http.Module{
	Name: "ngx_http_auth_basic_module",
	Directives: []module.Directive{
		{Name: "auth_basic", Where: where, Args: module.Take1, Level: module.LocConf,
			Set: http.ComplexSlot(func(c *conf) **http.ComplexValue { return &c.realm })},
		{Name: "auth_basic_user_file", Where: where, Args: module.Take1, Level: module.LocConf, Set: setFile},
	},
	CreateLoc: func(cf *module.Conf) any { return &conf{} },
	MergeLoc: func(cf *module.Conf, prevAny, confAny any) error {
		prev, c := prevAny.(*conf), confAny.(*conf)
		module.MergePtr(&c.realm, prev.realm, nil)
		module.MergePtr(&c.file, prev.file, nil)
		return nil
	},
}

func init() { Module.Postconf = addHandler }

func addHandler(cf *module.Conf) error {
	cmcf := cf.Ctx.(*http.ConfCtx).Main[0].(*http.CoreMain)
	cmcf.Phases[http.AccessPhase] = append(cmcf.Phases[http.AccessPhase], handler)
	return nil
}

const where = module.HTTPMain | module.HTTPSrv | module.HTTPLoc | module.HTTPLmt

type conf struct{ realm, file *http.ComplexValue }

func setFile(cf *module.Conf, cmd *module.Directive, confAny any) (err error) {
	c := confAny.(*conf)
	if c.file != nil {
		return module.ErrDuplicate
	}
	c.file, err = http.CompileComplexPath(cf, cf.Args[1], true)
	return err
}

func handler(r *http.Request) http.Rc {
	c := r.LocConf[Module.Index].(*conf)
	if c.realm == nil || c.file == nil {
		return http.Declined
	}
	realm, rc := r.Complex(c.realm)
	if rc != http.OK {
		return http.Error
	}
	if string(realm) == "off" {
		return http.Declined
	}
	log := r.Conn.Log
	if r.AuthBasicUser() != http.OK {
		log.Err(elog.Info, nil, "no user/password was provided for basic authentication")
		return ask(r, realm)
	}
	file, rc := r.Complex(c.file)
	if rc != http.OK {
		return http.Error
	}
	data, call, err := ev.ReadWhole(string(file))
	if err != nil {
		level, status := elog.Crit, http.Rc(500)
		if err == syscall.ENOENT {
			level, status = elog.Error, 403
		}
		log.Err(level, err, `%s "%s" failed`, call, file)
		return status
	}
	hash, found := lookup(data, r.HeadersIn.User)
	if !found {
		log.Err(elog.Error, nil, `user "%s" was not found in "%s"`, r.HeadersIn.User, file)
		return ask(r, realm)
	}
	ok, known := verify(string(beforeNul(r.HeadersIn.Passwd)), string(beforeNul(hash)))
	if !known {
		log.Err(elog.Crit, nil, `user "%s": the kind of password hash is not supported`, r.HeadersIn.User)
		return 500
	}
	if ok {
		return http.OK
	}
	log.Err(elog.Error, nil, `user "%s": password mismatch`, r.HeadersIn.User)
	return ask(r, realm)
}

func beforeNul(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}

// lookup finds the line "user:hash" or "user:hash:comment".
func lookup(data, user []byte) (hash []byte, ok bool) {
	for len(data) > 0 {
		line := data
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			line, data = data[:i], data[i+1:]
		} else {
			data = nil
		}
		if len(line) <= len(user) || line[0] == '#' || line[0] == '\r' ||
			!bytes.HasPrefix(line, user) || line[len(user)] != ':' {
			continue
		}
		hash = line[len(user)+1:]
		if i := bytes.IndexAny(hash, "\r:"); i >= 0 {
			hash = hash[:i]
		}
		return hash, true
	}
	return nil, false
}

// ask answers 401 with the realm.
func ask(r *http.Request, realm []byte) http.Rc {
	b := append(r.Alloc(len(realm) + 16)[:0], `Basic realm="`...)
	b = append(append(b, realm...), '"')
	r.HeadersOut.WWWAuthenticate = r.AddHeaderOut(keyWWWAuthenticate, b)
	return 401
}

var keyWWWAuthenticate = []byte("WWW-Authenticate")
