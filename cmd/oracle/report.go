package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nginxoracle/fuzz/grammar"
	"nginxoracle/oracle/campaign"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/reference"
	"nginxoracle/oracle/report"
)

// recording is a replay as replay --record keeps it.
type recording struct {
	Views   []report.JSON
	Summary string
	Code    exit.Code
	Masks   map[string]int
}

// recordName is a recording's file in its folder; a campaign's folder has stateName.
const (
	recordName = "replay.json"
	stateName  = "state.json"
)

func record(dir string, r recording) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return catalog.WriteFile(filepath.Join(dir, recordName), text)
}

type reportOptions struct {
	*options
	Output string
	NoRun  bool
}

func newReport(o *options) *cobra.Command {
	ro := &reportOptions{options: o}
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Write an HTML page of a campaign or a replay",
		Long: `report writes one self-contained HTML page (nothing is fetched) of a campaign's
folder or of the folder that replay --record wrote: the summary, what differs side by
side, the masks that were used, where the time went, and the directives in reach. A
campaign's findings are run again for it, so that the page shows what is true now.`,
		Example: "  oracle report campaign/proxy --output report.html\n  oracle replay scenarios --record out; oracle report out",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return writeReport(cmd, ro, args[0]) },
	}
	cmd.Flags().StringVarP(&ro.Output, "output", "o", "", "the page (default: DIR/report.html)")
	cmd.Flags().BoolVar(&ro.NoRun, "no-run", false, "do not run the findings again: list them only")
	return cmd
}

func writeReport(cmd *cobra.Command, o *reportOptions, dir string) error {
	if o.Output == "" {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return exit.Errorf(exit.Usage, "report: want the folder of a campaign or of a replay --record, got %s", dir)
		}
		o.Output = filepath.Join(dir, "report.html")
	}
	if err := writeTo("report", "--output", o.Output, isPage); err != nil {
		return err
	}
	var p *report.Page
	var err error
	if _, serr := os.Stat(filepath.Join(dir, stateName)); serr == nil {
		p, err = campaignPage(cmd, o, dir)
	} else {
		p, err = replayPage(dir)
	}
	if err != nil {
		return exit.Wrap(exit.Usage, fmt.Errorf("report: %w", err))
	}
	p.Made = time.Now()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("report: %w", err))
	}
	if err := catalog.WriteFile(o.Output, b.Bytes()); err != nil {
		return exit.Wrap(exit.Rig, fmt.Errorf("report: %w", err))
	}
	return done(cmd, exit.Agree, "report: %s written", o.Output)
}

