package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nginxoracle/oracle/campaign"
	"nginxoracle/oracle/exit"
)

// versus is `oracle fuzz --compare-feedback`: what steering brings, measured in one run.
func versus(cmd *cobra.Command, o *fuzzOptions, cfg campaign.Config) error {
	if o.Seed == 0 {
		cfg.Seed = uint64(time.Now().UnixNano()) % 1_000_000_000
	}
	if cfg.Jobs = o.Jobs / 2; cfg.Jobs < 1 {
		cfg.Jobs = 1
	}
	dir, err := os.MkdirTemp("", "compare-feedback-")
	if err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("fuzz: %w", err))
	}
	defer os.RemoveAll(dir)
	cfg.Dir = dir
	v, err := campaign.CompareFeedback(cmd.Context(), cfg)
	if err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("fuzz: compare feedback: %w", err))
	}
	w := cmd.OutOrStdout()
	if o.JSON {
		if err := printJSON(w, v); err != nil {
			return exit.Wrap(exit.Rig, err)
		}
	} else {
		v.Print(w)
		fmt.Fprintf(w, "machine   %s, %d CPUs, load %s; both campaigns at the same time, %d pairs of cells each\n", runtime.GOARCH, runtime.NumCPU(), load(), cfg.Jobs)
		fmt.Fprintf(w, "again     %s --compare-feedback --seed %d --duration %s%s\n", oracle("fuzz"), cfg.Seed, cfg.Duration, flagsAgain(o))
	}
	if cmd.Context().Err() != nil { // half of a comparison is none
		return done(cmd, exit.Rig, "fuzz: interrupted, with and without feedback after %d and %d batches", v.Steered.Batches, v.Blind.Batches)
	}
	return done(cmd, exit.Agree, "fuzz: compared with and without feedback, %d and %d batches", v.Steered.Batches, v.Blind.Batches)
}

// load is the machine's load of the last minute.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(b), " ")
	return one
}
