// Package upstream is the engine that talks to other servers on a request's behalf:
// choosing a peer, connecting, sending the request, reading the answer through
// the event pipe or unbuffered, trying the next peer, tunnelling upgraded
// connections, and keeping count of it all. A protocol (HTTP/1 in modules/proxy)
// plugs in through the Protocol interface.
// (nginx: src/http/ngx_http_upstream.c, src/event/ngx_event_pipe.c, ngx_event_connect.c)
package upstream

import (
	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// Kinds of failure for which the next peer may be tried (NGX_HTTP_UPSTREAM_FT_*).
const (
	FTError         = 0x00000002
	FTTimeout       = 0x00000004
	FTInvalidHeader = 0x00000008
	FTHTTP500       = 0x00000010
	FTHTTP502       = 0x00000020
	FTHTTP503       = 0x00000040
	FTHTTP504       = 0x00000080
	FTHTTP403       = 0x00000100
	FTHTTP404       = 0x00000200
	FTHTTP429       = 0x00000400
	FTUpdating      = 0x00000800
	FTNonIdempotent = 0x00004000
	FTNoLive        = 0x40000000
	FTOff           = 0x80000000

	// BitmaskSet tells a set bitmask from an unset one (NGX_CONF_BITMASK_SET).
	BitmaskSet = 1
)

// Headers of an answer whose special meaning can be switched off (NGX_HTTP_UPSTREAM_IGN_*).
const (
	IgnXARedirect   = 0x00000002
	IgnXAExpires    = 0x00000004
	IgnExpires      = 0x00000008
	IgnCacheControl = 0x00000010
	IgnSetCookie    = 0x00000020
	IgnXALimitRate  = 0x00000040
	IgnXABuffering  = 0x00000080
	IgnXACharset    = 0x00000100
	IgnVary         = 0x00000200
)

// IgnoreHeadersMask is the words of *_ignore_headers.
var IgnoreHeadersMask = []module.Enum{
	{Name: "X-Accel-Redirect", Value: IgnXARedirect},
	{Name: "X-Accel-Expires", Value: IgnXAExpires},
	{Name: "X-Accel-Limit-Rate", Value: IgnXALimitRate},
	{Name: "X-Accel-Buffering", Value: IgnXABuffering},
	{Name: "X-Accel-Charset", Value: IgnXACharset},
	{Name: "Expires", Value: IgnExpires},
	{Name: "Cache-Control", Value: IgnCacheControl},
	{Name: "Set-Cookie", Value: IgnSetCookie},
	{Name: "Vary", Value: IgnVary},
}

// What an upstream{}'s balancing method allows in its server lines (NGX_HTTP_UPSTREAM_*).
const (
	Create      = 0x0001
	Weight      = 0x0002
	MaxFails    = 0x0004
	FailTimeout = 0x0008
	Down        = 0x0010
	Backup      = 0x0020
	MaxConns    = 0x0100

	// AllButBackup is what most balancing methods allow.
	AllButBackup = Create | Weight | MaxConns | MaxFails | FailTimeout | Down
)

// Conf is what a protocol module's location configuration says to the engine
// (ngx_http_upstream_conf_t). Times are milliseconds, sizes bytes.
type Conf struct {
	Upstream *SrvConf

	ConnectTimeout, SendTimeout, ReadTimeout, NextUpstreamTimeout     int64
	SendLowat, BufferSize, LimitRate                                  int64
	BusyBuffersSize, MaxTempFileSize, TempFileWriteSize               int64
	BusyBuffersSizeConf, MaxTempFileSizeConf, TempFileWriteSizeConf   int64
	Bufs                                                              module.Bufs
	IgnoreHeaders, NextUpstream, StoreAccess, NextUpstreamTries       int
	Buffering, RequestBuffering, PassRequestHeaders, PassRequestBody  int
	IgnoreClientAbort, InterceptErrors, ForceRanges, SocketKeepalive  int
	Store                                                             int
	StoreValue                                                        *http.ComplexValue
	TempPath                                                          *module.Path
	HideHeaders, PassHeaders                                          []string
	hide                                                              map[string]struct{}
	Local                                                             *Local
	LocalSet                                                          bool
	Intercept404, ChangeBuffering, PassTrailers, PreserveOutput, NoXA bool
	Module                                                            string
}

// MainConf is the module's main configuration: every upstream, named or implied.
type MainConf struct{ Upstreams []*SrvConf }

// Server is one server line (ngx_http_upstream_server_t).
type Server struct {
	Name        string
	Addrs       []NamedAddr
	Weight      int
	MaxConns    int
	MaxFails    int
	FailTimeout int64 // seconds
	Down        bool
	Backup      bool
}

// NamedAddr is an address with the text that logs and $upstream_addr show.
type NamedAddr struct {
	Addr ev.Addr
	Name string
}

// SrvConf is one upstream: an upstream{} block, or what a plain proxy_pass implies
// (ngx_http_upstream_srv_conf_t).
type SrvConf struct {
	// Init builds the peers at the end of loading; nil means round robin.
	Init func(cf *module.Conf, us *SrvConf) error
	// PeerInit prepares a request's choosing.
	PeerInit func(r *http.Request, u *Upstream, us *SrvConf) http.Rc

	Srv     []any // the upstream{}'s configurations of other modules
	Servers []*Server
	HasSrvs bool

	Flags  int
	Host   string
	File   string
	Line   int
	Port   int
	NoPort bool

	// Peers is filled by Init; each worker reads its own configuration, so that nothing here
	// is shared unless there is a zone.
	Peers  *Peers
	Zone   *module.Zone
	shared *shared
}

// SrvOf gives another module's configuration of this upstream.
func (us *SrvConf) SrvOf(m *http.Module) any { return us.Srv[m.Index] }

// Module is ngx_http_upstream_module; modules/upstream gives it its directives and variables.
var Module = &http.Module{
	Name:       "ngx_http_upstream_module",
	CreateMain: func(*module.Conf) any { return &MainConf{} },
	InitMain:   initMain,
}

func initMain(cf *module.Conf, conf any) error {
	for _, us := range conf.(*MainConf).Upstreams {
		init := us.Init
		if init == nil {
			init = InitRoundRobin
		}
		if err := init(cf, us); err != nil {
			return err
		}
	}
	return nil
}

// Add finds or makes the upstream that a URL names (ngx_http_upstream_add). Errors are
// reported as nginx words them.
func Add(cf *module.Conf, url *URL, flags int) (*SrvConf, error) {
	if flags&Create == 0 {
		if err := ParseURL(url); err != nil {
			return nil, cf.Emerg("%s in upstream \"%s\"", err, url.Text)
		}
	}
	mc := http.ConfMain(cf, Module).(*MainConf)
	for _, us := range mc.Upstreams {
		if !ascii.EqualFold(us.Host, url.Host) {
			continue
		}
		if flags&us.Flags&Create != 0 {
			return nil, cf.Emerg("duplicate upstream \"%s\"", url.Host)
		}
		if us.Flags&Create != 0 && !url.NoPort {
			return nil, cf.Emerg("upstream \"%s\" may not have port %d", url.Host, url.Port)
		}
		if flags&Create != 0 && !us.NoPort {
			cf.Log().Err(elog.Emerg, nil, "upstream \"%s\" may not have port %d in %s:%d", url.Host, us.Port, us.File, us.Line)
			return nil, module.ErrReported
		}
		if us.Port != 0 && url.Port != 0 && us.Port != url.Port {
			continue
		}
		if flags&Create != 0 {
			us.Flags = flags
			us.Port = 0
		}
		return us, nil
	}

	us := &SrvConf{Flags: flags, Host: url.Host, File: cf.File(), Line: cf.Line(), Port: url.Port, NoPort: url.NoPort}
	if len(url.Addrs) == 1 && (url.Port != 0 || url.Unix) {
		us.HasSrvs = true
		// an implied server has no weight and no fail counting: nginx leaves it zeroed
		us.Servers = []*Server{{Addrs: url.Addrs}}
	}
	mc.Upstreams = append(mc.Upstreams, us)
	return us, nil
}

// MergeHide builds the set of an answer's headers that are not passed on; false when the level
// above has made the same one (ngx_http_upstream_hide_headers_hash).
func (c *Conf) MergeHide(prev *Conf, defaults []string) bool {
	inherited := c.HideHeaders == nil && c.PassHeaders == nil
	if inherited && prev.hide != nil {
		c.HideHeaders, c.PassHeaders, c.hide = prev.HideHeaders, prev.PassHeaders, prev.hide
		return false
	}
	if c.HideHeaders == nil {
		c.HideHeaders = prev.HideHeaders
	}
	if c.PassHeaders == nil {
		c.PassHeaders = prev.PassHeaders
	}
	c.hide = make(map[string]struct{}, len(defaults))
	for _, h := range defaults {
		c.hide[ascii.Lower(h)] = struct{}{}
	}
	for _, h := range c.HideHeaders {
		c.hide[ascii.Lower(h)] = struct{}{}
	}
	for _, h := range c.PassHeaders {
		delete(c.hide, ascii.Lower(h))
	}
	if inherited {
		prev.hide = c.hide
	}
	return true
}

// HideNames is the merged set of hidden names, for the size check of its hash.
func (c *Conf) HideNames() []string {
	out := make([]string, 0, len(c.hide))
	for h := range c.hide {
		out = append(out, h)
	}
	return out
}
