package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nginxoracle/oracle/bench"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/reference"
)

// newBench measures; docs/measuring.md says how.
func newBench(o *options) *cobra.Command {
	opt := bench.Options{}
	history := ""
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the candidate against the reference: PASS, FAIL or NO NUMBER",
		Example: `  oracle bench
  oracle bench --workload static-3b --pairs 7
  oracle bench --json --history bench-history.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			say := func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) }
			pair, err := reference.Resolve(cmd.Context(), o.Reference, o.Candidate, "local", say)
			if err != nil {
				return exit.Wrap(exit.Rig, err)
			}
			opt.Reference.Name, opt.Candidate.Name = "nginx", "proxy"
			if opt.Reference.Argv, err = reference.Argv(pair.Reference.Target); err != nil {
				return err
			}
			if opt.Candidate.Argv, err = reference.Argv(pair.Candidate.Target); err != nil {
				return err
			}
			if opt.Self, err = os.Executable(); err != nil {
				return err
			}
			if opt.Dir, err = os.MkdirTemp("", "oracle-bench-"); err != nil {
				return err
			}
			defer os.RemoveAll(opt.Dir)
			if err := os.Chmod(opt.Dir, 0o755); err != nil {
				return err
			}
			if !o.JSON {
				fmt.Fprintf(cmd.OutOrStdout(), "machine: %s\nreference: %s; candidate: %s; %d pairs of %v\n", bench.Machine(), o.Reference, o.Candidate, opt.Pairs, opt.Duration)
			}
			opt.Each = func(r bench.Row) {
				if !o.JSON {
					r.Print(cmd.OutOrStdout())
				}
			}
			begin := time.Now()
			rows, rigErr := bench.Run(cmd.Context(), opt)
			report := bench.Report{Machine: bench.Machine(), At: begin.UTC(), Seconds: time.Since(begin).Seconds(), Reference: o.Reference, Candidate: o.Candidate, Rows: rows}
			interrupted := cmd.Context().Err() != nil
			if interrupted {
				report.Left = bench.Left(opt.Only, rows)
			}
			if o.JSON {
				if err := json.NewEncoder(cmd.OutOrStdout()).Encode(report); err != nil {
					return err
				}
			}
			if history != "" {
				if err := appendJSON(history, report); err != nil {
					return err
				}
			}
			pass, fail, none := report.Count()
			if interrupted {
				if !o.JSON && len(rows) > 0 {
					report.Table(cmd.OutOrStdout())
				}
				return done(cmd, exit.Rig, "bench: interrupted after %d PASS, %d FAIL, %d NO NUMBER; not measured: %s (each: oracle bench%s --workload NAME)",
					pass, fail, none, strings.Join(report.Left, ", "), targetsAgain(o))
			}
			if rigErr != nil {
				return exit.Wrap(exit.Rig, rigErr)
			}
			code := exit.Agree
			switch {
			case fail > 0:
				code = exit.Differ
			case none > 0:
				code = exit.Unstable
			}
			if !o.JSON {
				report.Table(cmd.OutOrStdout())
			}
			return done(cmd, code, "bench: %d PASS, %d FAIL, %d NO NUMBER", pass, fail, none)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Only, "workload", "", "only this workload")
	f.IntVar(&opt.Pairs, "pairs", 5, "pairs of samples; at least 5 for a verdict")
	f.DurationVar(&opt.Duration, "duration", 2*time.Second, "of one sample, whole seconds")
	f.DurationVar(&opt.IdleWait, "idle-wait", 15*time.Second, "wait at most this long for an idle machine, before each workload")
	f.StringVar(&history, "history", "", "append the report to this file, with its machine")
	return cmd
}

func appendJSON(path string, v any) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	err = json.NewEncoder(f).Encode(v)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// newBenchRole is the origin or the open-loop client of a bench, each a process of its own on its own core.
func newBenchRole(*options) *cobra.Command {
	cmd := &cobra.Command{Use: "bench-role", Hidden: true}
	cmd.AddCommand(&cobra.Command{
		Use: "origin ADDR BYTES", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return exit.Errorf(exit.Usage, "bytes %q: want a number", args[1])
			}
			return bench.Origin(args[0], n)
		},
	}, &cobra.Command{
		Use: "load", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return bench.OpenLoop(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	})
	return cmd
}
