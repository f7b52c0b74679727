package engine

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine/proto"
)

// server is a started server; its standard error is a file that lives as long
// as the descriptor, so it is read without asking the agent.
type server struct {
	cell   *cell
	pid    int
	stderr int // -1 after Stop
	final  []byte
	exit   Exit
	left   []string
	over   bool
}

func (s *server) Pid() int { return s.pid }

func (s *server) Signal(ctx context.Context, sig int) error {
	_, _, err := s.cell.call(ctx, &proto.Request{Op: proto.OpSignal, N: sig})
	return err
}

func (s *server) Wait(ctx context.Context, d time.Duration) (Exit, error) {
	if s.exit.Exited {
		return s.exit, nil
	}
	ans, _, err := s.cell.call(ctx, &proto.Request{Op: proto.OpWait, Pid: s.pid, Limit: d})
	if err != nil {
		return Exit{}, err
	}
	s.exit = Exit(ans.Exit)
	return s.exit, nil
}

func (s *server) Stderr(context.Context) ([]byte, error) {
	if s.stderr < 0 {
		return s.final, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(s.stderr, &st); err != nil {
		return nil, fmt.Errorf("standard error of %s: %w", s.cell.info.Target, err)
	}
	b := make([]byte, st.Size)
	n, err := unix.Pread(s.stderr, b, 0)
	if err != nil {
		return nil, fmt.Errorf("standard error of %s: %w", s.cell.info.Target, err)
	}
	return b[:n], nil
}

// Stop ends the server; a second call gives the first one's answer.
func (s *server) Stop(ctx context.Context) (Exit, []string, error) {
	if s.over {
		return s.exit, s.left, nil
	}
	ans, _, err := s.cell.call(ctx, &proto.Request{Op: proto.OpStop, Pid: s.pid})
	if err != nil {
		return Exit{}, nil, err
	}
	s.exit, s.left, s.over = Exit(ans.Exit), ans.Left, true
	s.final, err = s.Stderr(ctx)
	unix.Close(s.stderr)
	s.stderr = -1
	s.cell.server = 0
	return s.exit, s.left, err
}
