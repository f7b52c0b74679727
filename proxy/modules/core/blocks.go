package core

import (
	"strings"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/inet"
	"nginxoracle/proxy/module"
)

// location is the setter of location (ngx_http_core_location).
func location(cf *module.Conf, cmd *module.Directive, _ any) error {
	ctx, loc, parent := http.NewLocation(cf)
	if err := nameLocation(cf, loc); err != nil {
		return err
	}
	if cf.Where == module.HTTPLoc {
		switch {
		case parent.Exact:
			return cf.Emerg(`location "%s" cannot be inside the exact location "%s"`, loc.Name, parent.Name)
		case parent.Named:
			return cf.Emerg(`location "%s" cannot be inside the named location "%s"`, loc.Name, parent.Name)
		case loc.Named:
			return cf.Emerg(`named location "%s" can be on the server level only`, loc.Name)
		case loc.Regex == nil && !strings.HasPrefix(loc.Name, parent.Name):
			return cf.Emerg(`location "%s" is outside location "%s"`, loc.Name, parent.Name)
		}
	}
	http.AddLocation(cf, parent, loc)
	return http.ReadInside(cf, ctx, module.HTTPLoc)
}

// nameLocation reads the modifier, which may stand apart from the name or not.
func nameLocation(cf *module.Conf, loc *http.CoreLoc) error {
	regex := func(pattern string, caseless bool) (err error) {
		loc.Name = pattern
		loc.Regex, err = http.CompileRegex(cf, pattern, caseless)
		return err
	}
	if len(cf.Args) == 3 {
		switch mod, name := cf.Args[1], cf.Args[2]; mod {
		case "=":
			loc.Name, loc.Exact = name, true
		case "^~":
			loc.Name, loc.NoRegex = name, true
		case "~":
			return regex(name, false)
		case "~*":
			return regex(name, true)
		default:
			return cf.Emerg(`invalid location modifier "%s"`, mod)
		}
		return nil
	}
	name := cf.Args[1]
	switch {
	case strings.HasPrefix(name, "="):
		loc.Name, loc.Exact = name[1:], true
	case strings.HasPrefix(name, "^~"):
		loc.Name, loc.NoRegex = name[2:], true
	case strings.HasPrefix(name, "~*"):
		return regex(name[2:], true)
	case strings.HasPrefix(name, "~"):
		return regex(name[1:], false)
	default:
		loc.Name, loc.Named = name, strings.HasPrefix(name, "@")
	}
	return nil
}

var methods = []module.Enum{
	{Name: "GET", Value: int(http.GET)}, {Name: "HEAD", Value: int(http.HEAD)}, {Name: "POST", Value: int(http.POST)},
	{Name: "PUT", Value: int(http.PUT)}, {Name: "DELETE", Value: int(http.DELETE)}, {Name: "MKCOL", Value: int(http.MKCOL)},
	{Name: "COPY", Value: int(http.COPY)}, {Name: "MOVE", Value: int(http.MOVE)}, {Name: "OPTIONS", Value: int(http.OPTIONS)},
	{Name: "PROPFIND", Value: int(http.PROPFIND)}, {Name: "PROPPATCH", Value: int(http.PROPPATCH)},
	{Name: "LOCK", Value: int(http.LOCK)}, {Name: "UNLOCK", Value: int(http.UNLOCK)}, {Name: "PATCH", Value: int(http.PATCH)},
}

// limitExcept is the setter of limit_except: LimitExcept becomes the set of the methods
// that the block is for (ngx_http_core_limit_except).
func limitExcept(cf *module.Conf, cmd *module.Directive, conf any) error {
	up := conf.(*http.CoreLoc)
	if up.LimitExcept != 0 {
		return module.ErrDuplicate
	}
	up.LimitExcept = 1<<32 - 1
words:
	for _, a := range cf.Args[1:] {
		for _, m := range methods {
			if ascii.EqualFold(module.CText(a), m.Name) {
				up.LimitExcept &^= http.Method(m.Value)
				continue words
			}
		}
		return cf.Emerg(`invalid method "%s"`, a)
	}
	if up.LimitExcept&http.GET == 0 {
		up.LimitExcept &^= http.HEAD
	}
	ctx, loc, _ := http.NewLocation(cf)
	up.LimitExceptConf = ctx
	loc.Name, loc.Noname, loc.Lmt = up.Name, true, true
	http.AddLocation(cf, up, loc)
	return http.ReadInside(cf, ctx, module.HTTPLmt)
}

// serverName is the setter of server_name (ngx_http_core_server_name).
func serverName(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*http.CoreSrv)
	for _, v := range cf.Args[1:] {
		if strings.HasPrefix(v, "*") && (len(v) < 3 || v[1] != '.') || strings.HasPrefix(v, ".") && len(v) < 2 {
			return cf.Emerg(`server name "%s" is invalid`, v)
		}
		if strings.Contains(v, "/") {
			cf.Warn(`server name "%s" has suspicious symbols`, v)
		}
		name := http.ServerName{Name: v, Srv: c}
		if ascii.EqualFold(module.CText(v), "$hostname") {
			name.Name = cf.Cycle.Hostname
		}
		if !strings.HasPrefix(v, "~") {
			name.Name = ascii.Lower(name.Name)
			c.Names = append(c.Names, name)
			continue
		}
		if len(v) == 1 {
			return cf.Emerg(`empty regex in server name "%s"`, v)
		}
		name.Name = v[1:]
		upper := strings.ContainsFunc(name.Name, func(r rune) bool { return r >= 'A' && r <= 'Z' })
		re, err := http.CompileRegex(cf, name.Name, upper)
		if err != nil {
			return err
		}
		name.Regex = re
		c.Captures = re.NCaptures > 0
		c.Names = append(c.Names, name)
	}
	return nil
}

