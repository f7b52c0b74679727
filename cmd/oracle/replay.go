package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/run"
)

func newReplay(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "replay PATH…",
		Short: "Run cases on the targets and show every mismatch",
		RunE: func(cmd *cobra.Command, args []string) error {
			root := os.Getenv("ORACLE_NGINX_ROOT")
			cell, err := engine.Open(cmd.Context(), engine.Options{Kind: engine.Local, Target: engine.Target{Name: "nginx", Root: root, Binary: filepath.Join(root, "usr/sbin/nginx")}})
			if err != nil {
				return err
			}
			defer cell.Close()
			for _, a := range args {
				c, err := casefile.Load(a)
				if err != nil {
					return exit.Wrap(exit.Usage, err)
				}
				ob, err := run.Run(context.Background(), cell, c)
				if err != nil {
					return err
				}
				ob.Text(cmd.OutOrStdout())
			}
			return nil
		},
	}
}
