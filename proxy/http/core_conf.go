package http

import (
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http/pcre"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/openfile"
)

// CoreMain is ngx_http_core_module's main configuration.
type CoreMain struct {
	Servers                                  []*CoreSrv
	Handlers                                 []PhaseHandler // the compiled array (phases.go)
	ServerRewriteIndex, LocationRewriteIndex int
	Phases                                   [LogPhase + 1][]Handler // filled by Postconf of modules

	ServerNamesHashMaxSize, ServerNamesHashBucketSize int
	VariablesHashMaxSize, VariablesHashBucketSize     int
	Variables                                         []*Variable // indexed ones
	VariablesHash                                     map[string]*Variable
	PrefixVariables                                   []*Variable
	NCaptures                                         int
	Ports                                             []*ConfPort
	worker                                            *worker
	Prefix, Hostname                                  string // of the cycle

	varKeys    map[string]*Variable // declared ones, by name
	varIndex   map[string]int       // places in Variables
	SmallFiles *openfile.Small      // made with its first use
}

// PhaseHandler is one entry of the compiled phase array: the checker decides what
// a handler's result means (ngx_http_phase_handler_t).
type PhaseHandler struct {
	Checker func(r *Request, ph *PhaseHandler) Rc
	Handler Handler
	Next    int // index of the next phase's first entry
	Phase   Phase
}

// CoreSrv is the server configuration.
type CoreSrv struct {
	Ctx                                                         *ConfCtx
	ServerName                                                  string // the first name, for $server_name and logs
	Names                                                       []ServerName
	NamedLocs                                                   []*CoreLoc
	ConnectionPoolSize, RequestPoolSize, ClientHeaderBufferSize int64
	LargeClientHeaderBuffers                                    module.Bufs
	ClientHeaderTimeout                                         int64 // ms
	IgnoreInvalidHeaders, MergeSlashes, UnderscoresInHeaders    int
	MaxHeaders                                                  int // set by header_count
	Listen                                                      bool
	File                                                        string
	Line                                                        int
	Captures                                                    bool // the last regular expression of server_name has groups
}

// DefaultMaxHeaders is how many fields a request may have where max_headers says nothing.
const DefaultMaxHeaders = 1000

// ServerName is one server_name.
type ServerName struct {
	Name  string
	Regex *Regex
	Srv   *CoreSrv
}

// CoreLoc is the location configuration (ngx_http_core_loc_conf_t).
type CoreLoc struct {
	Name, EscapedName                                string
	Regex                                            *Regex
	Noname, Lmt, Named, Exact, NoRegex, AutoRedirect bool
	Internal                                         int
	InternalSet                                      bool   // merged: internal;
	file                                             string // where it was read
	line                                             int
	literals                                         []*CoreLoc

	Ctx             *ConfCtx // LocConf of this location: Ctx.Loc
	Tree            *LocNode // static locations inside
	Regexes         []*CoreLoc
	Locations       []*CoreLoc // as read
	LimitExcept     Method
	LimitExceptConf *ConfCtx

	Handler Handler

	Root          module.Str    // root, or alias' path
	Alias         int           // 0 none, else the length of the location's name (NGX_MAX for regex: -1)
	RootValues    *ComplexValue // nil when root has no variables
	RootText      string        // root as C reads it, with a slash at its end that root itself has not; "" where both are the same
	PostAction    string
	PostActionSet bool

	Types                                 map[string]string // extension -> type
	TypesChecked                          bool              // nginx would build its hash of them once
	DefaultType                           module.Str
	TypesHashMaxSize, TypesHashBucketSize int

	ClientMaxBodySize, Directio, DirectioAlignment, ClientBodyBufferSize                                                         int64
	PostponeOutput                                                                                                               int64
	LimitRateValue, LimitRateAfterValue                                                                                          *ComplexValue
	SendfileMaxChunk, ReadAhead, SubrequestOutputBufferSize                                                                      int64
	ClientBodyTimeout, SendTimeout, KeepaliveTime, KeepaliveTimeout, LingeringTime, LingeringTimeout, ResolverTimeout, AuthDelay int64 // ms
	KeepaliveMinTimeout                                                                                                          int64
	KeepaliveHeader                                                                                                              int64 // s
	KeepaliveRequests, KeepaliveDisable, Satisfy, LingeringClose, IfModifiedSince, MaxRanges                                     int
	ClientBodyInFileOnly, ClientBodyInSingleBuffer, Sendfile, Aio, AioWrite, TCPNopush, TCPNodelay                               int
	ResetTimedoutConnection, AbsoluteRedirect, ServerNameInRedirect, PortInRedirect                                              int
	MsiePadding, MsieRefresh, LogNotFound, LogSubrequest, RecursiveErrorPages                                                    int
	ChunkedTransferEncoding, Etag, ServerTokens, DisableSymlinks                                                                 int
	Resolver                                                                                                                     any // *resolver.Resolver, nil = none
	GzipVary, GzipHTTPVersion, GzipProxied                                                                                       int
	GzipDisableMSIE6                                                                                                             int
	GzipDisable                                                                                                                  []*pcre.Regexp

	ClientBodyTempPath                                             *module.Path
	ErrorLog                                                       any // *server log; elog.Sink
	ErrorPages                                                     []*ErrorPage
	OpenFileCacheSet, SendLowatSet                                 bool
	OpenFileCache                                                  *openfile.Cache
	OpenFileCacheValid                                             int64
	OpenFileCacheMinUses, OpenFileCacheErrors, OpenFileCacheEvents int
}

// ErrorPage is one status of an error_page.
type ErrorPage struct {
	Status    int
	Overwrite int // -1 = none, 0 = the page's own
	Value     *ComplexValue
	Args      []byte
}

// TempPath is a *_temp_path with its levels.
type TempPath = module.Path

// ConfPort is one listening port with its addresses (ngx_http_conf_port_t).
type ConfPort struct {
	Family, Port int
	Addrs        []*ConfAddr
}

// ConfAddr is one address of a port: its default server and the names on it; it is also what a
// connection is given to find the server by host (ngx_http_conf_addr_t, ngx_http_addr_conf_t).
type ConfAddr struct {
	Addr                                                                            ev.Addr
	Text                                                                            string
	Default                                                                         *CoreSrv
	Servers                                                                         []*CoreSrv
	Names                                                                           *ServerNames // nil when the default server is the only choice
	Bind, Wildcard, Set, DefaultSet, ProxyProtocol, HTTP2, SSL, Deferred, Reuseport bool
	Backlog, Rcvbuf, Sndbuf, FastOpen                                               int
	KeepaliveOpts                                                                   [4]int // 0, 1 on or 2 off; idle, interval, count
	IPv6Only                                                                        int

	lastBits             int // what AddListen compares the protocols with
	bitsSet, bitsChanged bool
}

// Core gives the core configurations of a request's level.
func (r *Request) CoreMain() *CoreMain { return r.MainConf[0].(*CoreMain) }
func (r *Request) CoreSrv() *CoreSrv   { return r.SrvConf[0].(*CoreSrv) }

// Ctx and SetCtx are a module's per-request state.
func (r *Request) Ctx(m *Module) any       { return r.ctx[m.Index] }
func (r *Request) SetCtx(m *Module, v any) { r.ctx[m.Index] = v }

// Values of client_body_in_file_only, server_tokens, if_modified_since (ngx_http_core_module.h).
const (
	BodyFileOff   = 0
	BodyFileOn    = 1
	BodyFileClean = 2

	TokensOff   = 0
	TokensOn    = 1
	TokensBuild = 2

	IMSOff    = 0
	IMSExact  = 1
	IMSBefore = 2
)
