package conftree

import (
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"nginxoracle/oracle/casefile"
)

func TestParsePrintKeepsTokens(t *testing.T) {
	list, err := Parse([]byte("http { server { return 200 \"a;{} \\\"$x\"; set $y '${z}#'; location ~ \"\\.(a|b){1,2}$\" {} add_header X a#b; set $q ${q}x; } }"))
	if err != nil {
		t.Fatal(err)
	}
	got := string(Print(list))
	exp := "http {\n    server {\n        return 200 \"a;{} \\\"$x\";\n        set $y '${z}#';\n        location ~ \"\\.(a|b){1,2}$\" {\n        }\n        add_header X a#b;\n        set $q ${q}x;\n    }\n}\n"
	if got != exp {
		t.Errorf("got\n%s\nwant\n%s", got, exp)
	}
}

func TestParseErrors(t *testing.T) {
	for _, bad := range []string{"a", "a {", "}", "a }", ";", "a { b }", "a \"b", "{"} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestQuoteValueRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a-z \t\r\n;{}"'\\#/$]*`).Draw(t, "s")
		q := Quote(s)
		if got := Value(q); got != s {
			t.Fatalf("Value(Quote(%q)) = %q by %s", s, got, q)
		}
		list, err := Parse([]byte("x " + q + ";"))
		if err != nil || len(list) != 1 || len(list[0].Words) != 2 || list[0].Words[1] != q {
			t.Fatalf("token %s does not survive: %v %v", q, list, err)
		}
	})
}

// Whatever parses prints to something that parses to the same tokens again.
func FuzzParse(f *testing.F) {
	f.Add([]byte("http { server { return 200 \"a;{} \\\"$x\"; set $y '${z}#'; } }"))
	list, err := filepath.Glob("../../../corpus/*.txtar")
	if err != nil || len(list) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range list {
		c, err := casefile.Load(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(c.File("nginx.conf").Data)
	}
	f.Add([]byte("a b c; # d\ne { f; }"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Parse(text)
		if err != nil {
			return
		}
		once := Print(list)
		again, err := Parse(once)
		if err != nil {
			t.Fatalf("printed text does not parse: %v\n%q", err, once)
		}
		if twice := Print(again); string(twice) != string(once) {
			t.Fatalf("printing is not stable:\n%q\n%q", once, twice)
		}
	})
}
