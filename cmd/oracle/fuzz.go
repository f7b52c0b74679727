package main

import (
	"github.com/spf13/cobra"

	"nginxoracle/oracle/exit"
)

func newFuzz(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "fuzz",
		Short: "Run a campaign of generated cases",
		RunE: func(cmd *cobra.Command, args []string) error {
			return exit.Errorf(exit.Rig, "fuzz: not in this build")
		},
	}
}
