package headers

import (
	"strconv"
	"time"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// expires is the directive's setting.
type expires struct {
	kind  int
	time  int64 // seconds
	value *http.ComplexValue
}

const (
	expiresOff = iota
	expiresEpoch
	expiresMax
	expiresAccess
	expiresModified
	expiresDaily
	expiresUnset
)

func setExpires(cf *module.Conf, _ *module.Directive, c any) error {
	e := &c.(*conf).expires
	if e.kind != expiresUnset {
		return module.ErrDuplicate
	}
	text := cf.Args[1]
	e.kind = expiresAccess
	if len(cf.Args) == 3 {
		if !module.Is(cf.Args[1], "modified") {
			return module.Text("invalid value")
		}
		e.kind = expiresModified
		text = cf.Args[2]
	}
	v, err := http.CompileComplexValue(cf, text)
	if err != nil {
		return err
	}
	if !v.Static {
		e.value = v
		return nil
	}
	return e.parse(text)
}

// parse reads epoch, max, off, @daily, or a signed duration.
func (e *expires) parse(s string) error {
	if e.kind != expiresModified {
		switch s {
		case "epoch":
			e.kind = expiresEpoch
			return nil
		case "max":
			e.kind = expiresMax
			return nil
		case "off":
			e.kind = expiresOff
			return nil
		}
	}
	minus := false
	if s != "" {
		switch s[0] {
		case '@':
			if e.kind == expiresModified {
				return module.Text(`daily time cannot be used with "modified" parameter`)
			}
			e.kind = expiresDaily
			s = s[1:]
		case '+':
			s = s[1:]
		case '-':
			minus = true
			s = s[1:]
		}
	}
	n, ok := module.ParseTime(s, true)
	e.time = n
	if !ok {
		return module.Text("invalid value")
	}
	if e.kind == expiresDaily && n > 24*60*60 {
		return module.Text("daily time value must be less than 24 hours")
	}
	if minus {
		e.time = -n
	}
	return nil
}

var (
	keyExpires      = []byte("Expires")
	keyCacheControl = []byte("Cache-Control")
	valEpoch        = []byte("Thu, 01 Jan 1970 00:00:01 GMT")
	valMax          = []byte("Thu, 31 Dec 2037 23:55:55 GMT")
	valMaxAgeMax    = []byte("max-age=315360000") // ten years
	valNoCache      = []byte("no-cache")
	valMaxAge0      = []byte("max-age=0")
)

// apply sets Expires and Cache-Control; a value that makes no sense when it is known sets nothing.
func (set *expires) apply(r *http.Request) http.Rc {
	e := *set
	if e.value != nil {
		v, rc := r.Complex(e.value)
		if rc != http.OK {
			return http.Error
		}
		if e.parse(string(v)) != nil || e.kind == expiresOff {
			return http.OK
		}
	}

	out := &r.HeadersOut
	if out.Expires == nil {
		out.Expires = r.AddHeaderOut(keyExpires, nil)
	}
	if out.CacheControl == nil {
		out.CacheControl = r.AddHeaderOut(keyCacheControl, nil)
	} else {
		for h := out.CacheControl.Next; h != nil; h = h.Next {
			h.Hash = 0
		}
		out.CacheControl.Next = nil
	}

	switch {
	case e.kind == expiresEpoch:
		out.Expires.Value, out.CacheControl.Value = valEpoch, valNoCache
		return http.OK
	case e.kind == expiresMax:
		out.Expires.Value, out.CacheControl.Value = valMax, valMaxAgeMax
		return http.OK
	}

	now, _ := r.Conn.Loop.Now()
	var at, age int64
	switch {
	case e.time == 0 && e.kind != expiresDaily:
		out.Expires.Value = ev.HTTPTime(r.Alloc(29)[:0], now)
		out.CacheControl.Value = valMaxAge0
		return http.OK
	case e.kind == expiresDaily:
		at = nextTime(e.time, now)
		age = at - now
	case e.kind == expiresAccess || out.LastModifiedTime == -1:
		at, age = now+e.time, e.time
	default:
		at = out.LastModifiedTime + e.time
		age = at - now
	}
	out.Expires.Value = ev.HTTPTime(r.Alloc(29)[:0], at)
	// The sign is that of the configured time, which a value with variables does not have.
	if set.time < 0 || age < 0 {
		out.CacheControl.Value = valNoCache
		return http.OK
	}
	out.CacheControl.Value = strconv.AppendInt(append(r.Alloc(28)[:0], "max-age="...), age, 10)
	return http.OK
}

// nextTime is the next moment at which the local clock shows the given second of the day; as mktime
// it counts with the present offset to GMT (ngx_next_time).
func nextTime(when, now int64) int64 {
	_, offset := time.Unix(now, 0).Zone()
	local := now + int64(offset)
	next := local - local%86400 + when - int64(offset)
	if next > now {
		return next
	}
	return next + 86400
}
