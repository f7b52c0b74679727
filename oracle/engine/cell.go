package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine/probe"
	"nginxoracle/oracle/engine/proto"
)

// Limits that keep a hanging target from hanging the oracle. A context that ends
// earlier ends the cell.
const (
	StartLimit   = 10 * time.Second
	CommandLimit = 30 * time.Second
)

// ErrNotReady says that a started server neither listens nor rests nor exits.
var ErrNotReady = errors.New("the server is not ready")

// ErrNotServer says that a target's program does not have nginx's command line.
var ErrNotServer = errors.New("does not answer -V as nginx does, so it has not nginx's command line")

// ErrCellGone says that the agent of a cell has ended: the rig broke.
var ErrCellGone = errors.New("the cell is gone")

// pool sizes: how many sockets are fetched from the agent in one round trip.
const (
	poolFirst = 16
	poolMost  = 240
)

// cell is the oracle's side of a cell of any kind: the agent's client.
type cell struct {
	info   Info
	limits Options
	conn   *proto.Conn
	end    func() error // waits for the agent's end and tells what it said, if it failed
	prober *probe.Prober
	remote bool // the agent must probe: this process may not look into the cell
	mine   probe.Mine
	server int

	given []File // the last Reset's

	sockets map[string][]int // unconnected sockets of the cell, by family
	batch   int

	closing sync.Once
	closed  error
}

// newCell greets the agent behind fd, which it takes over.
func newCell(ctx context.Context, fd int, info Info, o Options, end func() error) (*cell, error) {
	c := &cell{
		info:    info,
		limits:  o,
		conn:    proto.NewConn(fd),
		end:     end,
		mine:    probe.Mine{Inodes: map[uint32]bool{}, Paths: map[string]bool{}},
		sockets: map[string][]int{},
		batch:   poolFirst,
	}
	ans, fds, err := c.call(ctx, &proto.Request{Op: proto.OpHello})
	if err != nil {
		return nil, c.failed(err)
	}
	if len(fds) != 2 {
		return nil, c.failed(fmt.Errorf("the agent sent %d handles, want 2", len(fds)))
	}
	if c.prober, err = probe.New(fds[0], fds[1]); err != nil {
		return nil, c.failed(err)
	}
	c.info.SHA256 = ans.SHA256
	if err := c.describe(ctx); err != nil {
		return nil, c.failed(err)
	}
	return c, nil
}

func (c *cell) failed(err error) error {
	if end := c.Close(); end != nil {
		return fmt.Errorf("%w (%v)", err, end)
	}
	return err
}

// versions remembers what binaries say of themselves, by hash: asking costs 20 ms each.
var versions sync.Map // SHA256 -> [2]string

func (c *cell) describe(ctx context.Context) error {
	if v, ok := versions.Load(c.info.SHA256); ok {
		c.info.Version, c.info.V = v.([2]string)[0], v.([2]string)[1]
		return nil
	}
	out, err := c.Command(ctx, "-V")
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", c.info.Target, err)
	}
	if !out.Exit.Exited || out.Exit.Code != 0 || out.Exit.Signal != 0 {
		return fmt.Errorf("%s %w: %s: %.200q", c.info.Target, ErrNotServer, out.Exit, out.Stderr)
	}
	if first, _, _ := strings.Cut(string(out.Stderr), "\n"); !strings.Contains(first, " version: ") {
		return fmt.Errorf("%s %w: it says %.200q", c.info.Target, ErrNotServer, out.Stderr)
	}
	c.info.V = string(out.Stderr)
	c.info.Version, _, _ = strings.Cut(c.info.V, "\n")
	versions.Store(c.info.SHA256, [2]string{c.info.Version, c.info.V})
	return nil
}

func (c *cell) Info() Info { return c.info }

// call asks the agent one question. When ctx ends, so does the cell.
func (c *cell) call(ctx context.Context, req *proto.Request) (*proto.Answer, []int, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("cell %s: %s: %w", c.info.Target, req.Op, err)
	}
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, c.conn.Shutdown)
		defer stop()
	}
	ans := new(proto.Answer)
	err := c.conn.Send(req)
	if err == nil {
		err = c.conn.Recv(ans)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("cell %s: %s: %w", c.info.Target, req.Op, ctx.Err())
		}
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) {
			err = ErrCellGone
		}
		return nil, nil, fmt.Errorf("cell %s: %s: %w", c.info.Target, req.Op, err)
	}
	fds, err := c.conn.TakeFDs(ans.FDs)
	if err != nil {
		return nil, nil, fmt.Errorf("cell %s: %s: %w", c.info.Target, req.Op, err)
	}
	if ans.Err != "" {
		return ans, nil, &agentError{cell: c.info.Target, op: req.Op, text: ans.Err, errno: syscall.Errno(ans.Errno)}
	}
	return ans, fds, nil
}

