package parse

// Line is a request line, on its way or read; the zero Line is a fresh one. Offsets are
// set by the first Parse; -1 means that the part is absent. Ends are one past the last byte.
type Line struct {
	Pos        int // next byte to look at
	Start, End int // the line without CR LF (request_start, request_end)
	MethodEnd  int

	SchemaStart, SchemaEnd, HostStart, HostEnd int // of the absolute form

	URIStart, URIEnd, URIExt, ArgsStart int
	ArgsEnd                             int // URIEnd, or where ComplexURI found a "#"
	ProtoStart                          int // "HTTP/1.1"; -1 in HTTP/0.9

	Method uint32 // http.Method's bit; 1 (UNKNOWN) for others
	// Version is major*1000+minor: 9, 1000, 1001, … 1999.
	Version int

	Complex   bool // has "/.", "//" or "#": the path must be rewritten
	Quoted    bool // has "%"
	Plus      bool // has "+"
	EmptyPath bool // "http://host?args"

	major, minor int
	state        lineState
}

type lineState uint8

const (
	lineFresh lineState = iota
	lineStart
	lineMethod
	lineSpacesBeforeURI
	lineSchema
	lineSchemaSlash
	lineSchemaSlashSlash
	lineHostStart
	lineHost
	lineHostEnd
	lineHostIPLiteral
	linePort
	lineAfterSlash
	lineCheckURI
	lineURI
	lineHTTP09
	lineHTTPH
	lineHTTPHT
	lineHTTPHTT
	lineHTTPHTTP
	lineFirstMajor
	lineMajor
	lineFirstMinor
	lineMinor
	lineSpacesAfterDigit
	lineAlmostDone
)

// Bits of http.Method.
const (
	methodUnknown uint32 = 1 << iota
	methodGET
	methodHEAD
	methodPOST
	methodPUT
	methodDELETE
	methodMKCOL
	methodCOPY
	methodMOVE
	methodOPTIONS
	methodPROPFIND
	methodPROPPATCH
	methodLOCK
	methodUNLOCK
	methodPATCH
	methodTRACE
	methodCONNECT
)

func methodBit(name []byte) uint32 {
	switch string(name) {
	case "GET":
		return methodGET
	case "HEAD":
		return methodHEAD
	case "POST":
		return methodPOST
	case "PUT":
		return methodPUT
	case "DELETE":
		return methodDELETE
	case "MKCOL":
		return methodMKCOL
	case "COPY":
		return methodCOPY
	case "MOVE":
		return methodMOVE
	case "OPTIONS":
		return methodOPTIONS
	case "PROPFIND":
		return methodPROPFIND
	case "PROPPATCH":
		return methodPROPPATCH
	case "LOCK":
		return methodLOCK
	case "UNLOCK":
		return methodUNLOCK
	case "PATCH":
		return methodPATCH
	case "TRACE":
		return methodTRACE
	case "CONNECT":
		return methodCONNECT
	}
	return methodUnknown
}

func (l *Line) reset() {
	*l = Line{
		Pos: l.Pos, Start: -1, End: -1, MethodEnd: -1,
		SchemaStart: -1, SchemaEnd: -1, HostStart: -1, HostEnd: -1,
		URIStart: -1, URIEnd: -1, URIExt: -1, ArgsStart: -1, ArgsEnd: -1, ProtoStart: -1,
		Method: methodUnknown, state: lineStart,
	}
}

// Shift tells the line that its bytes now stand by further on in the buffer.
func (l *Line) Shift(by int) {
	shift(by, &l.Pos, &l.Start, &l.End, &l.MethodEnd, &l.SchemaStart, &l.SchemaEnd,
		&l.HostStart, &l.HostEnd, &l.URIStart, &l.URIEnd, &l.URIExt, &l.ArgsStart, &l.ArgsEnd, &l.ProtoStart)
}

