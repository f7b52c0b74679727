package gen

import (
	"strings"
	"testing"

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
