package pcre

import "bytes"

// literal is what a subject must have for a pattern to be worth asking PCRE2: bytes that every match
// contains, at the very start of the subject when at is set. Most patterns of a configuration begin with
// some, and most subjects lack them.
type literal struct {
	text []byte // in lower case when fold is set
	at   bool
	fold bool
}

// missing reports a subject that cannot match.
func (l *literal) missing(s []byte) bool {
	switch {
	case len(l.text) == 0:
		return false
	case l.at && !l.fold:
		return !bytes.HasPrefix(s, l.text)
	case l.at:
		return len(s) < len(l.text) || !foldEqual(s[:len(l.text)], l.text)
	case l.fold:
		return !foldContains(s, l.text)
	}
	return !bytes.Contains(s, l.text)
}

// literalOf reads the bytes at the front of a pattern that stand for themselves. It knows nothing of
// alternatives, so a pattern with a bar anywhere has none.
func literalOf(pattern string, caseless bool) literal {
	l := literal{fold: caseless}
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '|' {
			return literal{}
		}
	}
	i := 0
	if i < len(pattern) && pattern[i] == '^' {
		l.at = true
		i++
	}
	for i < len(pattern) {
		c, n := pattern[i], 1
		if c == '\\' && i+1 < len(pattern) {
			c, n = pattern[i+1], 2
			if isWord(c) || c >= 0x80 { // \d, \Q, \1 and their likes
				break
			}
		} else if !isWord(c) && !plainMark(c) {
			break
		}
		if i += n; i < len(pattern) && (pattern[i] == '?' || pattern[i] == '*' || pattern[i] == '{') {
			break // it may be absent
		}
		if caseless && c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		l.text = append(l.text, c)
	}
	return l
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
}

// plainMark reports punctuation that has no meaning in a pattern.
func plainMark(c byte) bool {
	switch c {
	case '/', '-', '%', '=', '&', '~', ',', ':', ';', '@', '!', '<', '>', '"', '\'':
		return true
	}
	return false
}

func foldEqual(s, lower []byte) bool {
	for i, c := range s {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func foldContains(s, lower []byte) bool {
	for i := 0; i+len(lower) <= len(s); i++ {
		if foldEqual(s[i:i+len(lower)], lower) {
			return true
		}
	}
	return false
}