// listen is the setter of listen (ngx_http_core_listen).
func listen(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*http.CoreSrv)
	c.Listen = true
	addrs, err := inet.Listen(cf.Args[1], 80)
	if err != nil {
		return cf.Emerg(`%s in "%s" of the "listen" directive`, err, cf.Args[1])
	}
	var opt http.ConfAddr
	opt.Backlog, opt.Rcvbuf, opt.Sndbuf, opt.FastOpen, opt.IPv6Only = http.ListenBacklog, unset, unset, unset, 1
	for _, a := range cf.Args[2:] {
		if err := listenOption(cf, &opt, a); err != nil {
			return err
		}
	}
	for i, a := range addrs {
		again := false
		for _, b := range addrs[:i] {
			again = again || inet.Same(a, b, true)
		}
		if again {
			continue
		}
		opt.Addr, opt.Text, opt.Wildcard = a, a.Text(), inet.Wildcard(a)
		if err := http.AddListen(cf, c, opt); err != nil {
			return err
		}
	}
	return nil
}

// listenOption reads one parameter of listen. Those that change the socket make it one that
// is bound for itself.
func listenOption(cf *module.Conf, opt *http.ConfAddr, a string) error {
	key, value, _ := strings.Cut(a, "=")
	number := func(to *int, ok bool, n int) error {
		opt.Set, opt.Bind = true, true
		n = int(int32(n)) // an int, in which some numbers look like the error of their reader
		if !ok || n == -1 || n == 0 && key == "backlog" {
			return cf.Emerg(`invalid %s "%s"`, key, a)
		}
		*to = n
		return nil
	}
	switch {
	case module.Is(a, "default_server") || module.Is(a, "default"):
		opt.DefaultSet = true
		return nil
	case module.Is(a, "bind"):
	case strings.HasPrefix(a, "fastopen="):
		n, ok := module.Atoi(value)
		return number(&opt.FastOpen, ok, n)
	case strings.HasPrefix(a, "backlog="):
		n, ok := module.Atoi(value)
		return number(&opt.Backlog, ok, n)
	case strings.HasPrefix(a, "rcvbuf="):
		n, ok := module.ParseSize(value)
		return number(&opt.Rcvbuf, ok, int(n))
	case strings.HasPrefix(a, "sndbuf="):
		n, ok := module.ParseSize(value)
		return number(&opt.Sndbuf, ok, int(n))
	case strings.HasPrefix(a, "accept_filter="):
		// nginx logs this as an error and goes on.
		_ = cf.Emerg(`accept filters "%s" are not supported on this platform, ignored`, a)
		return nil
	case module.Is(a, "deferred"):
		opt.Deferred = true
	case strings.HasPrefix(a, "ipv6only=o"):
		switch module.CText(a[len("ipv6only=o"):]) {
		case "n":
			opt.IPv6Only = 1
		case "ff":
			opt.IPv6Only = 0
		default:
			return cf.Emerg(`invalid ipv6only flags "%s"`, a[len("ipv6only="):])
		}
	case module.Is(a, "reuseport"):
		opt.Reuseport = true
	case module.Is(a, "http2"):
		cf.Warn(`the "listen ... http2" directive is deprecated, use the "http2" directive instead`)
		return cf.NotSupported("listen " + a)
	case module.Is(a, "ssl") || module.Is(a, "quic") || module.Is(a, "proxy_protocol"):
		return cf.NotSupported("listen " + a)
	case strings.HasPrefix(a, "so_keepalive="):
		if !keepalive(opt, value) {
			return cf.Emerg(`invalid so_keepalive value: "%s"`, value)
		}
	default:
		return cf.Emerg(`invalid parameter "%s"`, a)
	}
	opt.Set, opt.Bind = true, true
	return nil
}

// keepalive reads on, off, or [idle]:[interval]:[count], of which one is not zero.
func keepalive(opt *http.ConfAddr, v string) bool {
	switch module.CText(v) {
	case "on":
		opt.KeepaliveOpts[0] = 1
		return true
	case "off":
		opt.KeepaliveOpts[0] = 2
		return true
	}
	idle, rest, _ := strings.Cut(v, ":")
	interval, count, _ := strings.Cut(rest, ":")
	for i, s := range []string{idle, interval} {
		if s == "" {
			continue
		}
		n, ok := module.ParseTime(s, true)
		if opt.KeepaliveOpts[1+i] = int(int32(n)); !ok || int32(n) == -1 {
			return false
		}
	}
	if count != "" {
		n, ok := module.Atoi(count)
		if opt.KeepaliveOpts[3] = int(int32(n)); !ok || int32(n) == -1 {
			return false
		}
	}
	if opt.KeepaliveOpts[1] == 0 && opt.KeepaliveOpts[2] == 0 && opt.KeepaliveOpts[3] == 0 {
		return false
	}
	opt.KeepaliveOpts[0] = 1
	return true
}
