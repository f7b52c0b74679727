package main

import (
	"github.com/spf13/cobra"

	"nginxoracle/oracle/exit"
)

func newMinimize(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "minimize CASE",
		Short: "Shrink a failing case",
		RunE: func(cmd *cobra.Command, args []string) error {
			return exit.Errorf(exit.Rig, "minimize: not in this build")
		},
	}
}
