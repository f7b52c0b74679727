package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"nginxoracle/oracle/observe"
)

// Masks depend on what a configuration mentions, and on whether its expires counts to a moment.
func TestMentions(t *testing.T) {
	for text, want := range map[string][]string{
		"log_format x '$a ${b}c $a';":    {"a", "b"},
		"return 200 x;":                  nil,
		"expires 60s;":                   {observe.Expires},
		"{expires max;}":                 {observe.Expires},
		"expires\n@15h;":                 {observe.Moment, observe.Expires},
		"location / { expires +1h; } #@": {observe.Expires},
		"expires modified +1d;":          {observe.Moment, observe.Expires},
		`"expires" $when;`:               {observe.Moment, observe.Expires, "when"},
		"proxy_hide_header Expires; add_header expires_at @1h;": nil,
	} {
		if d := cmp.Diff(want, Mentions([]byte(text))); d != "" {
			t.Errorf("%s: (-want +got)\n%s", text, d)
		}
	}
}
