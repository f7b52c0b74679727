package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"nginxoracle/oracle/diff"
)

// Judged is what running an entry's case gave.
type Judged struct {
	Verdict   diff.Verdict
	Signature string // of a difference
	Cores     []string
	Why       string
	Elsewhere bool // not run: the entry was recorded with another build of the reference
}

// Judge runs an entry's case on both targets.
type Judge func(ctx context.Context, e *Entry) Judged

// Kind of complaint.
type Kind int

const (
	Fine      Kind = iota
	Stale          // the catalogue says something that is no longer so
	Differs        // a case differs that must not, or is new
	Wavering       // the reference differs from itself
	Broken         // no verdict
	Elsewhere      // not looked at: recorded with another build of the reference
)

func (k Kind) String() string {
	return [...]string{"fine", "stale", "differs", "unstable", "rig failed", "elsewhere"}[k]
}

// Complaint is one thing that is wrong with a catalogue.
type Complaint struct {
	Entry *Entry // nil: the page
	Kind  Kind
	Text  string
}

// Check re-proves every entry. Each of the four ways in which a catalogue goes
// wrong has its complaint: the page is stale, a fixed case differs, a divergence
// does not differ exactly as recorded, and a new finding is left. An entry of another build is told of, and is none of them.
func (c *Catalog) Check(ctx context.Context, page string, pageBase string, judge Judge) []Complaint {
	var out []Complaint
	text, err := os.ReadFile(page)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		out = append(out, Complaint{Kind: Broken, Text: err.Error()})
	case !bytes.Equal(text, c.Page(pageBase)):
		out = append(out, Complaint{Kind: Stale, Text: page + " is not what the corpus gives: run oracle findings"})
	}
	for _, e := range c.Entries {
		if k := e.check(); k != nil {
			out = append(out, Complaint{e, Broken, k.Error()})
			continue
		}
		if e.Status() == New {
			out = append(out, Complaint{e, Differs, "is new: nobody has fixed it or written down why it stays"})
			continue
		}
		if ctx.Err() != nil {
			out = append(out, Complaint{e, Broken, "not looked at: interrupted"})
			continue
		}
		if k, text := Verdict(e, judge(ctx, e)); k != Fine {
			out = append(out, Complaint{e, k, text})
		}
	}
	return out
}

// Verdict compares what was seen of an entry with what the catalogue says of it.
func Verdict(e *Entry, j Judged) (Kind, string) {
	if j.Elsewhere {
		return Elsewhere, fmt.Sprintf("not looked at: recorded with another build (sha256 %s…)", e.Build())
	}
	switch j.Verdict {
	case diff.Unstable:
		return Wavering, "the reference differs from itself: " + j.Why
	case diff.Agree:
		if e.Status() == Divergence {
			return Stale, "is recorded as a divergence, and agrees"
		}
		return Fine, ""
	case diff.Differ:
		switch {
		case e.Status() == Fixed:
			return Differs, "is recorded as fixed, and differs: " + j.Signature
		case j.Signature != e.Signature():
			return Stale, fmt.Sprintf("differs otherwise than recorded: %s, recorded %s", j.Signature, e.Signature())
		}
		return Fine, ""
	case diff.Refused:
		return Differs, "the candidate refuses it: " + j.Why
	}
	return Broken, "no verdict: " + j.Why
}
