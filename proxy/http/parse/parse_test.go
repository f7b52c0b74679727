package parse

import (
	"fmt"
	"testing"
)

var lines = []struct {
	in   string
	want Result
	desc string // what show prints
}{
	{"GET / HTTP/1.1\r\n", OK, `m=2 v=1001 uri="/" line="GET / HTTP/1.1"`},
	{"\r\n\nGET /a HTTP/1.0\n", OK, `m=2 v=1000 uri="/a" line="GET /a HTTP/1.0"`},
	{"GET /a\r\n", OK, `m=2 v=9 uri="/a" line="GET /a"`},
	{"GET /a  \n", OK, `m=2 v=9 uri="/a" line="GET /a  "`},
	{"POST /a\r\n", Invalid09, ""},
	{"PROPPATCH  /x.y?b#c HTTP/1.1  \r\n", OK, `m=2048 v=1001 uri="/x.y?b#c" complex ext="y?b#c" args="b#c" line="PROPPATCH  /x.y?b#c HTTP/1.1  "`},
	{"_X-Y /a.b/c+d HTTP/1.1\r\n", OK, `m=1 v=1001 uri="/a.b/c+d" plus line="_X-Y /a.b/c+d HTTP/1.1"`},
	{"GET /+/x HTTP/1.1\r\n", OK, `m=2 v=1001 uri="/+/x" complex plus line="GET /+/x HTTP/1.1"`},
	{"GET /%41//b HTTP/1.1\r\n", OK, `m=2 v=1001 uri="/%41//b" quoted line="GET /%41//b HTTP/1.1"`},
	{"GET /a//b HTTP/1.1\r\n", OK, `m=2 v=1001 uri="/a//b" complex line="GET /a//b HTTP/1.1"`},
	{"GET http://Host.x:80/a HTTP/1.1\r\n", OK, `m=2 v=1001 uri="/a" schema="http" host="Host.x" line="GET http://Host.x:80/a HTTP/1.1"`},
	{"GET http://h HTTP/1.1\r\n", OK, `m=2 v=1001 uri="/" schema="http" host="h" line="GET http://h HTTP/1.1"`},
	{"GET http://h:8 HTTP/1.1\r\n", OK, `m=2 v=1001 uri="/" schema="http" host="h" line="GET http://h:8 HTTP/1.1"`},
	{"GET a+b://[::1]:8?x HTTP/1.1\r\n", OK, `m=2 v=1001 uri="?x" empty args="x" schema="a+b" host="[::1]" line="GET a+b://[::1]:8?x HTTP/1.1"`},
	{"GET http:///a HTTP/1.1\r\n", OK, `m=2 v=1001 uri="/a" schema="http" host="" line="GET http:///a HTTP/1.1"`},
	{"GET http://a_b/ HTTP/1.1\r\n", InvalidRequest, ""},
	{"GET http://[a/ HTTP/1.1\r\n", InvalidRequest, ""},
	{"GET http:/a HTTP/1.1\r\n", InvalidRequest, ""},
	{"GET *\r\n", InvalidRequest, ""},
	{"get / HTTP/1.1\r\n", InvalidMethod, ""},
	{"GE1 / HTTP/1.1\r\n", InvalidMethod, ""},
	{"GET /\x01 HTTP/1.1\r\n", InvalidRequest, ""},
	{"GET /a?\x7f HTTP/1.1\r\n", InvalidRequest, ""},
	{"GET /\xff\x80 HTTP/1.1\r\n", OK, `m=2 v=1001 uri="/\xff\x80" line="GET /\xff\x80 HTTP/1.1"`},
	{"GET / HTTP/1.1\rX", InvalidRequest, ""},
	{"GET / HTTP/2.0\r\n", InvalidVersion, ""},
	{"GET / HTTP/10.0\r\n", InvalidVersion, ""},
	{"GET / HTTP/0.9\r\n", InvalidRequest, ""},
	{"GET / HTTP/1.999\r\n", OK, `m=2 v=1999 uri="/" line="GET / HTTP/1.999"`},
	{"GET / HTTP/1.1000\r\n", InvalidRequest, ""},
	{"GET / HTTP/1.\r\n", InvalidRequest, ""},
	{"GET / FTP/1.1\r\n", InvalidRequest, ""},
	{"GET / HTTP/1.1 x\r\n", InvalidRequest, ""},
}

