// Package proxy is ngx_http_proxy_module: proxy_pass and what shapes the request that is passed on
// and the answer that comes back.
package proxy

import (
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/upstream"
)

// Module is ngx_http_proxy_module.
var Module = &http.Module{Name: "ngx_http_proxy_module"}

// The rest of the table needs Module's place among the modules.
func init() {
	Module.Preconf = addVariables
	Module.CreateLoc = func(*module.Conf) any { return newLoc() }
	Module.Directives = directives()
	Module.MergeLoc = mergeLoc
}

// locConf is the location configuration (ngx_http_proxy_loc_conf_t).
type locConf struct {
	up upstream.Conf

	bodySource module.Str
	body       *http.ComplexValue

	headersSource []module.Keyval
	headers       *headerSet

	pass *http.ComplexValue // proxy_pass with variables

	redirects                  []*rewriteRule
	cookieDomains, cookiePaths cookieRules
	cookieFlags                cookieFlagRules

	method   *http.ComplexValue
	location string
	url      string
	vars     vars

	redirect    int
	httpVersion int

	headersHashMaxSize, headersHashBucketSize int
}

// vars is what a URL gives to a request (ngx_http_proxy_vars_t).
type vars struct {
	schema, hostHeader, port, uri []byte
}

// cookieRules is a list that may also be "off".
type cookieRules struct {
	set   bool
	rules []*rewriteRule
}

type cookieFlagRules struct {
	set   bool
	rules []*cookieFlagRule
}

func newLoc() *locConf {
	c := &locConf{
		redirect: module.Unset, httpVersion: module.Unset,
		headersHashMaxSize: module.Unset, headersHashBucketSize: module.Unset,
	}
	u := &c.up
	for _, p := range []*int{
		&u.Store, &u.StoreAccess, &u.NextUpstreamTries, &u.Buffering, &u.RequestBuffering, &u.IgnoreClientAbort,
		&u.ForceRanges, &u.SocketKeepalive, &u.PassRequestHeaders, &u.PassRequestBody, &u.InterceptErrors,
	} {
		*p = module.Unset
	}
	for _, p := range []*int64{
		&u.ConnectTimeout, &u.SendTimeout, &u.ReadTimeout, &u.NextUpstreamTimeout, &u.SendLowat, &u.BufferSize,
		&u.LimitRate, &u.BusyBuffersSizeConf, &u.MaxTempFileSizeConf, &u.TempFileWriteSizeConf,
	} {
		*p = module.Unset
	}
	u.ChangeBuffering = true
	u.Module = "proxy"
	return c
}

func up(c *locConf) *upstream.Conf { return &c.up }

const everywhere = module.HTTPMain | module.HTTPSrv | module.HTTPLoc

var nextUpstreamMask = []module.Enum{
	{Name: "error", Value: upstream.FTError},
	{Name: "timeout", Value: upstream.FTTimeout},
	{Name: "invalid_header", Value: upstream.FTInvalidHeader},
	{Name: "non_idempotent", Value: upstream.FTNonIdempotent},
	{Name: "http_500", Value: upstream.FTHTTP500},
	{Name: "http_502", Value: upstream.FTHTTP502},
	{Name: "http_503", Value: upstream.FTHTTP503},
	{Name: "http_504", Value: upstream.FTHTTP504},
	{Name: "http_403", Value: upstream.FTHTTP403},
	{Name: "http_404", Value: upstream.FTHTTP404},
	{Name: "http_429", Value: upstream.FTHTTP429},
	{Name: "updating", Value: upstream.FTUpdating},
	{Name: "off", Value: upstream.FTOff},
}

