// Package ascii knows letters as nginx does: the 26 of ASCII have two cases, and every other byte is itself
// (src/core/ngx_string.c: ngx_tolower, ngx_strlow, ngx_strcasecmp). Go's own functions fold all of Unicode, and
// put U+FFFD where a byte is none of it.
package ascii

import "strings"

// LowerByte is c in lower case.
func LowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// Lower is s in lower case: s itself when it is already.
func Lower(s string) string {
	i := strings.IndexFunc(s, func(r rune) bool { return 'A' <= r && r <= 'Z' })
	if i < 0 {
		return s
	}
	return string(AppendLower(append(make([]byte, 0, len(s)), s[:i]...), s[i:]))
}

// AppendLower appends s in lower case.
func AppendLower[T ~string | ~[]byte](dst []byte, s T) []byte {
	for i := range len(s) {
		dst = append(dst, LowerByte(s[i]))
	}
	return dst
}

// EqualFold tells whether a and b are the same but for the case of letters.
func EqualFold[A, B ~string | ~[]byte](a A, b B) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i] != b[i] && LowerByte(a[i]) != LowerByte(b[i]) {
			return false
		}
	}
	return true
}
