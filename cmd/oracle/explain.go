package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"nginxoracle/fuzz/grammar"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/minimize"
	"nginxoracle/oracle/reference"
	"nginxoracle/oracle/triage"
)

func newExplain(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "explain CASE",
		Short: "Say in words and bytes what differs, and what speaks of it",
		Long: `explain runs a case and says what differs: in words, in bytes, with the
directives in play, nginx's pages about them and the sections of the standards
that speak of it.`,
		Example: "  oracle explain corpus/F-0001-x.txtar",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return explain(cmd, o, args[0]) },
	}
}

// kindWords say what each kind of mismatch means.
var kindWords = map[diff.Kind]string{
	diff.KindLoad:    "The two disagree about the configuration itself: whether it loads, or what they say of it.",
	diff.KindClient:  "A client received other bytes.",
	diff.KindEnd:     "A connection ended in another way.",
	diff.KindOrigin:  "An origin received other bytes: the request is forwarded differently.",
	diff.KindConns:   "An origin saw another number of connections: they are reused, retried or balanced differently.",
	diff.KindAccess:  "The access log differs.",
	diff.KindError:   "The error log differs.",
	diff.KindTree:    "The work tree differs afterwards: files made, changed or left behind.",
	diff.KindProcess: "The processes differ: exits, crashes, descriptors or children left behind.",
}

// explained is the answer for machines.
type explained struct {
	Case       string                       `json:"case"`
	Verdict    string                       `json:"verdict"`
	Signature  string                       `json:"signature,omitempty"`
	Mismatches []string                     `json:"mismatches,omitempty"`
	Directives []struct{ Name, Doc string } `json:"directives,omitempty"`
	Standards  []triage.Reading             `json:"standards,omitempty"`
}

func explain(cmd *cobra.Command, o *options, path string) error {
	c, err := loadCase(path)
	if err != nil {
		return err
	}
	tab, err := grammar.Load()
	if err != nil {
		return exit.Wrap(exit.Rig, err)
	}
	pair, err := reference.Resolve(cmd.Context(), o.Reference, o.Candidate, o.Cell, func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) })
	if err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("explain: %w", err))
	}
	j := &judge{pair: pair}
	defer j.close()
	out := j.run(cmd.Context(), c)
	if out.err != nil {
		return noVerdict(fmt.Errorf("explain: %w", out.err))
	}
	w := cmd.OutOrStdout()
	e := explained{Case: path, Verdict: out.result.Verdict.String()}
	around := ""
	if out.result.Verdict == diff.Differ {
		e.Signature = triage.SignatureOf(c, out.result).String()
		for _, m := range out.result.Mismatches {
			e.Mismatches = append(e.Mismatches, m.Where+": "+triage.Core(m))
			around += cutAround(m.Ref, m.At) + cutAround(m.Cand, m.Pos)
		}
		e.Standards = triage.Standards(triage.Cores(out.result)[0], around, 4)
	}
	for _, d := range minimize.Directives(c) {
		e.Directives = append(e.Directives, struct{ Name, Doc string }{d, triage.DocPage(d, tab.Module(d))})
	}
	if o.JSON {
		if err := printJSON(w, e); err != nil {
			return exit.Wrap(exit.Rig, err)
		}
	} else {
		v := out.view(&replayOptions{options: o})
		v.Write(w, styleOf(w))
		printExplained(w, e, out.result)
	}
	code := exit.Agree
	switch out.result.Verdict {
	case diff.Differ:
		code = exit.Differ
	case diff.Unstable:
		code = exit.Unstable
	case diff.Refused:
		code = exit.Refused
	}
	return done(cmd, code, "explain: %s", e.Verdict)
}

func printExplained(w io.Writer, e explained, r diff.Result) {
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	if r.Verdict == diff.Differ {
		p("\nin words")
		seen := map[diff.Kind]bool{}
		for _, m := range r.Mismatches {
			if !seen[m.Kind] {
				seen[m.Kind] = true
				p("  %s", kindWords[m.Kind])
			}
		}
		for _, m := range e.Mismatches {
			p("  %s", m)
		}
		p("  signature: %s", e.Signature)
	}
	if len(e.Directives) > 0 {
		p("\nthe configuration's directives, and nginx's pages")
		for _, d := range e.Directives {
			p("  %-28s %s", d.Name, d.Doc)
		}
	}
	if len(e.Standards) > 0 {
		p("\nthe standards")
		for _, s := range e.Standards {
			p("  %-28s %s: %s", s.About, s.Where, s.Says)
		}
	}
}

// cutAround is what stands around a place of a text, on its line.
func cutAround(b []byte, at int) string {
	at = min(max(at, 0), len(b))
	from, to := max(0, at-80), min(len(b), at+80)
	s := string(b[from:to])
	if i := strings.LastIndexByte(string(b[from:at]), '\n'); i >= 0 {
		s = s[i+1:]
	}
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	return s + "\n"
}
