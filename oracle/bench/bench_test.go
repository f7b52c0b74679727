package bench

import (
	"math"
	"strings"
	"testing"
)

func TestEveryFigureHasItsWorkload(t *testing.T) {
	names := map[string]bool{}
	for _, w := range Workloads() {
		names[w.Name] = false
	}
	bounds, err := Thresholds()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bounds {
		if _, ok := names[b.Workload]; !ok {
			t.Errorf("threshold for %q, which is no workload", b.Workload)
		}
		names[b.Workload] = true
	}
	for n, has := range names {
		if !has {
			t.Errorf("workload %s has no threshold", n)
		}
	}
}

func TestFigureRefusesWhatItCannotSay(t *testing.T) {
	even := []float64{10, 10, 10, 10, 10}
	wide := []float64{10, 20, 10, 20, 10}
	half := []float64{5, 5, 5, 5, 5}
	le := Threshold{"w", "cpu", "<=", 0.75}
	for _, c := range []struct {
		name      string
		ref, cand []float64
		why       string
		want      Verdict
	}{
		{"passes", even, half, "", Pass},
		{"fails", even, even, "", Fail},
		{"voided", even, half, "3 failed", NoNumber},
		{"nothing measured", even, nil, "", NoNumber},
		{"zero reference", []float64{0, 0, 0, 0, 0}, half, "", NoNumber},
		{"too few pairs", even[:4], half[:4], "", NoNumber},
		{"too wide", even, wide, "", NoNumber},
	} {
		f := figure(le, c.ref, c.cand, c.why)
		if f.Verdict != c.want || c.want == NoNumber && f.Why == "" {
			t.Errorf("%s: %s", c.name, f.line("a", "b"))
		}
	}
	if f := figure(Threshold{"w", "failed", "<=", 0}, []float64{0}, []float64{1}, ""); f.Verdict != Fail {
		t.Errorf("one failed request during a reload: %s", f.line("a", "b"))
	}
}

func TestSpreadIsOfTheBetterHalf(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		most bool
		best float64
		want float64
	}{
		{[]float64{100, 90, 80, 70, 10}, true, 100, 0.3},                         // four of five
		{[]float64{10, 11, 12, 13, 90}, false, 10, 0.3},                          // four of five
		{[]float64{100, 99, 98, 97, 90, 10, 10, 10, 10, 10}, true, 100, 0.1},     // five of ten
		{[]float64{100, 99, 98, 97, 96, 50, 10, 10, 10, 10, 10}, true, 100, 0.5}, // six of eleven
		{[]float64{100, 50, 50, 50, 50, 50, 50, 50, 50, 50}, true, 100, 0.5},     // one lucky sample is no best
		{[]float64{100, 90}, true, 100, 0.1},
	} {
		if b, s := best(c.v, c.most); b != c.best || math.Abs(s-c.want) > 1e-9 {
			t.Errorf("%v: best %g, spread %g; want %g, %g", c.v, b, s, c.best, c.want)
		}
	}
}

func TestProcessesThatChangedAreNoSample(t *testing.T) {
	a := use{user: 10, system: 5, memory: 1, pids: []int{1, 2}}
	if u, err := (use{30, 6, 7, []int{1, 2}}).since(a); err != nil || u.user != 20 || u.system != 1 || u.memory != 7 {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := (use{30, 6, 7, []int{1, 3}}).since(a); err == nil {
		t.Error("a worker that was replaced under load is no error")
	}
}

func TestWrkReport(t *testing.T) {
	const report = `Running 2s test @ http://127.0.0.1:1/
  1 threads and 32 connections
  1000 requests in 2.00s, 1.00MB read
Requests/sec:    500.00
`
	n, failed, secs, err := parseWrk(report, 100)
	if err != nil || n != 1000 || failed != 0 || secs != 2 {
		t.Errorf("got %d %d %g %v", n, failed, secs, err)
	}
	if _, failed, _, err := parseWrk(report, 1060); err != nil || failed == 0 { // 1,000 of 1,060 bytes are 1.01 MB
		t.Errorf("1 MB for 1,000 responses of 1,060 bytes: failed %d, %v", failed, err)
	}
	if _, failed, _, err := parseWrk(report, 10000); err != nil || failed == 0 {
		t.Errorf("1 MB for 1,000 bodies of 10,000 bytes: failed %d, %v", failed, err)
	}
	if _, failed, _, err := parseWrk(report+"  Socket errors: connect 0, read 2, write 0, timeout 1\n  Non-2xx or 3xx responses: 4\n", 100); err != nil || failed != 7 {
		t.Errorf("failed %d, %v", failed, err)
	}
	for _, bad := range []string{"", strings.Replace(report, "1000 requests", "0 requests", 1)} {
		if _, _, _, err := parseWrk(bad, 100); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestEmptyTraceIsAnError(t *testing.T) {
	full := "% time     seconds  usecs/call     calls    errors syscall\n 50.00    0.01  5  20  read\n------\n100.00    0.000020           5        40         2 total\n"
	if n, err := straceTotal(full); err != nil || n != 40 {
		t.Errorf("got %d, %v", n, err)
	}
	for _, s := range []string{"", "strace: Process 1 attached\n", "100.00 0.0 0 0 total\n"} {
		if n, err := straceTotal(s); err == nil {
			t.Errorf("%q: %d calls and no error", s, n)
		}
	}
}
