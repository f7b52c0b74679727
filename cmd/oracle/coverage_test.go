package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A module's row counts its directives and its variables, and one that has only variables has a row too.
func TestCoverageByModule(t *testing.T) {
	var b strings.Builder
	cmd := &cobra.Command{}
	cmd.SetOut(&b)
	printCoverage(cmd, &coverageOptions{}, []covered{
		{Name: "proxy_pass", Module: "proxy", Supported: true, Generated: true},
		{Name: "proxy_bind", Module: "proxy"},
	}, []coveredVariable{
		{Name: "proxy_host", Module: "proxy", Supported: true, Generated: true},
		{Name: "proxy_port", Module: "proxy"},
		{Name: "uri", Module: "variables", Supported: true},
	})
	var got []string
	for line := range strings.Lines(b.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := "module directives supported generated variables supported generated\nproxy 2 1 1 2 1 1\nvariables 0 0 0 1 1 0"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
