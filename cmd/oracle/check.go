package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/count"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/importer"
	"nginxoracle/oracle/reference"
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
	again := path
	if o.Save != "" {
		if err := catalog.WriteFile(o.Save, res.Case.Print()); err != nil {
			return exit.Wrap(exit.Rig, fmt.Errorf("check: %w", err))
		}
		again = o.Save
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
	requests := 0
	for _, s := range c.Sections {
		for _, st := range s.Steps {
			if st.Op == casefile.Send {
				requests++
			}
		}
	}
	if !out.ref.Process.Started {
		// Neither is asked anything: a person must know why, or take silence for agreement.
		fmt.Fprint(cmd.OutOrStdout(), out.ref.Test.Text, out.ref.Start.Text)
	}
	v := out.view(&replayOptions{options: o.options})
	if o.Save == "" {
		v.Again = strings.Join([]string{"oracle check", path, "--targets", o.Reference + "," + o.Candidate, "--save case.txtar, then oracle replay case.txtar"}, " ")
	} else {
		v.Again = strings.Replace(v.Again, path, again, 1)
	}
	if o.JSON {
		if err := printJSON(cmd.OutOrStdout(), map[string]any{"result": v.JSON(), "requests": requests, "notes": res.Notes}); err != nil {
			return exit.Wrap(exit.Rig, err)
		}
	} else {
		for _, n := range res.Notes {
			fmt.Fprintln(cmd.OutOrStdout(), "note  ", n)
		}
		v.Write(cmd.OutOrStdout(), styleOf(cmd.OutOrStdout()))
	}
	if out.result.Verdict == diff.Agree && !out.ref.Process.Started {
		return exit.Wrap(exit.Usage, errors.New("check: "+o.Reference+" does not load the configuration (see above): nothing was asked"))
	}
	var t tally
	t.add(out)
	return done(cmd, t.code(), "check: %s on %s to %s and %s: %s", count.Of(requests, "request"), count.Of(len(c.Sections), "connection"), o.Reference, o.Candidate, out.result.Verdict)
}
