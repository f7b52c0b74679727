package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/count"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/mask"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/reference"
	"nginxoracle/oracle/report"
)

type replayOptions struct {
	*options
	ReferenceOnly bool
	Show          bool
	Verbose       bool
	FailFast      bool
	Census        bool
	Jobs          int
	Record        string // folder that the outcomes are written to
}

func newReplay(o *options) *cobra.Command {
	ro := &replayOptions{options: o}
	cmd := &cobra.Command{
		Use:   "replay PATH…",
		Short: "Run cases on the targets and show every mismatch",
		Long: `replay runs cases (files, or folders with *.txtar files below) on the reference
and on the candidate, compares everything that can be seen, and shows every
mismatch side by side. A case that differs is run again on the reference alone:
if that differs from itself, the case is unstable and not a finding.`,
		Example: `  oracle replay scenarios/proxy/uri-replaced.txtar
  oracle replay scenarios corpus --jobs 2
  oracle replay --reference-only --show mine.txtar     # what does nginx answer?
  oracle replay --candidate nginx:1.22 scenarios       # two versions of nginx
  oracle replay --census scenarios                     # is there a mask that no case needs?`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return replay(cmd, ro, args)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&ro.ReferenceOnly, "reference-only", false, "run the reference twice and compare it with itself")
	f.BoolVar(&ro.Show, "show", false, "print what was observed")
	f.BoolVarP(&ro.Verbose, "verbose", "v", false, "print a line for cases that agree too")
	f.StringVar(&ro.Record, "record", "", "also write the outcomes to this folder, for oracle report")
	f.BoolVar(&ro.FailFast, "fail-fast", false, "begin no further case once one differs")
	f.BoolVar(&ro.Census, "census", false, "also count what each mask was needed for; fail when no case needs one, or a case uses a last-resort timeout")
	f.IntVar(&ro.Jobs, "jobs", 2, "cases run at the same time, each with cells of its own")
	return cmd
}

func replay(cmd *cobra.Command, o *replayOptions, args []string) error {
	began := time.Now()
	if o.Jobs < 1 || o.Jobs > maxJobs {
		return exit.Errorf(exit.Usage, "replay: --jobs %d: want 1 to %d", o.Jobs, maxJobs)
	}
	paths, err := findCases(args)
	if err != nil {
		return exit.Wrap(exit.Usage, fmt.Errorf("replay: %w", err))
	}
	if err := fill("replay", "--record", o.Record); err != nil {
		return err
	}
	t := tally{strict: o.Census}
	var cases []*casefile.Case
	for _, p := range paths {
		c, err := casefile.Load(p)
		if err != nil {
			// The other cases still run: what they find must not hang on this file.
			fmt.Fprintln(cmd.ErrOrStderr(), err)
			t.wrong++
			continue
		}
		cases = append(cases, c)
	}
	candidate := o.Candidate
	if o.ReferenceOnly {
		candidate = o.Reference
	}
	var pair reference.Pair
	if len(cases) > 0 {
		pair, err = reference.Resolve(cmd.Context(), o.Reference, candidate, o.Cell, func(s string) {
			fmt.Fprintln(cmd.ErrOrStderr(), s)
		})
		if err != nil {
			return exit.Wrap(exit.Rig, fmt.Errorf("replay: %w", err))
		}
	}
	out := &printer{w: cmd.OutOrStdout(), o: o, style: styleOf(cmd.OutOrStdout()), few: len(cases) <= 20}
	var views []report.JSON
	runAll(cmd.Context(), pair, cases, o, func(r outcome) {
		if r.err != nil && cmd.Context().Err() != nil {
			// What a signal has ended or kept from beginning has no verdict, and is no fault of the rig.
			r.skipped, t.interrupted = true, true
		}
		if r.skipped {
			t.skipped++
			return
		}
		if wrongFile(r.err) {
			fmt.Fprintln(cmd.ErrOrStderr(), r.err)
			t.wrong++
			return
		}
		t.add(r)
		out.print(r)
		if o.Record != "" {
			views = append(views, r.view(o).JSON())
		}
	})
	t.took = time.Since(began)
	if o.Record != "" {
		if err := record(o.Record, recording{Views: views, Summary: t.String(), Code: t.code(), Masks: t.masks}); err != nil {
			return exit.Wrap(exit.Rig, fmt.Errorf("replay: %w", err))
		}
	}
	if o.Census && t.skipped+t.wrong == 0 { // of half of the cases nothing can be said
		t.idle = mask.Idle(t.masks, t.shown)
		if !o.JSON {
			t.census(cmd.OutOrStdout())
		}
	}
	if o.JSON {
		if err := json.NewEncoder(cmd.OutOrStdout()).Encode(t.json()); err != nil {
			return exit.Errorf(exit.Rig, "replay: write: %w", err)
		}
	}
	return done(cmd, t.code(), "replay: %s", t.String())
}

