package engine

import (
	"context"
	"strconv"

	"nginxoracle/oracle/engine/proto"
)

// KillTitled sends sig to the first process of the cell whose title starts with prefix.
func KillTitled(ctx context.Context, c Cell, prefix string, sig int) (pid int, err error) {
	ans, _, err := c.(*cell).call(ctx, &proto.Request{Op: proto.OpKill, Name: prefix, N: sig})
	if err != nil {
		return 0, err
	}
	return ans.Pid, nil
}

// ProbeByAgent makes the agent answer probes, as where the oracle may not look into the cell.
func ProbeByAgent(c Cell) { c.(*cell).remote = true }

// Freeze stops the server, or lets it go on.
func Freeze(c Cell, on bool) error { return c.(*cell).Freeze(on) }

// ReadProc reads a file of the cell's /proc.
func ReadProc(c Cell, name string) ([]byte, error) { return c.(*cell).prober.ReadProc(name) }

// Namespace names the pid namespace of a process of the cell, as /proc shows it.
func Namespace(c Cell, pid int) (string, error) {
	return c.(*cell).prober.ReadLink(strconv.Itoa(pid) + "/ns/pid")
}

// KillAgent makes the agent end as if its socket had failed.
func KillAgent(c Cell) { c.(*cell).conn.Shutdown() }
