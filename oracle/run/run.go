// Package run carries a case to a target: case + cell -> observation. It is the
// only stage that does network I/O.
//
// A run is Reset, -t, the origins' listeners, Start, the sections in order, rest,
// stop, and then a look at everything that is left. Every target is started in
// the same way: nginx -p /cell/ -c /cell/nginx.conf -e /cell/logs/error.log, and
// -g 'daemon off;' unless the configuration itself says something about it.
package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/wire"
)

// Options of a run. The zero value boots and plays without -t.
type Options struct {
	Test bool // run the server with -t first
	// Lane tells which lane a client belongs to, and Serves which lane an origin serves (false: any):
	// lanes share nothing but the server and are played side by side. nil: one after another.
	Lane   func(casefile.Section) int
	Serves func(addr string) (lane int, ok bool)
	// Timed tells whether a lane may meet one of the server's timers (see wire.Lane). nil: all of them.
	Timed func(lane int) bool
	// Hasty tells whether a lane may meet a timer of no length (see wire.Lane). nil: none.
	Hasty func(lane int) bool
	// Leaves tells whether in a lane the server may leave an origin that it has asked (see wire.Lane). nil: in none.
	Leaves func(lane int) bool
	// Calm repeats a run in lanes while the machine holds a timed lane up, as every run without lanes is.
	Calm bool
	// Aged lets the work tree's files grow older than what a server may hold for just written (treeAge) before
	// the first client is played. What lies in batches is older anyway.
	Aged bool
	// Globals are directives given with -g, before "daemon off;".
	Globals string
	// Aside keeps the files of engine.AsideDir out of what is compared: instruments write there. They
	// are handed out in the observation's Aside.
	Aside bool
}

// Run runs all of c in cell, -t first. An error means that the rig broke: there
// is no observation and no verdict.
func Run(ctx context.Context, cell engine.Cell, c *casefile.Case) (*observe.Observation, error) {
	return RunWith(ctx, cell, c, Options{Test: true})
}

// lateRuns is how often a case with short timers is run when the machine stands still in the middle
// of it. On a machine that does so in every second run, one in 32 stays late.
const lateRuns = 5

// RunWith is Run with options.
func RunWith(ctx context.Context, cell engine.Cell, c *casefile.Case, opt Options) (*observe.Observation, error) {
	for again := 0; ; again++ {
		o, err := once(ctx, cell, c, opt)
		if err != nil {
			return nil, err
		}
		if o.Again = again; !o.Late || opt.Lane != nil && !opt.Calm || again+1 >= lateRuns {
			return o, nil
		}
	}
}

func once(ctx context.Context, cell engine.Cell, c *casefile.Case, opt Options) (*observe.Observation, error) {
	r, err := Boot(ctx, cell, c, opt)
	if err != nil {
		return nil, err
	}
	if opt.Aged {
		err = r.age(ctx)
	}
	switch {
	case err != nil:
	case opt.Lane != nil:
		err = r.lanes(ctx, c, opt)
	default:
		err = r.Sections(ctx, c.Sections)
	}
	if err != nil {
		r.Abandon()
		return nil, err
	}
	return r.Finish(ctx)
}

// Pair runs c in both cells at once, so that starting one server and running the
// other overlap.
func Pair(ctx context.Context, ref, cand engine.Cell, c *casefile.Case, opt Options) (r, d *observe.Observation, err error) {
	type result struct {
		o   *observe.Observation
		err error
	}
	done := make(chan result, 1)
	go func() {
		o, err := RunWith(ctx, cand, c, opt)
		done <- result{o, err}
	}()
	r, err = RunWith(ctx, ref, c, opt)
	other := <-done
	if err != nil {
		return nil, nil, fmt.Errorf("reference: %w", err)
	}
	if other.err != nil {
		return nil, nil, fmt.Errorf("candidate: %w", other.err)
	}
	return r, other.o, nil
}

// Running is a case whose server has been started: sections can be played in
// any number of batches until Finish.
type Running struct {
	cell   engine.Cell
	c      *casefile.Case
	srv    engine.Server // nil when the configuration was not accepted
	player *wire.Player
	o      *observe.Observation
	mark   time.Time // when the last stage ended
	wrote  time.Time // when the work tree had been written
	aside  bool      // see Options.Aside
	lane   []int     // the number of each lane that is played
}

// spent notes that a stage has ended.
func (r *Running) spent(stage string) {
	now := time.Now()
	r.o.Spent = append(r.o.Spent, observe.Spent{Stage: stage, Time: now.Sub(r.mark)})
	r.mark = now
}

