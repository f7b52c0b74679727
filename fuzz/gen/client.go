package gen

import (
	"fmt"

	"nginxoracle/oracle/casefile"
)

// makeClients scripts the unit's connections: targets are asked for three or four times, in ways that
// differ in method, fields, framing, segmentation, order and end. A configuration costs a start, and a
// request hardly anything: it is asked much before it goes.
func (u *unit) makeClients() {
	if len(u.targets) == 0 {
		u.hit(u.servers[0], "/")
	}
	order := u.rand().Perm(len(u.targets))
	for range u.in(2, 3) {
		order = append(order, u.rand().Perm(len(u.targets))...)
	}
	limit := u.in(7, 13)
	for len(order) > 0 && len(u.clients) < limit {
		k := min(len(order), []int{1, 1, 2, 3, 4, 5, 6, 8}[u.n(8)])
		first := u.targets[order[0]]
		var group []target
		for _, i := range order[:k] {
			if t := u.targets[i]; t.srv.port == first.srv.port {
				group = append(group, t)
			}
		}
		order = order[k:]
		u.client(first.srv.port, group)
	}
	for i := range u.clients {
		c := &u.clients[i]
		c.Steps = steady(c.Steps, false)
		if i > 0 && c.With == 0 && u.messy[i-1] && len(c.Steps) > 0 && c.Steps[0].Op != casefile.Settle {
			// the server may still linger with the one before: its log line must come first
			c.Steps = append([]casefile.Step{step(casefile.Settle)}, c.Steps...)
		}
		if c.With != 0 { // two at once: each step's work is done before the other's
			u.clients[i-1].Steps, c.Steps = apart(u.clients[i-1].Steps), append([]casefile.Step{step(casefile.Settle)}, apart(c.Steps)...)
		}
	}
	u.ownOnes()
}

// apart waits after every write.
func apart(steps []casefile.Step) (out []casefile.Step) {
	for i, s := range steps {
		out = append(out, s)
		if s.Op == casefile.Send && (i+1 == len(steps) || steps[i+1].Op != casefile.Settle) {
			out = append(out, step(casefile.Settle))
		}
	}
	return out
}

func (u *unit) client(port int, group []target) {
	s := casefile.Section{Client: true, ID: len(u.clients) + 1, Addr: fmt.Sprintf("127.0.0.1:%d", port)}
	if n := len(u.clients); n > 0 && u.pct(4) && u.clients[n-1].With == 0 {
		s.With = u.clients[n-1].ID
	}
	messy := s.With != 0
	defer func() { u.messy = append(u.messy, messy) }()
	var reqs []*request
	for i, t := range group {
		q := u.request(t, i == len(group)-1)
		q.slow = t.slow
		reqs = append(reqs, q)
		messy = messy || q.body != ""
		if q.last {
			break
		}
	}
	switch {
	case len(reqs) > 1 && u.pct(20):
		messy = true
		all := ""
		for _, q := range reqs {
			all += q.bytes()
		}
		s.Steps = append(s.Steps, u.segments(all)...)
		for _, q := range reqs {
			if q.slow {
				s.Steps = append(s.Steps, pause(120))
			}
		}
		for _, q := range reqs {
			s.Steps = append(s.Steps, u.await(q))
		}
	default:
		for i, q := range reqs {
			raw, broken := q.bytes(), false
			if u.pct(14) {
				d := damages[u.n(len(damages))]
				raw, broken, messy = d.do(u, raw), true, true
				if u.pct(15) {
					raw = damages[u.n(len(damages))].do(u, raw)
				}
			}
			if raw == "" {
				continue
			}
			s.Steps = append(s.Steps, u.segments(raw)...)
			if q.slow {
				s.Steps = append(s.Steps, pause(120))
			}
			if broken {
				if i < len(reqs)-1 && u.pct(30) {
					s.Steps = append(s.Steps, send(reqs[i+1].bytes()))
				}
				s.Steps = append(s.Steps, u.brokenEnd()...)
				u.clients = append(u.clients, s)
				return
			}
			if q.version == "" {
				s.Steps = append(s.Steps, recv(casefile.All))
				break
			}
			if u.pct(2) {
				s.Steps = append(s.Steps, u.abort()...)
				u.clients = append(u.clients, s)
				return
			}
			s.Steps = append(s.Steps, u.await(q))
		}
	}
	s.Steps = append(s.Steps, u.ending(reqs)...)
	u.clients = append(u.clients, s)
}

func (u *unit) await(q *request) casefile.Step {
	if q.head {
		return recv(casefile.Head)
	}
	return recv(casefile.Response)
}

// segments splits what is sent: mostly one write, sometimes two or more with
// the server at rest between them, so that it has read exactly what came before.
func (u *unit) segments(raw string) []casefile.Step {
	if len(raw) < 2 || u.pct(94) {
		return []casefile.Step{send(raw)}
	}
	var out []casefile.Step
	for range u.in(1, 2) {
		if len(raw) < 2 {
			break
		}
		k := u.in(1, len(raw)-1)
		out = append(out, send(raw[:k]), step(casefile.Settle))
		raw = raw[k:]
	}
	return append(out, send(raw))
}

// brokenEnd ends a connection whose framing nobody knows any more.
func (u *unit) brokenEnd() []casefile.Step {
	switch {
	case u.pct(25):
		return []casefile.Step{step(casefile.Shutdown), recv(casefile.All)}
	case u.timer():
		return []casefile.Step{recv(casefile.All), pause(100), recv(casefile.All)}
	}
	return []casefile.Step{recv(casefile.All)}
}

// timer tells whether a client may wait for a short timer: a few in a unit, since
// each costs real time.
func (u *unit) timer() bool {
	if u.timers == 0 {
		return false
	}
	u.timers--
	return true
}

func (u *unit) abort() []casefile.Step {
	return [][]casefile.Step{
		{step(casefile.Close)}, {step(casefile.Reset)},
		{step(casefile.Settle), step(casefile.Reset)},
		{step(casefile.Shutdown), recv(casefile.All)},
	}[u.n(4)]
}

func (u *unit) ending(reqs []*request) []casefile.Step {
	asked := len(reqs) > 0 && reqs[len(reqs)-1].last
	switch {
	case u.timers > 0 && u.pct(40) && u.timer():
		return []casefile.Step{recv(casefile.All), pause(100), recv(casefile.All)}
	case asked && u.pct(85):
		return []casefile.Step{recv(casefile.All)}
	case u.pct(60):
		return []casefile.Step{step(casefile.Close)}
	case u.pct(30):
		return []casefile.Step{recv(casefile.None), step(casefile.Close)}
	case u.pct(30):
		return []casefile.Step{step(casefile.Shutdown), recv(casefile.All)}
	case u.pct(10):
		return []casefile.Step{step(casefile.Reset)}
	}
	return []casefile.Step{recv(casefile.All)}
}
