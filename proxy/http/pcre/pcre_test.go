package pcre

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestExec(t *testing.T) {
	for _, c := range []struct {
		pattern  string
		caseless bool
		subject  string
		want     string
	}{
		{`^`, false, "", "1 [0 0]"},
		{`^$`, false, "", "1 [0 0]"},
		{`^$`, false, "a", "-1"},
		{`^/a(.*)$`, false, "/abc", "2 [0 4 2 4]"},
		{`^/A(.*)$`, true, "/abc", "2 [0 4 2 4]"},
		{`(a)|(b)`, false, "b", "3 [0 1 -1 -1 0 1]"},
		{`(a)|(b)`, false, "a", "2 [0 1 0 1 -1 -1]"},
		{`(?<=x)y`, false, "xy", "1 [1 2]"},
		{`a++b`, false, "aaab", "1 [0 4]"},
		{`(?<n>\d+)-\1`, false, "12-12", "2 [0 5 0 2]"},
		{`a\Kb`, false, "ab", "1 [1 2]"},
		{`^a{,2}b`, false, "aab", "1 [0 3]"},
		{`^a{,2}b`, false, "aaab", "-1"},
		{`^a{ 1 , 2 }b`, false, "aab", "1 [0 3]"},
		{`^a{ 2 }b`, false, "aab", "1 [0 3]"},
		{`^a{,}b`, false, "a{,}b", "1 [0 5]"},
		{`^[{,2}]+$`, false, "2,{}", "1 [0 4]"},
		{`^\Qa{,2}\E`, false, "a{,2}", "1 [0 5]"},
		{`^a\{,2}`, false, "a{,2}", "1 [0 5]"},
		{`^a{x,2}`, false, "a{x,2}", "1 [0 6]"},
	} {
		re, err := Compile(c.pattern, c.caseless)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		caps := make([]int, 2*(re.Captures+1))
		rc := re.Exec([]byte(c.subject), caps)
		got := fmt.Sprint(rc)
		if rc >= 0 {
			got = fmt.Sprint(rc, caps)
		}
		if got != c.want {
			t.Errorf("%s on %q: %s, want %s", c.pattern, c.subject, got, c.want)
		}
	}
}

// errors.tsv holds patterns and what nginx 1.26.3 with PCRE2 10.46 says of each; an
// empty text is a pattern that it takes. What 10.46 knows and we do not is said to be not supported instead.
func TestCompileErrors(t *testing.T) {
	data, err := os.ReadFile("testdata/errors.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		pattern, want, _ := strings.Cut(line, "\t")
		got := ""
		if _, err := Compile(pattern, false); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n %s, want\n %s", pattern, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	re, err := Compile(`(?<zz>a)(b)(?P<aa>c)`, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(re.Captures, re.Names); got != "3 [{aa 3} {zz 1}]" {
		t.Error(got)
	}
}

func TestExecAllocates(t *testing.T) {
	re, err := Compile(`^/a/(.*)\.php$`, false)
	if err != nil {
		t.Fatal(err)
	}
	s, caps := []byte("/a/index.php"), make([]int, 4)
	re.Exec(s, caps)
	if n := testing.AllocsPerRun(100, func() { re.Exec(s, caps) }); n != 0 {
		t.Errorf("a match allocates %v times", n)
	}
}

func BenchmarkExec(b *testing.B) {
	re, _ := Compile(`^/a/(.*)\.php$`, false)
	s, caps := []byte("/a/index.php"), make([]int, 4)
	for b.Loop() {
		re.Exec(s, caps)
	}
}