// Boot prepares the work tree, tests the configuration if asked to, and starts
// the server. A server that refuses its configuration is no error: the
// observation says so, and sections are not played.
func Boot(ctx context.Context, cell engine.Cell, c *casefile.Case, opt Options) (*Running, error) {
	r := &Running{cell: cell, c: c, aside: opt.Aside, o: &observe.Observation{Info: cell.Info(), At: time.Now(), Mentions: Mentions(configurations(c)...)}}
	r.mark = r.o.At
	if err := cell.Reset(ctx, tree(c)); err != nil {
		return nil, r.errorf("write the work tree", err)
	}
	r.spent("reset")
	r.wrote = r.mark
	args := arguments(c, opt.Globals)
	if opt.Test {
		out, err := cell.Command(ctx, append(slices.Clone(args), "-t")...)
		if err != nil {
			return nil, r.errorf("nginx -t", err)
		}
		r.o.Test = observe.Command{Code: out.Exit.Code, Signal: out.Exit.Signal, Text: string(out.Stderr), Stdout: string(out.Stdout)}
		if !out.Exit.Exited {
			r.o.Test.Text += "\n(did not end, was killed)"
		}
		if out.Exit.Code != 0 || out.Exit.Signal != 0 || !out.Exit.Exited {
			return r, nil
		}
	}
	if opt.Test {
		r.spent("test")
	}
	var err error
	if r.player, err = wire.NewPlayer(ctx, cell, c.Origins); err != nil {
		return nil, r.errorf("open origins", err)
	}
	r.player.Hasty, r.player.Leaves = slices.ContainsFunc(configurations(c), Hasty), slices.ContainsFunc(configurations(c), Leaves)
	if err := r.start(ctx, args); err != nil {
		r.Abandon()
		return nil, err
	}
	r.spent("start")
	return r, nil
}

// arguments are the server's, the same for every target.
func arguments(c *casefile.Case, globals string) []string {
	args := []string{"-p", "/cell/", "-c", "/cell/nginx.conf", "-e", "/cell/" + DefaultErrorLog}
	if _, _, said := daemon(c); !said {
		globals += "daemon off;"
	}
	if globals == "" {
		return args
	}
	return append(args, "-g", globals)
}

func (r *Running) start(ctx context.Context, args []string) error {
	srv, err := r.cell.Start(ctx, addresses(r.c), args...)
	if errors.Is(err, engine.ErrNotReady) {
		return r.hangs(ctx, srv)
	}
	if err != nil {
		return r.errorf("start", err)
	}
	exit, err := srv.Wait(ctx, 0)
	if err != nil {
		return r.errorf("start", err)
	}
	if exit.Exited {
		text, err := srv.Stderr(ctx)
		if err != nil {
			return r.errorf("read standard error", err)
		}
		r.o.Start = observe.Command{Code: exit.Code, Signal: exit.Signal, Text: string(text)}
		_, r.o.Process.Left, err = srv.Stop(ctx)
		if err != nil {
			return r.errorf("stop", err)
		}
		return nil
	}
	r.srv = srv
	r.o.Process.Started, r.o.Process.Pid = true, srv.Pid()
	rest, err := r.player.Settle(ctx)
	if err != nil {
		return r.errorf("wait until the server rests", err)
	}
	r.o.Process.FDBefore = rest.FDs
	return nil
}

// notReady is what an observation says of a server that hangs at its start.
const notReady = "\n(neither listened nor rested nor exited, was killed)"

// hangs ends a server that does not come up. That is the target's doing and part of the observation, not a broken rig.
func (r *Running) hangs(ctx context.Context, srv engine.Server) error {
	exit, left, err := srv.Stop(ctx)
	if err != nil {
		return r.errorf("stop a server that did not come up", err)
	}
	text, err := srv.Stderr(ctx)
	if err != nil {
		return r.errorf("read standard error", err)
	}
	text = text[:min(len(text), mostSaid)]
	r.o.Start = observe.Command{Code: exit.Code, Signal: exit.Signal, Text: string(text) + notReady}
	r.o.Process.Left = left
	return nil
}

// mostSaid bounds what is kept of a server that floods its output, in bytes.
const mostSaid = 64 << 10

// addresses are those that clients connect to: the start waits for them.
func addresses(c *casefile.Case) []string {
	var addrs []string
	for _, s := range c.Sections {
		if s.Client && !slices.Contains(addrs, s.Addr) {
			addrs = append(addrs, s.Addr)
		}
	}
	return addrs
}

// Started tells whether the server runs (or ran until something ended it).
func (r *Running) Started() bool { return r.srv != nil }

// Sections plays sections in order; clients that run together are one group.
func (r *Running) Sections(ctx context.Context, sections []casefile.Section) error {
	if r.srv == nil {
		return nil
	}
	for i := 0; i < len(sections); {
		n := i + 1
		if !sections[i].Client {
			if err := r.do(ctx, sections[i].Steps); err != nil {
				return r.errorf(fmt.Sprintf("do section, line %d", sections[i].Line), err)
			}
			i = n
			continue
		}
		for n < len(sections) && sections[n].Client && sections[n].With != 0 {
			n++
		}
		if err := r.player.Play(ctx, sections[i:n]); err != nil {
			return r.errorf("clients", err)
		}
		i = n
	}
	return nil
}

