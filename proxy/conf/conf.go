// Package conf cuts the text of a configuration into directives: quotes, escapes, comments,
// variables, lines. It knows no directive and reads no file by itself
// (nginx: src/core/ngx_conf_file.c, ngx_conf_read_token).
package conf

import "strconv"

// BufferSize is how much of a file is held at once, in bytes. It shows: a word that is longer is
// refused (NGX_CONF_BUFFER).
const BufferSize = 4096

// Kind is what ended a directive, or stood in its place.
type Kind int

const (
	Terminated Kind = iota // words and ";"
	BlockStart             // words and "{"
	BlockDone              // "}"
	FileDone               // the end of the text
)

func (k Kind) String() string {
	return [...]string{"terminated", "block start", "block done", "file done"}[k]
}

// Source is an open file.
type Source interface {
	// Size in bytes when it was opened: a file that grows meanwhile is not followed.
	Size() int64
	// ReadAt reads len(p) bytes at off, with one system call.
	ReadAt(p []byte, off int64) (int, error)
}

// Error is a fault of the text, at the reader's Line.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

// ReadError is a failed reading of the source.
type ReadError struct{ Err error }

func (e *ReadError) Error() string { return e.Err.Error() }
func (e *ReadError) Unwrap() error { return e.Err }

// Reader reads one text.
type Reader struct {
	Line int    // of the byte that was read last, from 1; 0 in a parameter
	Dump []byte // what was read so far, when KeepDump

	KeepDump bool

	src       Source // nil for a parameter
	size, off int64  // of the source
	buf       []byte
	pos, last int
	words     []string
}

// NewReader reads a file.
func NewReader(src Source) *Reader {
	return &Reader{Line: 1, src: src, size: src.Size(), buf: make([]byte, BufferSize)}
}

// NewParameter reads the argument of the option -g.
func NewParameter(text string) *Reader {
	return &Reader{buf: []byte(text), last: len(text)}
}

// Parameter says that the text is from the command line.
func (r *Reader) Parameter() bool { return r.src == nil }

// state of the cutting of one directive.
type state struct {
	start     int // of the word in buf
	startLine int
	needSpace bool // after a closing quote
	lastSpace bool // between words
	comment   bool
	variable  bool // after "$": "{" belongs to the word
	quoted    bool // after "\"
	quote     byte // inside of '"' or "'"
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// Next reads one directive. The words are the caller's to keep.
func (r *Reader) Next() ([]string, Kind, error) {
	r.words = nil
	s := state{start: r.pos, startLine: r.Line, lastSpace: true}
	for {
		if r.pos >= r.last {
			if r.off >= r.size {
				return r.end(&s)
			}
			if err := r.fill(&s); err != nil {
				return nil, 0, err
			}
		}
		c := r.buf[r.pos]
		r.pos++
		if c == '\n' {
			r.Line++
			s.comment = false
		}
		if s.comment {
			continue
		}
		if s.quoted {
			s.quoted = false
			continue
		}
		if s.needSpace {
			switch {
			case isSpace(c):
				s.lastSpace, s.needSpace = true, false
				continue
			case c == ';':
				return r.words, Terminated, nil
			case c == '{':
				return r.words, BlockStart, nil
			case c == ')':
				s.lastSpace, s.needSpace = true, false
			default:
				return nil, 0, unexpected(c)
			}
		}
		var done bool
		var kind Kind
		var err error
		if s.lastSpace {
			kind, done, err = r.between(&s, c)
		} else {
			kind, done = r.inside(&s, c)
		}
		if err != nil {
			return nil, 0, err
		}
		if done {
			return r.words, kind, nil
		}
	}
}

func unexpected(c byte) error { return &Error{Text: "unexpected \"" + string([]byte{c}) + "\""} }

// between handles a byte between words.
func (r *Reader) between(s *state, c byte) (kind Kind, done bool, err error) {
	s.start, s.startLine = r.pos-1, r.Line
	if isSpace(c) {
		return 0, false, nil
	}
	switch c {
	case ';', '{':
		if len(r.words) == 0 {
			return 0, false, unexpected(c)
		}
		if c == '{' {
			return BlockStart, true, nil
		}
		return Terminated, true, nil
	case '}':
		if len(r.words) != 0 {
			return 0, false, unexpected(c)
		}
		return BlockDone, true, nil
	case '#':
		s.comment = true
		return 0, false, nil
	case '\\':
		s.quoted = true
	case '"', '\'':
		s.start++
		s.quote = c
	case '$':
		s.variable = true
	}
	s.lastSpace = false
	return 0, false, nil
}

// inside handles a byte of a word.
func (r *Reader) inside(s *state, c byte) (kind Kind, done bool) {
	if c == '{' && s.variable {
		return 0, false
	}
	s.variable = false
	switch {
	case c == '\\':
		s.quoted = true
		return 0, false
	case c == '$':
		s.variable = true
		return 0, false
	case s.quote != 0:
		if c != s.quote {
			return 0, false
		}
		s.quote, s.needSpace = 0, true
	case isSpace(c) || c == ';' || c == '{':
		s.lastSpace = true
	default:
		return 0, false
	}
	r.words = append(r.words, unescape(r.buf[s.start:r.pos-1]))
	switch c {
	case ';':
		return Terminated, true
	case '{':
		return BlockStart, true
	}
	return 0, false
}

// unescape takes the backslash from before a quote or another backslash, and makes \t, \r and \n;
// any other backslash stays.
func unescape(b []byte) string {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+1 < len(b) {
			switch b[i+1] {
			case '"', '\'', '\\':
				i++
			case 't':
				out = append(out, '\t')
				i++
				continue
			case 'r':
				out = append(out, '\r')
				i++
				continue
			case 'n':
				out = append(out, '\n')
				i++
				continue
			}
		}
		out = append(out, b[i])
	}
	return string(out)
}

func (r *Reader) end(s *state) ([]string, Kind, error) {
	if len(r.words) == 0 && s.lastSpace {
		return nil, FileDone, nil
	}
	if r.src == nil {
		return nil, 0, &Error{Text: `unexpected end of parameter, expecting ";"`}
	}
	return nil, 0, &Error{Text: `unexpected end of file, expecting ";" or "}"`}
}

// fill reads more, keeping the word that has begun.
func (r *Reader) fill(s *state) error {
	n := r.pos - s.start
	if n == BufferSize {
		r.Line = s.startLine
		if s.quote != 0 {
			return &Error{Text: `too long parameter, probably missing terminating "` + string([]byte{s.quote}) + `" character`}
		}
		return &Error{Text: `too long parameter "` + string(r.buf[s.start:s.start+10]) + `..." started`}
	}
	copy(r.buf, r.buf[s.start:r.pos])
	want := min(r.size-r.off, int64(BufferSize-n))
	got, err := r.src.ReadAt(r.buf[n:n+int(want)], r.off)
	if err != nil {
		return &ReadError{err}
	}
	if int64(got) != want {
		return &Error{Text: "pread() returned only " + strconv.Itoa(got) + " bytes instead of " + strconv.FormatInt(want, 10)}
	}
	r.off += want
	r.pos, r.last, s.start = n, n+got, 0
	if r.KeepDump {
		r.Dump = append(r.Dump, r.buf[r.pos:r.last]...)
	}
	return nil
}
