package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"nginxoracle/oracle/exit"
)

type runner struct {
	opt                                Options
	serverCore, clientCore, originCore int
	shared                             string
	bounds                             []Threshold
}

// Run measures every workload asked for. An error means that the rig broke, or that ctx ended; what
// was measured before is returned with it. A workload that ctx has cut short is no row.
func Run(ctx context.Context, opt Options) ([]Row, error) {
	r := &runner{opt: opt}
	var err error
	if r.bounds, err = Thresholds(); err != nil {
		return nil, err
	}
	for _, t := range []struct{ tool, pkg string }{{"wrk", "wrk"}, {"strace", "strace"}, {"taskset", "util-linux"}} {
		if _, err := exec.LookPath(t.tool); err != nil {
			return nil, fmt.Errorf("bench needs %s: apt-get install %s", t.tool, t.pkg)
		}
	}
	switch n := runtime.NumCPU(); {
	case n < 2:
		return nil, fmt.Errorf("bench needs two cores: this machine has %d, and a client on the server's core measures itself", n)
	case n == 2:
		r.serverCore, r.clientCore, r.originCore = 0, 1, 1
		r.shared = "client and origin share core 1: throughput of the proxy workloads is bounded by both"
	default:
		r.serverCore, r.clientCore, r.originCore = 0, 1, 2
	}
	var rlim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &rlim); err == nil && rlim.Cur < rlim.Max {
		rlim.Cur = rlim.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &rlim); err != nil {
			return nil, fmt.Errorf("setrlimit: %w", err)
		}
	}
	var rows []Row
	for _, w := range Workloads() {
		if opt.Only != "" && opt.Only != w.Name {
			continue
		}
		row, err := r.workload(ctx, w)
		if ctx.Err() != nil {
			return rows, ctx.Err()
		}
		if err != nil {
			return rows, fmt.Errorf("workload %s: %w", w.Name, err)
		}
		rows = append(rows, row)
		if opt.Each != nil {
			opt.Each(row)
		}
	}
	return rows, nil
}

// Check tells wrong options before anything is started.
func (o Options) Check() error {
	switch {
	case o.Only != "" && !slices.Contains(names(), o.Only):
		return exit.Errorf(exit.Usage, "no workload %q: want one of %s", o.Only, strings.Join(names(), ", "))
	case o.Pairs < 1:
		return exit.Errorf(exit.Usage, "%d pairs: want at least 1 (5 for a verdict)", o.Pairs)
	case o.Duration < time.Second || o.Duration%time.Second != 0:
		return exit.Errorf(exit.Usage, "duration %v: want whole seconds (wrk takes no others)", o.Duration)
	case o.IdleWait < 0:
		return exit.Errorf(exit.Usage, "idle-wait %v: want no negative time", o.IdleWait)
	}
	return nil
}

// Left lists the workloads that were asked for and have no row.
func Left(only string, rows []Row) (out []string) {
	for _, name := range names() {
		if (only == "" || only == name) && !slices.ContainsFunc(rows, func(r Row) bool { return r.Workload == name }) {
			out = append(out, name)
		}
	}
	return out
}

func names() (out []string) {
	for _, w := range Workloads() {
		out = append(out, w.Name)
	}
	return out
}

// idle waits until the machine is idle, bounded, and returns the load average.
func (r *runner) idle(ctx context.Context) string {
	end := time.Now().Add(r.opt.IdleWait)
	for time.Now().Before(end) && ctx.Err() == nil {
		if busy, err := busyShare(200 * time.Millisecond); err == nil && busy < 0.10 {
			break
		}
	}
	return loadAverage()
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	f := strings.Fields(string(b))
	return f[0]
}

// busyShare is the share of all cores' time that was not idle during d.
func busyShare(d time.Duration) (float64, error) {
	a, ai, err := cpuTimes()
	if err != nil {
		return 0, err
	}
	time.Sleep(d)
	b, bi, err := cpuTimes()
	if err != nil || b == a {
		return 0, err
	}
	return 1 - float64(bi-ai)/float64(b-a), nil
}

func cpuTimes() (total, idle int64, err error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	for i, s := range strings.Fields(line)[1:] {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0, 0, err
		}
		total += n
		if i == 3 || i == 4 {
			idle += n
		}
	}
	return total, idle, nil
}

func (r *runner) workload(ctx context.Context, w Workload) (row Row, err error) {
	row = Row{Workload: w.Name, What: w.What, Ref: Side{Of: r.opt.Reference.Name}, Cand: Side{Of: r.opt.Candidate.Name}}
	if w.Origin > 0 {
		row.Shared = r.shared
	}
	p, err := r.prepare(w)
	if err != nil {
		return row, err
	}
	row.LoadBefore = r.idle(ctx)
	defer func() { row.LoadAfter = loadAverage() }()
	if w.Origin > 0 {
		o, err := start(pin(r.originCore, []string{r.opt.Self, "bench-role", "origin", p.originAddr(), strconv.Itoa(w.Origin)}))
		if err != nil {
			return row, err
		}
		defer o.kill()
		if err := o.wait(ctx, p.originAddr()); err != nil {
			return row, err
		}
		n, failed, s, err := wrk(ctx, r.clientCore, w, p.originAddr(), r.opt.Duration)
		if err != nil {
			return row, fmt.Errorf("the origin alone: %w", err)
		}
		if failed > 0 {
			return row, fmt.Errorf("the origin alone: %d of %d requests failed", failed, n)
		}
		row.Ceiling = float64(n) / s
	}
	switch w.Kind {
	case Throughput:
		err = r.throughput(ctx, w, p, &row)
	case OneByOne:
		err = r.oneByOne(ctx, w, p, &row)
	case Idle:
		err = r.idleConns(ctx, w, p, &row)
	case Reload:
		err = r.reload(ctx, w, p, &row)
	case Startup:
		err = r.startup(ctx, p, &row)
	}
	if err != nil {
		return row, err
	}
	r.judge(w, &row)
	return row, nil
}

