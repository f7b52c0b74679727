package run

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nginxoracle/oracle/observe"
)

// Masks depend on what a configuration mentions, and on whether its expires counts to a moment.
func TestMentions(t *testing.T) {
	for text, want := range map[string][]string{
		"set $x '$a ${b}c $a';":          {"a", "b", "x"},
		"log_format x '$a ${b}c $a';":    nil,
		"}log_format x '$a';":            {"a"}, // it does not come apart
		"return 200 x;":                  nil,
		"expires 60s;":                   {observe.Expires},
		"{expires max;}":                 {observe.Expires},
		"expires\n@15h;":                 {observe.Moment, observe.Expires},
		"location / { expires +1h; } #@": {observe.Expires},
		"expires modified +1d;":          {observe.Moment, observe.Expires},
		`"expires" $when;`:               {observe.Moment, observe.Expires, "when"},
		"proxy_hide_header Expires; add_header expires_at @1h;": nil,
	} {
		if d := cmp.Diff(want, Mentions([]byte(text)).Vars); d != "" {
			t.Errorf("%s: (-want +got)\n%s", text, d)
		}
	}
}

// A value that only a log_format has stands in a line of that form, and nowhere else in it.
func TestPlacesOfFormats(t *testing.T) {
	type line struct {
		text string // with the value between < and >
		want bool
	}
	for _, x := range []struct {
		conf, name string
		lines      []line
	}{
		{`log_format f '$connection $status "$request" $bytes_sent';`, "connection", []line{
			{`<1> 200 "GET / HTTP/1.1" 5`, true}, {`1 <200> "GET / HTTP/1.1" 5`, false}, {`1 200 "GET / HTTP/1.1" <5>`, false},
		}},
		{`log_format f '$status|$request' '|$connection|$bytes_sent';`, "connection", []line{
			{`200|GET / HTTP/1.1|<1>|5`, true}, {`<200>|GET / HTTP/1.1|1|5`, false}, {`200|GET / HTTP/1.1|1|<5>`, false},
		}},
		{`log_format f escape=json "{\"s\":\"${status}\",\"t\":$request_time}";`, "request_time", []line{
			{`{"s":"200","t":<0.001>}`, true}, {`{"s":"<200>","t":0.001}`, false},
		}},
		{"log_format f '$uri\n$pid, $status';", "pid", []line{{`<1>, 200`, true}, {`1, <200>`, false}, {`/<1>`, false}}},
		{"log_format f '$pid a\n$status';", "pid", []line{{`<1> a`, true}, {`<200>`, false}}},
		{"log_format f \"\xe9 $pid \xe9$status\";", "pid", []line{{"\xe9 <1> \xe9200", true}, {"\xe9 1 \xe9<200>", false}}},
		{`log_format f '$status $upstream_response_time';`, "upstream_response_time", []line{
			{`200 <0.001>`, true}, {`200 0.001, <0.003> : -`, true}, {`200 -, <0.003>`, true}, {`<200> 0.001`, false},
		}},
		{`log_format f escape=none '$uri $pid $status';`, "pid", []line{{`/ <1> 200`, true}, {`/ 1 <200>`, true}}},
		{`log_format f a.c$pid;`, "pid", []line{{`a.c<1>`, true}, {`abc<1>`, false}}},
	} {
		places := Mentions([]byte(x.conf)).Logged[x.name]
		if len(places) != 1 {
			t.Errorf("%s: %d places of $%s", x.conf, len(places), x.name)
			continue
		}
		for _, l := range x.lines {
			before, rest, _ := strings.Cut(l.text, "<")
			_, after, _ := strings.Cut(rest, ">")
			got := regexp.MustCompile(places[0].Before).MatchString(before) && regexp.MustCompile(places[0].After).MatchString(after)
			if got != l.want {
				t.Errorf("%s: %s: %v, want %v (%q)", x.conf, l.text, got, l.want, places[0])
			}
		}
	}
}
