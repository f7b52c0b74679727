package campaign

import (
	"fmt"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
)

// What is kept of a difference that is no finding says what differed, so that nobody has to wait
// until it comes again.
const (
	excerptMost   = 6   // mismatches of one case
	excerptBefore = 120 // bytes in front of a difference
	excerptAfter  = 160 // and behind it
)

// excerpts shows where mismatches are and what both sides have there, three lines each.
func excerpts(ms []diff.Mismatch) (out []string) {
	for i, m := range ms {
		if i == excerptMost {
			return append(out, fmt.Sprintf("and %d mismatches more", len(ms)-i))
		}
		out = append(out, fmt.Sprintf("%s, %s, byte %d", m.Kind, m.Where, m.At),
			"  reference "+excerpt(m.Ref, m.At), "  other     "+excerpt(m.Cand, m.Pos))
	}
	return out
}

// excerpt is the text around a place, escaped, with a bar at the place.
func excerpt(b []byte, at int) string {
	at = min(max(at, 0), len(b))
	from, to := max(at-excerptBefore, 0), min(at+excerptAfter, len(b))
	text := casefile.AppendEscaped(nil, b[from:at])
	text = append(text, "▮"...)
	return string(casefile.AppendEscaped(text, b[at:to]))
}
