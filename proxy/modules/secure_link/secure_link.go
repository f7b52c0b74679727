// Package secure_link is ngx_http_secure_link_module: whether a link carries the right hash, and
// until when it holds (src/http/modules/ngx_http_secure_link_module.c).
package secure_link

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_secure_link_module.
var Module = &http.Module{
	Name: "ngx_http_secure_link_module",
	Directives: []module.Directive{
		{Name: "secure_link", Where: where, Args: module.Take1, Level: module.LocConf,
			Set: http.ComplexSlot(func(c *conf) **http.ComplexValue { return &c.link })},
		{Name: "secure_link_md5", Where: where, Args: module.Take1, Level: module.LocConf,
			Set: http.ComplexSlot(func(c *conf) **http.ComplexValue { return &c.md5 })},
		{Name: "secure_link_secret", Where: where, Args: module.Take1, Level: module.LocConf,
			Set: module.StrSlot(func(c *conf) *module.Str { return &c.secret })},
	},
	CreateLoc: func(cf *module.Conf) any { return &conf{} },
	MergeLoc:  merge,
}

func init() { Module.Preconf = addVariables }

const where = module.HTTPMain | module.HTTPSrv | module.HTTPLoc

type conf struct {
	link, md5 *http.ComplexValue
	secret    module.Str
}

func merge(cf *module.Conf, prevAny, confAny any) error {
	prev, c := prevAny.(*conf), confAny.(*conf)
	if c.secret.Set {
		if c.link != nil || c.md5 != nil {
			return cf.Emerg(`"secure_link_secret" cannot be mixed with "secure_link" and "secure_link_md5"`)
		}
		return nil
	}
	module.MergePtr(&c.link, prev.link, nil)
	module.MergePtr(&c.md5, prev.md5, nil)
	if c.link == nil && c.md5 == nil {
		c.secret = prev.secret
	}
	return nil
}

func addVariables(cf *module.Conf) error {
	v, err := http.AddVariable(cf, "secure_link", 0)
	if err != nil {
		return err
	}
	v.Get = get
	v, err = http.AddVariable(cf, "secure_link_expires", 0)
	if err != nil {
		return err
	}
	v.Get = func(r *http.Request, v *http.VarValue, _ any) http.Rc {
		if expires, ok := r.Ctx(Module).([]byte); ok {
			return v.Set(expires)
		}
		return v.Missing()
	}
	return nil
}

// longestHash is a base64 text of 16 bytes with its "=".
const longestHash = 24

// get is "1" for the right hash, "0" when its time is over (ngx_http_secure_link_variable).
func get(r *http.Request, v *http.VarValue, _ any) http.Rc {
	c := r.LocConf[Module.Index].(*conf)
	if c.secret.Set {
		return c.old(r, v)
	}
	if c.link == nil || c.md5 == nil {
		return v.Missing()
	}
	val, rc := r.Complex(c.link)
	if rc != http.OK {
		return http.Error
	}
	text, until, timed := bytes.Cut(val, []byte(","))
	expires := 0
	if timed {
		n, ok := module.Atoi(string(until))
		if !ok || n <= 0 {
			return v.Missing()
		}
		expires = n
		r.SetCtx(Module, until)
	}
	hash, ok := decode(text)
	if !ok {
		return v.Missing()
	}
	signed, rc := r.Complex(c.md5)
	if rc != http.OK {
		return http.Error
	}
	if md5.Sum(signed) != [md5.Size]byte(hash) {
		return v.Missing()
	}
	if now, _ := r.Conn.Loop.Now(); timed && int64(expires) < now {
		return v.Set([]byte("0"))
	}
	return v.Set([]byte("1"))
}

// decode reads the 16 bytes of a hash in base64 for URLs.
func decode(text []byte) (hash []byte, ok bool) {
	if len(text) > longestHash {
		return nil, false
	}
	plain := make([]byte, len(text))
	for i, b := range text {
		switch b {
		case '-':
			b = '+'
		case '_':
			b = '/'
		case '+', '/':
			// These are not of this alphabet; behind a "=" nothing is looked at.
			b = 0
		}
		plain[i] = b
	}
	hash, ok = http.DecodeBase64(nil, plain)
	return hash, ok && len(hash) == md5.Size
}

// old is the link of secure_link_secret: "/prefix/HASH/link" gives the link.
func (c *conf) old(r *http.Request, v *http.VarValue) http.Rc {
	if len(r.UnparsedURI) == 0 {
		return v.Missing()
	}
	_, rest, ok := bytes.Cut(r.UnparsedURI[1:], []byte("/"))
	sum, link, ok2 := bytes.Cut(rest, []byte("/"))
	if !ok || !ok2 || len(sum) != hex.EncodedLen(md5.Size) || len(link) == 0 {
		return v.Missing()
	}
	var given [md5.Size]byte
	if _, err := hex.Decode(given[:], sum); err != nil || given != md5.Sum(append(link[:len(link):len(link)], c.secret.V...)) {
		return v.Missing()
	}
	return v.Set(link)
}
