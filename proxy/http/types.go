// Package http is the HTTP engine: the request's life from the first byte to
// keep-alive, phases, filters, subrequests, variables and scripts, in nginx's
// terms (src/http/*.c at 1.26.3). Values are byte slices into the request's
// buffers; they live as long as the request.
package http

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http/parse"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/openfile"
)

// Rc is what handlers, phases and filters return: OK, Error, Again, Busy, Done,
// Declined, Abort, or a status code.
type Rc int

const (
	OK       Rc = 0
	Error    Rc = -1
	Again    Rc = -2
	Busy     Rc = -3
	Done     Rc = -4
	Declined Rc = -5
	Abort    Rc = -6
)

// Phase of a request's processing, in order (ngx_http_core_module.h).
type Phase int

const (
	PostReadPhase Phase = iota
	ServerRewritePhase
	FindConfigPhase
	RewritePhase
	PostRewritePhase
	PreaccessPhase
	AccessPhase
	PostAccessPhase
	PrecontentPhase
	ContentPhase
	LogPhase
)

// Handler takes part in a phase, or makes the content.
type Handler func(r *Request) Rc

// HeaderFilter and BodyFilter are links of the filter chains; each is built
// around the next one.
type (
	HeaderFilter func(r *Request) Rc
	BodyFilter   func(r *Request, in *Chain) Rc
)

// ConfCtx is the configurations of one level: main, srv and loc of every module,
// by Module.Index (ngx_http_conf_ctx_t).
type ConfCtx struct{ Main, Srv, Loc []any }

// Module is one http module. A module's package exports one, named Module.
type Module struct {
	Name       string // ngx_http_core_module
	Index      int    // set by the registry; the place in ConfCtx's slices and in Request.ctx
	Directives []module.Directive

	Preconf  func(cf *module.Conf) error // variables are added here
	Postconf func(cf *module.Conf) error // phase handlers are added here

	CreateMain func(cf *module.Conf) any
	InitMain   func(cf *module.Conf, conf any) error
	CreateSrv  func(cf *module.Conf) any
	MergeSrv   func(cf *module.Conf, prev, conf any) error
	CreateLoc  func(cf *module.Conf) any
	MergeLoc   func(cf *module.Conf, prev, conf any) error

	// Filters are built once, from the last of the order to the first, around the next.
	HeaderFilter      func(next HeaderFilter) HeaderFilter
	BodyFilter        func(next BodyFilter) BodyFilter
	RequestBodyFilter func(next BodyFilter) BodyFilter
}

// Modules in nginx's order; filled by server (one explicit list in proxy/server/modules.go).
var Modules []*Module

// Method is a bit a method (ngx_http_request.h), so that limit_except can hold a set.
type Method uint32

const (
	UNKNOWN Method = 1 << iota
	GET
	HEAD
	POST
	PUT
	DELETE
	MKCOL
	COPY
	MOVE
	OPTIONS
	PROPFIND
	PROPPATCH
	LOCK
	UNLOCK
	PATCH
	TRACE
	CONNECT
)

// Versions.
const (
	HTTP9  = 9
	HTTP10 = 1000
	HTTP11 = 1001
	HTTP20 = 2000
)

// Header is one header field. Hash 0 means it is not sent (deleted).
type Header struct {
	Hash  uint32
	Key   []byte
	Low   []byte // lower-case key
	Value []byte
	Next  *Header // further fields of the same known name
}

// HeadersIn is what the client sent; pointers are nil when absent (ngx_http_headers_in_t).
type HeadersIn struct {
	Headers []*Header // in order

	Host, Connection, IfModifiedSince, IfUnmodifiedSince, IfMatch, IfNoneMatch *Header
	UserAgent, Referer, ContentLength, ContentRange, ContentType               *Header
	Range, IfRange, TransferEncoding, TE, Expect, Upgrade                      *Header
	AcceptEncoding, Via, Authorization, KeepAlive                              *Header
	XForwardedFor, XRealIP, Accept, AcceptLanguage, Cookie                     *Header
	Depth, Destination, Overwrite, Date                                        *Header

	User, Passwd                                                         []byte
	Server                                                               []byte // the host in lower case without the port
	ContentLengthN                                                       int64  // -1 = none
	KeepAliveN                                                           int64
	ConnectionType                                                       int // 0, ConnClose, ConnKeepAlive
	Chunked, Multi, MSIE, MSIE6, Opera, Gecko, Chrome, Safari, Konqueror bool
}

