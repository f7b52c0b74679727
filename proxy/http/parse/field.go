package parse

// Field is the reader of header fields, one after the other; the zero Field with Pos
// set is a fresh one. After OK the offsets are those of one field; the next Parse goes on
// behind it.
type Field struct {
	Pos                int // next byte to look at
	NameStart, NameEnd int
	ValStart, ValEnd   int // without spaces around; after InvalidHeader ValEnd is the byte to blame

	Hash uint32 // ngx_hash of the lower-case name's valid bytes
	// Low[:LowLen] is the name in lower case when LowLen is the name's length; a name that is
	// longer than Low, or invalid, must be lowered by the caller.
	Low    [32]byte
	LowLen int

	Invalid  bool // the name has a byte that ignore_invalid_headers is about
	Upstream bool // set by the caller: skip repeated "HTTP/1.1 …" lines

	state fieldState
}

type fieldState uint8

const (
	fieldStart fieldState = iota
	fieldName
	fieldSpaceBeforeValue
	fieldValue
	fieldSpaceAfterValue
	fieldIgnoreLine
	fieldAlmostDone
	fieldHeaderAlmostDone
)

// Shift tells the reader that its bytes now stand by further on in the buffer.
func (f *Field) Shift(by int) {
	shift(by, &f.Pos, &f.NameStart, &f.NameEnd, &f.ValStart, &f.ValEnd)
}

// Parse reads one field: OK, Done at the empty line, Again, or InvalidHeader. Underscores
// says whether "_" may stand in names (underscores_in_headers).
// RFC 9112, section 5; nginx: ngx_http_parse_header_line.
func (f *Field) Parse(buf []byte, underscores bool) Result {
	state, hash, n := f.state, f.Hash, f.LowLen

	for p := f.Pos; p < len(buf); p++ {
		ch := buf[p]

		switch state {
		case fieldStart:
			f.NameStart = p
			f.Invalid = false
			hash, n = 0, 0
			switch ch {
			case '\r':
				f.ValEnd = p
				state = fieldHeaderAlmostDone
				continue
			case '\n':
				f.ValEnd = p
				f.Pos = p + 1
				f.state = fieldStart
				return Done
			case ':':
				f.ValEnd = p
				return InvalidHeader
			}
			state = fieldName
			fallthrough

		case fieldName:
			c := lowcase[ch]
			if c == 0 && ch == '_' && underscores {
				c = '_'
			}
			if c != 0 {
				hash = hash*31 + uint32(c)
				f.Low[n] = c
				n = (n + 1) & (len(f.Low) - 1)
				continue
			}

			switch {
			case ch == '_':
				f.Invalid = true
			case ch == ':':
				f.NameEnd = p
				state = fieldSpaceBeforeValue
			case p > f.NameStart && ch == '\r':
				f.NameEnd, f.ValStart, f.ValEnd = p, p, p
				state = fieldAlmostDone
			case p > f.NameStart && ch == '\n':
				f.NameEnd, f.ValStart, f.ValEnd = p, p, p
				return f.done(p, hash, n)
			case ch == '/' && f.Upstream && string(buf[f.NameStart:p]) == "HTTP":
				state = fieldIgnoreLine
			case ch <= ' ' || ch == 0x7f:
				f.ValEnd = p
				return InvalidHeader
			default:
				f.Invalid = true
			}

		case fieldSpaceBeforeValue:
			switch ch {
			case ' ':
			case '\r':
				f.ValStart, f.ValEnd = p, p
				state = fieldAlmostDone
			case '\n':
				f.ValStart, f.ValEnd = p, p
				return f.done(p, hash, n)
			case 0:
				f.ValEnd = p
				return InvalidHeader
			default:
				f.ValStart = p
				state = fieldValue
			}

		case fieldValue:
			for ch > ' ' && p+1 < len(buf) {
				p++
				ch = buf[p]
			}
			switch ch {
			case ' ':
				f.ValEnd = p
				state = fieldSpaceAfterValue
			case '\r':
				f.ValEnd = p
				state = fieldAlmostDone
			case '\n':
				f.ValEnd = p
				return f.done(p, hash, n)
			case 0:
				f.ValEnd = p
				return InvalidHeader
			}

		case fieldSpaceAfterValue:
			switch ch {
			case ' ':
			case '\r':
				state = fieldAlmostDone
			case '\n':
				return f.done(p, hash, n)
			case 0:
				f.ValEnd = p
				return InvalidHeader
			default:
				state = fieldValue
			}

		case fieldIgnoreLine:
			if ch == '\n' {
				state = fieldStart
			}

		case fieldAlmostDone:
			switch ch {
			case '\n':
				return f.done(p, hash, n)
			case '\r':
			default:
				return InvalidHeader
			}

		case fieldHeaderAlmostDone:
			if ch != '\n' {
				return InvalidHeader
			}
			f.Pos = p + 1
			f.state = fieldStart
			return Done
		}
	}

	f.Pos = len(buf)
	f.state, f.Hash, f.LowLen = state, hash, n
	return Again
}

func (f *Field) done(p int, hash uint32, n int) Result {
	f.Pos = p + 1
	f.state, f.Hash, f.LowLen = fieldStart, hash, n
	return OK
}

// Idle reports that no byte of the next field has come.
func (f *Field) Idle() bool { return f.state == fieldStart }
