package bench

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"time"
)

// idleConns measures what an idle kept-alive connection costs in memory: the growth of the
// anonymous proportional set over Conns connections that each have had one response.
func (r *runner) idleConns(ctx context.Context, w Workload, p place, row *Row) error {
	for i := range r.opt.Pairs {
		for _, s := range r.pair(row, i) {
			err := r.with(ctx, p, s.Server, func(pid int) error {
				if _, err := w.verify(p.addr(), 100); err != nil {
					return blame(s.Name, err)
				}
				before, err := anonymous(pid)
				if err != nil {
					return err
				}
				conns := make([]net.Conn, 0, w.Conns)
				defer func() {
					for _, c := range conns {
						c.Close()
					}
				}()
				buf := make([]byte, 4096)
				for range w.Conns {
					c, err := net.DialTimeout("tcp", p.addr(), 5*time.Second)
					if err != nil {
						return err
					}
					conns = append(conns, c)
					if _, err := c.Write(w.request()); err != nil {
						return err
					}
					if _, err := c.Read(buf); err != nil {
						return blame(s.Name, fmt.Errorf("connection %d: %w", len(conns), err))
					}
				}
				after, err := anonymous(pid)
				if err != nil {
					return err
				}
				// A server that has closed some of them has less to remember.
				for k, c := range conns {
					raw, err := c.(*net.TCPConn).SyscallConn()
					if err != nil {
						return err
					}
					var peek error
					if err := raw.Control(func(fd uintptr) {
						_, _, peek = syscall.Recvfrom(int(fd), buf[:1], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
					}); err != nil {
						return err
					}
					if peek != syscall.EAGAIN {
						return blame(s.Name, fmt.Errorf("connection %d of %d is not idle: %v", k+1, len(conns), peek))
					}
				}
				s.Values = append(s.Values, float64(after-before)/float64(w.Conns))
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// oneByOne measures the latency of one connection that sends a request when the last one has been answered.
func (r *runner) oneByOne(ctx context.Context, w Workload, p place, row *Row) error {
	for i := range r.opt.Pairs {
		for _, s := range r.pair(row, i) {
			err := r.with(ctx, p, s.Server, func(int) error {
				length, err := w.verify(p.addr(), 100)
				if err != nil {
					return blame(s.Name, err)
				}
				l, err := r.openLoop(ctx, w, p.addr(), length, 0)
				if err == nil && l.Errors > 0 {
					err = blame(s.Name, fmt.Errorf("one by one: %s", l.First))
				}
				s.Closed = append(s.Closed, l)
				s.Values = append(s.Values, float64(l.P50))
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// startup takes the wall time of `-t` on a large configuration.
func (r *runner) startup(ctx context.Context, p place, row *Row) error {
	for i := range r.opt.Pairs {
		for _, s := range r.pair(row, i) {
			argv := pin(r.server, p.args(s.Server, "-t"))
			begin := time.Now()
			out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
			if err != nil {
				return blame(s.Name, fmt.Errorf("%s -t: %w: %s", s.Name, err, last(string(out))))
			}
			s.Values = append(s.Values, float64(time.Since(begin))/float64(time.Millisecond))
		}
	}
	return nil
}
