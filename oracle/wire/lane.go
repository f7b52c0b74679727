package wire

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/observe"
)

// Lane is a list of client groups that are played one after another, beside
// other lanes. Lanes are for parts of a case that share nothing but the server:
// each has its own listeners and its own origins, so that what one does cannot
// show in another. All lanes wait for the server's rest together, which is what
// makes many of them as fast as one.
type Lane struct {
	Groups  [][]casefile.Section
	Origins []string // addresses of the origins that serve this lane alone
	// Timed lanes may meet a timer of the server's that ends soon: they wait for such timers, and
	// are played after the others, since in a crowd a step can come later than a short timeout.
	Timed bool
	// Hasty lanes may meet a timer of no length, which ends before anything else comes: their clients wait for the
	// server's rest once they are connected, so that it is no chance whether their first bytes are there in time.
	Hasty bool
	// Leaves: the server may close an origin's connection as soon as it has sent a request there, as when a post_action is asked for a
	// client that has gone. Origins answer when it rests, so that it is no chance whether the answer is there before the end.
	Leaves bool
}

// lane is a script that is being played: a coroutine that hands control back
// when it waits.
type lane struct {
	index   int
	timed   bool // waits for the server's timers too
	hasty   bool
	resume  func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	script  func(*lane) error
	err     error // of the script, or of the wait that is over
	clients []observe.Conn
	group   []*conn // the clients that run now

	waits bool // for goal, with conn
	done  bool
	late  bool  // the machine stood still while the lane played, which may meet a short timer
	conn  *conn // nil when no client waits
	goal  goal
	began time.Time // of the wait
}

