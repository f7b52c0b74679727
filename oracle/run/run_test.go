package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/observe"
)

func parse(t testing.TB, text string) *casefile.Case {
	t.Helper()
	c, err := casefile.Parse("case", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func runText(t *testing.T, cell engine.Cell, text string) *observe.Observation {
	t.Helper()
	o, err := Run(context.Background(), cell, parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	if o.Timeouts != 0 {
		t.Errorf("last-resort timeouts: %d", o.Timeouts)
	}
	return o
}

// bodies are the clients' last lines with their ends, enough to tell answers apart.
func bodies(o *observe.Observation) (out []string) {
	for _, c := range o.Clients {
		lines := strings.Split(strings.TrimRight(string(c.Recv), "\n"), "\n")
		out = append(out, fmt.Sprintf("%d %s %s", c.ID, c.End, lines[len(lines)-1]))
	}
	return out
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

const get = `send "GET / HTTP/1.1\r\nHost: a\r\n\r\n"` + "\nrecv response\nclose\n"

func TestConfigurationThatIsRefused(t *testing.T) {
	o := runText(t, open(t), "-- nginx.conf --\nevents {}\nhttp { nonsense; }\n-- client 1 --\n"+get)
	want(t, "-t", o.Test.Code, 1)
	want(t, "started", o.Process.Started, false)
	want(t, "clients", len(o.Clients), 0)
	if !strings.Contains(o.Test.Text, `unknown directive "nonsense" in /cell/nginx.conf:2`) {
		t.Errorf("diagnostics: %s", o.Test.Text)
	}
	if len(o.Errors) != 1 || o.Errors[0].Level != "emerg" || o.Errors[0].File != "logs/error.log" {
		t.Errorf("error log: %+v", o.Errors)
	}
}

// -t does not bind: an address that is taken shows at the start.
func TestStartThatFails(t *testing.T) {
	o := runText(t, open(t), `-- nginx.conf --
events {}
http { server { listen 127.0.0.1:9001; } }
-- origin 127.0.0.1:9001 --
-- client 1 --
`+get)
	want(t, "-t", o.Test.Code, 0)
	want(t, "started", o.Process.Started, false)
	want(t, "start", o.Start.Code, 1)
	if !strings.Contains(o.Start.Text, "bind() to 127.0.0.1:9001 failed (98: Address already in use)") {
		t.Errorf("start: %s", o.Start.Text)
	}
}

func TestLogsAndTree(t *testing.T) {
	o := runText(t, open(t), `-- nginx.conf --
error_log logs/main.log notice;
events {}
http {
    log_format short '$request|$status';
    access_log elsewhere.log short;
    client_body_temp_path body;
    server {
        listen 127.0.0.1:8080;
        error_log /cell/logs/server.log;
        location / { root html; }
        location /keep { client_body_in_file_only on; proxy_pass http://127.0.0.1:9001; }
        location /default { access_log logs/default.log; return 204; }
    }
}
-- html/index.html --
hello
-- origin 127.0.0.1:9001 --
recv request
send "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
-- client 1 --
send "GET /missing HTTP/1.1\r\nHost: a\r\n\r\n" "GET / HTTP/1.1\r\nHost: a\r\n\r\n" "GET /default HTTP/1.1\r\nHost: a\r\n\r\n"
recv response
recv response
recv response
close
-- client 2 --
send "POST /keep HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
recv response
close
`)
	want(t, "clients", bodies(o), []string{"1 open \r", "2 open ok"})
	want(t, "access log", string(o.Access["elsewhere.log"]), "GET /missing HTTP/1.1|404\nGET / HTTP/1.1|200\nPOST /keep HTTP/1.1|200\n")
	if !strings.Contains(string(o.Access["logs/default.log"]), `"GET /default HTTP/1.1" 204 0`) {
		t.Errorf("access logs: %q", o.Access)
	}
	// The notices of logs/main.log are below the level that is compared.
	if len(o.Errors) != 1 || o.Errors[0].File != "logs/server.log" || !strings.Contains(o.Errors[0].Text, `open() "/cell/html/missing" failed`) {
		t.Errorf("error log: %+v", o.Errors)
	}
	var changed []string
	for _, f := range o.Tree {
		if f.New {
			changed = append(changed, f.Path+" "+string(f.Data))
		}
	}
	want(t, "files made", changed, []string{"body ", "body/0000000001 body"})
	want(t, "descriptors gained", o.Process.FDAfter-o.Process.FDBefore, 0)
}

// A case that has no file beside an origin's socket, as a minimizer leaves it, gets the socket's folder.
func TestOriginsSocketsFolder(t *testing.T) {
	o := runText(t, open(t), `-- nginx.conf --
events {}
http {
    server { listen 127.0.0.1:8080; location / { proxy_pass http://unix:/cell/a/b/o.sock; } }
}
-- origin unix:/cell/a/b/o.sock --
recv request
send "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
-- client 1 --
`+get)
	want(t, "client", bodies(o), []string{"1 open ok"})
}

func TestDoSections(t *testing.T) {
	o := runText(t, open(t), `-- nginx.conf --
events {}
http {
    access_log logs/a.log;
    server { listen 127.0.0.1:8080; include answer.conf; root html; }
}
-- answer.conf --
return 200 "one\n";
-- client 1 --
`+get+`-- do --
write answer.conf "return 200 \"two\\n\";\n"
-- client 2 --
`+get+`-- do --
signal HUP
-- client 3 --
`+get+`-- do --
rename logs/a.log logs/a.log.1
signal USR1
-- client 4 --
`+get+`-- do --
signal QUIT
-- client 5 --
`+get)
	want(t, "clients", bodies(o), []string{"1 open one", "2 open one", "3 open two", "4 open two", "5 refused "})
	want(t, "lines in the old log", strings.Count(string(o.Access["logs/a.log.1"]), "\n"), 3)
	want(t, "lines in the new log", strings.Count(string(o.Access["logs/a.log"]), "\n"), 1)
	want(t, "exit", o.Process.Exit, engine.Exit{Exited: true})
	if len(o.Process.Left) > 0 {
		t.Errorf("processes left: %q", o.Process.Left)
	}
}

// One boot, many batches: the observation has all of them in order.
func TestSectionsInBatches(t *testing.T) {
	ctx := context.Background()
	cell := open(t)
	c := parse(t, "-- nginx.conf --\nevents {}\nhttp { server { listen 127.0.0.1:8080; return 200 $request_uri; } }\n"+
		"-- client 1 --\n"+get+"-- client 2 --\n"+get+"-- client 3 with 2 --\n"+get)
	r, err := Boot(ctx, cell, c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range [][]casefile.Section{c.Sections[:1], c.Sections[1:], c.Sections[:1]} {
		if err := r.Sections(ctx, batch); err != nil {
			t.Fatal(err)
		}
	}
	o, err := r.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "clients", bodies(o), []string{"1 open /", "2 open /", "3 open /", "1 open /"})
}

// An abandoned run leaves a cell that can be used again.
func TestCellSurvivesAnAbandonedRun(t *testing.T) {
	ctx := context.Background()
	cell := open(t)
	c := parse(t, "-- nginx.conf --\nevents {}\nhttp { server { listen 127.0.0.1:8080; return 200 ok; } }\n-- client 1 --\n"+get)
	r, err := Boot(ctx, cell, c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Abandon()
	o, err := Run(ctx, cell, c)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "clients", bodies(o), []string{"1 open ok"})
}

// The reference agrees with itself over everything that a case can do, masked
// values included.
func TestReferenceAgreesWithItself(t *testing.T) {
	text := `-- nginx.conf --
events {}
http {
    log_format all '$time_local $time_iso8601 $msec $request_time $upstream_response_time $request_id $pid $connection $remote_port';
    access_log logs/a.log all;
    expires 1h;
    server {
        listen 127.0.0.1:8080;
        listen unix:/cell/s.sock;
        location / { root html; }
        location /up { proxy_set_header X-Id $request_id; proxy_pass http://127.0.0.1:9001; }
    }
}
-- html/a quoted --
"0123456789"*10
-- origin 127.0.0.1:9001 --
recv request
send "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
settle
send "ok"
pause 5ms
send "ok"
-- client 1 --
send "GET /a HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1,5-6\r\n\r\n"
recv response
close
-- client 2 unix:/cell/s.sock --
send "GET /missing HTTP/1.0\r\n\r\n"
-- client 3 --
send "GET /up HTTP/1.1\r\nHost: a\r\n\r\n"
recv response
reset
-- client 4 with 3 --
send "GET /up HTTP/1.1\r\nHo"
settle
send "st: a\r\n\r\n"
recv response
`
	cell := open(t)
	a, b := runText(t, cell, text), runText(t, cell, text)
	r := diff.Compare(a, b)
	if r.Verdict != diff.Agree {
		t.Errorf("%v %+v", r.Verdict, r.Mismatches)
	}
	for _, name := range []string{"request_id", "port"} {
		if r.Masks[name] == 0 {
			t.Errorf("mask %s was not used: %v", name, r.Masks)
		}
	}
}

func TestEntries(t *testing.T) {
	log := "stray\n" +
		"2026/11/30 17:39:27 [notice] 1#1: dropped\nwith this\n" +
		"2026/11/30 17:39:27 [error] 1#1: kept\nand this\n" +
		"nginx: [warn] at the start\n" +
		"2026/11/30 17:39:27 [alert] 1#1: worker process 7 exited on signal 11\n"
	want(t, "entries", entries("logs/error.log", []byte(log)), []observe.LogEntry{
		{File: "logs/error.log", Text: "stray"},
		{File: "logs/error.log", Level: "error", Text: "2026/11/30 17:39:27 [error] 1#1: kept\nand this"},
		{File: "logs/error.log", Level: "warn", Text: "nginx: [warn] at the start"},
		{File: "logs/error.log", Level: "alert", Text: "2026/11/30 17:39:27 [alert] 1#1: worker process 7 exited on signal 11"},
	})
	want(t, "of an empty log", len(entries("x", nil)), 0)
	o := &observe.Observation{}
	sortOut(o, parse(t, "-- nginx.conf --\n"), []engine.File{{Path: DefaultErrorLog, Data: []byte(log)}})
	want(t, "worker", o.Process.Worker, "exited on signal 11")
}

// A flood of lines that start no entry is taken apart with memory that grows as the flood does.
func TestEntriesOfAFlood(t *testing.T) {
	cost := func(lines int) int64 {
		log := []byte(strings.Repeat("y\n", lines))
		r := testing.Benchmark(func(b *testing.B) {
			for range b.N {
				if got := entries("x", log); len(got) != 1 || len(got[0].Text) != len(log)-1 {
					b.Fatalf("%d entries of %d lines", len(got), lines)
				}
			}
		})
		return r.AllocedBytesPerOp()
	}
	one, eight := cost(1000), cost(8000)
	if one == 0 || eight > 16*one {
		t.Errorf("%d bytes are allocated for 1,000 lines and %d for 8,000", one, eight)
	}
}

func TestArguments(t *testing.T) {
	base := "-p /cell/ -c /cell/nginx.conf -e /cell/logs/error.log"
	for conf, more := range map[string]string{
		"events {}":                     " -g daemon off;",
		"daemon off; events {}":         "",
		"events {}\ndaemon\toff;":       "",
		"events {} # a daemonic server": " -g daemon off;",
	} {
		got := strings.Join(arguments(parse(t, "-- nginx.conf --\n"+conf+"\n"), ""), " ")
		want(t, conf, got, base+more)
	}
}

// A case with documents waits until they are old enough to be kept in memory; one without does not.
func TestTreeGrowsOlder(t *testing.T) {
	cell := open(t)
	for files, waits := range map[string]bool{"": false, "-- html/a.txt --\na\n": true, "-- part.conf --\n-- html/d/ --\n": false} {
		c := parse(t, "-- nginx.conf --\nevents {}\nhttp { server { listen 127.0.0.1:8080; } }\n"+files+"-- client 1 --\n"+get)
		o, err := RunWith(context.Background(), cell, c, Options{Aged: true})
		if err != nil {
			t.Fatal(err)
		}
		waited := slices.ContainsFunc(o.Spent, func(s observe.Spent) bool { return s.Stage == "age" })
		if waited != waits {
			t.Errorf("%q: waited %v, want %v", files, waited, waits)
		}
	}
}

// The word daemon keeps "daemon off;" from the command line only where it is a directive that is read.
func TestDaemon(t *testing.T) {
	for text, want := range map[string]struct {
		said bool
		line int // of the case, where it is wrong
	}{
		"-- nginx.conf --\n# the daemon is here\nevents {}\n":                                        {false, 0},
		"-- nginx.conf --\nevents {}\n-- html/a --\nthe daemon on duty;\n":                           {false, 0},
		"-- nginx.conf --\nevents {}\ndaemon off;\n":                                                 {true, 0},
		"-- nginx.conf --\nevents {}\ndaemon on;\n":                                                  {true, 3},
		"-- nginx.conf --\ninclude \"/cell/conf.d/*.conf\";\n-- conf.d/x.conf --\n\ndaemon\n  on;\n": {true, 5},
		"-- nginx.conf --\ninclude x;\n-- x --\ninclude y;\n-- y --\ndaemon ON;\n":                   {true, 6},
		"-- nginx.conf --\ndaemon off;\nhttp {\n":                                                    {true, 0},
	} {
		c := parse(t, text)
		if _, _, said := daemon(c); said != want.said {
			t.Errorf("%q: said %v, want %v", text, said, want.said)
		}
		line := 0
		if e, ok := Wrong(c, &observe.Observation{}).(*casefile.Error); ok {
			line = e.Line
		}
		if line != want.line {
			t.Errorf("%q: wrong in line %d, want %d", text, line, want.line)
		}
	}
}
