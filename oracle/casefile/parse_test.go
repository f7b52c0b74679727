package casefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sameCase compares cases apart from the lines they were read at.
var sameCase = cmp.Options{
	cmpopts.IgnoreFields(File{}, "Line"),
	cmpopts.IgnoreFields(Origin{}, "Line"),
	cmpopts.IgnoreFields(Section{}, "Line"),
	cmpopts.IgnoreFields(Step{}, "Line"),
}

const conf = "-- nginx.conf --\nevents {}\n"

func TestEveryFormRoundTrips(t *testing.T) {
	text, err := os.ReadFile("testdata/all.txtar")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("all.txtar", text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(text), string(c.Print())); d != "" {
		t.Errorf("print(parse(x)) is not x (-file +printed):\n%s", d)
	}
	if got := c.Sections[1].Steps[0]; len(got.Data) != 6 || len(got.Data[3]) != 5000 || got.Line != 46 {
		t.Errorf("the long send: %d strings, the fourth of %d bytes, line %d", len(got.Data), len(got.Data[3]), got.Line)
	}
	if got := string(c.File("html/blob.bin").Data); got != "bytes \x00\xff\ngo on here\n"+strings.Repeat("a", 70)+"tail" {
		t.Errorf("quoted content: %q", got)
	}
	if n := len(c.Origins[0].Conns); n != 3 {
		t.Errorf("connections of the first origin: %d, want 3", n)
	}
}

