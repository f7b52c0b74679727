package triage

import (
	"regexp"
	"slices"
	"strings"
)

// A campaign takes the shape of every line of its error logs. What nearly every line has is cut
// out by hand, at a tenth of what a pattern costs; the tests hold these functions to patterns.

// shapers take turns at what is left. Most messages have nothing for them, and hint is in everything that the
// pattern matches.
var shapers = []struct {
	hint    string
	pattern *regexp.Regexp
	with    string
}{
	{" in ", regexp.MustCompile(` in \S+:\d+`), " in FILE"},
	{`"`, regexp.MustCompile(`"(\\.|[^"\\])*"`), `"…"`},
	{".", regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+(:\d+)?\b`), "ADDR"},
}

// drop takes pieces out of s: each place of mark, from left to right, is shown to find, which says where
// the piece around it begins and ends, or that there is none. from is where the piece before ended.
func drop(s, mark string, find func(from, at int) (begin, end int, ok bool)) string {
	var b strings.Builder
	kept, at := 0, 0 // all before kept is written or dropped
	for {
		i := strings.Index(s[at:], mark)
		if i < 0 {
			if kept == 0 {
				return s
			}
			return b.String() + s[kept:]
		}
		at += i
		begin, end, ok := find(kept, at)
		if !ok {
			at++
			continue
		}
		b.WriteString(s[kept:begin])
		kept, at = end, end
	}
}

const stampForm = "0000/00/00 00:00:00 "

// dropStamps takes out the times that begin an entry.
func dropStamps(s string) string {
	const year = 4
	return drop(s, "/", func(from, at int) (int, int, bool) {
		begin := at - year
		end := begin + len(stampForm)
		if begin < from || end > len(s) {
			return 0, 0, false
		}
		for i := range len(stampForm) {
			if c := s[begin+i]; c != stampForm[i] && !(stampForm[i] == '0' && isDigit(c)) {
				return 0, 0, false
			}
		}
		return begin, end, true
	})
}

// dropProcesses takes out "7#7: " and "7#7: *12 ".
func dropProcesses(s string) string {
	return drop(s, "#", func(from, at int) (int, int, bool) {
		begin := at
		for begin > from && isDigit(s[begin-1]) {
			begin--
		}
		end := digitsEnd(s, at+1)
		if begin == at || end == at+1 || !strings.HasPrefix(s[end:], ": ") {
			return 0, 0, false
		}
		end += len(": ")
		if strings.HasPrefix(s[end:], "*") {
			if n := digitsEnd(s, end+1); n > end+1 && strings.HasPrefix(s[n:], " ") {
				end = n + 1
			}
		}
		return begin, end, true
	})
}

// tails are the words of what nginx adds to the end of a message about a request.
var tails = []string{" client", " server", " request", " upstream", " host", " subrequest", " referrer"}

// dropTails takes out ", client: …" and the like, to the end of the line.
func dropTails(s string) string {
	return drop(s, ": ", func(from, at int) (int, int, bool) {
		i := slices.IndexFunc(tails, func(w string) bool { return strings.HasSuffix(s[from:at], w) })
		if i < 0 {
			return 0, 0, false
		}
		begin, end := at-len(tails[i]), len(s)
		if begin > from && s[begin-1] == ',' {
			begin--
		}
		if n := strings.IndexByte(s[at:], '\n'); n >= 0 {
			end = at + n
		}
		return begin, end, true
	})
}

// noNumbers writes N for every number.
func noNumbers(s string) string {
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		switch {
		case !isDigit(s[i]):
			b = append(b, s[i])
		case i == 0 || !isDigit(s[i-1]):
			b = append(b, 'N')
		}
	}
	return string(b)
}

func digitsEnd(s string, at int) int {
	for at < len(s) && isDigit(s[at]) {
		at++
	}
	return at
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