// agentError is an error that happened in the agent, with its error number.
type agentError struct {
	cell  string
	op    proto.Op
	text  string
	errno syscall.Errno
}

func (e *agentError) Error() string { return "cell " + e.cell + ": " + e.text }

func (e *agentError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

func (c *cell) Reset(ctx context.Context, files []File) error {
	req := &proto.Request{Op: proto.OpReset, Files: make([]proto.File, len(files))}
	for i, f := range files {
		req.Files[i] = proto.File(f)
	}
	clear(c.mine.Inodes)
	clear(c.mine.Paths)
	c.given = files
	_, _, err := c.call(ctx, req)
	return err
}

func (c *cell) Tree(ctx context.Context) ([]File, error) {
	ans, _, err := c.call(ctx, &proto.Request{Op: proto.OpTree})
	if err != nil {
		return nil, err
	}
	files := make([]File, len(ans.Files))
	for i, f := range ans.Files {
		files[i] = File(f)
	}
	if len(ans.Kept) == 0 {
		return files, nil
	}
	given := make(map[string][]byte, len(c.given))
	for _, f := range c.given {
		given[path.Clean(f.Path)] = f.Data
	}
	for _, i := range ans.Kept {
		data, ok := given[files[i].Path]
		if !ok || int64(len(data)) != files[i].Size {
			return nil, fmt.Errorf("cell %s: tree: %s is not as it was written, though the agent says so", c.info.Target, files[i].Path)
		}
		files[i].Data = data
	}
	return files, nil
}

func (c *cell) Do(ctx context.Context, op string, args []string, data []byte) error {
	_, _, err := c.call(ctx, &proto.Request{Op: proto.OpDo, Name: op, Args: args, Data: data})
	return err
}

func (c *cell) Command(ctx context.Context, args ...string) (Output, error) {
	ans, _, err := c.call(ctx, &proto.Request{Op: proto.OpCommand, Args: args, Limit: c.limits.CommandLimit})
	if err != nil {
		return Output{}, err
	}
	return Output{Exit: Exit(ans.Exit), Stdout: ans.Stdout, Stderr: ans.Stderr}, nil
}

func (c *cell) Start(ctx context.Context, wait []string, args ...string) (Server, error) {
	ans, fds, err := c.call(ctx, &proto.Request{Op: proto.OpStart, Args: args, Wait: wait, Limit: c.limits.StartLimit})
	if err != nil {
		return nil, err
	}
	if len(fds) != 1 {
		return nil, fmt.Errorf("cell %s: start: the agent sent %d handles, want 1", c.info.Target, len(fds))
	}
	c.server = ans.Pid
	s := &server{cell: c, pid: ans.Pid, stderr: fds[0], exit: Exit(ans.Exit)}
	if ans.Stuck != "" {
		return s, fmt.Errorf("cell %s: start: %w after %v (%s)", c.info.Target, ErrNotReady, c.limits.StartLimit, ans.Stuck)
	}
	return s, nil
}

// Probe looks into the cell without asking the agent where this process may; it
// finds out at the first probe.
func (c *cell) Probe(ctx context.Context) (Rest, error) { return c.probe(ctx, (*probe.Prober).Rest) }

// Glance is Probe for a caller who looks often while no process comes or goes (see probe.Prober.Glance); where
// only the agent may look, it is Probe.
func (c *cell) Glance(ctx context.Context) (Rest, error) { return c.probe(ctx, (*probe.Prober).Glance) }

// Doze is the first half of a Glance (see probe.Prober.Doze); where only the agent may look, it is Probe.
func (c *cell) Doze(ctx context.Context) (Rest, error) {
	return c.probe(ctx, func(p *probe.Prober, server int, _ probe.Mine) (probe.Rest, error) { return p.Doze(server) })
}

func (c *cell) probe(ctx context.Context, look func(*probe.Prober, int, probe.Mine) (probe.Rest, error)) (Rest, error) {
	if !c.remote {
		r, err := look(c.prober, c.server, c.mine)
		if err == nil {
			return Rest(r.Probe), nil
		}
		if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
			return Rest{}, fmt.Errorf("cell %s: probe: %w", c.info.Target, err)
		}
		c.remote = true
	}
	req := &proto.Request{Op: proto.OpProbe}
	for i := range c.mine.Inodes {
		req.Mine = append(req.Mine, i)
	}
	for p := range c.mine.Paths {
		req.Args = append(req.Args, p)
	}
	ans, _, err := c.call(ctx, req)
	if err != nil {
		return Rest{}, err
	}
	return Rest(ans.Probe), nil
}

