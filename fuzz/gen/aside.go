package gen

import (
	"slices"

	"nginxoracle/fuzz/grammar"
)

// Aside are the directives of the grammar that no batch has, with the reason. The wrong configurations, of which
// only what -t says is compared, have them all the same.
var Aside = map[string]string{
	"daemon":           "a cell keeps its server in the foreground; scenarios/process",
	"debug_points":     "acts on nginx's own faults only",
	"load_module":      "every module is built in, or refused",
	"timer_resolution": "moves every timer of a batch to one clock's tick; scenarios/process",
}

// AsideVariables are variables that no batch has, with the reason.
var AsideVariables = map[string]string{
	"connections_active":  "counts what all units of a batch do",
	"connections_reading": "counts what all units of a batch do",
	"connections_waiting": "counts what all units of a batch do",
	"connections_writing": "counts what all units of a batch do",
	"date_gmt":            "of ssi, which is refused",
	"date_local":          "of ssi, which is refused",
	"tcpinfo_rtt":         "what the kernel measures",
	"tcpinfo_rttvar":      "what the kernel measures",
	"tcpinfo_snd_cwnd":    "what the kernel measures",
	"tcpinfo_rcv_space":   "what the kernel measures",
}

// Makes tells whether batches have a directive of the grammar.
func Makes(t *grammar.Tables, name string) bool {
	_, ok := t.Row(name)
	return ok && Aside[name] == ""
}

// families are those whose members are made with other names than nginx's table has.
var families = []string{"arg_", "cookie_", "http_", "sent_http_", "sent_trailer_", "upstream_http_", "upstream_trailer_", "upstream_cookie_", "proxy_protocol_tlv_"}

// MakesVariable tells whether batches have a variable; a name with a trailing _ is a family.
func MakesVariable(name string) bool {
	for _, list := range [][]string{stable, seldom, volatile, placed, families} {
		if slices.Contains(list, name) {
			return true
		}
	}
	return false
}

// placed are variables that features put where they have a value.
var placed = []string{"invalid_referer", "secure_link", "secure_link_expires", "slice_range"}
