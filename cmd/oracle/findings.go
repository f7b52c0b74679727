package main

import (
	"github.com/spf13/cobra"

	"nginxoracle/oracle/exit"
)

func newFindings(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "findings",
		Short: "Write or check FINDINGS.md",
		RunE: func(cmd *cobra.Command, args []string) error {
			return exit.Errorf(exit.Rig, "findings: not in this build")
		},
	}
}
