package main

import (
	"strings"
	"testing"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/observe"
)

// A response whose end only a last resort found is no normal scenario: with --census it fails, by name.
func TestLastResortInAScenario(t *testing.T) {
	for _, x := range []struct {
		strict   bool
		timeouts int
		verdict  diff.Verdict
		want     exit.Code
	}{
		{strict: true, timeouts: 0, verdict: diff.Agree, want: exit.Agree},
		{strict: true, timeouts: 2, verdict: diff.Agree, want: exit.Unstable},
		{strict: true, timeouts: 2, verdict: diff.Differ, want: exit.Differ},
		{strict: false, timeouts: 2, verdict: diff.Agree, want: exit.Agree},
	} {
		sum := tally{strict: x.strict}
		o := &observe.Observation{Timeouts: x.timeouts}
		sum.add(outcome{c: &casefile.Case{Name: "scenarios/a.txtar"}, ref: o, cand: o, result: diff.Result{Verdict: x.verdict}})
		if got := sum.code(); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
		if named := strings.Contains(sum.String(), "4 last-resort timeouts used (scenarios/a.txtar)"); named != (x.timeouts > 0) {
			t.Errorf("%+v: the summary is %q", x, sum.String())
		}
	}
}
