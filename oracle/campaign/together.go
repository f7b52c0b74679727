package campaign

import (
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
)

// A case that says "lanes: units" in its comment holds units of the generator that differ in company
// only: it is played as a batch is, its units side by side, and compared by unit.
const (
	lanesKey   = casefile.LanesKey
	lanesUnits = casefile.LanesUnits
)

// together tells whether a case is played as a batch.
func together(c *casefile.Case) bool { return c.Get(lanesKey) == lanesUnits }

// Played gives the options with which a case is run: its own way of playing is added to opt.
func Played(c *casefile.Case, opt run.Options) run.Options {
	if !together(c) {
		return opt
	}
	opt.Calm = true
	return lanes(c, opt)
}

// Seen is an observation of c without what its way of playing leaves to chance.
func Seen(c *casefile.Case, o *observe.Observation) *observe.Observation {
	if !together(c) {
		return o
	}
	return byUnit(c, o)
}
