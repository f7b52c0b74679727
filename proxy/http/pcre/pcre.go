// Package pcre compiles and matches PCRE2 patterns as nginx does
// (src/core/ngx_regex.c): no options but caseless, error texts in nginx's
// wording, named groups from the pattern's own table. It calls the machine
// translation of PCRE2 directly, because that package's own wrapper hides
// matches of zero length.
package pcre

import (
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"go.elara.ws/pcre/lib"
	"modernc.org/libc"
	"modernc.org/libc/sys/types"
)

// NoMatch is what Exec returns when the subject does not match; every other
// negative result is an error number of PCRE2.
const NoMatch = lib.DPCRE2_ERROR_NOMATCH

// maxErrText is the room nginx has for the text of an error (NGX_MAX_CONF_ERRSTR).
const maxErrText = 1024

// Regexp is a compiled pattern. It is immutable: any number of matchers may use it at once.
type Regexp struct {
	Pattern  string
	Captures int     // groups in the pattern, the whole match not counted
	Names    []Named // in the order of PCRE2's table: by name
	code     uintptr
	literal  literal
}

// Named is a named group.
type Named struct {
	Name  string
	Group int
}

// CompileError is a pattern that PCRE2 refuses; its text is what nginx logs.
type CompileError string

func (e CompileError) Error() string { return string(e) }

// Compile compiles a pattern (ngx_regex_compile). The error is a CompileError.
func Compile(pattern string, caseless bool) (*Regexp, error) {
	m := getMatcher()
	defer putMatcher(m)

	text, edits := modern(pattern)
	if at := badHex(pattern); at > 0 {
		// What is wrong before it comes first, and is found below; what is only not yet closed there is not wrong.
		if _, before := Compile(pattern[:at-2], caseless); before == nil || !strings.Contains(before.Error(), `" at "`) {
			return nil, CompileError(message(pattern, texts1046[noDigits], at))
		}
	}
	p := m.copyIn([]byte(text))
	where := libc.Xmalloc(m.tls, 16)
	defer libc.Xfree(m.tls, where)

	var options uint32
	if caseless {
		options = lib.DPCRE2_CASELESS
	}
	code := lib.Xpcre2_compile_8(m.tls, p, lib.Tsize_t(len(text)), options, where, where+8, 0)
	if code == 0 {
		num := *(*int32)(at(where))
		off := int(*(*lib.Tsize_t)(at(where + 8)))
		return nil, compileError(m, pattern, num, before(edits, off))
	}

	re := &Regexp{Pattern: pattern, code: code, literal: literalOf(pattern, caseless)}
	info := func(what uint32) uint32 {
		*(*uint32)(at(where)) = 0
		lib.Xpcre2_pattern_info_8(m.tls, code, what, where)
		return *(*uint32)(at(where))
	}
	re.Captures = int(info(lib.DPCRE2_INFO_CAPTURECOUNT))
	if re.Captures == 0 {
		return re, nil
	}
	names := int(info(lib.DPCRE2_INFO_NAMECOUNT))
	if names == 0 {
		return re, nil
	}
	size := uintptr(info(lib.DPCRE2_INFO_NAMEENTRYSIZE))
	lib.Xpcre2_pattern_info_8(m.tls, code, lib.DPCRE2_INFO_NAMETABLE, where)
	table := *(*uintptr)(at(where))
	for i := 0; i < names; i++ {
		row := unsafe.Slice((*byte)(at(table+uintptr(i)*size)), size)
		n := 2
		for row[n] != 0 {
			n++
		}
		re.Names = append(re.Names, Named{Name: string(row[2:n]), Group: int(row[0])<<8 + int(row[1])})
	}
	return re, nil
}

func compileError(m *matcher, pattern string, num int32, off int) error {
	const badRange, notInClass = 150, 171
	if num == badRange && strings.HasSuffix(pattern[:min(off, len(pattern))], `-\N`) { // 10.46 looks at \N first
		num = notInClass
	}
	if what := newer(pattern, num, off); what != "" {
		return CompileError(`directive "regex ` + what + `" is not supported`)
	}
	text, known := texts1046[num]
	if !known {
		buf := libc.Xmalloc(m.tls, 256)
		defer libc.Xfree(m.tls, buf)
		n := lib.Xpcre2_get_error_message_8(m.tls, num, buf, 128)
		if n > 0 {
			text = string(unsafe.Slice((*byte)(at(buf)), n))
		}
	}
	return CompileError(message(pattern, text, min(offset1046(pattern, num, off), len(pattern))))
}

// message is what nginx says of an error, see ngx_regex_compile.
func message(pattern, text string, off int) string {
	s := "pcre2_compile() failed: " + text + ` in "` + pattern + `"`
	if off != len(pattern) {
		s += ` at "` + pattern[off:] + `"`
	}
	if len(s) > maxErrText {
		s = s[:maxErrText]
	}
	return s
}

// Errors by number, see pcre2.h.
const (
	badOption  = 111
	lookbehind = 125
	longName   = 148
	badVerb    = 160
	noDigits   = 178
	badAlpha   = 195
)

// longest is how many letters a group's name may have in 10.46; in 10.40 it is 32.
const longest = 128