// Every case kept in the repository is in canonical form, so that tools that
// rewrite one make no noise in a review.
func TestCasesInTreeAreCanonical(t *testing.T) {
	for _, root := range []string{"../../scenarios", "../../corpus"} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".txtar" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			c, err := Parse(path, text)
			if err != nil {
				t.Error(err)
				return nil
			}
			if d := cmp.Diff(string(text), string(c.Print())); d != "" {
				t.Errorf("%s is not canonical; run: oracle fmt %s\n%s", path, path, d)
			}
			return nil
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no conf", "# t\n-- a --\nx\n", `c:3: want a section "-- nginx.conf --", got the end of the file`},
		{"empty", "", `c:1: want a section`},
		{"comment", "# t\nwords\n" + conf, `c:2: want "# text" or "key: value", got "words"`},
		{"unquoted", conf + "-- client 1 --\nsend hello\n", `c:4: send: want a quoted string, got "hello"`},
		{"nothing", conf + "-- client 1 --\n\nsend\n", `c:5: send: want a quoted string, got nothing`},
		{"open string", conf + "-- client 1 --\nsend \"abc\n", `c:4: send: want a quoted string, got "\"abc", which does not end`},
		{"bad escape", conf + "-- client 1 --\nsend \"\\q\"\n", `c:4: send: want a quoted string`},
		{"count", conf + "-- client 1 --\nsend \"a\"*x\n", `c:4: send: want a count after *, got "x"`},
		{"bomb", conf + "-- client 1 --\nsend \"aaaa\"*99999999\n", `c:4: send: want at most 67108864 bytes`},
		{"glued", conf + "-- client 1 --\nsend \"a\"\"b\"\n", `c:4: send: want a space after the string`},
		{"step", conf + "-- client 1 --\nsleep 5\n", `c:4: want a step of a client (send, settle, recv, pause, shutdown, close, reset), got "sleep 5"`},
		{"origin step in client", conf + "-- client 1 --\nagain\n", `c:4: want a step of a client`},
		{"recv", conf + "-- client 1 --\nrecv request\n", `c:4: recv: want response, head, all, none or a number of bytes, got "request"`},
		{"after close", conf + "-- client 1 --\nclose\nrecv all\n", `c:5: want nothing after "close"`},
		{"pause", conf + "-- client 1 --\npause 5\n", `c:4: pause: want a duration such as 50ms`},
		{"again", conf + "-- origin 127.0.0.1:1 --\nsend \"\"\nagain\n", `c:5: want a recv before "again"`},
		{"origin addr", conf + "-- origin localhost:80 --\n", `c:3: want an address such as`},
		{"two origins", conf + "-- origin 127.0.0.1:1 --\n-- origin 127.0.0.1:1 --\n", `c:4: want each origin once`},
		{"client number", conf + "-- client x --\n", `c:3: want a client's number from 1, got "x"`},
		{"two clients", conf + "-- client 1 --\n-- client 1 --\n", `c:4: want each client's number once`},
		{"with", conf + "-- client 1 --\n-- do --\n-- client 2 with 1 --\n", `c:5: want "with" and a client of the group right before, got client 1`},
		{"signal", conf + "-- do --\nsignal STOP\n", `c:4: signal: want one of TERM QUIT`},
		{"escape", conf + "-- ../x --\n", `c:3: want a clean path relative to /cell, got "../x"`},
		{"absolute", conf + "-- /etc/passwd --\n", `c:3: want a clean path relative to /cell`},
		{"twice", conf + "-- nginx.conf --\n", `c:3: want each path once`},
		{"mode", conf + "-- a mode=9 --\n", `c:3: want an octal mode`},
		{"attribute", conf + "-- a b --\n", `c:3: want mode=, mtime=, symlink= or quoted, got "b"`},
		{"link body", conf + "-- a symlink=b --\nx\n", `c:4: want no content for a folder or a link, got "x"`},
		{"quoted body", conf + "-- a quoted --\nx\n", `c:4: want a quoted string, got "x"`},
		{"conf is a folder", "-- nginx.conf/ --\n", `c:1: want a file nginx.conf, got a folder`},
		{"outside origin", conf + "-- origin 8.8.8.8:80 --\n", `c:3: want an address of the cell's loopback (127.0.0.0/8 or [::1]), got "8.8.8.8:80"`},
		{"outside client", conf + "-- client 1 10.0.0.1:80 --\n", `c:3: want an address of the cell's loopback`},
		{"any address", conf + "-- origin 0.0.0.0:9001 --\n", `c:3: want an address of the cell's loopback`},
		{"mapped address", conf + "-- origin [::ffff:127.0.0.1]:9001 --\n", `c:3: want an address of the cell's loopback`},
		{"outside socket", conf + "-- origin unix:/etc/x.sock --\n", `c:3: want unix:/cell/ and a clean path`},
		{"unclean socket", conf + "-- origin unix:/cell/../x.sock --\n", `c:3: want unix:/cell/ and a clean path`},
		{"one origin written twice", conf + "-- origin [::1]:1 --\n-- origin [0:0::1]:1 --\n", `c:4: want each origin once`},
		{"socket on a file", conf + "-- a --\n-- origin unix:/cell/a --\n", `c:4: want a path that is free for the socket of unix:/cell/a, got that of a section (line 3)`},
		{"socket under a file", conf + "-- a --\n-- origin unix:/cell/a/b --\n", `c:4: want a path that is free`},
		{"file under a file", conf + "-- a --\n-- a/b --\n", `c:4: want a path below folders only, got "a/b" below "a", which is a file (line 3)`},
		{"file above a file", conf + "-- a/b/c --\n-- a --\n", `c:3: want a path below folders only, got "a/b/c" below "a", which is a file (line 4)`},
		{"file under a link", conf + "-- a symlink=b --\n-- a/b --\n", `c:4: want a path below folders only, got "a/b" below "a", which is a link`},
		{"long name", conf + "-- " + strings.Repeat("a", 256) + " --\n", `c:3: want a path of at most 1000 bytes, each part of at most 255`},
		{"too large", conf + "-- a quoted --\n\"a\"*40000000\n-- b quoted --\n\"b\"*40000000\n", `c:5: want files of at most 60 MiB together, got more with "b"`},
		{"too much written", conf + "-- do --\nwrite a \"a\"*40000000\nwrite b \"b\"*40000000\n", `c:5: want files of at most 60 MiB together, got more with what is written here`},
		{"lanes", "# t\nlanes: unitz\n" + conf, `c:2: want "lanes: units", got "lanes: unitz"`},
		{"do in lanes", "lanes: units\n" + conf + "-- do --\n", `c:4: want clients only in a case with "lanes: units"`},
		{"clients", conf + "-- clients 1 --\n", `c:3: want a section such as "-- client 1 --" (or, for a file of that name, the name in quotes), got "clients 1"`},
		{"client1", conf + "-- client1 --\n", `c:3: want a section such as "-- client 1 --"`},
		{"Do", conf + "-- Do --\n", `c:3: want a section such as "-- do --"`},
		{"half a marker", conf + "-- client 1--\nsend \"x\"\n", `c:3: want a section's line to begin with "-- " and to end with " --", got "-- client 1--"`},
		{"marker with a space", conf + "-- client 1 -- \nsend \"x\"\n", `c:3: want a section's line to begin`},
		{"marker in the comment", "--nginx.conf--\n", `c:1: want "# text" or "key: value", got "--nginx.conf--": a section's line begins with "-- "`},
		{"byte order mark", "\ufeff" + conf, `c:1: want "# text" or "key: value", got "\xef\xbb\xbf-- nginx.conf --": take the byte order mark out`},
		{"binary", "\x00\x01", `c:1: want "# text" or "key: value", got "\x00\x01": is that a case file`},
		{"string alone", conf + "-- client 1 --\n\"x\"\n", `c:4: want a step, got a string`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("c", []byte(tt.text))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s…", err, tt.want)
			}
		})
	}
}

