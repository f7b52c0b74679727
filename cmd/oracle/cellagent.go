package main

import (
	"github.com/spf13/cobra"

	"nginxoracle/oracle/engine/agent"
	"nginxoracle/oracle/exit"
)

// newCellAgent lists the agent of a cell among the commands; main has run it
// already (engine.Agent) when it was meant.
func newCellAgent(*options) *cobra.Command {
	return &cobra.Command{
		Use:    agent.Arg,
		Short:  "The oracle's hand inside a cell; started by the oracle itself",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return exit.Errorf(exit.Usage, "%s is started by the oracle itself", agent.Arg)
		},
	}
}
