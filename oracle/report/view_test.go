package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
)

var update = flag.Bool("update", false, "write the golden files")

const text = `# proxy_pass with a URI replaces the matched prefix
-- nginx.conf --
events {}
http {
    server {
        listen 127.0.0.1:8080;
        location /a/ { proxy_pass http://127.0.0.1:9001/b/; }
        location /z/ { return 204; }
        location = /q { add_header X "a;b"; }
    }
}
-- client 1 --
send "GET /a/x HTTP/1.1\r\nHost: example.test\r\n\r\n"
recv response
send "GET /a/y HTTP/1.1\r\nHost: example.test\r\n\r\n"
recv response
close
`

func view(t *testing.T, ms ...diff.Mismatch) *View {
	t.Helper()
	c, err := casefile.Parse("scenarios/proxy/uri-replaced.txtar", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &View{Case: c, Ref: "nginx", Cand: "proxy", Again: "oracle replay scenarios/proxy/uri-replaced.txtar",
		Result: diff.Result{Verdict: diff.Differ, Mismatches: ms, Masks: map[string]int{"log-time": 2, "date": 1}}}
}

var long = strings.Repeat("0123456789", 40)

func mismatches() []diff.Mismatch {
	return []diff.Mismatch{
		{Kind: diff.KindOrigin, Where: "origin 127.0.0.1:9001, connection 1", At: 7, Pos: 7,
			Ref: []byte("GET /b/x HTTP/1.0\r\nHost: 127.0.0.1:9001\r\n\r\n"), Cand: []byte("GET /b//x HTTP/1.0\r\nHost: 127.0.0.1:9001\r\n\r\n")},
		{Kind: diff.KindClient, Where: "client 1", At: 29, Pos: 29, Message: 1,
			Ref: []byte("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), Cand: []byte("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 4\x00\xff")},
		{Kind: diff.KindEnd, Where: "client 1, end", Ref: []byte("closed"), Cand: []byte("reset")},
		{Kind: diff.KindClient, Where: "client 1", At: 200, Pos: 203, Ref: []byte(long), Cand: []byte("abc" + long[:200])},
	}
}

func TestViewGolden(t *testing.T) {
	var b bytes.Buffer
	view(t, mismatches()...).Write(&b, Style{})
	golden(t, "testdata/differ.txt", b.Bytes())
}

func TestJSONGolden(t *testing.T) {
	b, err := json.MarshalIndent(view(t, mismatches()...).JSON(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/differ.json", append(b, '\n'))
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got), written with -update:\n%s", file, d)
	}
}

// The caret stands under the first byte that differs, in both lines, whatever
// was escaped before it.
func TestCaretStandsUnderTheDifference(t *testing.T) {
	for _, m := range mismatches() {
		var b bytes.Buffer
		view(t, m).Write(&b, Style{})
		lines := strings.Split(b.String(), "\n")
		for i, line := range lines {
			if strings.TrimSpace(line) != "^" {
				continue
			}
			col := strings.Index(line, "^")
			ref, cand := []rune(lines[i-2]), []rune(lines[i-1])
			if string(ref[11:col]) == "" && m.At > 0 || ref[col] == cand[col] && m.At < len(m.Cand) && m.At < len(m.Ref) {
				t.Errorf("%s: the caret does not stand under a difference:\n%s", m.Where, b.String())
			}
		}
	}
}

func TestColourOnlyWhenAsked(t *testing.T) {
	for _, color := range []bool{false, true} {
		var b bytes.Buffer
		view(t, mismatches()...).Write(&b, Style{Color: color})
		if got := strings.Contains(b.String(), "\x1b["); got != color {
			t.Errorf("colour asked %v, written %v", color, got)
		}
	}
}

func TestLinesKeepTheirWidth(t *testing.T) {
	for _, width := range []int{60, 80, 132} {
		var b bytes.Buffer
		view(t, mismatches()[3]).Write(&b, Style{Width: width})
		for _, line := range strings.Split(b.String(), "\n")[2:4] {
			if n := len([]rune(line)); n > width {
				t.Errorf("width %d: %d columns: %s", width, n, line)
			}
		}
	}
}

// Only the location that the request leads to is in play, with what is around it.
func TestInPlay(t *testing.T) {
	v := view(t)
	if got := (&View{Case: v.Case, Result: diff.Result{Mismatches: mismatches()[1:2]}}).inPlay(); got != "proxy_pass (nginx.conf:5)" {
		t.Errorf("in play: %s", got)
	}
	d := v.Case.Clone()
	d.File("nginx.conf").Data = []byte("events {")
	if got := (&View{Case: d}).inPlay(); got != "" {
		t.Errorf("of a configuration that does not parse: %s", got)
	}
}

func TestAgreeIsOneLine(t *testing.T) {
	v := view(t)
	v.Result = diff.Result{Verdict: diff.Agree}
	var b bytes.Buffer
	v.Write(&b, Style{})
	if got := strings.TrimRight(b.String(), "\n"); strings.Contains(got, "\n") || !strings.HasSuffix(got, " agree") {
		t.Errorf("got %q", got)
	}
}
