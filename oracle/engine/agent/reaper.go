package agent

import (
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine/proto"
)

// reaper collects the ends of all processes: as process 1 the agent inherits
// every orphan of the cell.
type reaper struct {
	mu    sync.Mutex
	exits map[int]proto.Exit
	more  chan struct{} // closed and replaced whenever something ended
}

func newReaper() *reaper {
	r := &reaper{exits: map[int]proto.Exit{}, more: make(chan struct{})}
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGCHLD)
	go func() {
		for range c {
			r.collect()
		}
	}()
	return r
}

func (r *reaper) collect() {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		e := proto.Exit{Exited: true}
		if ws.Signaled() {
			e.Signal, e.Core = int(ws.Signal()), ws.CoreDump()
		} else {
			e.Code = ws.ExitStatus()
		}
		r.mu.Lock()
		r.exits[pid] = e
		close(r.more)
		r.more = make(chan struct{})
		r.mu.Unlock()
	}
}

// exit is how pid ended; Exited is false while it runs.
func (r *reaper) exit(pid int) proto.Exit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exits[pid]
}

// wait waits for the end of pid, up to d.
func (r *reaper) wait(pid int, d time.Duration) proto.Exit {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		r.mu.Lock()
		e, more := r.exits[pid], r.more
		r.mu.Unlock()
		if e.Exited {
			return e
		}
		select {
		case <-more:
		case <-t.C:
			return r.exit(pid)
		}
	}
}

// reset forgets the ends seen so far; pids are used again.
func (r *reaper) reset() {
	r.mu.Lock()
	clear(r.exits)
	r.mu.Unlock()
}
