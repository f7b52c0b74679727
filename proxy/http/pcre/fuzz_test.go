package pcre

import "testing"

// Any pattern compiles or is refused in words; what it matches lies inside of the subject.
func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{{"^/a(b)?", "/ab"}, {"(?<x>.)\\k<x>", "aa"}, {"(?=a)|b++", ""}, {"[[:alpha:]", "a"}, {"a\\Kb", "ab"}, {"(", ""}, {"(?i)É", "é"}} {
		f.Add(s[0], []byte(s[1]), false)
	}
	f.Fuzz(func(t *testing.T, pattern string, subject []byte, caseless bool) {
		if len(pattern) > 60 || len(subject) > 60 {
			return // a pattern may take exponential time, in nginx too
		}
		re, err := Compile(pattern, caseless)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("refused without a word")
			}
			return
		}
		captures := make([]int, 3*(re.Captures+1))
		n := re.Exec(subject, captures)
		for i := 0; i < n; i++ {
			from, to := captures[2*i], captures[2*i+1]
			if from == -1 && to == -1 {
				continue
			}
			if from < 0 || from > len(subject) || to < 0 || to > len(subject) {
				t.Fatalf("%q on %q: group %d is %d to %d", pattern, subject, i, from, to)
			}
		}
		for _, name := range re.Names {
			if name.Group < 1 || name.Group > re.Captures {
				t.Fatalf("%q: group %q is number %d of %d", pattern, name.Name, name.Group, re.Captures)
			}
		}
	})
}
