package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/count"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/importer"
	"nginxoracle/oracle/reference"
	"nginxoracle/oracle/report"
)

type checkOptions struct {
	*options
	Targets string
	Save    string
}

func newCheck(o *options) *cobra.Command {
	co := &checkOptions{options: o}
	cmd := &cobra.Command{
		Use:   "check NGINX.CONF",
		Short: "Probe your own configuration on two targets",
		Long: `check brings a configuration and all that it includes into a cell, makes requests
from its server names, locations and files (methods, conditions, ranges, odd paths), and
compares what two targets answer. Upstreams are played by the oracle; nothing of the
machine or its network is touched. What was changed or left out is said; what cannot be
brought into a cell (a certificate that is not there, a module) is refused with its line.`,
		Example: `  oracle check /etc/nginx/nginx.conf --targets nginx,nginx:1.22
  oracle check site.conf --targets nginx,proxy --save site.txtar`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return check(cmd, co, args[0]) },
	}
	cmd.Flags().StringVar(&co.Targets, "targets", "", "the two targets, A,B (default: --reference and --candidate)")
	cmd.Flags().StringVar(&co.Save, "save", "", "also write the case that was made")
	return cmd
}

func check(cmd *cobra.Command, o *checkOptions, path string) error {
	if o.Targets != "" {
		a, b, ok := strings.Cut(o.Targets, ",")
		a, b = strings.TrimSpace(a), strings.TrimSpace(b)
		if !ok || a == "" || b == "" || strings.Contains(b, ",") {
			return exit.Errorf(exit.Usage, "check: --targets %q: want two, as in nginx,nginx:1.22", o.Targets)
		}
		o.Reference, o.Candidate = a, b
	}
	if err := writeTo("check", "--save", o.Save, isCase); err != nil {
		return err
	}
	res, err := importer.Import(path, importer.Options{HideVersion: o.Reference != o.Candidate && o.Candidate != "proxy" && o.Reference != "proxy"})
	if err != nil {
		return exit.Wrap(exit.Usage, fmt.Errorf("check: %w", err))
	}
	// What is run is what the saved case says, to the byte.
	c, err := casefile.Parse(path, res.Case.Print())
	if err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("check: the case that was made: %w", err))
	}
	if o.Save != "" {
		if err := catalog.WriteFile(o.Save, res.Case.Print()); err != nil {
			return exit.Wrap(exit.Rig, fmt.Errorf("check: %w", err))
		}
	}
	pair, err := reference.Resolve(cmd.Context(), o.Reference, o.Candidate, o.Cell, func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) })
	if err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("check: %w", err))
	}
	j := &judge{pair: pair}
	defer j.close()
	out := j.run(cmd.Context(), c)
	if out.err != nil {
		return noVerdict(fmt.Errorf("check: %w", out.err))
	}
	if !out.ref.Process.Started && (out.result.Verdict == diff.Agree || out.result.Verdict == diff.Refused) {
		return notLoaded(cmd, o, res, &out)
	}
	requests := 0
	for _, s := range c.Sections {
		for _, st := range s.Steps {
			if st.Op == casefile.Send {
				requests++
			}
		}
	}
	v := out.view(&replayOptions{options: o.options})
	ownWords(res, v)
	if o.Save == "" {
		v.Unsaved = true
		v.Again = strings.Join([]string{oracle("check"), report.Word(path), "--targets", report.Word(o.Reference + "," + o.Candidate), "--save case.txtar, then", oracle("replay"), "case.txtar"}, " ")
	} else {
		v.Again = strings.Replace(v.Again, report.Word(path), report.Word(o.Save), 1)
	}
	if o.JSON {
		if err := printJSON(cmd.OutOrStdout(), map[string]any{"result": v.JSON(), "requests": requests, "notes": res.Notes}); err != nil {
			return exit.Wrap(exit.Rig, err)
		}
	} else {
		printNotes(cmd, res)
		v.Write(cmd.OutOrStdout(), styleOf(cmd.OutOrStdout()))
	}
	var t tally
	t.add(out)
	return done(cmd, t.code(), "check: %s on %s to %s and %s: %s", count.Of(requests, "request"), count.Of(len(c.Sections), "connection"), o.Reference, o.Candidate, out.result.Verdict)
}

func printNotes(cmd *cobra.Command, res *importer.Result) {
	for _, n := range res.Notes {
		fmt.Fprintln(cmd.OutOrStdout(), "note  ", n)
	}
}

// notLoaded ends a check of a configuration that the reference does not load: neither was asked anything, which is no agreement.
func notLoaded(cmd *cobra.Command, o *checkOptions, res *importer.Result, out *outcome) error {
	said := res.Own(out.ref.Test.Text + out.ref.Start.Text)
	if o.JSON {
		err := printJSON(cmd.OutOrStdout(), map[string]any{"result": map[string]any{"case": out.c.Name, "verdict": "not loaded", "why": said, "reference": o.Reference, "candidate": o.Candidate}, "requests": 0, "notes": res.Notes})
		if err != nil {
			return exit.Wrap(exit.Rig, err)
		}
	} else {
		printNotes(cmd, res)
		fmt.Fprint(cmd.OutOrStdout(), said)
	}
	return exit.Errorf(exit.Usage, "check: %s does not load the configuration (see above): nothing was asked", o.Reference)
}

// ownWords puts the person's own files and lines into what is shown of the case that was made of them.
func ownWords(res *importer.Result, v *report.View) {
	v.Place = func(line int) string { return res.Place(line).String() }
	v.Result.Why = res.Own(v.Result.Why)
	v.Result.Mismatches = slices.Clone(v.Result.Mismatches)
	for i := range v.Result.Mismatches {
		m := &v.Result.Mismatches[i]
		if m.Kind != diff.KindLoad {
			continue // what the servers wrote and sent stays as it was
		}
		m.Ref, m.Cand = []byte(res.Own(string(m.Ref))), []byte(res.Own(string(m.Cand)))
		m.At = 0
		for m.At < min(len(m.Ref), len(m.Cand)) && m.Ref[m.At] == m.Cand[m.At] {
			m.At++
		}
		m.Pos = m.At
	}
}
