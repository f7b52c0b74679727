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
	"nginxoracle/oracle/engine"
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
			if err := opt.Check(); err != nil {
				return err
			}
			past, err := openHistory(history)
			if err != nil {
				return exit.Errorf(exit.Usage, "history: %w", err)
			}
			defer past.close()
			say := func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) }
			pair, err := reference.Resolve(cmd.Context(), o.Reference, o.Candidate, "local", say)
			if err != nil {
				return exit.Wrap(exit.Rig, err)
			}
			for _, side := range []struct {
				to   *bench.Server
				name string
				from engine.Target
			}{{&opt.Reference, o.Reference, pair.Reference.Target}, {&opt.Candidate, o.Candidate, pair.Candidate.Target}} {
				argv, err := reference.Argv(side.from)
				if err != nil {
					return err
				}
				if *side.to, err = bench.Identify(cmd.Context(), side.name, side.from.Binary, argv); err != nil {
					return exit.Wrap(exit.Rig, err)
				}
			}
			bench.Apart(&opt.Reference, &opt.Candidate)
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
				fmt.Fprintf(cmd.OutOrStdout(), "machine: %s\nreference: %s\ncandidate: %s\n%d pairs of %v\n", bench.Machine(), opt.Reference, opt.Candidate, opt.Pairs, opt.Duration)
			}
			opt.Each = func(r bench.Row) {
				if !o.JSON {
					r.Print(cmd.OutOrStdout())
				}
			}
			begin := time.Now()
			rows, rigErr := bench.Run(cmd.Context(), opt)
			report := bench.Report{Machine: bench.Machine(), At: begin.UTC(), Seconds: time.Since(begin).Seconds(), Reference: opt.Reference, Candidate: opt.Candidate, Rows: rows}
			interrupted := cmd.Context().Err() != nil
			if rigErr != nil {
				report.Left, report.Broken = bench.Left(opt.Only, rows), rigErr.Error()
			}
			if o.JSON {
				if err := json.NewEncoder(cmd.OutOrStdout()).Encode(report); err != nil {
					return err
				}
			} else if rigErr == nil || len(rows) > 0 {
				report.Table(cmd.OutOrStdout())
			}
			switch {
			case rigErr == nil:
				if err := past.add(report); err != nil {
					return exit.Errorf(exit.Rig, "history: %w", err)
				}
			case history != "":
				say("bench: nothing is appended to " + history + ": the run is not whole")
			}
			pass, fail, none := report.Count()
			if interrupted {
				return done(cmd, exit.Rig, "bench: interrupted after %d PASS, %d FAIL, %d NO NUMBER; not measured: %s (each: oracle bench%s --workload NAME)",
					pass, fail, none, strings.Join(report.Left, ", "), targetsAgain(o))
			}
			if rigErr != nil {
				return exit.Errorf(exit.Rig, "after %d PASS, %d FAIL, %d NO NUMBER: %w; not measured: %s", pass, fail, none, rigErr, strings.Join(report.Left, ", "))
			}
			code := exit.Agree
			switch {
			case fail > 0:
				code = exit.Differ
			case none > 0:
				code = exit.Unstable
			}
			return done(cmd, code, "bench: %d PASS, %d FAIL, %d NO NUMBER", pass, fail, none)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Only, "workload", "", "only this workload")
	f.IntVar(&opt.Pairs, "pairs", 10, "pairs of samples; at least 5 for a verdict")
	f.DurationVar(&opt.Duration, "duration", time.Second, "of one sample, whole seconds")
	f.DurationVar(&opt.IdleWait, "idle-wait", 15*time.Second, "wait at most this long for an idle machine, before each workload")
	f.StringVar(&history, "history", "", "append the report to this file, with its machine")
	return cmd
}

// past is the file that reports are appended to; nil where none is wanted.
type past struct {
	*os.File
	made bool // by this run: it goes again if nothing is written
}

// openHistory opens the file before anything is measured.
func openHistory(path string) (*past, error) {
	if path == "" {
		return nil, nil
	}
	_, missing := os.Stat(path)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &past{f, missing != nil}, nil
}

func (p *past) add(v any) error {
	if p == nil {
		return nil
	}
	p.made = false
	return json.NewEncoder(p).Encode(v)
}

func (p *past) close() {
	if p == nil {
		return
	}
	p.Close()
	if p.made {
		os.Remove(p.Name())
	}
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
