// Package parse is the HTTP/1 grammar as nginx reads it: request line, header
// fields, complex URIs, chunked bodies, escaping. Pure, resumable at every byte,
// no allocation (nginx: src/http/ngx_http_parse.c, core/ngx_string.c).
package parse

// Result of a parsing step.
type Result int

const (
	OK    Result = 0
	Again Result = -2 // more bytes are needed
	Done  Result = -4 // end of the header section

	InvalidMethod  Result = 10 // NGX_HTTP_PARSE_INVALID_METHOD
	InvalidRequest Result = 11
	InvalidVersion Result = 12
	Invalid09      Result = 13
	InvalidHeader  Result = 14
)

// Contract (owner: p4, lands first; user: p2, p5). buf is the whole buffer from the
// request's first byte; all offsets are into it; parsing resumes where it stopped.
//
//	type Line struct {           // reset with *l = Line{}
//		Pos int                   // next byte to look at
//		Start, End int            // request_start, request_end
//		MethodEnd, SchemaStart, SchemaEnd, HostStart, HostEnd, PortStart, PortEnd int // -1 = none
//		URIStart, URIEnd, URIExt, ArgsStart int                // -1 = none
//		ProtoStart int
//		Method http.Method's number as uint32; Version int     // 9, 1000, 1001, …
//		Complex, Quoted, Plus, EmptyPath bool
//	}
//	func (l *Line) Parse(buf []byte) Result
//	type Field struct { Pos, NameStart, NameEnd, ValStart, ValEnd int; Hash uint32; Low [32]byte; LowLen int; Invalid bool; … }
//	func (f *Field) Parse(buf []byte, underscores bool) Result // OK: one field; Done: end; InvalidHeader
//	type StatusLine struct{ Version, Code, Start, End int; … }    // for upstreams
//	func (s *StatusLine) Parse(buf []byte) Result
//	func ComplexURI(dst []byte, l *Line, buf []byte, mergeSlashes bool) (uri []byte, extStart, argsStart int, res Result)
//	func Unescape(dst, src []byte, kind UnescapeKind) ([]byte, …) ; func Escape(dst, src []byte, kind EscapeKind) []byte
//	func UnsafeURI(uri []byte) (args []byte, ok bool)            // ngx_http_parse_unsafe_uri
//	type Chunked struct{ Size, Length int64; State int }; func (c *Chunked) Parse(buf []byte, keepTrailers bool) (n int, res Result)
