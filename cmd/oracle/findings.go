package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/count"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/reference"
	"nginxoracle/oracle/report"
	"nginxoracle/oracle/triage"
)

// A case that is recorded as a divergence is met again only by its whole, narrow signature.
func init() {
	recorded = func(c *casefile.Case, result diff.Result) expectation {
		if triage.SignatureOf(c, result).String() == c.Get("signature") {
			return asRecorded
		}
		return ordinary
	}
}

type findingsOptions struct {
	*options
	Check        bool
	Corpus, Page string
}

func newFindings(o *options) *cobra.Command {
	fo := &findingsOptions{options: o}
	cmd := &cobra.Command{
		Use:   "findings",
		Short: "Write or check FINDINGS.md",
		Long: `findings writes FINDINGS.md from the cases in corpus/. With --check it writes
nothing and proves the catalogue again: it fails when the page is stale, when a
fixed case differs, when a divergence does not differ exactly as recorded, and
when a new finding is left.`,
		Example: "  oracle findings\n  oracle findings --check",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return findings(cmd, fo) },
	}
	f := cmd.Flags()
	f.BoolVar(&fo.Check, "check", false, "prove every entry again instead of writing the page")
	f.StringVar(&fo.Corpus, "corpus", "corpus", "folder of the findings' cases")
	f.StringVar(&fo.Page, "page", "FINDINGS.md", "the page")
	return cmd
}

func findings(cmd *cobra.Command, o *findingsOptions) error {
	if o.Page == "" {
		return exit.Errorf(exit.Usage, "findings: --page: want a file, got nothing")
	}
	if _, err := os.Stat(o.Corpus); err != nil {
		return exit.Wrap(exit.Usage, fmt.Errorf("findings: %w (give --corpus)", err))
	}
	c, err := catalog.Open(o.Corpus)
	if err != nil {
		return exit.Wrap(exit.Usage, err)
	}
	base := filepath.Dir(o.Page)
	if !o.Check {
		if err := writeTo("findings", "--page", o.Page, isFindings); err != nil {
			return err
		}
		if err := catalog.WriteFile(o.Page, c.Page(base)); err != nil {
			return exit.Wrap(exit.Rig, fmt.Errorf("findings: %w", err))
		}
		return done(cmd, exit.Agree, "findings: %s, %s written", count.Of(len(c.Entries), "entry"), o.Page)
	}
	j := &judge{}
	if slices.ContainsFunc(c.Entries, func(e *catalog.Entry) bool { return e.Status() != catalog.New }) {
		if j.pair, err = reference.Resolve(cmd.Context(), o.Reference, o.Candidate, o.Cell, func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) }); err != nil {
			return exit.Wrap(exit.Rig, fmt.Errorf("findings: %w", err))
		}
	}
	defer j.close()
	complaints := c.Check(cmd.Context(), o.Page, base, func(ctx context.Context, e *catalog.Entry) catalog.Judged {
		if other, err := j.otherBuild(ctx, e.Case); err != nil {
			return catalog.Judged{Verdict: diff.RigFailed, Why: err.Error()}
		} else if other {
			return catalog.Judged{Elsewhere: true}
		}
		out := j.run(ctx, e.Case)
		v := catalog.Judged{Verdict: out.result.Verdict, Why: out.result.Why}
		switch {
		case out.err != nil:
			v.Verdict, v.Why = diff.RigFailed, out.err.Error()
		case v.Verdict == diff.Differ:
			v.Signature = triage.SignatureOf(e.Case, out.result).String()
		}
		return v
	})
	worst := exit.Agree
	type line struct {
		ID, File, Kind, Text string
	}
	var lines []line
	unseen := 0 // what a signal has kept from being looked at is no complaint
	if cmd.Context().Err() != nil {
		all := len(complaints)
		complaints = slices.DeleteFunc(complaints, func(k catalog.Complaint) bool { return k.Kind == catalog.Broken })
		unseen = all - len(complaints)
	}
	notes := 0
	for _, k := range complaints {
		if k.Kind == catalog.Elsewhere {
			notes++
		}
		l := line{ID: "page", File: o.Page, Kind: k.Kind.String(), Text: k.Text}
		if k.Entry != nil {
			l.ID, l.File = k.Entry.ID, k.Entry.Path
		}
		lines = append(lines, l)
		worst = worse(worst, k.Kind)
		if !o.JSON {
			again := oracle("replay") + targetsAgain(o.options) + " " + report.Word(l.File)
			if k.Entry == nil { // the page itself
				again = oracle("findings")
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%-8s %-10s %s\n         again: %s\n", l.ID, l.Kind, l.Text, again)
		}
	}
	if unseen > 0 {
		worst = exit.Rig
	}
	if o.JSON {
		if err := printJSON(cmd.OutOrStdout(), map[string]any{"entries": len(c.Entries), "complaints": lines, "not_looked_at": unseen, "of_another_build": notes, "exit": int(worst)}); err != nil {
			return exit.Wrap(exit.Rig, err)
		}
	}
	text := fmt.Sprintf("findings: %s, %s", count.Of(len(c.Entries), "entry"), count.Of(len(complaints)-notes, "complaint"))
	if notes > 0 {
		text += fmt.Sprintf("; %d recorded with another build of nginx, not looked at", notes)
	}
	if unseen > 0 {
		text += fmt.Sprintf("; interrupted, %d not looked at", unseen)
	}
	return done(cmd, worst, "%s", text)
}

// worse orders the codes of a check: a broken rig before all, then what differs,
// then what is stale.
func worse(have exit.Code, k catalog.Kind) exit.Code {
	code := map[catalog.Kind]exit.Code{catalog.Stale: exit.Stale, catalog.Differs: exit.Differ, catalog.Wavering: exit.Unstable, catalog.Broken: exit.Rig}[k]
	rank := []exit.Code{exit.Agree, exit.Unstable, exit.Stale, exit.Differ, exit.Rig}
	if slices.Index(rank, code) > slices.Index(rank, have) {
		return code
	}
	return have
}

// loadCase reads a case; a wrong file is wrong usage.
func loadCase(path string) (*casefile.Case, error) {
	c, err := casefile.Load(path)
	if os.IsNotExist(err) || err != nil {
		return nil, exit.Wrap(exit.Usage, err)
	}
	return c, nil
}
