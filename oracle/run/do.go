package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
	"nginxoracle/oracle/observe"
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
		if why := refused(err); why != nil {
			r.o.Undone = append(r.o.Undone, observe.Undone{Line: s.Line, Text: s.String() + ": " + why.Error()})
			continue
		}
		if err != nil {
			return fmt.Errorf("line %d: %s: %w", s.Line, s.Op, err)
		}
	}
	return nil
}

// refused is why a work tree does not allow a change: what the step names is not there, or is of another kind. That is
// the case's fault or the target's, and not the rig's; nil for any other error.
func refused(err error) error {
	for _, e := range []syscall.Errno{syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.EEXIST, syscall.ENOTEMPTY, syscall.EINVAL, syscall.ELOOP} {
		if errors.Is(err, e) {
			return e
		}
	}
	return nil
}

// Undone tells which step of a case asks for a change of files that are not there, as a run on the reference shows. It
// is a *casefile.Error, or nil.
func Undone(c *casefile.Case, ref *observe.Observation) error {
	if len(ref.Undone) > 0 {
		return &casefile.Error{File: c.Name, Line: ref.Undone[0].Line, Msg: ref.Undone[0].Text}
	}
	return nil
}

// Wrong is Undone, and tells besides which origin is on an address that the server listens on, and whether the server is told
// to leave the foreground, where nothing is seen of it.
func Wrong(c *casefile.Case, ref *observe.Observation) error {
	if err := Undone(c, ref); err != nil {
		return err
	}
	if f, n, _ := daemon(c); n != nil && len(n.Words) == 2 && strings.EqualFold(conftree.Value(n.Words[1]), "on") {
		return &casefile.Error{File: c.Name, Line: f.Line + n.Line, Msg: "want no \"daemon on\": a server is watched in the foreground"}
	}
	for line := range strings.Lines(ref.Start.Text) {
		_, rest, ok := strings.Cut(line, "bind() to ")
		addr, why, taken := strings.Cut(rest, " failed (")
		if !ok || !taken || !strings.HasPrefix(why, strconv.Itoa(int(syscall.EADDRINUSE))+":") {
			continue
		}
		for _, o := range c.Origins {
			if covers(addr, o.Addr) {
				return &casefile.Error{File: c.Name, Line: o.Line, Msg: fmt.Sprintf("want an address of the origin's own, got %s, where the server listens (%s)", o.Addr, addr)}
			}
		}
	}
	return nil
}

// covers tells whether a server that listens at one address takes another one with it.
func covers(server, origin string) bool {
	s, errS := netip.ParseAddrPort(server)
	o, errO := netip.ParseAddrPort(origin)
	if errS != nil || errO != nil {
		return server == origin
	}
	return s == o || s.Port() == o.Port() && s.Addr().IsUnspecified()
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
