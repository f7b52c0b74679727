package sub_filter

import (
	"strings"
	"testing"

	"nginxoracle/proxy/http"
)

// replaceAll runs the search over text that arrives in the given pieces and replaces every match.
func replaceAll(pieces []string, pairs ...string) string {
	s := &ctx{conf: &conf{}}
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		s.matches = append(s.matches, match{text: []byte(pairs[i]), value: &http.ComplexValue{Text: pairs[i+1]}})
		values[pairs[i]] = pairs[i+1]
	}
	s.tables = newTables(s.matches)
	s.looked = make([]byte, 0, s.tables.max)
	s.offset = s.tables.min - 1
	var out strings.Builder
	for _, p := range pieces {
		s.data, s.pos = []byte(p), 0
		for s.pos < len(s.data) {
			c := s.parse(false)
			out.Write(c.saved)
			out.Write(c.copied)
			if c.matched {
				out.WriteString(values[string(s.matches[s.index].text)])
				s.index = 0
			}
		}
	}
	out.Write(s.looked)
	return out.String()
}

var searches = []struct {
	text  string
	pairs []string
	want  string
}{
	{"one two ONE", []string{"one", "1"}, "1 two 1"},
	{"aaaab aaab", []string{"aab", "X"}, "aaX aX"},
	{"abcabcabd", []string{"abcabd", "Y"}, "abcY"},
	{"needl", []string{"needle", "X"}, "needl"},
	{"xaby", []string{"ab", "1", "a", "2"}, "x1y"},
	{"foobar barfoo", []string{"foo", "F", "bar", "B"}, "FB BF"},
	{"aaaa", []string{"a", ""}, ""},
}

func TestSearch(t *testing.T) {
	for _, c := range searches {
		if got := replaceAll([]string{c.text}, c.pairs...); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.text, c.pairs, got, c.want)
		}
	}
}

// Where the text is cut does not matter.
func TestSearchInPieces(t *testing.T) {
	for _, c := range searches {
		for i := range len(c.text) + 1 {
			for j := i; j <= len(c.text); j++ {
				pieces := []string{c.text[:i], c.text[i:j], c.text[j:]}
				if got := replaceAll(pieces, c.pairs...); got != c.want {
					t.Errorf("%q %q: %q, want %q", pieces, c.pairs, got, c.want)
				}
			}
		}
	}
}
