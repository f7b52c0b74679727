package wire

import (
	"bytes"
	"strconv"
)

// framer finds where one HTTP message ends in a growing buffer. It looks at
// each byte once however the bytes arrive: state is kept between calls of end.
//
// Framing is deliberately the plain reading of RFC 9112 section 6: a message
// that no rule frames (no status line, a broken chunk size, no length) runs
// until the connection ends. What a target sent is recorded either way.
type framer struct {
	request bool // a request (a response otherwise)
	noBody  bool // a response to HEAD
	head    bool // stop behind the header

	// closing: the message says that the connection ends behind it (RFC 9112 section 9.6).
	closing bool
	// unsure: the request says nothing of its length, or two things, or what nobody knows: more of its body may
	// come than the framing tells.
	unsure bool

	phase phase
	scan  int // next byte to look at
	line  int // start of the current line, or of the header
	need  int // body: its end; chunk data: its end, with the CRLF behind it
}

type phase int

const (
	inHead phase = iota
	inBody
	inChunkSize
	inChunkData
	inTrailer
	untilClose
	ended
)

// start makes the framer look for a message that begins at byte at of the buffer.
func (f *framer) start(at int) {
	f.phase, f.scan, f.line, f.need = inHead, at, at, 0
}

// end looks at what is new in buf and tells whether the message is complete, and
// where it ends.
func (f *framer) end(buf []byte) (int, bool) {
	for {
		switch f.phase {
		case inHead:
			end, ok := f.headEnd(buf)
			if !ok {
				return 0, false
			}
			f.scan = end
			f.body(buf[f.line:end], end)
		case inBody:
			if len(buf) < f.need {
				return 0, false
			}
			f.scan, f.phase = f.need, ended
		case inChunkSize:
			end, ok := f.nextLine(buf)
			if !ok {
				return 0, false
			}
			f.chunk(buf[f.line:end], end)
		case inChunkData:
			if len(buf) < f.need {
				return 0, false
			}
			f.scan, f.line, f.phase = f.need, f.need, inChunkSize
		case inTrailer:
			end, ok := f.nextLine(buf)
			if !ok {
				return 0, false
			}
			if len(bytes.TrimRight(buf[f.line:end], "\r\n")) == 0 {
				f.phase = ended
			}
			f.line = end
		case untilClose:
			return 0, false
		case ended:
			return f.scan, true
		}
	}
}

// headEnd finds the byte behind the blank line that ends the header.
func (f *framer) headEnd(buf []byte) (int, bool) {
	if !f.request {
		const proto = "HTTP/"
		got := buf[f.line:min(len(buf), f.line+len(proto))]
		if !bytes.HasPrefix([]byte(proto), got) {
			// HTTP/0.9, or no HTTP at all: there is no framing.
			f.phase = untilClose
			return 0, false
		}
	} else {
		// RFC 9112 section 2.2: empty lines before the request line are skipped.
		for f.line == f.scan && f.line < len(buf) && (buf[f.line] == '\r' || buf[f.line] == '\n') {
			f.line++
			f.scan++
		}
	}
	for {
		i := bytes.IndexByte(buf[f.scan:], '\n')
		if i < 0 {
			return 0, false
		}
		nl := f.scan + i
		rest := buf[nl+1:]
		switch {
		case len(rest) >= 1 && rest[0] == '\n':
			return nl + 2, true
		case len(rest) >= 2 && rest[0] == '\r' && rest[1] == '\n':
			return nl + 3, true
		case len(rest) == 0 || len(rest) == 1 && rest[0] == '\r':
			f.scan = nl // look at this newline again when more has come
			return 0, false
		}
		f.scan = nl + 1
	}
}

// body decides from the header what follows it.
func (f *framer) body(head []byte, end int) {
	lines := bytes.Split(head, []byte("\n"))
	length, chunked, coded := -1, false, false
	for _, line := range lines[1:] {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(bytes.TrimSpace(name), []byte("content-length")):
			if n, err := strconv.ParseUint(string(value), 10, 40); err == nil {
				length = int(n)
			}
		case bytes.EqualFold(bytes.TrimSpace(name), []byte("transfer-encoding")):
			chunked, coded = bytes.HasSuffix(bytes.ToLower(value), []byte("chunked")), true
		case bytes.EqualFold(name, []byte("connection")):
			f.closing = bytes.EqualFold(value, []byte("close"))
		}
	}
	f.phase = ended
	f.unsure = coded && (!chunked || length >= 0) ||
		!coded && length < 0 && !bytes.HasPrefix(head, []byte("GET ")) && !bytes.HasPrefix(head, []byte("HEAD "))
	if f.head {
		return
	}
	if !f.request {
		status := statusOf(lines[0])
		switch {
		case status >= 100 && status < 200 && status != 101:
			f.start(end) // an interim response: the final one follows
			return
		case f.noBody, status == 101, status == 204, status == 304:
			return
		}
	}
	switch {
	case chunked:
		f.phase, f.line = inChunkSize, end
	case length >= 0:
		f.phase, f.need = inBody, end+length
	case !f.request:
		f.phase = untilClose
	}
}

// statusOf reads the three digits of a status line, 0 when there are none.
func statusOf(line []byte) int {
	_, rest, _ := bytes.Cut(line, []byte(" "))
	if len(rest) < 3 {
		return 0
	}
	n, err := strconv.Atoi(string(rest[:3]))
	if err != nil {
		return 0
	}
	return n
}

// nextLine finds the byte behind the newline of the current line.
func (f *framer) nextLine(buf []byte) (int, bool) {
	i := bytes.IndexByte(buf[f.scan:], '\n')
	if i < 0 {
		f.scan = len(buf)
		return 0, false
	}
	f.scan += i + 1
	return f.scan, true
}

// chunk reads a chunk-size line.
func (f *framer) chunk(line []byte, end int) {
	i := 0
	for i < len(line) && isHex(line[i]) {
		i++
	}
	size, err := strconv.ParseUint(string(line[:i]), 16, 40)
	switch {
	case err != nil:
		f.phase = untilClose
	case size == 0:
		f.phase, f.line = inTrailer, end
	default:
		f.phase, f.need = inChunkData, end+int(size)+2
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}