func (l *Line) show(buf string) string {
	cut := func(name string, from, to int) string {
		if from < 0 {
			return ""
		}
		return fmt.Sprintf(" %s=%q", name, buf[from:to])
	}
	flag := func(name string, on bool) string {
		if on {
			return " " + name
		}
		return ""
	}
	return fmt.Sprintf("m=%d v=%d", l.Method, l.Version) + cut("uri", l.URIStart, l.URIEnd) +
		flag("complex", l.Complex) + flag("quoted", l.Quoted) + flag("plus", l.Plus) + flag("empty", l.EmptyPath) +
		cut("ext", l.URIExt, l.URIEnd) + cut("args", l.ArgsStart, l.ArgsEnd) +
		cut("schema", l.SchemaStart, l.SchemaEnd) + cut("host", l.HostStart, l.HostEnd) + cut("line", l.Start, l.End)
}

func TestLine(t *testing.T) {
	for _, c := range lines {
		var l Line
		if got := l.Parse([]byte(c.in)); got != c.want {
			t.Errorf("%q: result %d, want %d", c.in, got, c.want)
		} else if got == OK {
			if desc := l.show(c.in); desc != c.desc {
				t.Errorf("%q:\n got %s\nwant %s", c.in, desc, c.desc)
			}
		}
		checkCuts(t, []byte(c.in), lineRun)
	}
}

// run parses data that arrives up to the given ends and describes all that came of it.
type run func(data []byte, ends []int) string

// checkCuts compares the uncut parse with every two-piece parse and with the byte-wise one.
func checkCuts(t *testing.T, data []byte, r run) {
	t.Helper()
	whole := r(data, []int{len(data)})
	bytewise := make([]int, len(data))
	for i := range data {
		bytewise[i] = i + 1
		if got := r(data, []int{i, len(data)}); got != whole {
			t.Fatalf("%q cut at %d:\n got %s\nwant %s", data, i, got, whole)
		}
	}
	if len(data) > 0 {
		if got := r(data, bytewise); got != whole {
			t.Fatalf("%q byte by byte:\n got %s\nwant %s", data, got, whole)
		}
	}
}

func lineRun(data []byte, ends []int) string {
	var l Line
	for _, end := range ends {
		if res := l.Parse(data[:end]); res != Again {
			l.state = 0
			if res != OK {
				l.Pos = 0 // how far a failed parse had come is the number of calls
			}
			return fmt.Sprint(res, l)
		}
	}
	return fmt.Sprint(Again, l)
}

var fields = []struct {
	in, want string
}{
	{"Host: a\r\n\r\n", `"Host"="a" done`},
	{"A:b\nC:\r\nD\nE\r\n\n", `"A"="b" "C"="" "D"="" "E"="" done`},
	{"A:   b  c \t \r\r\n\r\n", `"A"="b  c \t" done`},
	{"X_y: 1\r\n\r\n", `"X_y"="1"! done`},
	{"\x80a(: 1\r\n\r\n", `"\x80a("="1"! done`},
	{" A: 1\r\n\r\n", `invalid at 0`},
	{"A: 1\r\n B: 1\r\n\r\n", `"A"="1" invalid at 6`},
	{"A : 1\r\n\r\n", `invalid at 1`},
	{":\r\n\r\n", `invalid at 0`},
	{"A: b\x00\r\n", `invalid at 4`},
	{"A:\x00\r\n", `invalid at 2`},
	{"A: b \x00\r\n", `invalid at 5`},
	{"A: b\rc\r\n", `invalid at 4`},
	{"A: b\r\n\rc", `"A"="b" invalid at 6`},
	{"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", `"A"="b" done`},
	{"A-Very-Long-Name-Of-More-Than-32-Bytes: 1\r\n\r\n", `"A-Very-Long-Name-Of-More-Than-32-Bytes"="1" done`},
}

func fieldRun(data []byte, ends []int) string {
	f := Field{Upstream: true}
	s := ""
	for _, end := range ends {
		for {
			res := f.Parse(data[:end], false)
			if res == Again {
				break
			}
			switch res {
			case OK:
				s += fmt.Sprintf("%q=%q", data[f.NameStart:f.NameEnd], data[f.ValStart:f.ValEnd])
				if f.Invalid {
					s += "!"
				} else if n := f.NameEnd - f.NameStart; n < len(f.Low) && n != f.LowLen {
					s += fmt.Sprintf("(low %q)", f.Low[:f.LowLen])
				}
				s += " "
			case Done:
				return s + "done"
			case InvalidHeader:
				return s + fmt.Sprintf("invalid at %d", f.ValEnd)
			}
		}
	}
	return s + "again"
}

func TestField(t *testing.T) {
	for _, c := range fields {
		if got := fieldRun([]byte(c.in), []int{len(c.in)}); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.in, got, c.want)
		}
		checkCuts(t, []byte(c.in), fieldRun)
	}

	f := Field{}
	if f.Parse([]byte("X_y: 1\r\n"), true) != OK || f.Invalid || string(f.Low[:f.LowLen]) != "x_y" {
		t.Errorf("underscores allowed: %+v", f)
	}
}

