package run

import (
	"bytes"
	"context"
	"fmt"
	"syscall"
	"time"

	"nginxoracle/oracle/casefile"
)

var signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM, "QUIT": syscall.SIGQUIT, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH, "KILL": syscall.SIGKILL,
}

// do carries out the steps of a do-section.
func (r *Running) do(ctx context.Context, steps []casefile.Step) error {
	for i := range steps {
		s := &steps[i]
		var err error
		switch s.Op {
		case casefile.Pause:
			err = r.player.Pause(ctx, s.Dur)
		case casefile.Signal:
			err = r.signal(ctx, s.Args[0])
		case casefile.Write:
			err = r.cell.Do(ctx, string(s.Op), s.Args, bytes.Join(s.Data, nil))
		case casefile.Remove, casefile.Rename, casefile.Chmod:
			err = r.cell.Do(ctx, string(s.Op), s.Args, nil)
		default:
			err = fmt.Errorf("%q is no step of a do section", s.Op)
		}
		if err != nil {
			return fmt.Errorf("line %d: %s: %w", s.Line, s.Op, err)
		}
	}
	return nil
}

// A reload hands over from old workers to new ones. nginx's master gives the new
// ones 100 ms before it tells the old ones to go (src/os/unix/ngx_process_cycle.c,
// ngx_master_process_cycle), so that for a while the server rests with more processes
// than it will keep. An old worker with a request that lasts stays longer; then
// the hand-over counts as done.
const (
	handOver     = 400 * time.Millisecond
	handOverStep = 5 * time.Millisecond
)

// signal sends a signal and waits for its effect: the server rests again, and a
// reload's old workers have gone. A server that has ended already takes no signal,
// which what follows will show.
func (r *Running) signal(ctx context.Context, name string) error {
	before, err := r.player.Settle(ctx)
	if err != nil {
		return err
	}
	if !before.Alive {
		return nil
	}
	if err := r.srv.Signal(ctx, int(signals[name])); err != nil {
		return err
	}
	for waited := time.Duration(0); ; waited += handOverStep {
		rest, err := r.player.Settle(ctx)
		if err != nil {
			return err
		}
		if !rest.Alive || rest.Procs <= before.Procs || waited >= handOver {
			return nil
		}
		if err := r.player.Pause(ctx, handOverStep); err != nil {
			return err
		}
	}
}
