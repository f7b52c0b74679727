package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"nginxoracle/oracle/campaign"
	"nginxoracle/oracle/count"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/minimize"
	"nginxoracle/oracle/reference"
	"nginxoracle/oracle/report"
)

type fuzzOptions struct {
	*options
	Duration, Shrink, Drain  time.Duration
	Seed, Cases              uint64
	Jobs, Units, Wrong       int
	Dir, Corpus              string
	NoFeedback, Versus, Self bool
	StopAtFirst              bool
	Profile, MemProfile      string
}

func newFuzz(o *options) *cobra.Command {
	fo := &fuzzOptions{options: o}
	cmd := &cobra.Command{
		Use:   "fuzz",
		Short: "Run a campaign of generated cases",
		Long: `fuzz generates configurations, document trees, origins and byte streams, many
server blocks to a batch, and runs every batch on the reference and on the
candidate. What differs is saved first, then run again, shrunk and filed under
corpus/; the campaign goes on. Its state lies in --dir and survives kill -9: the
same command goes on where it was.`,
		Example: `  oracle fuzz --duration 60s
  oracle fuzz --duration 1h --seed 7 --dir /var/tmp/nightly
  oracle fuzz --reference-vs-reference --duration 2m     # is the rig steady?
  oracle fuzz --cases 10 --seed 7 --no-feedback          # the same ten batches every time`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return fuzz(cmd, fo) },
	}
	f := cmd.Flags()
	f.DurationVar(&fo.Duration, "duration", time.Minute, "how long to start new batches (0: until --cases or a signal)")
	f.Uint64Var(&fo.Seed, "seed", 0, "seed; 0: the one of --dir, or the clock's")
	f.Uint64Var(&fo.Cases, "cases", 0, "batches to run (0: no bound)")
	f.IntVar(&fo.Jobs, "jobs", 4, "pairs of cells that run at the same time")
	f.IntVar(&fo.Units, "units", 100, "generated server groups in one batch")
	f.IntVar(&fo.Wrong, "wrong", 8, "wrong configurations beside each batch")
	f.StringVar(&fo.Dir, "dir", "", "the campaign's state (default: campaign/CANDIDATE)")
	f.StringVar(&fo.Corpus, "corpus", "corpus", "where findings are filed")
	f.BoolVar(&fo.NoFeedback, "no-feedback", false, "generate blindly: keep no seeds")
	f.BoolVar(&fo.StopAtFirst, "stop-at-first", false, "end at the first mismatch that comes again, without shrinking or filing it")
	f.BoolVar(&fo.Versus, "compare-feedback", false, "run two campaigns side by side, steered and blind, and print what each saw; files nothing")
	f.BoolVar(&fo.Self, "reference-vs-reference", false, "the candidate is the reference: what differs is the rig's or its own wavering")
	f.DurationVar(&fo.Shrink, "shrink", 20*time.Second, "time to shrink one case")
	f.StringVar(&fo.Profile, "cpuprofile", "", "write where the oracle's own time goes, for go tool pprof")
	f.StringVar(&fo.MemProfile, "memprofile", "", "write what the oracle's memory is used for, whenever it has grown, for go tool pprof")
	f.DurationVar(&fo.Drain, "drain", 30*time.Second, "how long to go on with cases that wait for triage when the time is over")
	return cmd
}

// maxJobs bounds what runs at the same time: each job has two cells of some processes and 64 MiB, and more than a few for
// each core only wait for each other.
const maxJobs = 64

// A campaign of four jobs needs 600 MB; at memoryMost something has gone wrong that the kernel would end less kindly.
const memoryMost = 4 << 30

