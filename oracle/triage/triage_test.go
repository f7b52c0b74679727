package triage

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/minimize"
	"nginxoracle/oracle/observe"
)

// fake is a rig whose sides answer what functions of the case say.
type fake struct {
	ref, cand func(text string, run int) string
	runs      int
	fail      error
}

func (f *fake) Pair(_ context.Context, c *casefile.Case) (ref, cand *observe.Observation, err error) {
	if f.fail != nil {
		return nil, nil, f.fail
	}
	f.runs++
	text := string(c.Print())
	o := func(s string) *observe.Observation {
		return &observe.Observation{Clients: []observe.Conn{{ID: 1, Recv: []byte(s), End: observe.EndClosed}}}
	}
	return o(f.ref(text, f.runs)), o(f.cand(text, f.runs)), nil
}

func (f *fake) Compare(ref, cand *observe.Observation) diff.Result {
	a, b := ref.Clients[0].Recv, cand.Clients[0].Recv
	if bytes.Equal(a, b) {
		return diff.Result{Verdict: diff.Agree}
	}
	return diff.Result{Verdict: diff.Differ, Mismatches: []diff.Mismatch{{Kind: diff.KindClient, Where: "client 1", Ref: a, Cand: b}}}
}

const sample = `# a case
-- nginx.conf --
events {
    worker_connections 64;
}
http {
    sendfile on;
    server {
        listen 127.0.0.1:8080;
        etag off;
        location /a {
            bad on;
            root html;
        }
        location /b {
            root html;
        }
    }
}
-- html/x --
x
-- html/y --
y
-- origin 127.0.0.1:9001 --
recv request
send "HTTP/1.1 200 OK\r\n\r\n"
-- client 1 --
send "GET /b HTTP/1.1\r\nHost: a\r\n\r\n"
recv response
-- client 2 --
send "GET /a HTTP/1.1\r\nHost: a\r\nX-Long: "
settle
send "12345678\r\nTrigger: 1\r\n\r\n"
recv response
close
`

func parse(t *testing.T, text string) *casefile.Case {
	t.Helper()
	c, err := casefile.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func always(s string) func(string, int) string { return func(string, int) string { return s } }

// wrong answers 500 where the case has both the directive and the header.
func wrong(text string, _ int) string {
	if strings.Contains(text, "bad on;") && strings.Contains(text, "Trigger: 1") {
		return "HTTP/1.1 500 X\r\n\r\n"
	}
	return "HTTP/1.1 200 OK\r\n\r\n"
}

func TestTriageShrinksToWhatMatters(t *testing.T) {
	c := parse(t, sample)
	f := &fake{ref: always("HTTP/1.1 200 OK\r\n\r\n"), cand: wrong}
	rep := Triage(context.Background(), f, c, Options{})
	if rep.Outcome != Found || rep.Flaky {
		t.Fatalf("outcome %v, flaky %v: %s", rep.Outcome, rep.Flaky, rep.Why)
	}
	if got, want := rep.Signature.String(), "client: 200 / 500 [bad]"; got != want {
		t.Errorf("signature %q, want %q", got, want)
	}
	text := string(rep.Case.Print())
	for _, gone := range []string{"etag", "location", "html/x", "origin", "client 1", "settle", "X-Long", "GET"} {
		if strings.Contains(text, gone) {
			t.Errorf("%q is still in the shrunk case:\n%s", gone, text)
		}
	}
	if !bytes.Equal(c.Print(), parse(t, sample).Print()) {
		t.Error("triage changed the case it was given")
	}
}

func TestTriageOutcomes(t *testing.T) {
	ok := always("HTTP/1.1 200 OK\r\n\r\n")
	flip := func(_ string, run int) string {
		if run%2 == 0 {
			return "HTTP/1.1 404 X\r\n\r\n"
		}
		return "HTTP/1.1 200 OK\r\n\r\n"
	}
	for _, x := range []struct {
		name string
		rig  *fake
		want Outcome
	}{
		{"the reference wavers", &fake{ref: flip, cand: ok}, Unstable},
		{"it does not come again", &fake{ref: ok, cand: ok}, Gone},
		{"the rig breaks", &fake{fail: errors.New("no cell")}, Rigged},
		{"the candidate wavers", &fake{ref: ok, cand: flip}, Found},
	} {
		rep := Triage(context.Background(), x.rig, parse(t, sample), Options{Budget: minimize.Budget{Attempts: 20}})
		if rep.Outcome != x.want {
			t.Errorf("%s: %v (%s), want %v", x.name, rep.Outcome, rep.Why, x.want)
		}
	}
}

func TestCores(t *testing.T) {
	m := func(k diff.Kind, ref, cand string) diff.Mismatch {
		return diff.Mismatch{Kind: k, Where: "w", Ref: []byte(ref), Cand: []byte(cand)}
	}
	const head = "HTTP/1.1 200 OK\r\nServer: nginx\r\nX-A: 1\r\n\r\n"
	for _, x := range []struct {
		m    diff.Mismatch
		want string
	}{
		{m(diff.KindClient, head+"abc", head+"ab"), "client: body of 200 short"},
		{m(diff.KindClient, head, "HTTP/1.1 200 OK\r\nServer: nginx\r\n\r\n"), "client: headers of 200: x-a missing"},
		{m(diff.KindClient, head, "HTTP/1.1 200 OK\r\nX-A: 1\r\nServer: nginx\r\n\r\n"), "client: headers of 200: order"},
		{m(diff.KindClient, head, ""), "client: 200 / nothing"},
		{m(diff.KindClient, head+head, head), "client: message missing: 200"},
		{m(diff.KindOrigin, "GET /a HTTP/1.0\r\n\r\n", "GET /b HTTP/1.0\r\n\r\n"), "origin: first line of request HTTP/1.0"},
		{m(diff.KindEnd, "closed", "reset"), "end: closed / reset"},
		{m(diff.KindError, "2024/01/01 00:00:00 [error] 1#1: *3 open() \"/cell/a\" failed (2: No such file)", ""), `error: [error] open() "…" failed (N: No such file) / nothing`},
	} {
		if got := Core(x.m); got != x.want {
			t.Errorf("%q against %q: %q, want %q", x.m.Ref, x.m.Cand, got, x.want)
		}
	}
	r := diff.Result{Mismatches: []diff.Mismatch{m(diff.KindTree, "a", "b"), m(diff.KindEnd, "closed", "reset"), m(diff.KindLoad, "x", "y")}}
	if got := Cores(r); len(got) != 3 || !strings.HasPrefix(got[0], "load") || !strings.HasPrefix(got[2], "tree") {
		t.Errorf("order of cores: %q", got)
	}
}