func directives() []module.Directive {
	row := func(name string, args module.Args, set func(cf *module.Conf, cmd *module.Directive, conf any) error) module.Directive {
		return module.Directive{Name: name, Where: everywhere, Args: args, Level: module.LocConf, Set: set}
	}
	flag := func(name string, at func(u *upstream.Conf) *int) module.Directive {
		return row(name, module.Flag, module.FlagSlot(func(c *locConf) *int { return at(&c.up) }))
	}
	msec := func(name string, at func(u *upstream.Conf) *int64) module.Directive {
		return row(name, module.Take1, module.MsecSlot(func(c *locConf) *int64 { return at(&c.up) }))
	}
	size := func(name string, at func(u *upstream.Conf) *int64) module.Directive {
		return row(name, module.Take1, module.SizeSlot(func(c *locConf) *int64 { return at(&c.up) }))
	}
	lowat := size("proxy_send_lowat", func(u *upstream.Conf) *int64 { return &u.SendLowat })
	lowat.Post = func(cf *module.Conf, _ *module.Directive, field any) error {
		cf.Warn(`"proxy_send_lowat" is not supported, ignored`) // Linux has no such option for sending
		*field.(*int64) = 0
		return nil
	}
	return []module.Directive{
		{Name: "proxy_pass", Where: module.HTTPLoc | module.HTTPLif | module.HTTPLmt, Args: module.Take1, Level: module.LocConf, Set: setPass},
		row("proxy_redirect", module.Take12, setRedirect),
		row("proxy_cookie_domain", module.Take12, setCookieDomain),
		row("proxy_cookie_path", module.Take12, setCookiePath),
		row("proxy_cookie_flags", module.Take1234, setCookieFlags),
		row("proxy_store", module.Take1, setStore),
		row("proxy_store_access", module.Take123, module.AccessSlot(func(c *locConf) *int { return &c.up.StoreAccess })),
		flag("proxy_buffering", func(u *upstream.Conf) *int { return &u.Buffering }),
		flag("proxy_request_buffering", func(u *upstream.Conf) *int { return &u.RequestBuffering }),
		flag("proxy_ignore_client_abort", func(u *upstream.Conf) *int { return &u.IgnoreClientAbort }),
		row("proxy_bind", module.Take12, upstream.BindSlot(up)),
		flag("proxy_socket_keepalive", func(u *upstream.Conf) *int { return &u.SocketKeepalive }),
		msec("proxy_connect_timeout", func(u *upstream.Conf) *int64 { return &u.ConnectTimeout }),
		msec("proxy_send_timeout", func(u *upstream.Conf) *int64 { return &u.SendTimeout }),
		lowat,
		flag("proxy_intercept_errors", func(u *upstream.Conf) *int { return &u.InterceptErrors }),
		row("proxy_set_header", module.Take2, module.KeyvalSlot(func(c *locConf) *[]module.Keyval { return &c.headersSource })),
		row("proxy_headers_hash_max_size", module.Take1, module.NumSlot(func(c *locConf) *int { return &c.headersHashMaxSize })),
		row("proxy_headers_hash_bucket_size", module.Take1, module.NumSlot(func(c *locConf) *int { return &c.headersHashBucketSize })),
		row("proxy_set_body", module.Take1, module.StrSlot(func(c *locConf) *module.Str { return &c.bodySource })),
		row("proxy_method", module.Take1, http.ComplexSlot(func(c *locConf) **http.ComplexValue { return &c.method })),
		flag("proxy_pass_request_headers", func(u *upstream.Conf) *int { return &u.PassRequestHeaders }),
		flag("proxy_pass_request_body", func(u *upstream.Conf) *int { return &u.PassRequestBody }),
		size("proxy_buffer_size", func(u *upstream.Conf) *int64 { return &u.BufferSize }),
		msec("proxy_read_timeout", func(u *upstream.Conf) *int64 { return &u.ReadTimeout }),
		row("proxy_buffers", module.Take2, module.BufsSlot(func(c *locConf) *module.Bufs { return &c.up.Bufs })),
		size("proxy_busy_buffers_size", func(u *upstream.Conf) *int64 { return &u.BusyBuffersSizeConf }),
		flag("proxy_force_ranges", func(u *upstream.Conf) *int { return &u.ForceRanges }),
		size("proxy_limit_rate", func(u *upstream.Conf) *int64 { return &u.LimitRate }),
		row("proxy_temp_path", module.Take1234, module.PathSlot(func(c *locConf) **module.Path { return &c.up.TempPath })),
		size("proxy_max_temp_file_size", func(u *upstream.Conf) *int64 { return &u.MaxTempFileSizeConf }),
		size("proxy_temp_file_write_size", func(u *upstream.Conf) *int64 { return &u.TempFileWriteSizeConf }),
		row("proxy_next_upstream", module.OneMore, module.BitmaskSlot(func(c *locConf) *int { return &c.up.NextUpstream }, nextUpstreamMask)),
		row("proxy_next_upstream_tries", module.Take1, module.NumSlot(func(c *locConf) *int { return &c.up.NextUpstreamTries })),
		msec("proxy_next_upstream_timeout", func(u *upstream.Conf) *int64 { return &u.NextUpstreamTimeout }),
		row("proxy_pass_header", module.Take1, module.StrArraySlot(func(c *locConf) *[]string { return &c.up.PassHeaders })),
		row("proxy_hide_header", module.Take1, module.StrArraySlot(func(c *locConf) *[]string { return &c.up.HideHeaders })),
		row("proxy_ignore_headers", module.OneMore, module.BitmaskSlot(func(c *locConf) *int { return &c.up.IgnoreHeaders }, upstream.IgnoreHeadersMask)),
		row("proxy_http_version", module.Take1, module.EnumSlot(func(c *locConf) *int { return &c.httpVersion }, []module.Enum{
			{Name: "1.0", Value: http.HTTP10}, {Name: "1.1", Value: http.HTTP11},
		})),
	}
}