var statuses = []struct {
	in, want string
}{
	{"HTTP/1.1 200 OK\r\n", `1001 200 "200 OK"`},
	{"HTTP/1.0 404\n", `1000 404 "404"`},
	{"HTTP/1.1   2 0 0 \r\n", `1001 200 "0 0 "`},
	{"HTTP/1.1 403.1 no\n", `1001 403 "403.1 no"`},
	{"HTTP/1.1 2000\r\n", `error`},
	{"HTTP/1.1 20\r\n", `error`},
	{"HTTP/0.1 200\r\n", `error`},
	{"http/1.1 200\r\n", `error`},
	{"HTTP/1.1 200 O\rK\r\n", `error`},
	{"ICY 200 OK\r\n", `error`},
}

func statusRun(data []byte, ends []int) string {
	var s StatusLine
	for _, end := range ends {
		switch s.Parse(data[:end]) {
		case OK:
			return fmt.Sprintf("%d %d %q", s.Version, s.Code, data[s.Start:s.End])
		case Error:
			return "error"
		}
	}
	return "again"
}

func TestStatusLine(t *testing.T) {
	for _, c := range statuses {
		if got := statusRun([]byte(c.in), []int{len(c.in)}); got != c.want {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
		checkCuts(t, []byte(c.in), statusRun)
	}
}

var chunkeds = []struct {
	in, want string
}{
	{"3\r\nabc\r\n0\r\n\r\nrest", `"abc" done "rest"`},
	{"3\nabc\n0\n\n", `"abc" done ""`},
	{"A;x=y \r\n0123456789\r\n0;z\nTrailer: 1\r\nB\n\r\n", `"0123456789" done ""`},
	{"1 \t\r\na\r\n00\t\n\n", `"a" done ""`},
	{"g\r\n", `error`},
	{"\r\n", `error`},
	{"1x\r\n", `error`},
	{"1\r\rab", `error`},
	{"1\r\nab\r\n", `"a" error`},
	{"1\r\na\rb", `"a" error`},
	{"0\r\n\rx", `error`},
	{"0\r\nA\rx", `error`},
	{"7fffffffffffffff\r\n", `error`},
	{"8000000000000000\r\n", `error`},
	{"ffffffffffffffffff\r\n", `error`},
	{"3\r\nab", `"ab" again 5`},
	{"0\r\n", ` again 1`},
	{"12", ` again 23`},
}

func chunkedRun(data []byte, ends []int) string {
	var c Chunked
	var body []byte
	pos := 0
	prefix := func() string {
		if len(body) == 0 {
			return ""
		}
		return fmt.Sprintf("%q ", body)
	}
	for _, end := range ends {
		for {
			n, res := c.Parse(data[pos:end])
			pos += n
			switch res {
			case Error:
				return prefix() + "error"
			case Done:
				return prefix() + fmt.Sprintf("done %q", data[pos:])
			case OK:
				take := min(c.Size, int64(end-pos))
				body = append(body, data[pos:pos+int(take)]...)
				pos += int(take)
				c.Size -= take
				continue
			}
			break
		}
	}
	// what must still come is told when the framing was looked at last
	c.Parse(nil)
	if len(body) == 0 {
		return fmt.Sprintf(" again %d", c.Length)
	}
	return prefix() + fmt.Sprintf("again %d", c.Length)
}

func TestChunked(t *testing.T) {
	for _, c := range chunkeds {
		if got := chunkedRun([]byte(c.in), []int{len(c.in)}); got != c.want {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
		checkCuts(t, []byte(c.in), chunkedRun)
	}
}

func TestParsersDoNotAllocate(t *testing.T) {
	line := []byte("GET http://example.test:80/a/./b/../c%41.html?x=y#z HTTP/1.1\r\n")
	head := []byte("Host: example.test\r\nA_b: c\r\n\r\n")
	dst := make([]byte, 0, 128)
	allocs := testing.AllocsPerRun(100, func() {
		var l Line
		if l.Parse(line) != OK {
			t.Fatal("line")
		}
		if _, _, _, res := ComplexURI(dst, &l, line, true); res != OK {
			t.Fatal("uri")
		}
		var f Field
		for f.Parse(head, false) == OK {
		}
		var c Chunked
		c.Parse([]byte("10\r\n"))
	})
	if allocs != 0 {
		t.Errorf("%v allocations a request", allocs)
	}
}

func FuzzCuts(f *testing.F) {
	for _, c := range lines {
		f.Add([]byte(c.in))
	}
	for _, c := range fields {
		f.Add([]byte(c.in))
	}
	for _, c := range statuses {
		f.Add([]byte(c.in))
	}
	for _, c := range chunkeds {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 300 {
			return
		}
		for _, r := range []run{lineRun, fieldRun, statusRun, chunkedRun} {
			checkCuts(t, data, r)
		}
	})
}