func fuzz(cmd *cobra.Command, o *fuzzOptions) error {
	if o.Jobs < 1 || o.Jobs > maxJobs || o.Units < 1 || o.Units > 100 || o.Wrong < 0 || o.Wrong > 99 {
		return exit.Errorf(exit.Usage, "fuzz: want --jobs 1 to %d, --units 1 to 100, --wrong 0 to 99", maxJobs)
	}
	if o.Duration < 0 || o.Shrink < 0 || o.Drain < 0 {
		return exit.Errorf(exit.Usage, "fuzz: want --duration, --shrink and --drain from 0")
	}
	candidate := o.Candidate
	if o.Self {
		candidate = o.Reference
	}
	if o.Dir == "" {
		o.Dir = "campaign/" + safeName(candidate)
		if o.Self {
			o.Dir += "-self"
		}
	}
	if err := fuzzOutputs(o); err != nil {
		return err
	}
	errw := cmd.ErrOrStderr()
	pair, err := reference.Resolve(cmd.Context(), o.Reference, candidate, o.Cell, func(s string) { fmt.Fprintln(errw, s) })
	if err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("fuzz: %w", err))
	}
	cfg := campaign.Config{
		Dir: o.Dir, Corpus: o.Corpus, Targets: campaign.Targets{Reference: targetName(o.Reference), Candidate: targetName(candidate), Self: o.Self}, Seed: o.Seed, Duration: o.Duration, Batches: o.Cases, Jobs: o.Jobs, Units: o.Units, Wrong: o.Wrong,
		Feedback: !o.NoFeedback, Self: o.Self, StopAtFirst: o.StopAtFirst, Shrink: minimize.Budget{Time: o.Shrink}, Drain: o.Drain, Compare: diff.Compare,
		MemoryMost: memoryMost,
		OpenRef:    func(ctx context.Context) (engine.Cell, error) { return engine.Open(ctx, pair.Reference) },
		OpenCand:   func(ctx context.Context) (engine.Cell, error) { return engine.Open(ctx, pair.Candidate) },
	}
	if cover, why, ok := reference.Cover(pair.Candidate); ok && !o.Self {
		cfg.OpenCover = func(ctx context.Context) (engine.Cell, error) { return engine.Open(ctx, cover) }
	} else if !o.Self {
		cfg.Uncovered = why
	}
	if cfg.Seed == 0 {
		if _, err := os.Stat(o.Dir + "/state.json"); err != nil {
			cfg.Seed = uint64(time.Now().UnixNano()) % 1_000_000_000
		}
	}
	if o.Versus {
		return versus(cmd, o, cfg)
	}
	stopProfile, err := startProfile(o.Profile)
	if err != nil {
		return exit.Wrap(exit.Usage, fmt.Errorf("fuzz: %w", err))
	}
	defer stopProfile()
	collectSeldom(o.Jobs)
	spread(o.Jobs)
	end := progress(&cfg, errw, o)
	cfg.Progress = profileMemory(cfg.Progress, o.MemProfile, errw)
	c, err := campaign.New(cfg)
	if err != nil {
		end()
		code := exit.Usage
		if noRoom(err) {
			code = exit.Rig
		}
		return exit.Wrap(code, fmt.Errorf("fuzz: %w", err))
	}
	sum, err := c.Run(cmd.Context())
	end()
	if o.JSON {
		if jerr := printJSON(cmd.OutOrStdout(), sum); jerr != nil {
			return exit.Wrap(exit.Rig, jerr)
		}
	} else {
		sum.Replay = oracle("replay") + targetsAgain(o.options)
		sum.Print(cmd.OutOrStdout(), o.Jobs)
		if pair.Warning != "" {
			fmt.Fprintln(cmd.OutOrStdout(), pair.Warning)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "again     %s --dir %s%s\n", oracle("fuzz"), report.Word(o.Dir), flagsAgain(o))
	}
	if _, more, ok := strings.Cut(errorText(err), "\n"); ok { // the first line is in Why
		fmt.Fprintln(errw, more)
	}
	return done(cmd, sum.Code, "fuzz: %s, %s", count.Of(sum.Cases, "case"), sum.Why)
}

// fuzzOutputs checks what a campaign writes to.
func fuzzOutputs(o *fuzzOptions) error {
	if o.Corpus == "" {
		return exit.Errorf(exit.Usage, "fuzz: --corpus: want a folder, got nothing")
	}
	for _, err := range []error{fill("fuzz", "--dir", o.Dir), fill("fuzz", "--corpus", o.Corpus), writeTo("fuzz", "--cpuprofile", o.Profile, nil), writeTo("fuzz", "--memprofile", o.MemProfile, nil)} {
		if err != nil {
			return err
		}
	}
	list, err := os.ReadDir(o.Dir)
	if err != nil || len(list) == 0 { // not there yet, or new
		return nil
	}
	for _, f := range list {
		if f.Name() == stateName || f.Name() == "lock" {
			return nil
		}
	}
	return exit.Errorf(exit.Usage, "fuzz: %s holds %s and no campaign: give another --dir", o.Dir, list[0].Name())
}