const tempPath = "/var/lib/nginx/proxy"

// hideHeaders are not passed on from an answer.
var hideHeaders = []string{
	"Date", "Server", "X-Pad", "X-Accel-Expires", "X-Accel-Redirect",
	"X-Accel-Limit-Rate", "X-Accel-Buffering", "X-Accel-Charset",
}

const pageSize = 4096

// mergeLoc is ngx_http_proxy_merge_loc_conf.
func mergeLoc(cf *module.Conf, p, c any) error {
	prev, conf := p.(*locConf), c.(*locConf)
	if err := mergeUpstream(cf, &prev.up, &conf.up); err != nil {
		return err
	}
	module.MergePtr(&conf.method, prev.method, nil)
	module.MergeInt(&conf.redirect, prev.redirect, 1)
	if conf.redirect == 1 {
		if conf.redirects == nil {
			conf.redirects = prev.redirects
		}
		if conf.redirects == nil && conf.url != "" {
			conf.redirects = []*rewriteRule{conf.defaultRedirect()}
		}
	}
	if !conf.cookieDomains.set {
		conf.cookieDomains = prev.cookieDomains
	}
	if !conf.cookiePaths.set {
		conf.cookiePaths = prev.cookiePaths
	}
	if !conf.cookieFlags.set {
		conf.cookieFlags = prev.cookieFlags
	}
	module.MergeInt(&conf.httpVersion, prev.httpVersion, http.HTTP10)
	module.MergeInt(&conf.headersHashMaxSize, prev.headersHashMaxSize, 512)
	module.MergeInt(&conf.headersHashBucketSize, prev.headersHashBucketSize, 64)
	conf.headersHashBucketSize = http.AlignLine(conf.headersHashBucketSize)
	if conf.up.MergeHide(&prev.up, hideHeaders) {
		if err := conf.checkHash(cf, conf.up.HideNames()); err != nil {
			return err
		}
	}

	clcf := http.ConfLoc(cf, http.Modules[0]).(*http.CoreLoc)
	if clcf.Noname && conf.up.Upstream == nil && conf.pass == nil {
		conf.up.Upstream = prev.up.Upstream
		conf.location = prev.location
		conf.vars = prev.vars
		conf.pass = prev.pass
	}
	if clcf.Lmt && clcf.Handler == nil && (conf.up.Upstream != nil || conf.pass != nil) {
		clcf.Handler = handle
	}

	if !conf.bodySource.Set {
		conf.bodySource, conf.body = prev.bodySource, prev.body
	}
	if conf.bodySource.Set && conf.body == nil {
		v, err := http.CompileComplexValue(cf, conf.bodySource.V)
		if err != nil {
			return err
		}
		conf.body = v
	}

	inherited := conf.headersSource == nil
	if inherited {
		conf.headersSource = prev.headersSource
		conf.headers = prev.headers
	}
	if conf.headers == nil {
		if err := conf.initHeaders(cf); err != nil {
			return err
		}
	}
	// What the http level sets serves all servers. What it does not set, each server makes for itself: in nginx its
	// headers_source stays unset, which is not the NULL that a server's becomes.
	if prev.headers == nil && inherited && prev.headersSource != nil {
		prev.headers = conf.headers
	}
	return nil
}

