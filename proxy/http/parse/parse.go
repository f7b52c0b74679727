// Package parse is the HTTP/1 grammar as nginx reads it: request line, header
// fields, complex URIs, status lines, chunked bodies, escaping. Every parser is
// pure, resumes at any byte and allocates nothing
// (nginx: src/http/ngx_http_parse.c, src/core/ngx_string.c).
//
// Line, Field and StatusLine look at one buffer that grows: buf is all that has been
// read of the message, every offset is into it, and Pos is the next byte to look at.
// When the caller moves the bytes to another buffer, Shift moves the offsets along. A
// parser that fails leaves Pos where its call began, as nginx leaves b->pos.
package parse

// Result of a parsing step.
type Result int

const (
	OK    Result = 0
	Error Result = -1 // malformed (status line, chunked)
	Again Result = -2 // more bytes are needed
	Done  Result = -4 // end of the header section, or of the chunked body

	InvalidMethod  Result = 10 // NGX_HTTP_PARSE_INVALID_METHOD
	InvalidRequest Result = 11
	InvalidVersion Result = 12
	Invalid09      Result = 13
	InvalidHeader  Result = 14
)

// usual marks the bytes that need no look inside a path: all but controls, space,
// DEL and the seven that mean something ("#%+./?").
var usual = func() (t [256]bool) {
	for c := range t {
		t[c] = c > ' ' && c != 0x7f
	}
	for _, c := range "#%+./?" {
		t[c] = false
	}
	return t
}()

// lowcase gives the lower-case form of a byte that may stand in a field's name without
// making it invalid ("_" is the caller's choice), 0 for the others.
var lowcase = func() (t [256]byte) {
	for c := byte('a'); c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = c, c
	}
	for c := byte('0'); c <= '9'; c++ {
		t[c] = c
	}
	t['-'] = '-'
	return t
}()

func isAlpha(c byte) bool { c |= 0x20; return c >= 'a' && c <= 'z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// hexDigit gives a hexadecimal digit's value.
func hexDigit(c byte) (byte, bool) {
	if isDigit(c) {
		return c - '0', true
	}
	if c |= 0x20; c >= 'a' && c <= 'f' {
		return c - 'a' + 10, true
	}
	return 0, false
}

func shift(by int, offsets ...*int) {
	for _, o := range offsets {
		if *o >= 0 {
			*o += by
		}
	}
}