// Parse reads the line from l.Pos on: OK, Again, InvalidMethod, InvalidRequest,
// InvalidVersion (HTTP/2 and later) or Invalid09 (HTTP/0.9 knows GET only).
// RFC 9112, section 3; nginx: ngx_http_parse_request_line.
func (l *Line) Parse(buf []byte) Result {
	if l.state == lineFresh {
		l.reset()
	}
	state := l.state

	for p := l.Pos; p < len(buf); p++ {
		ch := buf[p]

		switch state {
		case lineStart:
			l.Start = p
			if ch == '\r' || ch == '\n' {
				continue
			}
			if !methodByte(ch) {
				return InvalidMethod
			}
			state = lineMethod

		case lineMethod:
			if ch == ' ' {
				l.MethodEnd = p
				l.Method = methodBit(buf[l.Start:p])
				state = lineSpacesBeforeURI
				continue
			}
			if !methodByte(ch) {
				return InvalidMethod
			}

		case lineSpacesBeforeURI:
			switch {
			case ch == '/':
				l.URIStart = p
				state = lineAfterSlash
			case isAlpha(ch):
				l.SchemaStart = p
				state = lineSchema
			case ch != ' ':
				return InvalidRequest
			}

		case lineSchema:
			switch {
			case isAlpha(ch), isDigit(ch), ch == '+', ch == '-', ch == '.':
			case ch == ':':
				l.SchemaEnd = p
				state = lineSchemaSlash
			default:
				return InvalidRequest
			}

		case lineSchemaSlash, lineSchemaSlashSlash:
			if ch != '/' {
				return InvalidRequest
			}
			state++

		case lineHostStart, lineHost, lineHostEnd, linePort, lineHostIPLiteral:
			if state = l.host(state, ch, p); state == lineFresh {
				return InvalidRequest
			}

		case lineAfterSlash, lineCheckURI, lineURI:
			if usual[ch] {
				if state == lineAfterSlash {
					state = lineCheckURI
				}
				for p+1 < len(buf) && usual[buf[p+1]] {
					p++
				}
				continue
			}
			switch ch {
			case ' ':
				l.URIEnd = p
				state = lineHTTP09
			case '\r':
				l.URIEnd = p
				l.minor = 9
				state = lineAlmostDone
			case '\n':
				l.URIEnd = p
				l.minor = 9
				return l.done(p)
			default:
				if state = l.path(state, ch, p); state == lineFresh {
					return InvalidRequest
				}
			}

		case lineHTTP09:
			switch ch {
			case ' ':
			case '\r':
				l.minor = 9
				state = lineAlmostDone
			case '\n':
				l.minor = 9
				return l.done(p)
			case 'H':
				l.ProtoStart = p
				state = lineHTTPH
			default:
				return InvalidRequest
			}

		case lineHTTPH, lineHTTPHT, lineHTTPHTT, lineHTTPHTTP:
			if ch != "TTP/"[state-lineHTTPH] {
				return InvalidRequest
			}
			state++

		case lineFirstMajor:
			if ch < '1' || ch > '9' {
				return InvalidRequest
			}
			if l.major = int(ch - '0'); l.major > 1 {
				return InvalidVersion
			}
			state = lineMajor

		case lineMajor:
			if ch == '.' {
				state = lineFirstMinor
				continue
			}
			if !isDigit(ch) {
				return InvalidRequest
			}
			if l.major = l.major*10 + int(ch-'0'); l.major > 1 {
				return InvalidVersion
			}

		case lineFirstMinor:
			if !isDigit(ch) {
				return InvalidRequest
			}
			l.minor = int(ch - '0')
			state = lineMinor

		case lineMinor:
			switch {
			case ch == '\r':
				state = lineAlmostDone
			case ch == '\n':
				return l.done(p)
			case ch == ' ':
				state = lineSpacesAfterDigit
			case !isDigit(ch), l.minor > 99:
				return InvalidRequest
			default:
				l.minor = l.minor*10 + int(ch-'0')
			}

		case lineSpacesAfterDigit:
			switch ch {
			case ' ':
			case '\r':
				state = lineAlmostDone
			case '\n':
				return l.done(p)
			default:
				return InvalidRequest
			}

		case lineAlmostDone:
			l.End = p - 1
			if ch != '\n' {
				return InvalidRequest
			}
			return l.done(p)
		}
	}

	l.Pos = len(buf)
	l.state = state
	return Again
}

func methodByte(c byte) bool { return c >= 'A' && c <= 'Z' || c == '_' || c == '-' }

// done ends the line at the LF at p.
func (l *Line) done(p int) Result {
	l.Pos = p + 1
	if l.End < 0 {
		l.End = p
	}
	l.ArgsEnd = l.URIEnd
	l.Version = l.major*1000 + l.minor
	if l.Version == 9 && l.Method != methodGET {
		return Invalid09
	}
	return OK
}

// host takes one byte of the authority of an absolute URI and gives the next state,
// lineFresh when the byte is not allowed.
func (l *Line) host(state lineState, ch byte, p int) lineState {
	switch state {
	case lineHostStart:
		l.HostStart = p
		if ch == '[' {
			return lineHostIPLiteral
		}
		state = lineHost
		fallthrough
	case lineHost:
		if isAlpha(ch) || isDigit(ch) || ch == '.' || ch == '-' {
			return state
		}
	case lineHostIPLiteral:
		if isAlpha(ch) || isDigit(ch) {
			return state
		}
		switch ch {
		case ']':
			return lineHostEnd
		case ':', '-', '.', '_', '~', '!', '$', '&', '\'', '(', ')', '*', '+', ',', ';', '=':
			return state
		}
		return lineFresh
	case linePort:
		if isDigit(ch) {
			return state
		}
	}

	if state != linePort {
		l.HostEnd = p
		if ch == ':' {
			return linePort
		}
	}

	switch ch {
	case '/':
		l.URIStart = p
		return lineAfterSlash
	case '?':
		l.URIStart = p
		l.ArgsStart = p + 1
		l.EmptyPath = true
		return lineURI
	case ' ':
		// The URI is "/": one of those after the schema stands in for it.
		l.URIStart = l.SchemaEnd + 1
		l.URIEnd = l.SchemaEnd + 2
		return lineHTTP09
	}
	return lineFresh
}

// path takes one byte of the URI that is not usual and does not end it.
func (l *Line) path(state lineState, ch byte, p int) lineState {
	if ch < ' ' || ch == 0x7f {
		return lineFresh
	}
	if state == lineURI {
		if ch == '#' {
			l.Complex = true
		}
		return state
	}
	switch ch {
	case '/':
		if state == lineAfterSlash {
			l.Complex = true
			return lineURI
		}
		l.URIExt = -1
		return lineAfterSlash
	case '.':
		if state == lineAfterSlash {
			l.Complex = true
			return lineURI
		}
		l.URIExt = p + 1
		return state
	case '%':
		l.Quoted = true
		return lineURI
	case '?':
		l.ArgsStart = p + 1
		return lineURI
	case '#':
		l.Complex = true
		return lineURI
	}
	l.Plus = true // "+" is all that is left; in nginx, too, it does not leave the state
	return state
}

// Fresh reports that nothing has been looked at; Idle that no byte of the line itself has come
// (empty lines before it may have).
func (l *Line) Fresh() bool { return l.state == lineFresh }
func (l *Line) Idle() bool  { return l.state <= lineStart }