// PlayLanes plays lanes side by side, to the end of all of them. What was seen is
// recorded in the order of the lanes.
func (p *Player) PlayLanes(ctx context.Context, lanes []Lane) error {
	run := make([]func(*lane) error, len(lanes))
	if !p.played { // how long the server took to start is of no account
		p.played, p.record.Late = true, false
	}
	p.record.LateLanes = nil
	p.crowd = len(lanes) > 1
	begin := p.now()
	defer func() { p.record.Slow = p.record.Slow || p.crowd && p.now().Sub(begin) > longPlay }()
	leaves := slices.ContainsFunc(lanes, func(l Lane) bool { return l.Leaves })
	for _, o := range p.origins {
		o.lane, o.leaves = -1, leaves
	}
	for i, l := range lanes {
		run[i] = func(self *lane) error {
			for _, g := range l.Groups {
				if err := p.playGroup(ctx, self, g); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if len(lanes) > 1 {
		serves := map[string]int{}
		for i, l := range lanes {
			for _, a := range l.Origins {
				serves[a] = i
			}
		}
		for _, o := range p.origins {
			if i, ok := serves[o.script.Addr]; ok {
				o.lane, o.leaves = i, lanes[i].Leaves
			}
		}
	}
	all := make([]*lane, len(lanes))
	for _, timed := range []bool{false, true} {
		var turn []*lane
		for i := range lanes {
			if timed == (lanes[i].Timed || len(lanes) == 1) {
				all[i] = &lane{index: i, timed: timed, hasty: lanes[i].Hasty, script: run[i]}
				turn = append(turn, all[i])
			}
		}
		if err := p.schedule(ctx, turn, p.crowd); err != nil {
			return err
		}
	}
	for _, l := range all {
		p.record.Clients = append(p.record.Clients, l.clients...)
		if l.late {
			p.record.LateLanes = append(p.record.LateLanes, l.index)
		}
	}
	return nil
}

// longPlay is how long a crowd may play: after ten seconds, by default, an upstream's server that has failed is tried again.
const longPlay = 8 * time.Second

// everyLane is the index of what waits outside any lane: for the origins of all of them.
const everyLane = -1

// alone waits for g outside any script, with whole looks at the server unless many.
func (p *Player) alone(ctx context.Context, g goal, many bool) error {
	return p.schedule(ctx, []*lane{{index: everyLane, timed: true, script: func(*lane) error { return p.wait(nil, g) }}}, many)
}

// wait hands control to the scheduler until g is met, or nothing more will
// come, or a last resort's time is over. c is the client that waits, nil when
// there is none.
func (p *Player) wait(c *conn, g goal) error {
	if g.kind == forSend {
		if err := p.arm(c); err != nil {
			return err
		}
	}
	l := p.cur
	l.conn, l.goal, l.waits, l.began, l.err = c, g, true, p.now(), nil
	if !l.yield(struct{}{}) {
		return fmt.Errorf("play: stopped")
	}
	return l.err
}

// schedule runs scripts as coroutines, one at a time; while all of them wait it
// moves bytes and origins, and asks the kernel whether the server rests.
func (p *Player) schedule(ctx context.Context, lanes []*lane, many bool) error {
	p.many = many
	for _, l := range lanes {
		l.resume, l.stop = iter.Pull(func(yield func(struct{}) bool) {
			l.yield = yield
			l.err = l.script(l)
		})
		defer l.stop()
	}
	s := scheduler{p: p, lanes: lanes}
	return s.loop(ctx)
}

type scheduler struct {
	p        *Player
	lanes    []*lane
	calm     calm
	progress time.Time // when anything moved last
	pause    time.Duration
	mark     time.Time // when the last step was done; zero before the first
	awake    time.Time // since when the server has been awake without anything moving; zero when it sleeps
}

// lateLimit is how long the machine may keep the player, or a server that has work, from
// running while a lane plays that may meet a short timer. Configurations set timers of 50 ms
// for it: what comes later than this may find another one of the two first.
const lateLimit = 15 * time.Millisecond

// crowdLimit is how long a lane that may meet a short timer may wait for its next step, and togetherLimit how
// long such waits may last together: the server sets its timer no sooner than a client has acted.
const (
	crowdLimit    = 25 * time.Millisecond
	togetherLimit = 40 * time.Millisecond
)

// late notes when more than most has gone by since from, and a lane is there that a timer can have met meanwhile.
func (s *scheduler) late(from time.Time, most time.Duration) {
	if from.IsZero() || s.p.now().Sub(from) < most+lateLimit {
		return
	}
	for _, l := range s.waiting {
		s.tooLate(l)
	}
}

// shortPause is how long an origin's pause may be for a client's step to wait until it is over: in a short one
// it would be chance whether the step comes before the origin goes on. A longer one leaves the client time to act
// in the middle of it, as a script may mean.
const shortPause = 40 * time.Millisecond

// drawnOut notes when waits for the server's rest have taken so long, one after another since a client of the
// lane's had its last word, that one of the server's timers can have ended meanwhile: others of the
// crowd, or the machine, have put a pause between two steps.
func (s *scheduler) drawnOut(l *lane, now time.Time) {
	if l.goal.kind == forTime || l.goal.kind == forTimers || l.goal.timers() { // the script, or the server, takes its time
		for _, c := range l.group {
			c.since = c.since.Add(now.Sub(l.began))
		}
		return
	}
	late := now.Sub(l.began) > crowdLimit
	for _, c := range l.group {
		late = late || c.fd >= 0 && now.Sub(c.since) > togetherLimit
	}
	if late {
		s.tooLate(l)
	}
}

// tooLate notes that what a lane saw may be the machine's doing.
func (s *scheduler) tooLate(l *lane) {
	if l.timed {
		l.late, s.p.record.Late = true, true
	}
}

func (s *scheduler) loop(ctx context.Context) error {
	s.progress = s.p.now()
	for {
		left, err := s.resume()
		if err != nil || left == 0 {
			return err
		}
		if err = s.step(ctx); err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return s.fail(err)
		}
	}
}

// fail hands an error to the first lane that waits, which says where it was.
func (s *scheduler) fail(err error) error {
	for _, l := range s.waiting {
		l.waits, l.err = false, err
		s.p.cur = l
		l.resume()
		s.p.cur = nil
		if l.err != nil {
			return l.err
		}
		break
	}
	return err
}

// resume lets every lane go on that does not wait, until all wait or are done,
// and counts those that are left.
func (s *scheduler) resume() (left int, err error) {
	ran := false
	for _, l := range s.lanes {
		if l.done || l.waits {
			continue
		}
		ran = true
		s.p.cur = l
		_, more := l.resume()
		s.p.cur = nil
		if !more {
			l.done = true
			if l.err != nil {
				return 0, l.err
			}
		}
	}
	for _, l := range s.lanes {
		if !l.done {
			left++
		}
	}
	if ran {
		s.moved()
	}
	return left, nil
}

// moved notes that something has: what was seen of the server's rest is void.
func (s *scheduler) moved() {
	s.progress = s.p.now()
	s.calm.restart()
	s.awake = time.Time{}
	s.pause = -1
	for _, l := range s.waiting {
		if d := l.goal.firstPause(); s.pause < 0 || d < s.pause {
			s.pause = d
		}
	}
	s.pause = max(s.pause, 0)
}

// waiting goes over the lanes that wait.
func (s *scheduler) waiting(yield func(int, *lane) bool) {
	for i, l := range s.lanes {
		if l.waits && !l.done && !yield(i, l) {
			return
		}
	}
}

// met releases the lanes whose goal bytes or the clock have met, and tells whether there are any.
func (s *scheduler) met() (any bool) {
	now := s.p.now()
	for _, l := range s.waiting {
		if l.goal.kind == forTime && !now.Before(l.goal.until) || l.goal.met(l.conn) {
			s.drawnOut(l, now)
			if l.goal.kind == forRecv {
				l.conn.since, l.conn.touched = now, now
			}
			l.waits, any = false, true
		}
	}
	return any
}

// step does one round while all lanes wait.
func (s *scheduler) step(ctx context.Context) error {
	p := s.p
	d := s.bounded(s.pause)
	moved, err := p.poll(d)
	if err != nil {
		return err
	}
	s.late(s.mark, d)
	defer func() { s.mark = p.now() }()
	if s.met() {
		return nil
	}
	if moved {
		s.moved()
		return nil
	}
	if s.lastResort() {
		return nil
	}
	if !p.wantRest() && s.onlyTime() {
		s.pause = time.Hour // bounded by what is waited for
		return nil
	}
	var half bool
	if p.last, half, err = p.probe(ctx, s.calm.fresh()); err != nil {
		return fmt.Errorf("look at the server: %w", err)
	}
	if p.last.Alive && !p.last.Asleep {
		s.late(s.awake, 0)
		if s.awake.IsZero() {
			s.awake = p.now()
		}
	} else {
		s.awake = time.Time{}
	}
	if half && p.last.Alive && p.last.Asleep {
		s.calm.dozed, s.pause = true, 0
		return nil
	}
	var ours queues
	if !half {
		ours = p.queues(p.last)
	}
	var atRest bool
	if atRest, s.pause = s.calm.add(p.last, ours); !atRest {
		return nil
	}
	if moved, err = p.poll(0); err != nil {
		return err
	}
	if moved {
		s.met()
		s.moved()
		return nil
	}
	s.lateOrigins()
	moved, busy, err := p.release()
	if err != nil {
		return err
	}
	s.rest(busy)
	if moved {
		s.met()
		s.moved()
	}
	return nil
}

// lateOrigins notes the lanes whose origins have waited for the server's rest as drawnOut tells of clients.
func (s *scheduler) lateOrigins() {
	now := s.p.now()
	for _, c := range s.p.live {
		if !c.wantsRest() || now.Sub(c.asked) <= crowdLimit {
			continue
		}
		for _, l := range s.lanes {
			if !l.done && (c.origin.lane < 0 || c.origin.lane == l.index) {
				s.tooLate(l)
			}
		}
	}
}

// rest releases the lanes that wait for the server's rest, or for what will not
// come any more. The others wait for an origin's pause, a timer of the server's, or the clock. So do those of which
// busy says that an origin of theirs goes on at this rest: it goes first.
func (s *scheduler) rest(busy func(*lane) bool) {
	now := s.p.now()
	idle := now.Sub(s.progress)
	s.pause = time.Hour
	for _, l := range s.waiting {
		if busy(l) {
			continue
		}
		wake := s.p.nextWake(l)
		switch k := l.goal.kind; {
		case k == forTime:
		case k == forTimers && s.p.shortTimerRuns() && idle < timerPatience:
			s.calm.restart()
			s.pause = min(s.pause, time.Duration(s.p.last.Timer)*time.Millisecond)
			if s.p.many { // perhaps another lane's, which has put off this one's step
				s.tooLate(l)
			}
		case (k == forRest || k == forLook || k == forTimers) && s.p.wakeOf(l, shortPause).IsZero():
			s.drawnOut(l, now)
			l.waits = false
		case wake.IsZero() && l.timed && l.goal.timers() && s.p.timerDue(idle):
			s.calm.restart()
			s.pause = min(s.pause, time.Duration(s.p.last.Timer)*time.Millisecond)
		case wake.IsZero():
			s.drawnOut(l, now)
			l.waits = false
		default: // an origin takes its time: the script says so
			s.progress = now
			s.calm.restart()
		}
	}
}

// bounded is d, and no longer than the clock that a lane or an origin waits for.
func (s *scheduler) bounded(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	now := s.p.now()
	for _, l := range s.waiting {
		if l.goal.kind == forTime {
			d = min(d, l.goal.until.Sub(now))
		}
	}
	if wake := s.p.nextWake(nil); !wake.IsZero() {
		d = min(d, wake.Sub(now))
	}
	return max(d, 0)
}

func (s *scheduler) onlyTime() bool {
	for _, l := range s.waiting {
		if l.goal.kind != forTime {
			return false
		}
	}
	return true
}

// lastResort gives up what has waited too long; each use is counted.
func (s *scheduler) lastResort() (any bool) {
	now := s.p.now()
	for _, l := range s.waiting {
		if l.goal.kind != forTime && (now.Sub(s.progress) > s.p.patient || now.Sub(l.began) > 6*s.p.patient) {
			s.p.record.Timeouts++
			l.waits, any = false, true
		}
	}
	return any
}
