package parse

import (
	"bytes"
	"fmt"
	"testing"
)

func complexURI(target string, merge bool) string {
	buf := []byte("GET " + target + " HTTP/1.1\r\n")
	var l Line
	if res := l.Parse(buf); res != OK {
		return fmt.Sprint("line ", res)
	}
	uri, ext, args, res := ComplexURI(nil, &l, buf, merge)
	if res != OK {
		return "invalid"
	}
	s := fmt.Sprintf("%q", uri)
	if ext >= 0 {
		s += fmt.Sprintf(" ext=%q", uri[ext:])
	}
	if args >= 0 {
		s += fmt.Sprintf(" args=%q", buf[args:l.ArgsEnd])
	}
	if l.Plus {
		s += " plus"
	}
	return s
}

func TestComplexURI(t *testing.T) {
	for _, c := range []struct {
		in    string
		merge bool
		want  string
	}{
		{"/a/./b/../c.html", true, `"/a/c.html" ext="html"`},
		{"/a//b///c", true, `"/a/b/c"`},
		{"/a//b///c", false, `"/a//b///c"`},
		{"/a/..", true, `"/"`},
		{"/a/b/..?x#y", true, `"/a/" args="x"`},
		{"/a/.?x", true, `"/a/" args="x"`},
		{"/a/.#x?y", true, `"/a/"`},
		{"/..", true, `invalid`},
		{"/../", true, `invalid`},
		{"/a/../..", true, `invalid`},
		{"/..?a", true, `invalid`},
		{"/...", true, `"/..."`},
		{"/.a.b", true, `"/.a.b" ext="b"`},
		{"/..a.b", true, `"/..a.b" ext="b"`},
		{"/.b", true, `"/.b"`},
		{"/a.b/c", true, `"/a.b/c"`},
		{"/%2e%2E/x", true, `invalid`},
		{"/a/%2e./x", true, `"/x"`},
		{"/a%2fb%2F/c", true, `"/a/b/c"`},
		{"/%41%3f%23%25x", true, `"/A?#%x"`},
		{"/%2b+", true, `"/++" plus`},
		{"/%00", true, `invalid`},
		{"/%4", true, `invalid`},
		{"/%", true, `invalid`},
		{"/%4g", true, `invalid`},
		{"/%g4", true, `invalid`},
		{"/%20%7f%0a", true, `"/ \x7f\n"`},
		{"/a%2ehtml", true, `"/a.html" ext="html"`},
		{"/a?b?c", true, `"/a" args="b?c"`},
		{"/a?", true, `"/a" args=""`},
		{"http://h?x=/../", true, `"/" args="x=/../"`},
		{"/a//../b", false, `"/a/b"`},
		{"/a/b//../c", true, `"/a/c"`},
	} {
		if got := complexURI(c.in, c.merge); got != c.want {
			t.Errorf("%s merge %v: got %s, want %s", c.in, c.merge, got, c.want)
		}
	}
}