// lanes plays the clients side by side, by lane; within a lane they run as written.
func (r *Running) lanes(ctx context.Context, c *casefile.Case, opt Options) error {
	if r.srv == nil {
		return nil
	}
	var lanes []wire.Lane
	at := map[int]int{} // lane -> index
	for i, s := range c.Sections {
		if !s.Client {
			return r.errorf("lanes", fmt.Errorf("line %d: a do section belongs to no lane", s.Line))
		}
		n := opt.Lane(s)
		k, ok := at[n]
		if !ok {
			k = len(lanes)
			at[n] = k
			r.lane = append(r.lane, n)
			lanes = append(lanes, wire.Lane{Timed: opt.Timed == nil || opt.Timed(n), Hasty: opt.Hasty != nil && opt.Hasty(n), Leaves: opt.Leaves != nil && opt.Leaves(n)})
		}
		if l := &lanes[k]; s.With != 0 && len(l.Groups) > 0 {
			g := &l.Groups[len(l.Groups)-1]
			*g = append(*g, c.Sections[i])
		} else {
			l.Groups = append(l.Groups, []casefile.Section{s})
		}
	}
	for _, o := range c.Origins {
		if n, ok := opt.Serves(o.Addr); ok {
			if k, ok := at[n]; ok {
				lanes[k].Origins = append(lanes[k].Origins, o.Addr)
			}
		}
	}
	if err := r.player.PlayLanes(ctx, lanes); err != nil {
		return r.errorf("clients", err)
	}
	return nil
}

// Finish waits until the server rests, stops it, and returns what was seen.
func (r *Running) Finish(ctx context.Context) (*observe.Observation, error) {
	defer r.Abandon()
	r.spent("play")
	if r.player != nil {
		if err := r.lastEnds(ctx); err != nil {
			return nil, r.errorf("finish", err)
		}
		rec, err := r.player.Finish(ctx)
		if err != nil {
			return nil, r.errorf("finish", err)
		}
		r.o.Clients, r.o.Origins, r.o.Timeouts = rec.Clients, rec.Origins, rec.Timeouts
		r.o.Late = rec.Late && slices.ContainsFunc(configurations(r.c), Short)
		r.o.Slow = rec.Slow
		for _, i := range rec.LateLanes {
			if i < len(r.lane) {
				r.o.LateLanes = append(r.o.LateLanes, r.lane[i])
			}
		}
		if r.o.Process.FDAfter = rec.Rest.FDs; !rec.Rest.Alive {
			r.o.Process.FDAfter = r.o.Process.FDBefore // a process that has ended has lost none
		}
	}
	r.spent("rest")
	if err := r.stop(ctx); err != nil {
		return nil, err
	}
	r.spent("stop")
	files, err := r.cell.Tree(ctx)
	if err != nil {
		return nil, r.errorf("read the work tree", err)
	}
	if r.aside {
		files = setAside(r.o, files)
	}
	sortOut(r.o, r.c, files)
	r.o.Errors = append(r.o.Errors, r.stderr()...)
	r.spent("tree")
	r.o.Took = time.Since(r.o.At)
	return r.o, nil
}

// A connection's last segment can be on its way through a busy machine's kernel
// while no socket shows it any more: the client's has been closed. A server that holds
// more descriptors than it should is therefore looked at again before it is called a leak.
const (
	endsTries = 20
	endsApart = 5 * time.Millisecond
)

func (r *Running) lastEnds(ctx context.Context) error {
	if r.srv == nil {
		return nil
	}
	for tries := 0; tries < endsTries; {
		rest, err := r.player.Settle(ctx)
		if err != nil || !rest.Alive || !rest.Asleep || !r.holds(rest.FDs) {
			return err
		}
		for held := rest.FDs; tries < endsTries && r.holds(held); tries++ {
			if err := r.player.Pause(ctx, endsApart); err != nil {
				return err
			}
			if held, err = r.player.Held(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// holds tells whether so many descriptors are more than the server had before its clients, and has for origins.
func (r *Running) holds(fds int) bool { return fds > r.o.Process.FDBefore+r.player.Open() }

// stderr are the entries that went to standard error once the server ran.
func (r *Running) stderr() []observe.LogEntry {
	if !r.o.Process.Started {
		return nil
	}
	return entries("", []byte(r.o.Start.Text))
}

func (r *Running) stop(ctx context.Context) error {
	if r.srv == nil {
		return nil
	}
	exit, left, err := r.srv.Stop(ctx)
	if err != nil {
		return r.errorf("stop", err)
	}
	r.o.Process.Exit, r.o.Process.Left = exit, left
	text, err := r.srv.Stderr(ctx)
	if err != nil {
		return r.errorf("read standard error", err)
	}
	r.o.Start.Text = string(text)
	r.srv = nil
	return nil
}

// Abandon frees what is left of a run that cannot be finished. The cell can be
// used again.
func (r *Running) Abandon() {
	if r.player != nil {
		r.player.Close()
		r.player = nil
	}
	if r.srv != nil {
		// The run's own context may be what ended it.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		// The run has failed already; a server that does not stop shows at the cell's next Reset.
		_, _, _ = r.srv.Stop(ctx)
		r.srv = nil
	}
}

func (r *Running) errorf(what string, err error) error {
	return fmt.Errorf("run %s on %s: %s: %w", r.name(), r.o.Info.Target, what, err)
}

func (r *Running) name() string {
	if r.c.Name == "" {
		return "case"
	}
	return strings.TrimPrefix(r.c.Name, "./")
}