// A campaign makes garbage by the batch and keeps little: collecting it at four times what is kept, not at
// two, takes a third of the collector's time. Near the limit it collects as often as it must.
const (
	seldom       = 300
	memoryOfAJob = 192 << 20
)

// collectSeldom sets the collector of a campaign of some jobs unless the environment does.
func collectSeldom(jobs int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(seldom)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(max(jobs, 2)) * memoryOfAJob)
	}
}

// spread gives every player of a campaign a processor of Go's: two of each job wait in system calls most of
// the time, and where they hold all of Go's processors, the others wait for its monitor to notice, which has to look
// every 20 microseconds then.
func spread(jobs int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 2*jobs+2))
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func startProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "oracle: fuzz:", err)
		}
	}, nil
}

// grown is by how much, in percent, memory has to grow for another profile of it.
const grown = 20

// profileMemory adds to a campaign's progress that the heap's profile is written to path anew when
// the process has become larger by grown percent than it was at the last one.
func profileMemory(next func(campaign.Snapshot), path string, errw io.Writer) func(campaign.Snapshot) {
	if path == "" {
		return next
	}
	var last int64
	return func(s campaign.Snapshot) {
		if now := s.Memory[1]; now*100 > last*(100+grown) {
			last = now
			if err := writeHeap(path); err != nil {
				fmt.Fprintln(errw, "oracle: fuzz:", err)
			}
		}
		next(s)
	}
}

func writeHeap(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
}

func flagsAgain(o *fuzzOptions) (s string) {
	if o.Self {
		s += " --reference-vs-reference"
	}
	if o.Corpus != "corpus" {
		s += " --corpus " + report.Word(o.Corpus)
	}
	return s + targetsAgain(o.options)
}

// oracle is how a line to paste begins: this program, as it was called, and one of its commands.
func oracle(command string) string {
	if name := os.Args[0]; strings.Contains(name, "/") {
		return report.Word(name) + " " + command
	}
	return "oracle " + command
}

// targetsAgain are the flags that name the targets in a line to paste.
func targetsAgain(o *options) (s string) {
	if o.Candidate != "proxy" {
		s += " --candidate " + report.Word(o.Candidate)
	}
	if o.Reference != "nginx" {
		s += " --reference " + report.Word(o.Reference)
	}
	if o.Cell != "auto" {
		s += " --cell " + o.Cell
	}
	return s
}

func safeName(s string) string {
	out := []byte(s)
	for i, c := range out {
		if c == '/' || c == ':' {
			out[i] = '-'
		}
	}
	return string(out)
}

// progress shows where the campaign is: a bar on a terminal, a line of
// key=value pairs every five seconds elsewhere.
func progress(cfg *campaign.Config, w io.Writer, o *fuzzOptions) (end func()) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		last := time.Now()
		cfg.Progress = func(s campaign.Snapshot) {
			if time.Since(last) >= 5*time.Second {
				last = time.Now()
				fmt.Fprintln(w, s.Line())
			}
		}
		return func() {}
	}
	p := mpb.New(mpb.WithOutput(w), mpb.WithWidth(30))
	text := ""
	total := int64(o.Duration / time.Second)
	if o.Cases > 0 {
		total = int64(o.Cases)
	}
	bar := p.AddBar(total,
		mpb.PrependDecorators(decor.Elapsed(decor.ET_STYLE_MMSS)),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return text })))
	cfg.Progress = func(s campaign.Snapshot) {
		sec := max(s.Took.Seconds(), 1)
		text = fmt.Sprintf("%d blocks  %.0f exchanges/s  %d findings  %d waiting  %d unstable", s.Units, float64(s.Exchanges)/sec, len(s.Findings), s.Pending, s.Unstable)
		if o.Duration > 0 && s.Took > o.Duration {
			text += "  " + strings.Join(s.Doing, " ")
		}
		at := int64(s.Took / time.Second)
		if o.Cases > 0 {
			at = int64(s.Batches)
		}
		bar.SetCurrent(min(at, total-1))
	}
	return func() {
		bar.Abort(false)
		p.Wait()
	}
}
