package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"nginxoracle/oracle/exit"
)

type runner struct {
	opt    Options
	bounds []Threshold
	cores
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
	allowed, err := allowedCores()
	if err != nil {
		return nil, err
	}
	if r.cores, err = pickCores(allowed, siblings); err != nil {
		return nil, err
	}
	// This process is a client too: of the first hundred responses, of idle connections, of a reload.
	if err := pinSelf(r.client); err != nil {
		return nil, err
	}
	defer pinSelf(allowed...)
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

// idle waits until the machine is idle, bounded, and returns the load average, and what it ended with if not with that.
func (r *runner) idle(ctx context.Context) (load, not string) {
	begin := time.Now()
	for {
		busy, err := busyShare(200 * time.Millisecond)
		switch {
		case err != nil:
			return loadAverage(), "whether it is idle is unknown: " + err.Error()
		case busy < 0.10:
			return loadAverage(), ""
		case ctx.Err() != nil || time.Since(begin) >= r.opt.IdleWait:
			return loadAverage(), fmt.Sprintf("not idle: %.0f %% busy after %.0f s", 100*busy, time.Since(begin).Seconds())
		}
	}
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
	row.Shared = r.threads
	if w.Origin > 0 {
		row.Shared = strings.TrimPrefix(r.threads+"; "+r.shared, "; ")
		row.Shared = strings.TrimSuffix(row.Shared, "; ")
	}
	p, err := r.prepare(w)
	if err != nil {
		return row, err
	}
	row.LoadBefore, row.NotIdle = r.idle(ctx)
	defer func() { row.LoadAfter = loadAverage() }()
	if w.Origin > 0 {
		o, err := start(pin(r.origin, []string{r.opt.Self, "bench-role", "origin", p.originAddr(), strconv.Itoa(w.Origin)}))
		if err != nil {
			return row, err
		}
		defer o.kill()
		if err := o.wait(ctx, p.originAddr()); err != nil {
			return row, err
		}
		length, err := w.verify(p.originAddr(), 100)
		if err != nil {
			return row, fmt.Errorf("the origin alone: %w", err)
		}
		n, failed, s, err := wrk(ctx, r.client, w, p.originAddr(), length, r.opt.Duration)
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
	return row, r.outcome(w, &row, err)
}

// outcome judges a row, or makes it the candidate's failure; any other error is the rig's.
func (r *runner) outcome(w Workload, row *Row, err error) error {
	var bad *wrong
	if errors.As(err, &bad) && bad.of == r.opt.Candidate.Name {
		r.fail(w, row, bad)
		return nil
	}
	if err == nil {
		r.judge(w, row)
	}
	return err
}

// with runs f against a server that was started for it. A server that does not start, ends while it is asked, or ends
// badly has done wrong itself; what nobody of this machine can start shows in the reference, which is the first to.
func (r *runner) with(ctx context.Context, p place, s Server, f func(pid int) error) error {
	proc, err := start(pin(r.server, p.args(s)))
	if err != nil {
		return err
	}
	if err := proc.wait(ctx, p.addr()); err != nil {
		return fmt.Errorf("%s: %w", s.Name, blame(s.Name, firstErr(err, proc.stop())))
	}
	err = f(proc.cmd.Process.Pid)
	if err != nil && proc.gone() {
		err = blame(s.Name, fmt.Errorf("the server ended: %w", err))
	}
	if serr := proc.stop(); err == nil {
		err = blame(s.Name, serr)
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
	length := map[string]int{} // of a whole response, by server
	for i := range r.opt.Pairs {
		for _, s := range r.pair(row, i) {
			err := r.with(ctx, p, s.Server, func(pid int) error {
				n, err := w.verify(p.addr(), 100)
				if err != nil {
					return blame(s.Name, err)
				}
				length[s.Name] = n
				before, err := usage(pid)
				if err != nil {
					return err
				}
				n64, failed, secs, err := wrk(ctx, r.client, w, p.addr(), n, r.opt.Duration)
				if err != nil {
					return err
				}
				after, err := usage(pid)
				if err != nil {
					return blame(s.Name, err)
				}
				used, err := after.since(before)
				if err != nil {
					return blame(s.Name, err)
				}
				s.Samples = append(s.Samples, Sample{Requests: n64, Failed: failed, Seconds: secs, UserUs: used.user, SystemUs: used.system, RSS: used.memory, Throughput: float64(n64) / secs})
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
		err := r.with(ctx, p, s.Server, func(int) error {
			var err error
			s.Latency, err = r.openLoop(ctx, w, p.addr(), length[s.Name], max(int(rate/2), 1))
			return err
		})
		if err != nil {
			return err
		}
		n, err := r.syscalls(ctx, w, p, s.Server)
		if err != nil {
			s.Why = err.Error()
		}
		s.Syscalls = n
	}
	return nil
}

// fail makes every figure of a row the candidate's failure, with its reason.
func (r *runner) fail(w Workload, row *Row, bad *wrong) {
	row.Ref, row.Cand = Side{Of: row.Ref.Of}, Side{Of: row.Cand.Of} // what was begun is no measurement
	for _, t := range r.bounds {
		if t.Workload == w.Name {
			f := t.blank()
			f.Verdict, f.Why = Fail, strings.ReplaceAll(bad.Error(), "\n", "; ")
			row.Figures = append(row.Figures, f)
		}
	}
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
			row.Figures = append(row.Figures, figure(t, ref, cand, why))
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
			f := figure(t, ref, cand, why)
			// A server that was not busy shows the client's limit: its figure is a lower bound,
			// which can pass and cannot fail.
			if busy := busiest(row.Cand); f.Verdict == Fail && busy < saturated {
				f.Verdict, f.Why = NoNumber, fmt.Sprintf("the client is the limit: the candidate was %.0f%% busy", 100*busy)
			}
			row.Figures = append(row.Figures, f)
		default:
			row.Figures = append(row.Figures, figure(t, row.Ref.Values, row.Cand.Values, why))
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