// Content that txtar cannot carry comes back unchanged, whatever it is.
func TestPrintKeepsAnyContent(t *testing.T) {
	for _, data := range []string{
		"", "no newline", "crlf\r\n", "-- looks like a section --\n", "events {}\n-- x --\nmore\n",
		"\x00\x01\xfe\xff", "tab\tand é\n", strings.Repeat("abc", 1000), strings.Repeat("\n", 200),
		"head" + strings.Repeat("z", 500) + "tail\n\n", "--client 1--\n",
	} {
		c := &Case{Files: []File{{Path: "nginx.conf", Data: []byte(data)}}}
		got, err := Parse("c", c.Print())
		if err != nil {
			t.Errorf("%q: %v", data, err)
		} else if g := string(got.Files[0].Data); g != data {
			t.Errorf("wrote %q, read %q", data, g)
		}
	}
}

// A file whose name looks like a section's stands in quotes, and comes back.
func TestNamesLikeSectionsRoundTrip(t *testing.T) {
	for _, name := range []string{"client", "clients", "client1", "Origin", "do", "do/x", "clients/1"} {
		c := &Case{Files: []File{{Path: "nginx.conf", Data: []byte("x\n")}, {Path: name, Data: []byte("y\n")}}}
		got, err := Parse("c", c.Print())
		if err != nil || got.File(name) == nil {
			t.Errorf("%q: %v\n%s", name, err, c.Print())
		}
	}
}

// What is no file is named, and not waited for.
func TestLoadWantsAFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "is a pipe: want a file", t.TempDir(): "is a folder: want a file", "/dev/null": "is a device: want a file"} {
		if _, err := Load(path); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want … %s", path, err, want)
		}
	}
}

func TestCloneSharesNothing(t *testing.T) {
	c, err := Load("testdata/all.txtar")
	if err != nil {
		t.Fatal(err)
	}
	before := string(c.Print())
	d := c.Clone()
	if diff := cmp.Diff(c, d); diff != "" {
		t.Fatalf("clone differs: %s", diff)
	}
	d.Set("tags", "x")
	d.Prose[0] = "x"
	d.Files[0].Data[0] = 'X'
	d.Origins[0].Conns[0][1].Data[0][0] = 'X'
	d.Origins[0].Conns[1][0].Op = Pause
	d.Sections[0].Steps[0].Data[0][0] = 'X'
	d.Sections[2].Steps[0].Args[0] = "TERM"
	if after := string(c.Print()); after != before {
		t.Errorf("changing the clone changed the case:\n%s", cmp.Diff(before, after))
	}
}

func TestRepetition(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want string
	}{
		{strings.Repeat("a", 63), `"` + strings.Repeat("a", 63) + `"`},
		{strings.Repeat("a", 64), `"a"*64`},
		{strings.Repeat("0123456789", 10), `"0123456789"*10`},
		{strings.Repeat("a: b\r\n", 20), `"a: b\r\n"*20`},
		{strings.Repeat("a", 100) + "b", `"` + strings.Repeat("a", 100) + `b"`},
	} {
		if got := quotePart([]byte(tt.in)); got != tt.want {
			t.Errorf("quotePart(%q) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/all.txtar")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(conf))
	for _, pattern := range []string{"../../corpus/*.txtar", "../../scenarios/*/a*.txtar"} {
		list, err := filepath.Glob(pattern)
		if err != nil || len(list) == 0 {
			f.Fatalf("no seeds in %s: %v", pattern, err)
		}
		for _, name := range list {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte("## x\r\nk:v\n" + conf + "-- a --\n\r\n-- origin 127.0.0.1:1 --\nconnection\nconnection\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("f", text)
		if err != nil {
			var at *Error
			if !errors.As(err, &at) || at.Line < 1 {
				t.Fatalf("an error without its place: %v", err)
			}
			return
		}
		printed := c.Print()
		d, err := Parse("f", printed)
		if err != nil {
			t.Fatalf("printed case does not parse: %v\n%s", err, printed)
		}
		if diff := cmp.Diff(c, d, sameCase); diff != "" {
			t.Fatalf("parse(print(c)) is not c:\n%s\n%s", diff, printed)
		}
		if again := d.Print(); string(again) != string(printed) {
			t.Fatalf("printing is not stable:\n%s", cmp.Diff(string(printed), string(again)))
		}
	})
}
