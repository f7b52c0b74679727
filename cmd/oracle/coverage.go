package main

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"nginxoracle/fuzz/grammar"
	"nginxoracle/oracle/campaign"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/reference"
)

type coverageOptions struct {
	*options
	Probe bool
	All   bool
}

func newCoverage(o *options) *cobra.Command {
	co := &coverageOptions{options: o}
	cmd := &cobra.Command{
		Use:   "coverage",
		Short: "Directives that the candidate supports, by module",
		Long: `coverage asks the candidate's own binary which of nginx 1.26.3's directives it
supports: by its --directives option where it has one, else (and with --probe) by
testing one small configuration for each directive. Beside it stands what the
generator's grammar reaches.`,
		Example: "  oracle coverage\n  oracle coverage --all\n  oracle coverage --candidate nginx --probe",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return coverage(cmd, co) },
	}
	cmd.Flags().BoolVar(&co.Probe, "probe", false, "test a configuration for each directive, whatever the candidate says of itself")
	cmd.Flags().BoolVar(&co.All, "all", false, "print every directive, not the totals of its module")
	return cmd
}

// covered is one directive's row.
type covered struct {
	Name, Module, Stage string
	Supported           bool
	Generated           bool
}

func coverage(cmd *cobra.Command, o *coverageOptions) error {
	tab, err := grammar.Load()
	if err != nil {
		return exit.Wrap(exit.Rig, err)
	}
	pair, err := reference.Resolve(cmd.Context(), o.Reference, o.Candidate, o.Cell, func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) })
	if err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("coverage: %w", err))
	}
	cell, err := engine.Open(cmd.Context(), pair.Candidate)
	if err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("coverage: %w", err))
	}
	defer cell.Close()
	how := "as the candidate says of itself (--directives)"
	var has func(d grammar.Directive) (bool, error)
	if names := campaign.Supported(cmd.Context(), cell); names != nil && !o.Probe {
		has = func(d grammar.Directive) (bool, error) {
			outer := outermost(d.Module)
			return slices.Contains(names, d.Name) && (outer == "" || slices.Contains(names, outer)), nil
		}
	} else {
		how = "by testing a configuration for each"
		has = func(d grammar.Directive) (bool, error) { return probe(cmd.Context(), cell, d) }
	}
	var rows []covered
	for _, d := range tab.Directives {
		ok, err := has(d)
		if err != nil {
			return exit.Wrap(exit.Rig, fmt.Errorf("coverage: %s: %w", d.Name, err))
		}
		_, gen := tab.Row(d.Name)
		gen = gen && !strings.Contains(d.Module, "_stream") && !strings.Contains(d.Module, "_mail")
		rows = append(rows, covered{d.Name, d.Module, d.Stage, ok, gen})
	}
	if o.JSON {
		if err := printJSON(cmd.OutOrStdout(), rows); err != nil {
			return exit.Wrap(exit.Rig, err)
		}
	} else {
		printCoverage(cmd, o, rows)
	}
	n := 0
	for _, r := range rows {
		if r.Supported {
			n++
		}
	}
	return done(cmd, exit.Agree, "coverage: %s supports %d of nginx 1.26.3's %d directives, %s", o.Candidate, n, len(rows), how)
}

// outermost is the block that a directive of stream's or mail's modules needs around it: many of
// them are named like one of http's.
func outermost(module string) string {
	for _, block := range []string{"stream", "mail"} {
		if strings.HasPrefix(module, "ngx_"+block) {
			return block
		}
	}
	return ""
}

func printCoverage(cmd *cobra.Command, o *coverageOptions, rows []covered) {
	w := cmd.OutOrStdout()
	if o.All {
		for _, r := range rows {
			word := "refused"
			if r.Supported {
				word = "supported"
			}
			gen := ""
			if r.Generated {
				gen = "generated"
			}
			fmt.Fprintf(w, "%-34s %-36s %-10s %s\n", r.Name, r.Module, word, gen)
		}
		return
	}
	type total struct{ all, supported, generated int }
	by := map[string]*total{}
	for _, r := range rows {
		t := by[r.Module]
		if t == nil {
			t = &total{}
			by[r.Module] = t
		}
		t.all++
		if r.Supported {
			t.supported++
		}
		if r.Generated {
			t.generated++
		}
	}
	names := make([]string, 0, len(by))
	for n := range by {
		names = append(names, n)
	}
	sort.Strings(names)
	fmt.Fprintf(w, "%-36s %10s %10s %10s\n", "module", "directives", "supported", "generated")
	for _, n := range names {
		fmt.Fprintf(w, "%-36s %10d %10d %10d\n", n, by[n].all, by[n].supported, by[n].generated)
	}
}

// probe tests a configuration that has the directive in its first context, with
// one argument. Whatever nginx thinks of the argument, a directive that is
// refused or unknown is named in the diagnosis.
func probe(ctx context.Context, cell engine.Cell, d grammar.Directive) (bool, error) {
	text := d.Name + " x;\n"
	if d.Block() {
		text = d.Name + " x { }\n"
	}
	where := d.Contexts[0]
	wrap := map[string]string{
		"main": "%s", "any": "%s", "events": "events { %s }", "http": "http { %s }", "server": "http { server { %s } }", "location": "http { server { location / { %s } } }",
		"upstream": "http { upstream u { %s } }", "if-in-server": "http { server { if ($uri) { %s } } }", "if-in-location": "http { server { location / { if ($uri) { %s } } } }",
		"limit_except": "http { server { location / { limit_except GET { %s } } } }", "stream": "stream { %s }", "stream-server": "stream { server { %s } }", "stream-upstream": "stream { upstream u { %s } }", "mail": "mail { %s }", "mail-server": "mail { server { %s } }",
	}[where]
	if wrap == "" {
		return false, fmt.Errorf("no way to test context %q", where)
	}
	conf := fmt.Sprintf(wrap, text)
	if where != "events" && d.Name != "events" {
		conf = "events { }\n" + conf
	}
	if err := cell.Reset(ctx, []engine.File{{Path: "nginx.conf", Data: []byte(conf)}, {Path: "logs", Dir: true}}); err != nil {
		return false, err
	}
	out, err := cell.Command(ctx, "-p", "/cell/", "-c", "/cell/nginx.conf", "-e", "/cell/logs/error.log", "-t")
	if err != nil {
		return false, err
	}
	said := string(out.Stderr)
	outer, _, _ := strings.Cut(conf[strings.LastIndex(conf[:strings.Index(conf, d.Name)+1], "\n")+1:], " ")
	for _, name := range []string{d.Name, outer} {
		if strings.Contains(said, `unknown directive "`+name+`"`) || strings.Contains(said, `directive "`+name+`" is not supported`) {
			return false, nil
		}
	}
	return true, nil
}