// findCases lists the case files that args name: files as they are, folders
// with every *.txtar below them, sorted.
func findCases(args []string) ([]string, error) {
	var paths []string
	for _, a := range args {
		if a == "" {
			return nil, errors.New("want a file or a folder, got nothing")
		}
		st, err := os.Stat(a)
		if err != nil {
			return nil, err
		}
		if st.Mode().IsRegular() {
			paths = append(paths, a)
			continue
		}
		if !st.IsDir() {
			return nil, fmt.Errorf("%s is %s: want a case file, or a folder with *.txtar files below", a, casefile.Kind(st.Mode()))
		}
		err = filepath.WalkDir(a, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Ext(p) == ".txtar" {
				paths = append(paths, p)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no case (*.txtar) below %s: nothing would be compared", strings.Join(args, ", "))
	}
	return paths, nil
}

// runAll judges cases with o.Jobs workers and hands the outcomes over in the
// cases' order.
func runAll(ctx context.Context, pair reference.Pair, cases []*casefile.Case, o *replayOptions, each func(outcome)) {
	todo := make(chan int)
	results := make([]chan outcome, len(cases))
	for i := range results {
		results[i] = make(chan outcome, 1)
	}
	var workers sync.WaitGroup
	var enough atomic.Bool
	for range min(o.Jobs, len(cases)) {
		workers.Add(1)
		go func() {
			defer workers.Done()
			j := &judge{pair: pair, alone: o.ReferenceOnly, census: o.Census}
			defer j.close()
			for i := range todo {
				r := j.run(ctx, cases[i])
				if o.FailFast && r.result.Verdict == diff.Differ && r.expected == ordinary {
					enough.Store(true)
				}
				results[i] <- r
			}
		}()
	}
	go func() {
		for i := range cases {
			if enough.Load() {
				results[i] <- outcome{c: cases[i], skipped: true}
				continue
			}
			todo <- i
		}
		close(todo)
	}()
	for i := range results {
		each(<-results[i])
	}
	workers.Wait()
}

// tally counts outcomes.
type tally struct {
	counts   map[diff.Verdict]int
	recorded int // divergences that are exactly as recorded
	stale    int // recorded divergences that no longer are
	wrong    int // files that are no cases
	skipped  int // not run: another one differed, with --fail-fast, or a signal came
	little   int // agreements in which nothing was sent to the server
	timeouts int
	waited   []string // the cases that used them
	strict   bool     // such a case has no good verdict
	masks    map[string]int
	took     time.Duration

	shown map[string]int // with --census: values that a mask is for
	idle  []string       // and the masks that no case needs

	interrupted bool // by a signal, so that cases have no verdict
}

func (t *tally) add(r outcome) {
	if t.counts == nil {
		t.counts, t.masks, t.shown = map[diff.Verdict]int{}, map[string]int{}, map[string]int{}
	}
	switch r.expected {
	case asRecorded:
		t.recorded++
	case stale:
		t.stale++
	default:
		t.counts[r.result.Verdict]++
		if r.little() != "" {
			t.little++
		}
	}
	for _, o := range []*observe.Observation{r.ref, r.cand} {
		if o != nil {
			t.timeouts += o.Timeouts
			if o.Timeouts > 0 && !slices.Contains(t.waited, r.c.Name) {
				t.waited = append(t.waited, r.c.Name)
			}
		}
	}
	for name, n := range r.result.Masks {
		t.masks[name] += n
	}
	for name, n := range r.result.Shown {
		t.shown[name] += n
	}
}

// census prints what each mask was needed for.
func (t *tally) census(w io.Writer) {
	fmt.Fprintf(w, "%-16s %8s %8s\n", "mask", "differed", "shown")
	for _, r := range mask.Table {
		note := ""
		if slices.Contains(t.idle, r.Name) {
			note = "  no case needs it: add one, or take the row out of oracle/mask/table.go"
		}
		fmt.Fprintf(w, "%-16s %8d %8d%s\n", r.Name, t.masks[r.Name], t.shown[r.Name], note)
	}
}

// code is the worst that happened: without a verdict there is no better news.
func (t *tally) code() exit.Code {
	switch {
	case t.counts[diff.RigFailed]+t.counts[diff.NoVerdict] > 0, t.interrupted:
		return exit.Rig
	case t.wrong > 0:
		return exit.Usage
	case t.counts[diff.Differ] > 0:
		return exit.Differ
	case t.stale > 0, len(t.idle) > 0:
		return exit.Stale
	case t.counts[diff.Unstable] > 0, t.strict && len(t.waited) > 0:
		return exit.Unstable
	case t.counts[diff.Refused] > 0:
		return exit.Refused
	}
	return exit.Agree
}

func (t *tally) String() string {
	var parts []string
	total := t.recorded + t.stale + t.wrong
	part := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	for _, v := range []diff.Verdict{diff.Agree, diff.Differ, diff.Unstable, diff.Refused, diff.RigFailed, diff.NoVerdict} {
		what := v.String()
		if v == diff.Agree && t.little > 0 {
			what += fmt.Sprintf(" (%d of them sent nothing)", t.little)
		}
		part(t.counts[v], what)
		total += t.counts[v]
	}
	part(t.recorded, "as recorded")
	part(t.stale, "stale")
	if len(t.idle) > 0 {
		parts = append(parts, count.Of(len(t.idle), "mask")+" that no case needs ("+strings.Join(t.idle, ", ")+")")
	}
	if t.wrong > 0 {
		parts = append(parts, count.Of(t.wrong, "wrong file"))
	}
	part(t.skipped, "not run")
	total += t.skipped
	if t.timeouts > 0 {
		parts = append(parts, count.Of(t.timeouts, "last-resort timeout")+" used ("+strings.Join(t.waited, ", ")+")")
	}
	s := fmt.Sprintf("%s: %s; %.1f s", count.Of(total, "case"), strings.Join(parts, ", "), t.took.Seconds())
	if t.interrupted {
		s += ", interrupted"
	}
	return s
}

func (t *tally) json() any {
	counts := map[string]int{}
	for v, n := range t.counts {
		counts[v.String()] = n
	}
	return map[string]any{"summary": map[string]any{
		"verdicts": counts, "as_recorded": t.recorded, "stale": t.stale, "wrong_files": t.wrong, "not_run": t.skipped, "interrupted": t.interrupted, "timeouts": t.timeouts, "timeouts_in": t.waited,
		"sent_nothing": t.little, "masks": t.masks, "masks_shown": t.shown, "masks_idle": t.idle, "seconds": t.took.Seconds(), "exit": int(t.code()), "exit_name": t.code().String(),
	}}
}

// printer shows outcomes, for a person or for a machine.
type printer struct {
	w     io.Writer
	o     *replayOptions
	style report.Style
	few   bool
}

func styleOf(w io.Writer) report.Style {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return report.Style{}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 0
	}
	return report.Style{Color: os.Getenv("NO_COLOR") == "", Width: width}
}

func (p *printer) print(r outcome) {
	v := r.view(p.o)
	var b bytes.Buffer
	switch {
	case p.o.JSON:
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v.JSON()); err != nil {
			fmt.Fprintf(&b, "{\"case\":%q,\"error\":%q}\n", r.c.Name, err)
		}
	default:
		if r.result.Verdict != diff.Agree || p.few || p.o.Verbose || p.o.Show {
			v.Write(&b, p.style)
		}
		if p.o.Show {
			for i, o := range []*observe.Observation{r.ref, r.cand} {
				if o != nil && !(i == 1 && p.o.ReferenceOnly) {
					o.Text(&b)
				}
			}
		}
	}
	// A reader that has gone away must not stop the run: its exit code still counts.
	_, _ = p.w.Write(b.Bytes())
}

