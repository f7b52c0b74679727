package parse

import "testing"

var benchRequest = []byte("GET /a/index.html?x=1 HTTP/1.1\r\nHost: www.example.test\r\nUser-Agent: curl/8.0\r\n" +
	"Accept: */*\r\nAccept-Encoding: gzip, br\r\nCookie: session=0123456789abcdef\r\nConnection: keep-alive\r\n\r\n")

// The request line and six fields.
func BenchmarkRequest(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(benchRequest)))
	for b.Loop() {
		var l Line
		if l.Parse(benchRequest) != OK {
			b.Fatal("the request line is not whole")
		}
		f, fields := Field{Pos: l.Pos, NameStart: -1}, 0
		for f.Parse(benchRequest, false) == OK {
			fields++
		}
		if fields != 6 {
			b.Fatalf("%d fields, want 6", fields)
		}
	}
}

func BenchmarkComplexURI(b *testing.B) {
	b.ReportAllocs()
	line := []byte("GET /a/./b/../c%20d//e.html?x=1 HTTP/1.1\r\n")
	dst := make([]byte, 0, 256)
	for b.Loop() {
		var l Line
		if l.Parse(line) != OK {
			b.Fatal("the request line is not whole")
		}
		if uri, _, _, res := ComplexURI(dst, &l, line, true); res != OK || string(uri) != "/a/c d/e.html" {
			b.Fatalf("%q, %v", uri, res)
		}
	}
}