func mergeUpstream(cf *module.Conf, prev, conf *upstream.Conf) error {
	if conf.Store == module.Unset {
		module.MergeInt(&conf.Store, prev.Store, 0)
		conf.StoreValue = prev.StoreValue
	}
	module.MergeInt(&conf.StoreAccess, prev.StoreAccess, 0o600)
	module.MergeInt(&conf.NextUpstreamTries, prev.NextUpstreamTries, 0)
	module.MergeInt(&conf.Buffering, prev.Buffering, 1)
	module.MergeInt(&conf.RequestBuffering, prev.RequestBuffering, 1)
	module.MergeInt(&conf.IgnoreClientAbort, prev.IgnoreClientAbort, 0)
	module.MergeInt(&conf.ForceRanges, prev.ForceRanges, 0)
	if !conf.LocalSet {
		conf.Local = prev.Local
	}
	module.MergeInt(&conf.SocketKeepalive, prev.SocketKeepalive, 0)
	module.MergeInt64(&conf.ConnectTimeout, prev.ConnectTimeout, 60000)
	module.MergeInt64(&conf.SendTimeout, prev.SendTimeout, 60000)
	module.MergeInt64(&conf.ReadTimeout, prev.ReadTimeout, 60000)
	module.MergeInt64(&conf.NextUpstreamTimeout, prev.NextUpstreamTimeout, 0)
	module.MergeInt64(&conf.SendLowat, prev.SendLowat, 0)
	module.MergeInt64(&conf.BufferSize, prev.BufferSize, pageSize)
	module.MergeInt64(&conf.LimitRate, prev.LimitRate, 0)
	module.MergeBufs(&conf.Bufs, prev.Bufs, 8, pageSize)
	if conf.Bufs.Num < 2 {
		return cf.Emerg("there must be at least 2 \"proxy_buffers\"")
	}
	if err := mergeBufferSizes(cf, prev, conf); err != nil {
		return err
	}
	module.MergeBits(&conf.IgnoreHeaders, prev.IgnoreHeaders, upstream.BitmaskSet)
	module.MergeBits(&conf.NextUpstream, prev.NextUpstream, upstream.BitmaskSet|upstream.FTError|upstream.FTTimeout)
	if conf.NextUpstream&upstream.FTOff != 0 {
		conf.NextUpstream = upstream.BitmaskSet | upstream.FTOff
	}
	if err := cf.MergePath(&conf.TempPath, prev.TempPath, tempPath, [3]int{1, 2, 0}); err != nil {
		return err
	}
	module.MergeInt(&conf.PassRequestHeaders, prev.PassRequestHeaders, 1)
	module.MergeInt(&conf.PassRequestBody, prev.PassRequestBody, 1)
	module.MergeInt(&conf.InterceptErrors, prev.InterceptErrors, 0)
	return nil
}

// mergeBufferSizes settles the sizes that depend on each other.
func mergeBufferSizes(cf *module.Conf, prev, conf *upstream.Conf) error {
	size := max(conf.BufferSize, conf.Bufs.Size)
	or := func(at *int64, own *int64, above, def int64) {
		module.MergeInt64(own, above, module.Unset)
		if *at = *own; *own == module.Unset {
			*at = def
		}
	}
	or(&conf.BusyBuffersSize, &conf.BusyBuffersSizeConf, prev.BusyBuffersSizeConf, 2*size)
	// Sizes have no sign: twice the largest is a large one, too.
	if uint64(conf.BusyBuffersSize) < uint64(size) {
		return cf.Emerg("\"proxy_busy_buffers_size\" must be equal to or greater than " +
			"the maximum of the value of \"proxy_buffer_size\" and one of the \"proxy_buffers\"")
	}
	if uint64(conf.BusyBuffersSize) > uint64(conf.Bufs.Num-1)*uint64(conf.Bufs.Size) {
		return cf.Emerg("\"proxy_busy_buffers_size\" must be less than " +
			"the size of all \"proxy_buffers\" minus one buffer")
	}
	or(&conf.TempFileWriteSize, &conf.TempFileWriteSizeConf, prev.TempFileWriteSizeConf, 2*size)
	if uint64(conf.TempFileWriteSize) < uint64(size) {
		return cf.Emerg("\"proxy_temp_file_write_size\" must be equal to or greater than " +
			"the maximum of the value of \"proxy_buffer_size\" and one of the \"proxy_buffers\"")
	}
	or(&conf.MaxTempFileSize, &conf.MaxTempFileSizeConf, prev.MaxTempFileSizeConf, 1<<30)
	if conf.MaxTempFileSize != 0 && uint64(conf.MaxTempFileSize) < uint64(size) {
		return cf.Emerg("\"proxy_max_temp_file_size\" must be equal to zero to disable " +
			"temporary files usage or must be equal to or greater than " +
			"the maximum of the value of \"proxy_buffer_size\" and one of the \"proxy_buffers\"")
	}
	return nil
}
