package bench

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed thresholds.tsv
var thresholdText string

// The bounds of what counts as a measurement.
const (
	minPairs   = 5
	minAgree   = 4    // of one side's samples, and at least half of them, have to agree on its best
	maxSpread  = 0.20 // (worst-best)/best of those
	saturated  = 0.9  // a server that used less of its core was not the limit
	minCeiling = 1.5  // a throughput within this of the origin's own is the origin's, not the proxy's
)

// Threshold is one row of thresholds.tsv.
type Threshold struct {
	Workload, Figure, Op string
	Ratio                float64
}

// Thresholds reads the table.
func Thresholds() ([]Threshold, error) {
	var out []Threshold
	for i, line := range strings.Split(strings.TrimSpace(thresholdText), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 {
			return nil, fmt.Errorf("thresholds.tsv:%d: want workload, figure, bound", i+1)
		}
		op, num, ok := strings.Cut(f[2], " ")
		v, err := strconv.ParseFloat(num, 64)
		if !ok || err != nil || op != "<=" && op != ">=" {
			return nil, fmt.Errorf("thresholds.tsv:%d: bound %q: want <= or >= and a number", i+1, f[2])
		}
		if measures[f[1]].name == "" {
			return nil, fmt.Errorf("thresholds.tsv:%d: figure %q is none", i+1, f[1])
		}
		out = append(out, Threshold{f[0], f[1], op, v})
	}
	return out, nil
}

// best is the best of the values, and the spread, (worst-best)/best, of the better half, or of minAgree if that is
// more: what a machine does beside the measurement only takes away, so that the best is told by those that come near it.
func best(values []float64, most bool) (b, spread float64) {
	v := slices.Clone(values)
	slices.Sort(v)
	if most {
		slices.Reverse(v)
	}
	v = v[:min(len(v), max(minAgree, (len(v)+1)/2))]
	b = v[0]
	if b != 0 {
		spread = (v[len(v)-1] - b) / b
	}
	return b, max(spread, -spread)
}

// measures are the figures as they are shown, with their units.
var measures = map[string]struct{ name, unit string }{
	"cpu":        {"cpu a request", "µs"},
	"throughput": {"throughput", "/s"},
	"memory":     {"memory an idle connection", "B"},
	"failed":     {"failed requests", ""},
	"time":       {"-t, 10,000 lines", "ms"},
	"latency":    {"latency p50, one by one", "µs"},
}

// blank is the threshold's figure before anything is known.
func (t Threshold) blank() Figure {
	m := measures[t.Figure]
	return Figure{Name: m.name, Unit: m.unit, Bound: fmt.Sprintf("%s %g", t.Op, t.Ratio), Verdict: NoNumber}
}

// figure holds two sides' values against a threshold.
func figure(t Threshold, ref, cand []float64, why string) Figure {
	f := t.blank()
	f.Why = why
	if len(ref) == 0 || len(cand) == 0 {
		f.Why = strings.TrimSpace("nothing measured; " + why)
		return f
	}
	most := t.Op == ">="
	f.Ref, f.Spread[0] = best(ref, most)
	f.Cand, f.Spread[1] = best(cand, most)
	switch {
	case f.Ref == 0 && t.Figure != "failed":
		f.Why = "the reference's value is zero"
		return f
	case t.Figure == "failed": // a count: the candidate's own, not a ratio
		f.Ratio = f.Cand
	default:
		f.Ratio = f.Cand / f.Ref
	}
	switch {
	case why != "":
	case t.Figure != "failed" && len(ref) < minPairs:
		f.Why = fmt.Sprintf("%d pairs, at least %d are needed", len(ref), minPairs)
	case t.Figure != "failed" && max(f.Spread[0], f.Spread[1]) > maxSpread:
		f.Why = fmt.Sprintf("spread over %.0f%%", 100*maxSpread)
	case t.Op == "<=" && f.Ratio <= t.Ratio, t.Op == ">=" && f.Ratio >= t.Ratio:
		f.Verdict = Pass
	default:
		f.Verdict = Fail
	}
	return f
}
