package main

import (
	"github.com/spf13/cobra"

	"nginxoracle/oracle/exit"
)

func newReplay(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "replay PATH…",
		Short: "Run cases on the targets and show every mismatch",
		RunE: func(cmd *cobra.Command, args []string) error {
			return exit.Errorf(exit.Rig, "replay: not in this build")
		},
	}
}
