package main

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"nginxoracle/fuzz/gen"
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
		Short: "Directives and variables that the candidate supports, by module",
		Long: `coverage asks the candidate's own binary which of nginx 1.26.3's directives it
supports: by its --directives option where it has one, else (and with --probe) by
testing one small configuration for each directive. Which variables it has is always
found by testing. Beside them stands what campaigns have of them; --all says why
not.`,
		Example: "  oracle coverage\n  oracle coverage --all\n  oracle coverage --candidate nginx --probe",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return coverage(cmd, co) },
	}
	cmd.Flags().BoolVar(&co.Probe, "probe", false, "test a configuration for each directive, whatever the candidate says of itself")
	cmd.Flags().BoolVar(&co.All, "all", false, "print every directive and variable, not the totals of their module")
	return cmd
}

// covered is one directive's row.
type covered struct {
	Name, Module, Stage string
	Supported           bool
	Generated           bool
	Aside               string `json:",omitempty"` // why campaigns do not have it
}

// coveredVariable is one variable's row; a name with a trailing _ stands for a family.
type coveredVariable struct {
	Name, Module string
	Supported    bool
	Generated    bool
	Aside        string `json:",omitempty"`
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
		here := !strings.Contains(d.Module, "_stream") && !strings.Contains(d.Module, "_mail")
		r := covered{Name: d.Name, Module: d.Module, Stage: d.Stage, Supported: ok, Generated: here && gen.Makes(tab, d.Name)}
		if here {
			r.Aside = gen.Aside[d.Name]
		}
		rows = append(rows, r)
	}
	hasVar, err := supportedVariables(cmd.Context(), cell, tab.AllVars)
	if err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("coverage: %w", err))
	}
	vars := make([]coveredVariable, len(tab.AllVars))
	for i, v := range tab.AllVars {
		here := !strings.Contains(v.Module, "_stream")
		vars[i] = coveredVariable{Name: v.Name, Module: v.Module, Supported: hasVar[v], Generated: here && gen.MakesVariable(v.Name)}
		if here {
			vars[i].Aside = gen.AsideVariables[v.Name]
		}
	}
	if o.JSON {
		if err := printJSON(cmd.OutOrStdout(), map[string]any{"directives": rows, "variables": vars}); err != nil {
			return exit.Wrap(exit.Rig, err)
		}
	} else {
		printCoverage(cmd, o, rows, vars)
	}
	n := 0
	for _, r := range rows {
		if r.Supported {
			n++
		}
	}
	return done(cmd, exit.Agree, "coverage: %s supports %d of nginx 1.26.3's %d directives, %s, and %d of its %d variables, by testing them",
		o.Candidate, n, len(rows), how, len(hasVar), len(vars))
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

func printCoverage(cmd *cobra.Command, o *coverageOptions, rows []covered, vars []coveredVariable) {
	w := cmd.OutOrStdout()
	if o.All {
		for _, r := range rows {
			fmt.Fprintf(w, "%-34s %-36s %-10s %s\n", r.Name, r.Module, supportWord(r.Supported), madeWord(r.Generated, r.Aside))
		}
		for _, v := range vars {
			fmt.Fprintf(w, "%-34s %-36s %-10s %s\n", "$"+v.Name, v.Module, supportWord(v.Supported), madeWord(v.Generated, v.Aside))
		}
		return
	}
	type total struct{ all, supported, generated, vars, supportedVars, generatedVars int }
	by := map[string]*total{}
	of := func(module string) *total {
		if by[module] == nil {
			by[module] = &total{}
		}
		return by[module]
	}
	for _, v := range vars {
		t := of(v.Module)
		t.vars++
		if v.Supported {
			t.supportedVars++
		}
		if v.Generated {
			t.generatedVars++
		}
	}
	for _, r := range rows {
		t := of(r.Module)
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
	fmt.Fprintf(w, "%-36s %10s %10s %10s %10s %10s %10s\n", "module", "directives", "supported", "generated", "variables", "supported", "generated")
	for _, n := range names {
		t := by[n]
		fmt.Fprintf(w, "%-36s %10d %10d %10d %10d %10d %10d\n", n, t.all, t.supported, t.generated, t.vars, t.supportedVars, t.generatedVars)
	}
}

// madeWord tells whether campaigns have something, or why they do not.
func madeWord(generated bool, aside string) string {
	switch {
	case generated:
		return "generated"
	case aside != "":
		return "not in campaigns: " + aside
	}
	return ""
}

func supportWord(yes bool) string {
	if yes {
		return "supported"
	}
	return "refused"
}
