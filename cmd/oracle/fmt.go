package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/exit"
)

func newFmt(*options) *cobra.Command {
	return &cobra.Command{
		Use:   "fmt PATH…",
		Short: "Rewrite case files in their canonical form",
		Long: `fmt parses case files (and those below folders) and rewrites each that is not
canonical. Cases kept in the repository are: a tool that rewrites one then makes
no noise in a review.`,
		Example: "  oracle fmt scenarios",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := findCases(args)
			if err != nil {
				return exit.Wrap(exit.Usage, fmt.Errorf("fmt: %w", err))
			}
			for _, p := range paths {
				if err := format(cmd, p); noRoom(err) {
					return exit.Wrap(exit.Rig, fmt.Errorf("fmt: %w", err))
				} else if err != nil {
					return exit.Wrap(exit.Usage, err)
				}
			}
			return nil
		},
	}
}

func format(cmd *cobra.Command, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	c, err := casefile.Parse(path, text)
	if err != nil {
		return err
	}
	canonical := c.Print()
	if bytes.Equal(text, canonical) {
		return nil
	}
	if err := catalog.WriteFile(path, canonical); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), path)
	return nil
}