const (
	ConnClose     = 1
	ConnKeepAlive = 2
)

// HeadersOut is what will be sent (ngx_http_headers_out_t). Known fields are sent by the
// header filter from their own places; Headers holds the rest in order.
type HeadersOut struct {
	Headers  []*Header
	Trailers []*Header

	Status     int
	StatusLine []byte // "404 Not Found" as an upstream sent it; nil = by Status

	Server, Date, ContentLength, ContentEncoding, Location, Refresh, LastModified *Header
	ContentRange, AcceptRanges, WWWAuthenticate, Expires, ETag                    *Header
	CacheControl, Link                                                            *Header // first of the list

	OverrideCharset []byte
	ContentType     []byte
	ContentTypeLen  int // length without parameters, for the types hash
	Charset         []byte
	ContentTypeLow  []byte

	ContentLengthN   int64 // -1 = unknown
	ContentOffset    int64
	LastModifiedTime int64 // -1 = none
	DateTime         int64
}

// Buf is a piece of data on its way: memory (Data is what is left of it) or a
// file's range. Shapes and flags as ngx_buf_t.
type Buf struct {
	Data     []byte // unsent bytes; a filter advances it with Data = Data[n:]
	Start    []byte // the whole memory, for buffers that are filled and reused
	InFile   bool
	File     *File
	FilePos  int64
	FileLast int64

	Temporary, Memory, Recycled, Flush, Sync, LastBuf, LastInChain, LastShadow, TempFile bool
	Pieces                                                                               bool // a file's content, which goes on as the file would
	Shadow                                                                               *Buf
	Tag                                                                                  any
	Num                                                                                  int
}

// Size in bytes of what is left of a buffer (ngx_buf_size).
func (b *Buf) Size() int64 {
	if b.InMemory() {
		return int64(len(b.Data))
	}
	return b.FileLast - b.FilePos
}

// Special reports a buffer that carries only flags (ngx_buf_special).
func (b *Buf) Special() bool {
	return (b.Flush || b.LastBuf || b.Sync) && !b.InMemory() && !b.InFile
}

// Chain is a list of buffers.
type Chain struct {
	Buf  *Buf
	Next *Chain
}

// File is an open file.
type File struct {
	FD       int
	Name     []byte
	Size     int64
	Offset   int64
	Directio bool

	hold openfile.Hold // of a cached descriptor, which is given back instead of closed
}

// RequestBody is what is known of the request's body (ngx_http_request_body_t).
type RequestBody struct {
	TempFile                                 *TempFile
	Bufs                                     *Chain
	buf                                      *hbuf // what is read into
	Rest                                     int64
	Received                                 int64
	Free, Busy                               *Chain
	chunked                                  parse.Chunked
	Post                                     func(r *Request)
	FilterNeedBuffering, LastSent, LastSaved bool
}

// TempFile is a temporary file under a *_temp_path (ngx_temp_file_t).
type TempFile struct {
	File              File
	Offset            int64
	Path              any
	Warn              string
	Access            uint32
	LogLevel          elog.Level
	Persistent, Clean bool
}

// PostSub is told when a subrequest ends.
type PostSub struct {
	Handler func(r *Request, data any, rc Rc) Rc
	Data    any
}

// Postponed orders the output of a request and its subrequests (ngx_http_postponed_request_t).
type Postponed struct {
	Request *Request
	Out     *Chain
	Next    *Postponed
}

