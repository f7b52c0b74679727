package bench

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// Machine says in one line where the figures were taken.
func Machine() string {
	model := "unknown CPU"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for _, line := range strings.Split(string(b), "\n") {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				model = strings.TrimSpace(v)
				break
			}
		}
	}
	release := ""
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		release = ", Linux " + strings.TrimSpace(string(b))
	}
	return fmt.Sprintf("%d cores, %s%s", runtime.NumCPU(), model, release)
}

// Print writes a row: every line names its workload.
func (r Row) Print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n", r.Workload, r.What)
	for _, f := range r.Figures {
		fmt.Fprintf(w, "  %s: %s\n", r.Workload, f.line(r.Ref.Of, r.Cand.Of))
	}
	if len(r.Ref.Samples) > 0 {
		fmt.Fprintf(w, "  %s: load by wrk -t1 -c32, closed loop\n", r.Workload)
	}
	for i, s := range [][]Latency{r.Ref.Closed, r.Cand.Closed} {
		for _, l := range s {
			fmt.Fprintf(w, "  %s: %-5s latency one by one (own generator, not a throughput): p50 %d µs, p99 %d µs, p99.9 %d µs\n",
				r.Workload, []string{r.Ref.Of, r.Cand.Of}[i], l.P50, l.P99, l.P999)
		}
	}
	side := func(name string, s Side) {
		if len(s.Samples) == 0 {
			return
		}
		last := s.Samples[len(s.Samples)-1]
		fmt.Fprintf(w, "  %s: %-5s user %.1f µs, system %.1f µs a request; memory %.1f MiB under load", r.Workload, name,
			last.UserUs/float64(last.Requests), last.SystemUs/float64(last.Requests), float64(last.RSS)/(1<<20))
		if s.Syscalls > 0 {
			fmt.Fprintf(w, "; %.2f system calls a request (strace)", s.Syscalls)
		} else {
			fmt.Fprintf(w, "; NO NUMBER for system calls: %s", s.Why)
		}
		switch {
		case s.Latency.Errors > 0:
			fmt.Fprintf(w, "; NO NUMBER for latency: open loop at %d/s, %d failed or unanswered (%s)", s.Latency.Rate, s.Latency.Errors, s.Latency.First)
		case s.Latency.Rate > 0:
			fmt.Fprintf(w, "; latency open loop at %d/s (own generator): p50 %d µs, p99 %d µs, p99.9 %d µs", s.Latency.Rate, s.Latency.P50, s.Latency.P99, s.Latency.P999)
		}
		fmt.Fprintln(w)
	}
	side(r.Ref.Of, r.Ref)
	side(r.Cand.Of, r.Cand)
	for _, s := range []Side{r.Ref, r.Cand} {
		if s.Note != "" {
			fmt.Fprintf(w, "  %s: %s: %s\n", r.Workload, s.Of, s.Note)
		}
	}
	if r.Ceiling > 0 {
		fmt.Fprintf(w, "  %s: the origin alone: %.0f/s (wrk)\n", r.Workload, r.Ceiling)
	}
	if r.Shared != "" {
		fmt.Fprintf(w, "  %s: %s\n", r.Workload, r.Shared)
	}
	idle := "idle before"
	if r.NotIdle != "" {
		idle = r.NotIdle
	}
	fmt.Fprintf(w, "  %s: %s; load average %s before, %s after\n", r.Workload, idle, r.LoadBefore, r.LoadAfter)
}

// Table writes the figures alone, one a line.
func (r Report) Table(w io.Writer) {
	fmt.Fprintf(w, "%-20s %-26s %12s %12s %6s  %-8s %s\n", "workload", "figure", r.Reference.Name, r.Candidate.Name, "ratio", "bound", "verdict")
	for _, row := range r.Rows {
		for _, f := range row.Figures {
			if f.wrong() {
				fmt.Fprintf(w, "%-20s %-26s %12s %12s %6s  %-8s %s\n", row.Workload, f.Name, "-", "-", "-", f.Bound, f.Verdict)
				continue
			}
			fmt.Fprintf(w, "%-20s %-26s %12.2f %12.2f %6.2f  %-8s %s\n", row.Workload, f.Name, f.Ref, f.Cand, f.Ratio, f.Bound, f.Verdict)
		}
	}
	fmt.Fprintf(w, "total: %.1f minutes\n", r.Seconds/60)
}
