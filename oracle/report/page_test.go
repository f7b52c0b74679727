package report

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// A page is one file: what came from the wire is escaped, and nothing is fetched.
func TestPage(t *testing.T) {
	p := &Page{Title: "t", Verdict: "differ", Made: time.Unix(0, 0), Spent: map[string]time.Duration{"play": 2 * time.Second, "rest": time.Second},
		Views: []JSON{{Case: "a.txtar", Verdict: "agree"}, {Case: "b.txtar", Verdict: "differ", Reference: "nginx", Candidate: "proxy",
			Mismatches: []JSONMismatch{{Where: "client 1", At: 3, Reference: "abc<script>", Candidate: "abcX"}}}}}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	for _, want := range []string{"abc<b>&lt;script&gt;</b>", "abc<b>X</b>", "2.0 s", "b.txtar"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"<script", "http://", "https://", "src=", "a.txtar"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}