func replayPage(dir string) (*report.Page, error) {
	text, err := os.ReadFile(filepath.Join(dir, recordName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s holds neither a campaign (%s) nor a replay (%s, which oracle replay --record writes)", dir, stateName, recordName)
	}
	if err != nil {
		return nil, err
	}
	var r recording
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w (it is no replay's record, or a part of one: write it again with oracle replay --record)", filepath.Join(dir, recordName), err)
	}
	p := &report.Page{Title: "Replay of " + fmt.Sprint(len(r.Views)) + " cases", Verdict: r.Code.String(), Good: r.Code == exit.Agree, Masks: r.Masks, Views: r.Views,
		Facts: []report.Fact{{Name: "cases", Value: r.Summary}}}
	if len(r.Views) > 0 {
		p.Facts = append(p.Facts, report.Fact{Name: "targets", Value: r.Views[0].Reference + " and " + r.Views[0].Candidate})
	}
	return p, nil
}

func campaignPage(cmd *cobra.Command, o *reportOptions, dir string) (*report.Page, error) {
	text, err := os.ReadFile(filepath.Join(dir, stateName))
	if err != nil {
		return nil, err
	}
	var s campaign.State
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%s: %w (it is no campaign's state, or a part of one)", filepath.Join(dir, stateName), err)
	}
	waiting, err := filepath.Glob(filepath.Join(dir, "pending", "*.txtar"))
	if err != nil {
		return nil, err
	}
	sec := max(s.Elapsed.Seconds(), 0.001)
	p := &report.Page{
		Title: fmt.Sprintf("Campaign, seed %d", s.Seed), Verdict: "all agree", Good: true,
		Spent: s.Spent, Masks: s.Masks, Signals: s.Signals,
		Facts: []report.Fact{
			{Name: "time", Value: s.Elapsed.Round(time.Second).String()},
			{Name: "compared", Value: fmt.Sprintf("%d batches, %d server blocks, %d wrong configurations, %d exchanges", s.Batches, s.Units, s.Wrong, s.Exchanges)},
			{Name: "speed", Value: fmt.Sprintf("%.0f exchanges/s, %.0f server blocks/s, %.1f boots/s, over all runs of the campaign", float64(s.Exchanges)/sec, float64(s.Units)/sec, float64(s.Boots)/sec)},
			{Name: "findings", Value: fmt.Sprintf("%d; %d cases wait for triage; %d differing units in all, %d of them only counted", len(s.Findings), len(waiting), s.Mismatches, s.Repeats)},
			{Name: "set aside", Value: fmt.Sprintf("%d units that nginx does not load, %d refused, %d unstable, %d on which the candidate wavers, %d in company only, %d runs without verdict", s.Dropped, s.Refused, s.Unstable, s.Wavers, s.Company, s.RigFailed)},
			{Name: "last-resort timeouts", Value: fmt.Sprintf("%d, %.2f in 1,000 exchanges", s.Timeouts, 1000*float64(s.Timeouts)/float64(max(2*s.Exchanges, 1)))},
		},
	}
	if len(s.Findings)+len(waiting) > 0 {
		p.Verdict, p.Good = "differ", false
	}
	if s.Batches+s.Wrong == 0 {
		p.Verdict, p.Good = "nothing compared", false
	}
	if p.Views, err = findingViews(cmd, o, s.Findings); err != nil {
		return nil, err
	}
	if p.Covered, err = reach(&s); err != nil {
		return nil, err
	}
	if len(waiting) > 0 {
		p.Lists = append(p.Lists, report.List{Title: "Waiting for triage", Lines: waiting})
	}
	if fates, err := os.ReadFile(filepath.Join(dir, "settled")); err == nil && len(fates) > 0 {
		p.Lists = append(p.Lists, report.List{Title: "What became of each differing case", Lines: strings.Split(strings.TrimSpace(string(fates)), "\n")})
	}
	return p, nil
}

// findingViews runs a campaign's findings again.
func findingViews(cmd *cobra.Command, o *reportOptions, list []campaign.Finding) ([]report.JSON, error) {
	var views []report.JSON
	var cases []*casefile.Case
	for _, f := range list {
		c, err := casefile.Load(f.File)
		switch {
		case err != nil:
			views = append(views, report.JSON{Case: f.File, Verdict: "not there any more", Title: f.Signature, Why: err.Error()})
		case o.NoRun:
			views = append(views, report.JSON{Case: f.File, Verdict: "differ", Title: f.Signature, Again: oracle("replay") + " " + report.Word(f.File)})
		default:
			cases = append(cases, c)
		}
	}
	if len(cases) == 0 {
		return views, nil
	}
	pair, err := reference.Resolve(cmd.Context(), o.Reference, o.Candidate, o.Cell, func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) })
	if err != nil {
		return nil, exit.Wrap(exit.Rig, err)
	}
	ro := &replayOptions{options: o.options, Jobs: 2}
	runAll(cmd.Context(), pair, cases, ro, func(r outcome) { views = append(views, r.view(ro).JSON()) })
	return views, nil
}

// reach counts the directives that the campaign's candidate knows, by module.
func reach(s *campaign.State) ([]report.Covered, error) {
	if len(s.Supported) == 0 {
		return nil, nil
	}
	tab, err := grammar.Load()
	if err != nil {
		return nil, err
	}
	by := map[string]*report.Covered{}
	var order []string
	for _, d := range tab.Directives {
		c := by[d.Module]
		if c == nil {
			c = &report.Covered{Module: d.Module}
			by[d.Module], order = c, append(order, d.Module)
		}
		c.All++
		if slices.Contains(s.Supported, d.Name) && !slices.Contains(s.Refuses, d.Name) {
			c.Supported++
		} else {
			c.Refused = strings.TrimSpace(c.Refused + " " + d.Name)
		}
	}
	slices.Sort(order)
	var out []report.Covered
	for _, m := range order {
		out = append(out, *by[m])
	}
	return out, nil
}
