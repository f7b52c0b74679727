package conf

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what is found into testdata/tokens.txtar")

// text is a Source whose reads may be short of what is asked for only in total.
type text string

func (t text) Size() int64                             { return int64(len(t)) }
func (t text) ReadAt(p []byte, off int64) (int, error) { return copy(p, t[off:]), nil }

// show reads all of a text and prints what came, a line each: where it ended, the words, the kind.
func show(r *Reader) string {
	var b strings.Builder
	for {
		words, kind, err := r.Next()
		if err != nil {
			fmt.Fprintf(&b, "%d: error: %s\n", r.Line, err)
			return b.String()
		}
		fmt.Fprintf(&b, "%d: %s", r.Line, kind)
		for _, w := range words {
			if len(w) > 60 {
				w = w[:20] + "…" + strconv.Itoa(len(w))
			}
			fmt.Fprintf(&b, " %q", w)
		}
		b.WriteByte('\n')
		if kind == FileDone {
			return b.String()
		}
	}
}

// unquote reads Go strings with counts: "ab"*500 "\n".
func unquote(t *testing.T, line string) string {
	var b strings.Builder
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimSpace(rest) {
		q, err := strconv.QuotedPrefix(rest)
		if err != nil {
			t.Fatalf("%s: want a quoted string", rest)
		}
		s, _ := strconv.Unquote(q)
		rest = rest[len(q):]
		n := 1
		if strings.HasPrefix(rest, "*") {
			digits := strings.TrimLeft(rest[1:], "0123456789")
			n, _ = strconv.Atoi(rest[1 : len(rest)-len(digits)])
			rest = digits
		}
		b.WriteString(strings.Repeat(s, n))
	}
	return b.String()
}

// TestTokens compares with testdata/tokens.txtar: the first line of a section is the text, the rest
// what it is cut into. scenarios/conf proves the same texts' diagnostics on the real nginx.
func TestTokens(t *testing.T) {
	const name = "testdata/tokens.txtar"
	ar, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ar.Files {
		f := &ar.Files[i]
		in, want, _ := strings.Cut(string(f.Data), "\n")
		r := NewReader(text(unquote(t, in)))
		if strings.HasPrefix(f.Name, "param-") {
			r = NewParameter(unquote(t, in))
		}
		got := show(r)
		if *update {
			f.Data = []byte(in + "\n" + got)
		} else if got != want {
			t.Errorf("%s:\ngot\n%swant\n%s", f.Name, got, want)
		}
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDump: what was kept is what was read.
func TestDump(t *testing.T) {
	in := strings.Repeat("a b;\n", 3000)
	r := NewReader(text(in))
	r.KeepDump = true
	show(r)
	if string(r.Dump) != in {
		t.Errorf("kept %d bytes of %d", len(r.Dump), len(in))
	}
}

// FuzzReader: any text ends, in words without unescaped separators, and lines never go back.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"a b;", "a{b c;}", `"a\"b" 'c';`, "a # x\n;", "${a}b;", "a\\;b;", strings.Repeat("x", 5000) + ";"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(text(b))
		line := r.Line
		for n := 0; ; n++ {
			if n > len(b)+1 {
				t.Fatalf("no end after %d directives of %d bytes", n, len(b))
			}
			words, kind, err := r.Next()
			if err != nil {
				return
			}
			if r.Line < line {
				t.Fatalf("line %d after line %d", r.Line, line)
			}
			line = r.Line
			if kind == FileDone {
				return
			}
			if kind != BlockDone && len(words) == 0 {
				t.Fatal("a directive without words")
			}
		}
	})
}