// with runs f against a server that was started for it.
func (r *runner) with(ctx context.Context, p place, s Server, f func(pid int) error) error {
	proc, err := start(pin(r.serverCore, p.args(s)))
	if err != nil {
		return err
	}
	if err := proc.wait(ctx, p.addr()); err != nil {
		return firstErr(err, proc.stop())
	}
	err = f(proc.cmd.Process.Pid)
	if serr := proc.stop(); err == nil {
		err = serr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	return nil
}

func (r *runner) sides(row *Row) []struct {
	Server
	*Side
} {
	return []struct {
		Server
		*Side
	}{{r.opt.Reference, &row.Ref}, {r.opt.Candidate, &row.Cand}}
}

// pair is the sides in the order of pair i: who goes first changes with each, so that neither always finds the
// machine as the other has left it.
func (r *runner) pair(row *Row, i int) []struct {
	Server
	*Side
} {
	s := r.sides(row)
	if i%2 == 1 {
		slices.Reverse(s)
	}
	return s
}

func (r *runner) throughput(ctx context.Context, w Workload, p place, row *Row) error {
	length := 0
	for i := range r.opt.Pairs {
		for _, s := range r.pair(row, i) {
			err := r.with(ctx, p, s.Server, func(pid int) error {
				n, err := w.verify(p.addr(), 100)
				if err != nil {
					return err
				}
				length = n
				u0, s0, _, err := usage(pid)
				if err != nil {
					return err
				}
				n64, failed, secs, err := wrk(ctx, r.clientCore, w, p.addr(), r.opt.Duration)
				if err != nil {
					return err
				}
				u1, s1, rss, err := usage(pid)
				if err != nil {
					return err
				}
				s.Samples = append(s.Samples, Sample{Requests: n64, Failed: failed, Seconds: secs, UserUs: u1 - u0, SystemUs: s1 - s0, RSS: rss, Throughput: float64(n64) / secs})
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	rate := 0.0
	for _, s := range r.sides(row) {
		for _, x := range s.Samples {
			if rate == 0 || x.Throughput < rate {
				rate = x.Throughput
			}
		}
	}
	for _, s := range r.sides(row) {
		if !w.Fresh {
			err := r.with(ctx, p, s.Server, func(int) error {
				var err error
				s.Latency, err = r.openLoop(ctx, w, p.addr(), length, max(int(rate/2), 1))
				return err
			})
			if err != nil {
				return err
			}
		}
		n, err := r.syscalls(ctx, w, p, s.Server)
		if err != nil {
			s.Why = err.Error()
		}
		s.Syscalls = n
	}
	return nil
}

func (r *runner) judge(w Workload, row *Row) {
	for _, t := range r.bounds {
		if t.Workload != w.Name {
			continue
		}
		why := ""
		var failed int64
		pick := func(f func(Sample) float64, s Side) (v []float64) {
			for _, x := range s.Samples {
				v = append(v, f(x))
				failed += x.Failed
			}
			return v
		}
		switch t.Figure {
		case "cpu":
			ref, cand := pick(Sample.CPU, row.Ref), pick(Sample.CPU, row.Cand)
			if failed > 0 {
				why = fmt.Sprintf("%d failed or short responses void the run", failed)
			}
			row.Figures = append(row.Figures, figure(t, "cpu a request", "µs", ref, cand, why))
		case "throughput":
			thr := func(s Sample) float64 { return s.Throughput }
			ref, cand := pick(thr, row.Ref), pick(thr, row.Cand)
			if failed > 0 {
				why = fmt.Sprintf("%d failed or short responses void the run", failed)
			} else if row.Ceiling > 0 {
				b, _ := best(cand, true)
				a, _ := best(ref, true)
				if max(a, b)*minCeiling > row.Ceiling {
					why = fmt.Sprintf("the origin alone gives %.0f/s, within %.1f times", row.Ceiling, minCeiling)
				}
			}
			f := figure(t, "throughput", "/s", ref, cand, why)
			// A server that was not busy shows the client's limit: its figure is a lower bound,
			// which can pass and cannot fail.
			if busy := busiest(row.Cand); f.Verdict == Fail && busy < saturated {
				f.Verdict, f.Why = NoNumber, fmt.Sprintf("the client is the limit: the candidate was %.0f%% busy", 100*busy)
			}
			row.Figures = append(row.Figures, f)
		default:
			name := map[string]string{"memory": "memory an idle connection", "failed": "failed requests", "time": "-t, 10,000 lines", "latency": "latency p50, one by one"}[t.Figure]
			unit := map[string]string{"memory": "B", "failed": "", "time": "ms", "latency": "µs"}[t.Figure]
			row.Figures = append(row.Figures, figure(t, name, unit, row.Ref.Values, row.Cand.Values, why))
		}
	}
}

// busiest is the largest share of its one core that a server used in any sample.
func busiest(s Side) (b float64) {
	for _, x := range s.Samples {
		b = max(b, (x.UserUs+x.SystemUs)/1e6/x.Seconds)
	}
	return b
}