// Request is one exchange; it is not its connection (ngx_http_request_t).
type Request struct {
	Conn         *ev.Conn
	HC           *Connection
	Main, Parent *Request

	MainConf, SrvConf, LocConf []any
	Core                       *CoreLoc // == LocConf[core]
	ctx                        []any

	ReadHandler, WriteHandler func(r *Request) // read_event_handler, write_event_handler
	phase                     int              // index in the compiled array
	ContentHandler            Handler

	HeadersIn  HeadersIn
	HeadersOut HeadersOut

	Method                                                                   Method
	Version                                                                  int
	RequestLine, URI, Args, Exten, UnparsedURI, MethodName, Protocol, Schema []byte

	Body           *RequestBody
	Upstream       any // *upstream.Upstream
	UpstreamStates any

	Out          *Chain // what the write filter could not send yet
	Postponed    *Postponed
	PostSub      *PostSub
	posted       []*Request
	Variables    []VarValue
	Captures     []int // pairs of offsets into CapturesData
	CapturesData []byte

	StartSec                  int64
	StartMsec                 int
	Count                     int
	Blocked                   int
	Subrequests               int
	URIChanges                int
	AccessCode                Rc
	ErrStatus                 int
	HeaderSize                int64
	RequestLength             int64
	LimitRate, LimitRateAfter int64
	RequestBodyFileLogLevel   elog.Level
	varDepth                  int
	LingeringTime             int64
	Log                       *elog.Log
	cleanup                   []func()
	last                      []lasting

	LimitRateSet, LimitRateAfterSet bool

	// The runtime's own: memory that is used again, the request's reading, the filters' state.
	pool                 *pool
	headerIn             *hbuf
	line                 parse.Line
	field                parse.Field
	hdr, uriBuf          []byte
	bodyStore            RequestBody
	copy                 OutputChain
	copySet, freed       bool
	direct               bool // what the handler returns is what the request is finalized with
	unsent, parked       bool // see wait.go
	chunkFree, chunkBusy *Chain

	State State // httpState: reading request line, headers, processing, …

	// As the bits of ngx_http_request_t; each is set and read where nginx does.
	ComplexURI, QuotedURI, PlusInURI, EmptyPathInURI                           bool
	emptyIsFolder                                                              bool // see RedirectBehind
	InvalidHeader, AddURIToAlias, ValidLocation, ValidUnparsedURI, URIChanged  bool
	RequestBodyInSingleBuf, RequestBodyInFileOnly, RequestBodyInPersistentFile bool
	RequestBodyInCleanFile, RequestBodyFileGroupAccess, RequestBodyNoBuffering bool
	SubrequestInMemory, Waited, Cached, GzipTested, GzipOK, GzipVary           bool
	RealloCaptures, BypassCache, NoCache                                       bool
	Pipeline, Chunked, HeaderOnly, ExpectTrailers, KeepAlive, LingeringClose   bool
	DiscardBody, ReadingBody, Internal, ErrorPage, FilterFinalize, PostAction  bool
	RequestComplete, RequestOutput, HeaderSent, ResponseSent, ExpectTested     bool
	NullPageArgs                                                               bool // see splitArgs
	RootTested, Done, Logged, Terminated, Background, Aio                      bool
	FilterNeedInMemory, MainFilterNeedInMemory, FilterNeedTemporary            bool
	PreserveBody, AllowRanges, SingleRange, DisableNotModified                 bool
	SubrequestRanges                                                           bool
	StatRegular, IgnoreContentEncoding, BufferedPostpone                       bool
	LimitConnStatus, LimitReqStatus                                            uint8 // of their modules; 0: not looked at
	Buffered                                                                   int
	stat                                                                       statKind
}

// State names where a request is (ngx_http_state_e).
type State int

const (
	StateInitial State = iota
	StateReadingRequest
	StateProcessRequest
	StateConnectUpstream
	StateWritingUpstream
	StateReadingUpstream
	StateWritingRequest
	StateLingeringClose
	StateKeepalive
)

// VarValue is a variable's value (ngx_http_variable_value_t).
type VarValue struct {
	V                                    []byte
	Valid, NotFound, NoCacheable, Escape bool
}

// Variable is a named variable: how it is got and set (ngx_http_variable_t).
type Variable struct {
	Name  string // a prefix family ends in "_" with VarPrefix
	Set   func(r *Request, v *VarValue, data any)
	Get   func(r *Request, v *VarValue, data any) Rc
	Data  any
	Flags int
	Index int

	refused bool // of a module that is not there
}

const (
	VarChangeable = 1 << iota
	VarNoCacheable
	VarIndexed
	VarNoHash
	VarWeak
	VarPrefix
)
