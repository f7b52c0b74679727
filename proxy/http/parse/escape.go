package parse

// EscapeKind chooses which bytes Escape writes as %XX (NGX_ESCAPE_*).
type EscapeKind int

const (
	EscapeURI EscapeKind = iota
	EscapeArgs
	EscapeURIComponent
	EscapeForHTML
	EscapeRefresh
	EscapeMemcached
	EscapeMailAuth
)

// escapes is the set of each kind: the bytes listed, and what all of the kind's family share.
// Refresh leaves "}" and takes "~", as nginx's table does.
var escapes = [...][256]bool{
	EscapeURI:          escapeSet("\"#%<>?\\^`{|}"),
	EscapeArgs:         escapeSet("\"#%&+;<>?\\^`{|}"),
	EscapeURIComponent: escapeSet("!\"#$%&'()*+,/:;<=>?@[\\]^`{|}"),
	EscapeForHTML:      escapeSet("\"#%'<>\\^`{|}"),
	EscapeRefresh:      escapeSet("\"'<>\\^`{|~"),
	EscapeMemcached:    controlSet("%"),
	EscapeMailAuth:     controlSet("%"),
}

func controlSet(more string) (t [256]bool) {
	for c := 0; c <= ' '; c++ {
		t[c] = true
	}
	for i := range len(more) {
		t[more[i]] = true
	}
	return t
}

func escapeSet(more string) [256]bool {
	t := controlSet(more)
	for c := 0x7f; c <= 0xff; c++ {
		t[c] = true
	}
	return t
}

const upperHex = "0123456789ABCDEF"

// EscapeCount is the number of bytes of src that Escape would write as three.
func EscapeCount(src []byte, kind EscapeKind) (n int) {
	set := &escapes[kind]
	for _, c := range src {
		if set[c] {
			n++
		}
	}
	return n
}

// Escape appends src to dst with the kind's bytes as %XX (nginx: ngx_escape_uri).
func Escape(dst, src []byte, kind EscapeKind) []byte {
	set := &escapes[kind]
	for _, c := range src {
		if set[c] {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// UnescapeKind chooses what Unescape does with "?" and with special bytes (NGX_UNESCAPE_*).
type UnescapeKind int

const (
	UnescapeAll         UnescapeKind = 0
	UnescapeURIKind     UnescapeKind = 1 // stops behind a "?", written or decoded
	UnescapeRedirectURI UnescapeKind = 2 // the same, and decodes only what may stand in a Location
)

// Unescape appends src decoded to dst and tells how much of src it took. dst may be src[:0].
// A "%" that two hexadecimal digits do not follow is dropped with the digit it has
// (nginx: ngx_unescape_uri).
func Unescape(dst, src []byte, kind UnescapeKind) (out []byte, taken int) {
	const (
		plain = iota
		quoted
		quotedSecond
	)
	state := plain
	var hi byte
	for i := 0; i < len(src); i++ {
		ch := src[i]
		switch state {
		case plain:
			if ch == '%' {
				state = quoted
				continue
			}
			dst = append(dst, ch)
			if ch == '?' && kind != UnescapeAll {
				return dst, i + 1
			}

		case quoted:
			d, ok := hexDigit(ch)
			if !ok {
				dst = append(dst, ch)
				state = plain
				continue
			}
			hi = d
			state = quotedSecond

		case quotedSecond:
			state = plain
			d, ok := hexDigit(ch)
			if !ok {
				continue
			}
			c := hi<<4 | d
			if c == '?' && kind != UnescapeAll {
				return append(dst, c), i + 1
			}
			if kind == UnescapeRedirectURI && (c <= '%' || c >= 0x7f) {
				dst = append(dst, '%', src[i-1], src[i])
				continue
			}
			dst = append(dst, c)
		}
	}
	return dst, len(src)
}

// EscapeHTML appends src with the four characters of markup as entities (nginx: ngx_escape_html).
func EscapeHTML(dst, src []byte) []byte {
	for _, c := range src {
		switch c {
		case '<':
			dst = append(dst, "&lt;"...)
		case '>':
			dst = append(dst, "&gt;"...)
		case '&':
			dst = append(dst, "&amp;"...)
		case '"':
			dst = append(dst, "&quot;"...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// EscapeJSON appends src as the inside of a JSON string; bytes from 0x7f on stay as they are
// (nginx: ngx_escape_json).
func EscapeJSON(dst, src []byte) []byte {
	for _, c := range src {
		switch {
		case c == '\\' || c == '"':
			dst = append(dst, '\\', c)
		case c >= ' ':
			dst = append(dst, c)
		default:
			dst = append(dst, '\\')
			switch c {
			case '\n':
				dst = append(dst, 'n')
			case '\r':
				dst = append(dst, 'r')
			case '\t':
				dst = append(dst, 't')
			case '\b':
				dst = append(dst, 'b')
			case '\f':
				dst = append(dst, 'f')
			default:
				dst = append(dst, 'u', '0', '0', '0'+c>>4, upperHex[c&15])
			}
		}
	}
	return dst
}
