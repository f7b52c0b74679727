package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"nginxoracle/oracle/exit"
)

// options are the flags that every command has.
type options struct {
	Reference string // target: "nginx", "nginx:1.22", or a path of a server's binary
	Candidate string // target: "proxy", or as above
	Cell      string // "auto", "local" or "container"
	JSON      bool
}

// commands are the commands in the order in which help lists them.
var commands = []func(*options) *cobra.Command{
	newDoctor,
	newReplay,
	newFmt,
	newFuzz,
	newMinimize,
	newFindings,
	newCoverage,
	newExplain,
	newCheck,
	newReport,
	newBench,
	newBenchRole,
	newImage,
	newCellAgent,
}

func newRoot() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:   "oracle",
		Short: "Differential tests against real nginx, byte for byte",
		Long: `oracle runs cases (a configuration, clients, origins) on real nginx and on a
candidate, compares everything that can be seen, and files what differs.

Exit codes: 0 all agree; 1 a new mismatch; 2 wrong usage or a wrong file; 3 the
rig broke, no verdict; 4 only unstable cases; 5 a catalogue entry is stale;
6 the candidate refuses a directive, nothing compared.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return exit.Errorf(exit.Usage, "%q is not a command (see oracle --help)", args[0])
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			switch o.Cell {
			case "auto", "local", "container":
				return nil
			}
			return exit.Errorf(exit.Usage, "--cell %q: want auto, local or container", o.Cell)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.Errorf(exit.Usage, "%s: %w (see %s --help)", cmd.CommandPath(), err, cmd.CommandPath())
	})
	f := root.PersistentFlags()
	f.StringVar(&o.Reference, "reference", "nginx", "reference target: nginx, nginx:VERSION, or a path")
	f.StringVar(&o.Candidate, "candidate", "proxy", "candidate target: proxy, nginx:VERSION, or a path")
	f.StringVar(&o.Cell, "cell", "auto", "kind of cell: local, container, or auto")
	f.BoolVar(&o.JSON, "json", false, "print for machines")
	for _, c := range commands {
		root.AddCommand(usageErrors(c(o)))
	}
	return root
}

// usageErrors makes a wrong number of arguments end as wrong usage rather than
// as a broken rig, for cmd and all below it.
func usageErrors(cmd *cobra.Command) *cobra.Command {
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, a []string) error {
			if err := args(cmd, a); err != nil {
				return exit.Errorf(exit.Usage, "%s: %w (see %s --help)", cmd.CommandPath(), err, cmd.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		usageErrors(sub)
	}
	return cmd
}

// lastLine is a command's last line: what happened, and the code.
func lastLine(ctx context.Context, code exit.Code, what string) string {
	if ctx.Err() != nil {
		return code.Interrupted(what)
	}
	return code.Summary(what)
}

// done ends a command: it prints the summary line, which names the code, and
// returns the error that makes the process end with it.
func done(cmd *cobra.Command, code exit.Code, format string, args ...any) error {
	fmt.Fprintln(cmd.ErrOrStderr(), lastLine(cmd.Context(), code, fmt.Sprintf(format, args...)))
	if code == exit.Agree {
		return nil
	}
	return &exit.Error{Code: code, Err: errors.New("")}
}
