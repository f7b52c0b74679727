package campaign

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
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
// a hundredth of writing both work trees and starting both servers in vain. Units keep their slots while
// they are sieved, so that their text is written once; those in front of a bad one have been read
// and are not read again until the rest is good.
func (c *Campaign) sieve(ctx context.Context, rig *cells, b *gen.Batch) (left *gen.Batch, bad []int, err error) {
	var good []int
	err = rig.again(ctx, nil, func() error {
		if err := rig.ref.Reset(ctx, sieveFiles(b.Files())); err != nil {
			return fmt.Errorf("sieve a batch: %w", err)
		}
		good, bad, err = (&sieving{cell: rig.ref, sheet: b.Sheet()}).sort(ctx, len(b.Units), sieveMost)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if len(bad) == 0 || len(good) == 0 {
		return b, nil, nil
	}
	return b.Only(good...), bad, nil
}

// refusedMost is how many things that a candidate refuses are looked for in a batch before it is played.
const refusedMost = 12

// takenEnough is how many batches in a row the candidate has to take as they are for the next ones to be played without
// being tried. What it refuses is remembered and not generated again, so that it refuses less and less; a batch that it
// does refuse costs ten tries.
const takenEnough = 10

// sieveRefused takes out of a batch what the candidate says that it does not support, by -t alone, too.
func (c *Campaign) sieveRefused(ctx context.Context, rig *cells, b *gen.Batch) (*gen.Batch, error) {
	if c.cfg.Self {
		return b, nil
	}
	c.mu.Lock()
	trusted := c.taken >= takenEnough
	c.taken++ // until it refuses something, see refuse
	c.mu.Unlock()
	if trusted {
		return b, nil
	}
	left := b
	err := rig.again(ctx, nil, func() error {
		left = b
		for range refusedMost {
			if len(left.Units) == 0 {
				return nil
			}
			if err := rig.cand.Reset(ctx, sieveFiles(left.Files())); err != nil {
				return fmt.Errorf("sieve a batch: %w", err)
			}
			s := &sieving{cell: rig.cand, sheet: left.Sheet()}
			ok, _, text, err := s.loads(ctx, nil)
			if err != nil {
				return err
			}
			m := notSupported.FindStringSubmatch(text)
			if ok || m == nil {
				return nil
			}
			left = c.refused(left, m[1])
		}
		return nil
	})
	return left, err
}

// sieveFiles are those files that a configuration may read while it is loaded.
func sieveFiles(list []casefile.File) []engine.File {
	files := []engine.File{{Path: "logs", Dir: true}}
	for _, f := range list {
		if !f.Dir && f.Link == "" && !strings.Contains(f.Path, "/html/") {
			files = append(files, engine.File{Path: f.Path, Data: f.Data, Mode: uint32(f.Mode)})
		}
	}
	return files
}

// sieving is one batch while it is sieved.
type sieving struct {
	cell  engine.Cell
	sheet *gen.Sheet
}

// loads tests the configuration of the units in some slots.
func (s *sieving) loads(ctx context.Context, slots []int) (ok bool, conf []byte, text string, err error) {
	conf = s.sheet.Conf(slots...)
	if err := s.cell.Do(ctx, "write", []string{"nginx.conf"}, conf); err != nil {
		return false, nil, "", fmt.Errorf("sieve a batch: %w", err)
	}
	out, err := s.cell.Command(ctx, "-p", "/cell/", "-c", "/cell/nginx.conf", "-e", "/cell/logs/error.log", "-g", "daemon off;", "-t")
	if err != nil {
		return false, nil, "", fmt.Errorf("sieve a batch: %w", err)
	}
	return out.Exit.Exited && out.Exit.Code == 0, conf, string(out.Stderr), nil
}

// sort parts the slots of n units in those that load beside each other and up to most of those that do not.
func (s *sieving) sort(ctx context.Context, n, most int) (good, bad []int, err error) {
	for i := range n {
		good = append(good, i)
	}
	for from := 0; len(bad) < most && len(good) > 0; {
		at, err := s.bad(ctx, good[from:])
		switch {
		case err != nil:
			return nil, nil, err
		case at < 0 && from == 0:
			return good, bad, nil
		case at < 0:
			from = 0
		default:
			from += at
			bad = append(bad, good[from])
			if good = slices.Delete(good, from, from+1); from == len(good) {
				from = 0
			}
		}
	}
	return good, bad, nil
}

// bad is the place in slots of the first unit that does not load, -1 when all do. A diagnosis does not always
// say where its reason is; then the unit is searched without which those before it load.
func (s *sieving) bad(ctx context.Context, slots []int) (at int, err error) {
	ok, conf, text, err := s.loads(ctx, slots)
	if err != nil || ok {
		return -1, err
	}
	if slot, found := badSlot(conf, text); found {
		if at := slices.Index(slots, slot); at >= 0 {
			return at, nil
		}
	}
	likely := s.likely(slots, text)
	good, bad := 0, len(slots) // the first good load, the first bad do not
	for good+1 < bad {
		mid := middle(good, bad, likely)
		ok, _, _, err := s.loads(ctx, slots[:mid])
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

// quoted are the names of directives in a diagnosis.
var quoted = regexp.MustCompile(`"([a-z_]+)"`)

// likely are the numbers of units, in order, in front of and behind which those end that mention most of what a
// diagnosis does.
func (s *sieving) likely(slots []int, text string) (ends []int) {
	most := 1
	for i, slot := range slots {
		n := 0
		for _, m := range quoted.FindAllStringSubmatch(lastEmerg(text), -1) {
			if bytes.Contains(s.sheet.Unit(slot), []byte(m[1])) {
				n++
			}
		}
		if n > most {
			most, ends = n, nil
		}
		if n == most {
			ends = append(ends, i, i+1)
		}
	}
	return slices.Compact(ends)
}

// middle is the number of units that is tried next between two others: the middle one of those that are likely.
func middle(good, bad int, likely []int) int {
	from, _ := slices.BinarySearch(likely, good+1)
	to, _ := slices.BinarySearch(likely, bad)
	if from == to {
		return (good + bad) / 2
	}
	return likely[(from+to)/2]
}
