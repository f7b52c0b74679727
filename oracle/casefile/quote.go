package casefile

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// maxRepeat bounds what one repeated string ("a"*N) may expand to, in bytes, so
// that a short text cannot ask for all of memory.
const maxRepeat = 64 << 20

// Quote returns b as a Go string literal in which every byte that is not
// printable ASCII is escaped, so that what is read is what is on the wire:
// Quote([]byte("é\r\n")) is "\xc3\xa9\r\n" in quotes.
func Quote(b []byte) string {
	return string(appendQuoted(make([]byte, 0, len(b)+8), b))
}

func appendQuoted(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = AppendEscaped(dst, b)
	return append(dst, '"')
}

// AppendEscaped appends b escaped as in Quote, without the quotes around it.
func AppendEscaped(dst, b []byte) []byte {
	const hex = "0123456789abcdef"
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < 0x20 || c >= 0x7f:
			dst = append(dst, '\\', 'x', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// quotePart prints one string of a send: a long repetition becomes "unit"*N.
func quotePart(b []byte) string {
	if unit, n := repetition(b); n > 1 {
		return Quote(unit) + "*" + strconv.Itoa(n)
	}
	return Quote(b)
}

// repetition finds the shortest unit (at most 64 bytes) that b is whole copies
// of; n is 1 when b is short or is none. The failure function of
// Knuth-Morris-Pratt gives the shortest period.
func repetition(b []byte) (unit []byte, n int) {
	const shortest, longestUnit, fewest = 64, 64, 4
	if len(b) < shortest {
		return b, 1
	}
	// A period of at most 64 is seen in the first 128 bytes already; reject early.
	fail := make([]int, len(b))
	for i, k := 1, 0; i < len(b); i++ {
		for k > 0 && b[i] != b[k] {
			k = fail[k-1]
		}
		if b[i] == b[k] {
			k++
		}
		fail[i] = k
		if i >= 2*longestUnit && i+1-k > longestUnit {
			return b, 1
		}
	}
	p := len(b) - fail[len(b)-1]
	if p > longestUnit || len(b)%p != 0 || len(b)/p < fewest {
		return b, 1
	}
	return b[:p], len(b) / p
}

// parsePart reads one quoted string with its optional repetition from the front
// of s and returns what follows it.
func parsePart(s string) (data []byte, rest string, err error) {
	if s == "" || s[0] != '"' {
		return nil, "", fmt.Errorf("want a quoted string, got %s", show(s))
	}
	q, err := strconv.QuotedPrefix(s)
	if err != nil {
		return nil, "", fmt.Errorf("want a quoted string, got %s, which does not end or has a wrong escape", show(s))
	}
	text, err := strconv.Unquote(q)
	if err != nil {
		return nil, "", fmt.Errorf("want a quoted string, got %s", show(q))
	}
	rest = s[len(q):]
	data = []byte(text)
	if strings.HasPrefix(rest, "*") {
		digits := rest[1:]
		if i := strings.IndexAny(digits, " \t"); i >= 0 {
			digits = digits[:i]
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n < 0 || digits[0] == '+' {
			return nil, "", fmt.Errorf("want a count after *, got %s", show(digits))
		}
		if n > 0 && len(data) > maxRepeat/n {
			return nil, "", fmt.Errorf("want at most %d bytes in one string, got %d times %d", maxRepeat, n, len(data))
		}
		data = bytes.Repeat(data, n)
		rest = rest[1+len(digits):]
	}
	if rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return nil, "", fmt.Errorf("want a space after the string, got %s", show(rest))
	}
	return data, strings.TrimLeft(rest, " \t"), nil
}

// parseParts reads quoted strings up to the end of the line.
func parseParts(s string) ([][]byte, error) {
	var parts [][]byte
	for {
		data, rest, err := parsePart(s)
		if err != nil {
			return nil, err
		}
		parts = append(parts, data)
		if rest == "" {
			return parts, nil
		}
		s = rest
	}
}

// word takes the next word from the front of s: a quoted string (for names with
// spaces), or everything up to the next space.
func word(s string) (w, rest string, err error) {
	s = strings.TrimLeft(s, " \t")
	if strings.HasPrefix(s, `"`) {
		data, rest, err := parsePart(s)
		return string(data), rest, err
	}
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], strings.TrimLeft(s[i:], " \t"), nil
	}
	return s, "", nil
}

// quoteWord prints w so that word reads it back, in quotes only where needed.
func quoteWord(w string) string {
	for i := 0; i < len(w); i++ {
		if w[i] <= ' ' || w[i] >= 0x7f || w[i] == '"' || w[i] == '\\' {
			return Quote([]byte(w))
		}
	}
	if w == "" {
		return `""`
	}
	return w
}

// show quotes what was found for an error message, cut to a readable length.
func show(s string) string {
	if s == "" {
		return "nothing"
	}
	if len(s) > 40 {
		return Quote([]byte(s[:40])) + "…"
	}
	return Quote([]byte(s))
}
