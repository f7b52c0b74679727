package parse

// StatusLine is an upstream's status line, on its way or read; the zero StatusLine with Pos set
// is a fresh one.
type StatusLine struct {
	Pos        int // next byte to look at
	Version    int // major*1000+minor
	Code       int
	Start, End int // code and text, without CR LF

	major, minor, digits int
	state                statusState
}

type statusState uint8

const (
	statusStart statusState = iota
	statusH
	statusHT
	statusHTT
	statusHTTP
	statusFirstMajor
	statusMajor
	statusFirstMinor
	statusMinor
	statusCode
	statusSpaceAfterCode
	statusText
	statusAlmostDone
)

// Parse reads the line: OK, Again, or Error (which nginx takes for an HTTP/0.9 answer).
// RFC 9112, section 4; nginx: ngx_http_parse_status_line.
func (s *StatusLine) Parse(buf []byte) Result {
	state := s.state

	for p := s.Pos; p < len(buf); p++ {
		ch := buf[p]

		switch state {
		case statusStart, statusH, statusHT, statusHTT, statusHTTP:
			if ch != "HTTP/"[state] {
				return Error
			}
			state++

		case statusFirstMajor:
			if ch < '1' || ch > '9' {
				return Error
			}
			s.major = int(ch - '0')
			state = statusMajor

		case statusMajor:
			if ch == '.' {
				state = statusFirstMinor
				continue
			}
			if !isDigit(ch) || s.major > 99 {
				return Error
			}
			s.major = s.major*10 + int(ch-'0')

		case statusFirstMinor:
			if !isDigit(ch) {
				return Error
			}
			s.minor = int(ch - '0')
			state = statusMinor

		case statusMinor:
			if ch == ' ' {
				state = statusCode
				continue
			}
			if !isDigit(ch) || s.minor > 99 {
				return Error
			}
			s.minor = s.minor*10 + int(ch-'0')

		case statusCode:
			if ch == ' ' {
				continue // between the digits, too
			}
			if !isDigit(ch) {
				return Error
			}
			s.Code = s.Code*10 + int(ch-'0')
			if s.digits++; s.digits == 3 {
				state = statusSpaceAfterCode
				s.Start = p - 2
			}

		case statusSpaceAfterCode:
			switch ch {
			case ' ', '.': // "403.1"
				state = statusText
			case '\r':
				state = statusAlmostDone
			case '\n':
				return s.done(p)
			default:
				return Error
			}

		case statusText:
			switch ch {
			case '\r':
				state = statusAlmostDone
			case '\n':
				return s.done(p)
			}

		case statusAlmostDone:
			s.End = p - 1
			if ch != '\n' {
				return Error
			}
			return s.done(p)
		}
	}

	s.Pos = len(buf)
	s.state = state
	return Again
}

func (s *StatusLine) done(p int) Result {
	s.Pos = p + 1
	if s.End == 0 {
		s.End = p
	}
	s.Version = s.major*1000 + s.minor
	return OK
}