// newer names what a pattern has at an error's place that 10.46 knows and 10.40 does not; "" when there is nothing: then it is an
// error to both.
func newer(pattern string, num int32, off int) string {
	rest := pattern[min(off, len(pattern)):]
	switch num {
	case badOption: // (?aD), (?r), (?[…])
		if rest != "" && strings.IndexByte("ar[", rest[0]) >= 0 {
			return "(?" + rest[:1]
		}
	case badVerb:
		for _, name := range []string{"TURKISH_CASING", "CASELESS_RESTRICT"} {
			if strings.HasSuffix(pattern[:len(pattern)-len(rest)], name) {
				return "(*" + name
			}
		}
	case badAlpha:
		for _, name := range []string{"scs", "scan_substring"} {
			if strings.HasSuffix(pattern[:len(pattern)-len(rest)], name) {
				return "(*" + name
			}
		}
	case lookbehind: // of several lengths, all of them limited
		if end := strings.IndexByte(rest, ')'); end >= 0 && !strings.ContainsAny(rest[:end], `*+X`) && !strings.Contains(rest[:end], ",}") && !strings.Contains(rest[:end], "(?1") {
			return rest[:end+1]
		}
	case longName: // of 33 to 128 letters; the place is behind the 33rd
		start := strings.LastIndexAny(pattern[:len(pattern)-len(rest)], "<'{=>&") + 1
		if end := strings.IndexAny(pattern[start:], ">'})"); 0 < end && end <= longest {
			return "(?<" + pattern[start:start+end]
		}
	}
	return ""
}

// offset1046 moves an error's place to where 10.46 reports it: after a bad POSIX item
// of a class, after the hyphen that follows a class, and after the class that ends a range.
func offset1046(pattern string, num int32, off int) int {
	const collating, className, badRange = 113, 130, 150
	if num == badRange {
		at := func(i int, set string) bool {
			return 0 <= i && i < len(pattern) && strings.IndexByte(set, pattern[i]) >= 0
		}
		switch {
		case at(off, ":.=") && at(off-1, "["): // [a-[:digit:]]
			num = className
		case at(off-2, `\`) && at(off-3, "-") && !at(off-4, "["): // [a-\d], [a-\p{L}]
			if at(off-1, "pP") && at(off, "{") {
				return off + strings.IndexByte(pattern[off:], '}') + 1
			}
			if at(off-1, "pP") {
				return min(off+1, len(pattern))
			}
		case at(off, "-"): // [\d-a]
			return off + 1
		}
	}
	switch num {
	case collating, className:
		for i := off + 1; i+1 < len(pattern); i++ {
			if pattern[i+1] == ']' && (pattern[i] == ':' || pattern[i] == '.' || pattern[i] == '=') {
				return i + 2
			}
		}
	}
	return off
}

// texts1046 are the messages that the reference's PCRE2 10.46 words otherwise than
// the translated 10.40 (pcre2_error.c, compile_error_texts), by error number.
var texts1046 = map[int32]string{
	116: "pattern passed as NULL with non-zero length",
	125: "length of lookbehind assertion is not limited",
	128: "atomic assertion expected after (?( or (?(?C)",
	148: "subpattern name is too long (maximum 128 code units)",
	178: `digits missing after \x or in \x{} or \o{} or \N{U+}`,
	198: "atomic assertion expected after (?( or (?(?C)",
}

// Exec matches the subject from its start and stores the offsets of the match and of
// its groups, two a group, as far as captures has room; groups that took no part are -1.
// It returns one more than the highest group that took part (1: the whole match only),
// NoMatch, or an error number of PCRE2 (ngx_regex_exec).
func (re *Regexp) Exec(subject []byte, captures []int) int {
	if re.literal.missing(subject) {
		return NoMatch
	}
	m := getMatcher()
	if need := re.Captures + 1; m.pairs < need {
		m.growOvector(need)
	}
	rc := int(lib.Xpcre2_match_8(m.tls, re.code, m.copyIn(subject), lib.Tsize_t(len(subject)), 0, 0, m.data, 0))
	if rc >= 0 && len(captures) > 0 {
		n := min(re.Captures+1, len(captures)/2) * 2
		ov := unsafe.Slice((*lib.Tsize_t)(at(lib.Xpcre2_get_ovector_pointer_8(m.tls, m.data))), n)
		for i := range ov {
			captures[i] = int(ov[i])
		}
	}
	putMatcher(m)
	return rc
}

// at is memory of the translated library's own allocator, which Go's collector neither
// moves nor frees.
func at(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// matcher is what one match needs at a time: PCRE2's stack, its result area, and a
// copy of the subject where Go's stack growth cannot move it.
type matcher struct {
	tls   *libc.TLS
	data  uintptr
	pairs int
	buf   uintptr
	size  int
	next  *matcher
}

var (
	freeMu sync.Mutex
	free   *matcher
)

func getMatcher() *matcher {
	freeMu.Lock()
	m := free
	if m != nil {
		free = m.next
	}
	freeMu.Unlock()
	if m == nil {
		m = &matcher{tls: libc.NewTLS()}
		m.growOvector(10)
	}
	return m
}

func putMatcher(m *matcher) {
	freeMu.Lock()
	m.next = free
	free = m
	freeMu.Unlock()
}

func (m *matcher) growOvector(pairs int) {
	if m.data != 0 {
		lib.Xpcre2_match_data_free_8(m.tls, m.data)
	}
	m.data = lib.Xpcre2_match_data_create_8(m.tls, uint32(pairs), 0)
	if m.data == 0 {
		panic("pcre: no memory for " + strconv.Itoa(pairs) + " groups")
	}
	m.pairs = pairs
}

func (m *matcher) copyIn(s []byte) uintptr {
	if m.buf == 0 || len(s) > m.size {
		if m.buf != 0 {
			libc.Xfree(m.tls, m.buf)
		}
		m.size = max(4096, 2*len(s))
		m.buf = libc.Xmalloc(m.tls, types.Size_t(m.size))
		if m.buf == 0 {
			panic("pcre: no memory for a subject of " + strconv.Itoa(len(s)) + " bytes")
		}
	}
	copy(unsafe.Slice((*byte)(at(m.buf)), m.size), s)
	return m.buf
}
