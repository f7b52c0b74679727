package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"nginxoracle/oracle/engine/agent"
)

// Kinds of cell.
const (
	Local     = "local"
	Container = "container"
)

// DefaultTreeBytes bounds the work tree, so that a target that fills it is a
// finding and not the machine's trouble.
const DefaultTreeBytes = 256 << 20

// Options say what cell to open.
type Options struct {
	Kind      string // Local or Container
	Target    Target
	TreeBytes int64  // bound of /cell; 0: DefaultTreeBytes
	Agent     string // a binary that calls Agent first; "": this one

	// How long a server may take to be ready, and a command to end; 0: StartLimit, CommandLimit.
	StartLimit, CommandLimit time.Duration
}

// Open opens a cell. The program must call Agent first thing in main.
func Open(ctx context.Context, o Options) (Cell, error) {
	if o.TreeBytes == 0 {
		o.TreeBytes = DefaultTreeBytes
	}
	if o.Agent == "" {
		o.Agent = "/proc/self/exe"
	}
	o.StartLimit = cmp.Or(o.StartLimit, StartLimit)
	o.CommandLimit = cmp.Or(o.CommandLimit, CommandLimit)
	var c *cell
	var err error
	switch o.Kind {
	case Local:
		c, err = openLocal(ctx, o)
	case Container:
		c, err = openContainer(ctx, o)
	default:
		err = errors.New("want local or container")
	}
	if err != nil {
		return nil, fmt.Errorf("open a %s cell for %s: %w", o.Kind, o.Target.Name, err)
	}
	return c, nil
}

// Agent turns this process into a cell's agent when it was started as one, and
// does not return then. Every program and every TestMain that opens cells calls it first.
func Agent() {
	if len(os.Args) > 1 && os.Args[1] == agent.Arg {
		os.Exit(agent.Main(os.Args[2:]))
	}
}