// Asleep tells whether all threads of the server sleep at this moment: the cheap
// part of Probe.
func (c *cell) Asleep(ctx context.Context) (bool, error) {
	if c.remote {
		r, err := c.Probe(ctx)
		return r.Asleep || !r.Alive, err
	}
	asleep, err := c.prober.Asleep()
	if err != nil {
		return false, fmt.Errorf("cell %s: look at its threads: %w", c.info.Target, err)
	}
	return asleep, nil
}

// FDs counts the descriptors that the server has open at this moment: one figure of Probe's.
func (c *cell) FDs(ctx context.Context) (int, error) {
	if c.remote {
		r, err := c.Probe(ctx)
		return r.FDs, err
	}
	n, err := c.prober.FDs()
	if err != nil {
		return 0, fmt.Errorf("cell %s: count its descriptors: %w", c.info.Target, err)
	}
	return n, nil
}

// Freeze stops all processes of the server, or lets them go on. It obeys no context: a server that stands
// still goes on again, whatever has ended meanwhile; the agent bounds the time.
func (c *cell) Freeze(on bool) error {
	req := &proto.Request{Op: proto.OpFreeze}
	if on {
		req.N = 1
	}
	_, _, err := c.call(context.Background(), req)
	return err
}

// Close ends the cell and everything in it.
func (c *cell) Close() error {
	c.closing.Do(func() {
		for _, fds := range c.sockets {
			closeAll(fds)
		}
		c.sockets = nil
		if c.prober != nil {
			c.prober.Close()
		}
		c.conn.Close()
		c.closed = c.end()
	})
	return c.closed
}

func (c *cell) Dial(ctx context.Context, addr string, n int) ([]int, error) {
	if strings.HasPrefix(addr, "unix:") {
		return c.dialUnix(ctx, addr, n)
	}
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("dial %q: want IP:PORT or unix:PATH", addr)
	}
	fds := make([]int, 0, n)
	for range n {
		fd, err := c.socket(ctx, family(ap))
		if err == nil {
			fds = append(fds, fd)
			err = connect(ctx, fd, sockaddr(ap))
		}
		if err != nil {
			closeAll(fds)
			return nil, fmt.Errorf("dial %s: %w", addr, err)
		}
	}
	return fds, nil
}

func (c *cell) dialUnix(ctx context.Context, addr string, n int) ([]int, error) {
	var all []int
	for n > 0 {
		k := min(n, proto.MaxFDs)
		_, fds, err := c.call(ctx, &proto.Request{Op: proto.OpDial, Addr: addr, N: k})
		if err == nil {
			all = append(all, fds...)
			err = c.remember(fds)
		}
		if err != nil {
			closeAll(all)
			return nil, fmt.Errorf("dial %s: %w", addr, err)
		}
		n -= k
	}
	return all, nil
}

// remember notes Unix sockets as the oracle's own, for Probe.
func (c *cell) remember(fds []int) error {
	for _, fd := range fds {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return fmt.Errorf("fstat: %w", err)
		}
		c.mine.Inodes[uint32(st.Ino)] = true
	}
	return nil
}

func (c *cell) Listen(ctx context.Context, addr string) (int, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		_, fds, err := c.call(ctx, &proto.Request{Op: proto.OpListen, Addr: addr})
		if err == nil {
			c.mine.Paths[path] = true
			err = c.remember(fds)
		}
		if err != nil {
			closeAll(fds)
			return -1, fmt.Errorf("listen %s: %w", addr, err)
		}
		return fds[0], nil
	}
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return -1, fmt.Errorf("listen %q: want IP:PORT or unix:PATH", addr)
	}
	fd, err := c.socket(ctx, family(ap))
	if err != nil {
		return -1, fmt.Errorf("listen %s: %w", addr, err)
	}
	if err := listen(fd, sockaddr(ap)); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listen %s: %w", addr, err)
	}
	return fd, nil
}

// socket takes an unconnected socket of the cell; the agent is asked for many at once.
func (c *cell) socket(ctx context.Context, family string) (int, error) {
	pool := c.sockets[family]
	if len(pool) == 0 {
		_, fds, err := c.call(ctx, &proto.Request{Op: proto.OpSockets, Name: family, N: c.batch})
		if err != nil {
			return -1, err
		}
		c.batch = min(2*c.batch, poolMost)
		pool = fds
	}
	fd := pool[len(pool)-1]
	c.sockets[family] = pool[:len(pool)-1]
	return fd, nil
}
