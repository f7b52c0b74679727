package gen

import (
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// Parts gives a mutator single pieces of the grammar, each from a seed of its own.

// Directive makes one random directive for a context.
func (g *Generator) Directive(seed, index uint64, context string) (n *conftree.Node) {
	seeded(seed, index, func(r *rnd) {
		u := &unit{rnd: r, w: g.w}
		rows := g.w.byCtx[context]
		if len(rows) == 0 {
			return
		}
		row := pickOf(r, rows)
		n = u.dir(row.Name, u.fill(r.pick(row.Forms...), &server{port: listenPort, hosts: []string{"localhost"}}))
		if len(u.vars) > 0 || !u.ok(strings.Join(n.Words, " ")) { // needs a variable that the unit does not have, or is refused
			n = nil
		}
	})
	return n
}

// Again makes a directive of a name once more, with arguments of its own kinds; nil for one that stands
// only where the generator puts it.
func (g *Generator) Again(seed, index uint64, name string) (n *conftree.Node) {
	row, ok := g.w.t.Row(name)
	if !ok || row.Weight == 0 {
		return nil
	}
	seeded(seed, index, func(r *rnd) {
		u := &unit{rnd: r, w: g.w}
		n = u.dir(name, u.fill(r.pick(row.Forms...), &server{port: listenPort, hosts: []string{"localhost"}}))
		if len(u.vars) > 0 || !u.ok(strings.Join(n.Words, " ")) { // needs a variable that the unit does not have, or is refused
			n = nil
		}
	})
	return n
}

// Argument makes one value of the kinds that arguments have, which is seldom the one that is wanted.
func (g *Generator) Argument(seed, index uint64) (s string) {
	seeded(seed, index, func(r *rnd) { s = (&unit{rnd: r, w: g.w}).anyValue() })
	return s
}

func (u *unit) anyValue() string {
	return u.one(u.pick("flag", "size", "bsize", "num", "time", "word", "uri", "path", "code", "rcode", "cidr", "mime", "iname", "method"), nil)
}

// Damage spoils a request's bytes.
func (g *Generator) Damage(seed, index uint64, raw string) (s string) {
	seeded(seed, index, func(r *rnd) { s = damages[r.n(len(damages))].do(&unit{rnd: r, w: g.w}, raw) })
	return s
}

// Origin makes a script of an origin's connection.
func (g *Generator) Origin(seed, index uint64) (steps []casefile.Step) {
	seeded(seed, index, func(r *rnd) {
		steps = steady((&unit{rnd: r, w: g.w}).originScript(r.pick("good", "hostile", "hostile", "accel", "status", "early")), true)
	})
	return steps
}

// Steady puts the waits into a client's script without which the outcome would
// hang on who is faster.
func Steady(steps []casefile.Step) []casefile.Step { return steady(steps, false) }
