package pcre

import (
	"math/rand/v2"
	"testing"
)

func TestLiteralOf(t *testing.T) {
	for _, x := range []struct {
		pattern string
		fold    bool
		text    string
		at      bool
	}{
		{`^/r7/[a-z]+$`, false, "/r7/", true},
		{`\.php$`, false, ".php", false},
		{`\.(gif)$`, true, ".", false},
		{`^/Ab?c`, true, "/a", true},
		{`^/ab*`, false, "/a", true},
		{`^/ab{0}`, false, "/a", true},
		{`^/ab+c`, false, "/ab", true},
		{`^/a|b`, false, "", false},
		{`(?i)abc`, false, "", false},
		{`\d`, false, "", false},
		{`\Qa.b\E`, false, "", false},
		{`a.c`, false, "a", false},
		{``, false, "", false},
	} {
		l := literalOf(x.pattern, x.fold)
		if string(l.text) != x.text || len(l.text) > 0 && l.at != x.at {
			t.Errorf("%q: %q at the start %v, want %q, %v", x.pattern, l.text, l.at, x.text, x.at)
		}
	}
}

// What the literal refuses PCRE2 would not have matched.
func TestLiteralRefusesNoMatch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const alphabet = `ab/A.^$?*+{1}()[]\-d`
	make := func(n int) string {
		b := []byte{}
		for range n {
			b = append(b, alphabet[rnd.IntN(len(alphabet))])
		}
		return string(b)
	}
	refused, matched := 0, 0
	for range 20000 {
		re, err := Compile(make(1+rnd.IntN(7)), rnd.IntN(2) == 0)
		if err != nil {
			continue
		}
		for range 4 {
			s := []byte(make(rnd.IntN(6)))
			missing := re.literal.missing(s)
			re := *re
			re.literal = literal{}
			if rc := re.Exec(s, nil); rc != NoMatch {
				matched++
				if missing {
					t.Fatalf("%q matches %q (%d), but its literal is missing", re.Pattern, s, rc)
				}
			}
			if missing {
				refused++
			}
		}
	}
	if refused < 1000 || matched < 1000 {
		t.Errorf("%d refused, %d matched: the patterns prove nothing", refused, matched)
	}
}
