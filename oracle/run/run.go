// Package run carries a case to a target: case + cell -> observation. It is the
// only stage that does network I/O.
package run

// Contract, for triage, campaign and the commands:
//
//	func Run(ctx context.Context, cell engine.Cell, c *casefile.Case) (*observe.Observation, error)
//
// An error means the rig broke: there is no observation and no verdict.