func TestUnsafeURI(t *testing.T) {
	for _, c := range []struct {
		in, want string
	}{
		{"/a?b", `"/a" "b" true`},
		{"/a%2fb%3fc?d", `"/a/b?c" "d" true`},
		{"a/b", `"a/b" "" true`},
		{"", `"" "" false`},
		{"?a", `"?a" "" false`},
		{"..", `".." "" false`},
		{"../a", `"../a" "" false`},
		{"..a", `"..a" "" true`},
		{"/a/..", `"/a/.." "" false`},
		{"/a/../b", `"/a/../b" "" false`},
		{"/a/..?b", `"/a/.." "b" true`},
		{"/a/..b", `"/a/..b" "" true`},
		{"/%2e./a?b", `"/../a" "b" false`},
		{"%2e%2e", `".." "" false`},
		{"/a\x00", `"/a\x00" "" false`},
		{"/a%00?b", `"/a\x00" "b" false`},
	} {
		path, args, ok := UnsafeURI(nil, []byte(c.in))
		if got := fmt.Sprintf("%q %q %v", path, args, ok); got != c.want {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
	}
}

// The sets are those of ngx_escape_uri's tables, one bit a byte.
func TestEscapeSets(t *testing.T) {
	const all = 0xffffffff
	for kind, mask := range [][8]uint32{
		EscapeURI:          {all, 0xd000002d, 0x50000000, 0xb8000001, all, all, all, all},
		EscapeArgs:         {all, 0xd800086d, 0x50000000, 0xb8000001, all, all, all, all},
		EscapeURIComponent: {all, 0xfc009fff, 0x78000001, 0xb8000001, all, all, all, all},
		EscapeForHTML:      {all, 0x500000ad, 0x50000000, 0xb8000001, all, all, all, all},
		EscapeRefresh:      {all, 0x50000085, 0x50000000, 0xd8000001, all, all, all, all},
		EscapeMemcached:    {all, 0x00000021, 0, 0, 0, 0, 0, 0},
		EscapeMailAuth:     {all, 0x00000021, 0, 0, 0, 0, 0, 0},
	} {
		for c := range 256 {
			if want := mask[c>>5]>>(c&31)&1 == 1; escapes[kind][c] != want {
				t.Errorf("kind %d, byte %q: %v, want %v", kind, rune(c), escapes[kind][c], want)
			}
		}
	}
	usualMask := [8]uint32{0, 0x7fff37d6, all, 0x7fffffff, all, all, all, all}
	for c := range 256 {
		if want := usualMask[c>>5]>>(c&31)&1 == 1; usual[c] != want {
			t.Errorf("usual %q: %v, want %v", rune(c), usual[c], want)
		}
	}
}

func TestUnescape(t *testing.T) {
	for _, c := range []struct {
		in    string
		kind  UnescapeKind
		want  string
		taken int
	}{
		{"a%41%7e", UnescapeAll, "aA~", 7},
		{"a?%41", UnescapeAll, "a?A", 5},
		{"a?%41", UnescapeURIKind, "a?", 2},
		{"a%3f%41", UnescapeURIKind, "a?", 4},
		{"%25%26%7f%7e%3fx", UnescapeRedirectURI, "%25&%7f~?", 15},
		{"%g%4g%4", UnescapeAll, "g", 7},
	} {
		src := []byte(c.in)
		got, taken := Unescape(nil, src, c.kind)
		if string(got) != c.want || taken != c.taken {
			t.Errorf("%q kind %d: got %q %d, want %q %d", c.in, c.kind, got, taken, c.want, c.taken)
		}
		if inPlace, _ := Unescape(src[:0], src, c.kind); !bytes.Equal(inPlace, got) {
			t.Errorf("%q in place: got %q, want %q", c.in, inPlace, got)
		}
	}
}

func TestEscape(t *testing.T) {
	src := []byte("a b/\x01%?é")
	if got := Escape(nil, src, EscapeURI); string(got) != "a%20b/%01%25%3F%C3%A9" || EscapeCount(src, EscapeURI) != 6 {
		t.Errorf("Escape: %q, %d", got, EscapeCount(src, EscapeURI))
	}
	if got := EscapeHTML(nil, []byte(`<a href="x&y'">`)); string(got) != "&lt;a href=&quot;x&amp;y'&quot;&gt;" {
		t.Errorf("EscapeHTML: %q", got)
	}
	if got := EscapeJSON(nil, []byte("\"\\\n\r\t\b\f\x01\x1f\x7fé")); string(got) != "\\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u001F\x7fé" {
		t.Errorf("EscapeJSON: %q", got)
	}
}

func FuzzComplexURI(f *testing.F) {
	f.Add("/a/./b/../c%41?x", true)
	f.Add("/%2e%2e//", false)
	f.Fuzz(func(t *testing.T, target string, merge bool) {
		buf := []byte("GET " + target + " HTTP/1.1\r\n")
		var l Line
		if l.Parse(buf) != OK || l.Pos != len(buf) {
			return
		}
		room := l.URIEnd - l.URIStart + 1
		dst := make([]byte, 0, room)
		uri, ext, _, res := ComplexURI(dst, &l, buf, merge)
		if res != OK {
			return
		}
		if len(uri) == 0 || uri[0] != '/' || len(uri) > room || ext > len(uri) {
			t.Fatalf("%q: %q, ext %d", target, uri, ext)
		}
		if merge && bytes.Contains(uri, []byte("//")) {
			t.Fatalf("%q: slashes in %q", target, uri)
		}
	})
}
