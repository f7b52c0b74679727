package main

import (
	"github.com/spf13/cobra"

	"nginxoracle/oracle/exit"
)

func newDoctor(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what was found, what will be used, and what to install for more",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return exit.Errorf(exit.Rig, "doctor: not in this build")
		},
	}
}
