package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// request is the bytes of one request of a workload.
func (w Workload) request() []byte {
	host := w.Host
	if host == "" {
		host = "bench.example.test"
	}
	conn := ""
	if w.Fresh {
		conn = "Connection: close\r\n"
	}
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", w.Path, host, conn)
}

var (
	wrkDone = regexp.MustCompile(`(?m)^\s+(\d+) requests in ([0-9.]+)(ms|s|m), ([0-9.]+)([KMGT]?)B read`)
	wrkErr  = regexp.MustCompile(`Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
	wrkBad  = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)`)
)

// wrk loads addr with 32 connections from one thread on the client's core; length is a whole response's.
func wrk(ctx context.Context, core int, w Workload, addr string, length int, d time.Duration) (requests, failed int64, seconds float64, err error) {
	args := pin(core, []string{"wrk", "-t1", "-c32", "-d" + strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"})
	if w.Host != "" {
		args = append(args, "-H", "Host: "+w.Host)
	}
	if w.Fresh {
		args = append(args, "-H", "Connection: close")
	}
	args = append(args, "http://"+addr+w.Path)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, 0, 0, fmt.Errorf("wrk: %w: %s", err, last(string(out)))
	}
	return parseWrk(string(out), int64(length))
}

// parseWrk reads wrk's report. A report without a count is an error; one with fewer bytes read than
// whole responses of length bytes must have had, is one of failures.
func parseWrk(out string, length int64) (requests, failed int64, seconds float64, err error) {
	m := wrkDone.FindStringSubmatch(out)
	if m == nil {
		return 0, 0, 0, fmt.Errorf("wrk: no count of requests in its report: %q", out)
	}
	requests, err = strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, 0, 0, err
	}
	seconds, err = strconv.ParseFloat(m[2], 64)
	if err != nil {
		return 0, 0, 0, err
	}
	seconds *= map[string]float64{"ms": 0.001, "s": 1, "m": 60}[m[3]]
	read, err := strconv.ParseFloat(m[4], 64)
	if err != nil {
		return 0, 0, 0, err
	}
	unit := map[string]float64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}[m[5]]
	read *= unit
	if e := wrkErr.FindStringSubmatch(out); e != nil {
		for _, s := range e[1:] {
			failed += int64(atoi(s))
		}
	}
	if e := wrkBad.FindStringSubmatch(out); e != nil {
		failed += int64(atoi(e[1]))
	}
	// wrk prints two decimals of its unit.
	if short := float64(requests*length) - read; short > 0.01*unit {
		failed += max(1, int64(short/float64(length)))
	}
	if requests == 0 || seconds <= 0 {
		return 0, 0, 0, fmt.Errorf("wrk: %d requests in %g s", requests, seconds)
	}
	return requests, failed, seconds, nil
}

// openLoop runs the open-loop client on the client's core.
func (r *runner) openLoop(ctx context.Context, w Workload, addr string, length, rate int) (Latency, error) {
	argv := pin(r.client, []string{r.opt.Self, "bench-role", "load"})
	job, err := json.Marshal(OpenLoopJob{Addr: addr, Request: w.request(), Length: length, Rate: rate, Conns: 32, Fresh: w.Fresh, Seconds: r.opt.Duration.Seconds()})
	if err != nil {
		return Latency{}, err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = bytes.NewReader(job)
	var out, errb bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errb
	if err := cmd.Run(); err != nil {
		return Latency{}, fmt.Errorf("open loop: %w: %s", err, last(errb.String()))
	}
	var l Latency
	if err := json.Unmarshal(out.Bytes(), &l); err != nil {
		return l, fmt.Errorf("open loop: result %q: %w", out.Bytes(), err)
	}
	if l.P50 == 0 && l.Errors == 0 {
		return l, fmt.Errorf("open loop: an empty histogram")
	}
	return l, nil
}

// syscalls is the number of system calls a request: the server is launched under strace
// twice, with 500 and with 1,500 kept-alive requests, and the difference is divided by 1,000,
// so that starting and stopping do not count.
func (r *runner) syscalls(ctx context.Context, w Workload, p place, s Server) (float64, error) {
	var total [2]int
	for i, n := range []int{500, 1500} {
		file := fmt.Sprintf("%s/strace.%d", p.dir, i)
		proc, err := start(pin(r.server, append([]string{"strace", "-f", "-c", "-o", file}, p.args(s)...)))
		if err != nil {
			return 0, err
		}
		err = proc.wait(ctx, p.addr())
		if err == nil {
			_, err = w.verify(p.addr(), n)
		}
		// strace passes on no signal: the server is its child.
		if pids, ferr := family(proc.cmd.Process.Pid); ferr == nil {
			for _, pid := range pids {
				if b, rerr := os.ReadFile(fmt.Sprintf("%s/logs/nginx.pid", p.dir)); rerr == nil && strings.TrimSpace(string(b)) == strconv.Itoa(pid) {
					if q, qerr := os.FindProcess(pid); qerr == nil {
						err = firstErr(err, q.Signal(os.Interrupt))
					}
				}
			}
		}
		err = firstErr(err, waitOrKill(proc))
		if err != nil {
			return 0, fmt.Errorf("strace: %w", err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		if total[i], err = straceTotal(string(b)); err != nil {
			return 0, err
		}
	}
	n := float64(total[1]-total[0]) / 1000
	if n <= 0 {
		return 0, fmt.Errorf("strace: %d calls with 500 requests, %d with 1,500: an impossible trace", total[0], total[1])
	}
	return n, nil
}

func waitOrKill(p *process) error {
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		return firstErr(fmt.Errorf("the traced server did not end"), p.cmd.Process.Kill())
	}
}

// straceTotal reads the calls of the "total" line of `strace -c`. An empty trace is an error, not zero.
func straceTotal(s string) (int, error) {
	for _, line := range strings.Split(s, "\n") {
		f := strings.Fields(line)
		if len(f) >= 4 && f[len(f)-1] == "total" {
			if n := atoi(f[3]); n > 0 {
				return n, nil
			}
		}
	}
	return 0, fmt.Errorf("strace: an empty trace (%d bytes without a total)", len(s))
}

func firstErr(errs ...error) error {
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}
