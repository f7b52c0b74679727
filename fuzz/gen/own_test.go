package gen

import (
	"fmt"
	"strings"
	"testing"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// Arguments that nginx reads from memory it never sets are not asked for in a log that would tell.
func TestArgsInLogs(t *testing.T) {
	unit := func(format, redirect string) string {
		server := conftree.B([]string{"server"}, conftree.N("listen", "127.0.0.1:20000"))
		if redirect != "" {
			server.Add(conftree.B([]string{"location", "/"}, conftree.N(redirect, "/a", "/b")))
		}
		u := &Unit{Body: []*conftree.Node{conftree.N(append([]string{"log_format", "u00_f"}, strings.Fields(format)...)...), server}}
		u.Own()
		return strings.Join(u.Body[0].Words[2:], " ")
	}
	for _, e := range []struct{ format, redirect, want string }{
		{"a=$args,${query_string} $args_x", "try_files", "a=${request_uri},${request_uri} $args_x"},
		{"escape=default $query_string", "error_page", "escape=default ${request_uri}"},
		{"escape=json $args", "error_page", "escape=json $args"},
		{"escape=none $args", "try_files", "escape=none $args"},
		{"$args $arg_a", "", "$args $arg_a"},
		{"$args", "index", "$args"},
	} {
		if got := unit(e.format, e.redirect); got != e.want {
			t.Errorf("%q with %q: %q, want %q", e.format, e.redirect, got, e.want)
		}
	}
}

// Which of several servers random asks is chance; of one it is none.
func TestRandomHasOneServer(t *testing.T) {
	for servers, want := range []bool{true, true, false, false} {
		up := conftree.B([]string{"upstream", "u00_b"}, conftree.N("random", "two"))
		for i := range servers {
			up.Add(conftree.N("server", fmt.Sprintf("127.0.0.1:2000%d", i)))
		}
		before := up.Kids
		u := &Unit{Body: []*conftree.Node{up}}
		u.Own()
		if got := holds(up, "random"); got != want {
			t.Errorf("%d servers: random %v, want %v", servers, got, want)
		}
		if len(before) != servers+1 || before[0].Name() != "random" {
			t.Errorf("%d servers: the list that another unit may have was changed", servers)
		}
	}
}

// Seconds in a log end where no digit can follow them.
func TestAgesInLogs(t *testing.T) {
	for _, e := range []struct{ word, want string }{
		{"$sent_http_cache_control$status", "${sent_http_cache_control} $status"},
		{"${sent_http_cache_control}200", "${sent_http_cache_control} 200"},
		{"a $sent_http_cache_control", "a ${sent_http_cache_control} "},
		{"$sent_http_cache_control/$status", "$sent_http_cache_control/$status"},
		{"$sent_http_cache_controls", "$sent_http_cache_controls"},
	} {
		u := &Unit{Body: []*conftree.Node{conftree.N("log_format", "u00_f", e.word)}}
		for range 2 {
			u.Own()
			if got := u.Body[0].Words[2]; got != e.want {
				t.Errorf("%q: %q, want %q", e.word, got, e.want)
			}
		}
	}
}

// What the whole server counts is shown to nobody, whatever damage made of the rule.
func TestStubStatusIsRefused(t *testing.T) {
	for _, rules := range [][]*conftree.Node{nil, {conftree.N("deny", "unix:")}, {conftree.N("allow", "all"), conftree.N("deny", "all")}, {conftree.N("satisfy", "any"), conftree.N("deny", "all")}} {
		kids := append([]*conftree.Node{conftree.N("stub_status")}, rules...)
		loc := conftree.B([]string{"location", "/s"}, kids...)
		u := &Unit{Body: []*conftree.Node{conftree.B([]string{"server"}, loc)}}
		for range 2 {
			u.Own()
			got := ""
			for _, k := range loc.Kids {
				got += strings.Join(k.Words, " ") + ";"
			}
			if got != "stub_status;satisfy all;deny all;" {
				t.Errorf("%v: %s", rules, got)
			}
		}
		if len(kids) != len(rules)+1 {
			t.Errorf("%v: the list that another unit may have was changed", rules)
		}
	}
}

// Where nothing says where a request's body ends, origins wait for all of it before they answer.
func TestOriginsWaitForUnframedBodies(t *testing.T) {
	for _, e := range []struct {
		field string
		want  int // settles
	}{{"Content-Length", 2}, {"transfer-encoding", 2}, {"X-A", 1}} {
		steps := []casefile.Step{recv(casefile.Request), send("a"), recv(casefile.Headers), step(casefile.Settle), send("b")}
		u := &Unit{Body: []*conftree.Node{conftree.B([]string{"server"}, conftree.N("proxy_set_header", e.field, ""))},
			Origins: []casefile.Origin{{Conns: [][]casefile.Step{steps}}}}
		for range 2 {
			u.Own()
			n := 0
			for _, s := range u.Origins[0].Conns[0] {
				if s.Op == casefile.Settle {
					n++
				}
			}
			if n != e.want {
				t.Errorf("%s: %d waits, want %d", e.field, n, e.want)
			}
		}
		if len(steps) != 5 {
			t.Errorf("%s: the list was changed", e.field)
		}
	}
}