// little says what an agreement does not tell: that nothing reached the server; "" when something did.
func (r *outcome) little() string {
	if r.result.Verdict != diff.Agree || r.expected != ordinary || r.ref == nil {
		return ""
	}
	const compared = ": loading, messages, files and processes were compared"
	switch {
	case !r.ref.Process.Started:
		return "nothing was sent, since the server does not start" + compared
	case len(r.c.Sections) == 0:
		return "nothing was sent, since the case has no client and no signal" + compared
	case len(r.ref.Clients) > 0 && !slices.ContainsFunc(r.ref.Clients, func(c observe.Conn) bool { return c.End != observe.EndRefused }):
		return "nothing was sent, since every connection was refused: does the server listen there?"
	}
	return ""
}

// view is what a person is shown of the outcome.
func (r *outcome) view(o *replayOptions) *report.View {
	again := oracle("replay") + targetsAgain(o.options)
	if o.ReferenceOnly {
		again += " --reference-only"
	}
	v := &report.View{Case: r.c, Ref: o.Reference, Cand: o.Candidate, Result: r.result, Word: string(r.expected), Note: r.little(),
		Again: again + " " + report.Word(r.c.Name)}
	if o.ReferenceOnly {
		v.Ref, v.Cand = o.Reference, "again"
	}
	if r.err != nil {
		v.Result.Why = r.err.Error()
	}
	return v
}
