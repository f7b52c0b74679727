package campaign

import (
	"context"
	"slices"
	"strings"
	"testing"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
)

const oneUnit = `# generated: unit 1/2/3
-- nginx.conf --
events {
}
http {
    gzip on;
    map $uri $u00_m {
        default 1;
    }
    server {
        listen 127.0.0.1:20000;
        etag off ;
        root u00/html;
    }
}
-- u00/html/a --
a
-- origin 127.0.0.1:20005 --
connection
recv request
-- client 1 127.0.0.1:20000 --
send "GET / HTTP/1.1\r\n\r\n"
recv response
`

func one(t *testing.T, change ...string) *casefile.Case {
	t.Helper()
	text := strings.NewReplacer(change...).Replace(oneUnit)
	if len(change) > 0 && text == oneUnit {
		t.Fatalf("%q changes nothing", change)
	}
	c, err := casefile.Parse("one", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestApart(t *testing.T) {
	head, u, ok := apart(one(t))
	if !ok || len(head.Main) != 1 || len(head.HTTP) != 1 || len(u.Body) != 2 || len(u.Files) != 1 || len(u.Origins) != 1 || len(u.Clients) != 1 {
		t.Errorf("%v: %d and %d directives are all units', %d the unit's", ok, len(head.Main), len(head.HTTP), len(u.Body))
	}
	for name, change := range map[string][]string{
		"a client of no slot":         {"-- client 1 127.0.0.1:20000", "-- client 1"},
		"an origin of no slot":        {"127.0.0.1:20005", "127.0.0.1:9001"},
		"a file of no slot":           {"-- u00/html/a", "-- html/a"},
		"another slot's name":         {"root u00", "root u01"},
		"a head that names the unit":  {"events {\n}", "error_log logs/u00.log;\nevents {\n}"},
		"no http block":               {"http {", "\nhtp {"},
		"a configuration that is bad": {"events {\n}", "events {"},
		"a client of another's":       {"-- client 1 ", "-- client 101 "},
		"a company":                   {"1/2/3\n", "1/2/3\nlanes: units\n"},
		"what is done between":        {"-- client", "-- do --\nremove u00/html/a\n-- client"},
	} {
		if _, _, ok := apart(one(t, change...)); ok {
			t.Errorf("%s goes beside others", name)
		}
	}
	if _, u, ok = apart(one(t, "    server {\n", "    server {\n        etag on;\n    }\n    server {\n")); !ok || len(u.Body) != 3 {
		t.Errorf("%v: a server without a name is not the unit's", ok)
	}
}

func TestScreen(t *testing.T) {
	const core = "client: 200 / 500"
	r := &rigged{t: t, dir: t.TempDir(), bug: "etag"}
	runs := 0
	s := &Screener{Ref: &cell{name: "nginx"}, Cand: &cell{name: "proxy"}, Compare: compare, Pair: func(ctx context.Context, c *casefile.Case, opt run.Options) (ref, cand *observe.Observation, err error) {
		runs++
		if ref, err = r.run(ctx, &cell{name: "nginx"}, c, opt); err == nil {
			cand, err = r.run(ctx, &cell{name: "proxy"}, c, opt)
		}
		return ref, cand, err
	}}
	list := []*casefile.Case{
		one(t, "root u00/html;", ""), one(t, "etag off ;", ""), one(t, "gzip on;", ""), one(t, "-- u00/html/a --\na\n", ""),
		one(t, oneUnit[strings.Index(oneUnit, "-- client"):], ""),
	}
	hints, err := s.Screen(context.Background(), core, one(t), list)
	want := []minimize.Hint{minimize.Likely, minimize.Unlikely, minimize.Unknown, minimize.Likely, minimize.Unlikely}
	if err != nil || !slices.Equal(hints, want) || runs != 1 {
		t.Errorf("hints %v, want %v; %d runs; %v", hints, want, runs, err)
	}
	for name, c := range map[string]struct {
		core string
		best *casefile.Case
	}{
		"a case that shows nothing":       {core, one(t, "etag off ;", "")},
		"another difference":              {"client: 200 / 404", one(t)},
		"what is said at the start":       {"load: exit code N", one(t)},
		"how a server ends":               {"process: exited on signal N / none crashed", one(t)},
		"a case with names of a person's": {core, one(t, "-- client 1 127.0.0.1:20000", "-- client 1")},
	} {
		if hints, err := s.Screen(context.Background(), c.core, c.best, list); err != nil || hints != nil {
			t.Errorf("%s is screened: %v %v", name, hints, err)
		}
	}
}

// A campaign's findings are shrunk by what is screened.
func TestFindingsAreScreened(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: busiest(t)}
	for _, f := range r.campaign(nil).Findings {
		if !strings.Contains(f.Shrink, "variations in") {
			t.Errorf("%s: %s", f.ID, f.Shrink)
		}
	}
}
