package pcre

import "strings"

// quantifier reads a quantifier at the beginning of s, which is a brace, as PCRE2 10.43 and later have
// it: the least number may be missing, and blanks may stand around the numbers. n is its length, 0
// when it is none, written how 10.40 has it, blanks how many stand before its closing brace.
func quantifier(s string) (n int, written string, blanks int) {
	i := 1
	run := func(in string) string {
		from := i
		for i < len(s) && strings.IndexByte(in, s[i]) >= 0 {
			i++
		}
		return s[from:i]
	}
	const blank, digit = " \t", "0123456789"
	run(blank)
	least, comma, most := run(digit), "", ""
	blanks = len(run(blank))
	if i < len(s) && s[i] == ',' {
		i++
		comma = ","
		last := len(run(blank))
		most = run(digit)
		blanks = last
		if most != "" {
			blanks = len(run(blank))
		}
	}
	if i == len(s) || s[i] != '}' || least == "" && most == "" {
		return 0, "", 0
	}
	if least == "" {
		least = "0"
	}
	return i + 1, "{" + least + comma + most + "}", blanks
}

// edit is a quantifier that was written otherwise: where it ends in the new text, how much
// longer the text has become up to there, and the blanks before its brace in the old one.
type edit struct{ end, grown, blanks int }

// modern writes the quantifiers of a pattern as 10.40, which is what we have, understands them:
// "{,3}" and "{ 1, 3 }" would be literal text to it.
func modern(pattern string) (text string, edits []edit) {
	if !strings.Contains(pattern, "{,") && !strings.Contains(pattern, "{ ") && !strings.ContainsAny(pattern, " \t") {
		return pattern, nil
	}
	grown := 0
	var b strings.Builder
	for i := 0; i < len(pattern); {
		rest := pattern[i:]
		n := 1
		switch {
		case strings.HasPrefix(rest, `\Q`):
			n = len(rest)
			if end := strings.Index(rest, `\E`); end >= 0 {
				n = end + 2
			}
		case rest[0] == '\\':
			n = min(2, len(rest))
			// \x{41}, \p{Lu}, \g{1}: what is in these braces is no number of times.
			if n < len(rest) && rest[n] == '{' && strings.IndexByte("xopPgkNu", rest[1]) >= 0 {
				if end := strings.IndexByte(rest, '}'); end >= 0 {
					n = end + 1
					if in := strings.Trim(rest[3:end], " \t"); len(in) < end-3 && strings.IndexByte("xogk", rest[1]) >= 0 {
						b.WriteString(rest[:3] + in + "}")
						grown -= end - 3 - len(in)
						edits = append(edits, edit{b.Len(), grown, len(rest[3:end]) - len(strings.TrimRight(rest[3:end], " \t"))})
						i += n
						continue
					}
				}
			}
		case rest[0] == '[':
			n = class(rest)
		case strings.HasPrefix(rest, "(?#"):
			n = len(rest)
			if end := strings.IndexByte(rest, ')'); end >= 0 {
				n = end + 1
			}
		case rest[0] == '{':
			length, written, blanks := quantifier(rest)
			if length == 0 {
				break
			}
			b.WriteString(written)
			i += length
			grown += len(written) - length
			edits = append(edits, edit{b.Len(), grown, blanks})
			continue
		}
		b.WriteString(rest[:n])
		i += n
	}
	return b.String(), edits
}

// badHex is the place behind the first \x without a digit, which 10.46 refuses and 10.40 takes for a zero byte; 0: there is none.
func badHex(pattern string) int {
	in := false // a class, where nothing is a comment
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch {
		case strings.HasPrefix(rest, `\Q`):
			end := strings.Index(rest, `\E`)
			if end < 0 {
				return 0
			}
			i += end + 1
		case strings.HasPrefix(rest, `\x`):
			if len(rest) == 2 || rest[2] != '{' && !isHex(rest[2]) {
				return i + 2
			}
			i++
		case strings.HasPrefix(rest, `\c`):
			i += 2
		case rest[0] == '\\':
			i++
		case in:
			in = rest[0] != ']'
		case rest[0] == '[':
			in = true
		case strings.HasPrefix(rest, "(?#"):
			end := strings.IndexByte(rest, ')')
			if end < 0 {
				return 0
			}
			i += end
		case rest[0] == '#' && extended(pattern[:i]):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				return 0
			}
			i += end
		}
	}
	return 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// extended tells whether (?x) has been set before, and not whether that has ended.
func extended(before string) bool {
	for at := strings.Index(before, "(?"); at >= 0; at = strings.Index(before, "(?") {
		before = before[at+2:]
		letters := before[:len(before)-len(strings.TrimLeft(before, "imnsJUxaDSWPT^"))]
		if strings.Contains(letters, "x") {
			return true
		}
	}
	return false
}

// before gives the place in the pattern of a place in the text that modern made of it.
func before(edits []edit, off int) int {
	grown := 0
	for _, e := range edits {
		switch {
		case off >= e.end:
			grown = e.grown
		case off > e.end-4:
			// Inside a quantifier errors point behind its last number.
			return off - e.grown - e.blanks
		}
	}
	return off - grown
}

// class is the length of a character class at the beginning of s, all of s when it does not end.
func class(s string) int {
	i := 1
	if i < len(s) && s[i] == '^' {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	for i < len(s) {
		switch {
		case s[i] == ']':
			return i + 1
		case s[i] == '\\':
			i += 2
			continue
		case s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0:
			if end := strings.Index(s[i+2:], s[i+1:i+2]+"]"); end >= 0 {
				i += end + 4
				continue
			}
		}
		i++
	}
	return len(s)
}
