package campaign

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/engine"
)

// sieveMost is how many units a batch may lose before the rest is given up: the head itself is
// at fault then, or the reference cannot start at all.
const sieveMost = 40

// sieve takes the units out of a batch that the reference does not load, by -t alone: that costs
// a hundredth of writing both work trees and starting both servers in vain. What both sides
// say of such a unit is compared by itself.
func (c *Campaign) sieve(ctx context.Context, rig *cells, b *gen.Batch) (*gen.Batch, error) {
	var bad []*gen.Unit
	left := *b
	err := rig.again(ctx, nil, func() error {
		bad, left = nil, *b
		left.Units = slices.Clone(b.Units)
		cs := left.Case()
		if err := rig.ref.Reset(ctx, sieveFiles(cs)); err != nil {
			return fmt.Errorf("sieve a batch: %w", err)
		}
		for len(bad) < sieveMost && len(left.Units) > 0 {
			ok, text, err := loads(ctx, rig.ref, cs)
			if err != nil || ok {
				return err
			}
			slot, found := badSlot(cs, text)
			if !found {
				if slot, err = firstBad(ctx, rig.ref, &left); err != nil {
					return err
				}
			}
			bad = append(bad, left.Units[slot])
			left.Units = slices.Delete(left.Units, slot, slot+1)
			cs = left.Case()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(bad) == 0 || len(left.Units) == 0 {
		return b, nil
	}
	cases := make([]*casefile.Case, len(bad))
	for i, u := range bad {
		cases[i] = (&gen.Batch{Head: b.Head, Units: []*gen.Unit{u}}).Case()
	}
	return &left, c.diagnoses(ctx, rig, cases, func(i int, core string) *pendingCase {
		return &pendingCase{Case: cases[i], Core: core, Label: bad[i].Label, From: bad[i].From}
	}, func(s *State) { s.Dropped++ })
}

// sieveFiles are a case's files that a configuration may read while it is loaded.
func sieveFiles(cs *casefile.Case) []engine.File {
	files := []engine.File{{Path: "logs", Dir: true}}
	for _, f := range cs.Files {
		if !f.Dir && f.Link == "" && !strings.Contains(f.Path, "/html/") {
			files = append(files, engine.File{Path: f.Path, Data: f.Data, Mode: uint32(f.Mode)})
		}
	}
	return files
}

// loads tests a case's configuration.
func loads(ctx context.Context, cell engine.Cell, cs *casefile.Case) (ok bool, text string, err error) {
	if err := cell.Do(ctx, "write", []string{"nginx.conf"}, cs.File("nginx.conf").Data); err != nil {
		return false, "", fmt.Errorf("sieve a batch: %w", err)
	}
	out, err := cell.Command(ctx, "-p", "/cell/", "-c", "/cell/nginx.conf", "-e", "/cell/logs/error.log", "-g", "daemon off;", "-t")
	if err != nil {
		return false, "", fmt.Errorf("sieve a batch: %w", err)
	}
	return out.Exit.Exited && out.Exit.Code == 0, string(out.Stderr), nil
}

// firstBad searches the unit without which those before it load: a diagnosis does not always say
// where its reason is.
func firstBad(ctx context.Context, cell engine.Cell, b *gen.Batch) (slot int, err error) {
	good, bad := 0, len(b.Units) // the first good load, the first bad do not
	for good+1 < bad {
		mid := (good + bad) / 2
		n := *b
		n.Units = b.Units[:mid]
		ok, _, err := loads(ctx, cell, n.Case())
		if err != nil {
			return 0, err
		}
		if ok {
			good = mid
		} else {
			bad = mid
		}
	}
	return bad - 1, nil
}
