package main

import (
	"github.com/spf13/cobra"

	"nginxoracle/oracle/exit"
)

// newCellAgent is the agent inside a cell: process 1 there. Hidden, since only
// the engine starts it.
func newCellAgent(*options) *cobra.Command {
	return &cobra.Command{
		Use:    "cell-agent",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return exit.Errorf(exit.Rig, "cell-agent: not in this build")
		},
	}
}
