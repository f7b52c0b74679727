package mutate

import (
	"fmt"
	"regexp"
	"testing"

	"nginxoracle/fuzz/gen"
)

// A unit's ports are 20SSk and its names uSS, with SS its slot.
var belongs = regexp.MustCompile(`\b(?:20(\d\d)\d|[uU](\d\d)(?:_\w*)?)\b`)

// foreign gives what a case of one unit in a slot names of another slot, with its line.
func foreign(text []byte, slot int) string {
	own := fmt.Sprintf("%02d", slot)
	for _, m := range belongs.FindAllSubmatchIndex(text, -1) {
		group := 2
		if m[group] < 0 {
			group = 4
		}
		if string(text[m[group]:m[group+1]]) != own {
			return string(text[max(m[0]-60, 0):min(m[1]+40, len(text))])
		}
	}
	return ""
}

// inSlot is the text of a batch that has the unit in its last slot alone.
func inSlot(u *gen.Unit, head gen.Head, slot int) []byte {
	b := &gen.Batch{Head: head}
	for range slot {
		b.Units = append(b.Units, &gen.Unit{Label: "none"})
	}
	b.Units = append(b.Units, u)
	return b.Case().Print()
}

// FuzzNoUnitNamesAnotherSlot: in a batch a port or a name of another slot would reach another unit.
func FuzzNoUnitNamesAnotherSlot(f *testing.F) {
	g, err := gen.New(gen.Options{Units: 40})
	if err != nil {
		f.Fatal(err)
	}
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		b := g.Batch(seed, seed)
		pool := b.Units
		for i := range uint64(160) {
			u := pool[i%uint64(len(pool))]
			if i >= 40 {
				u = Mutate(seed, i, g, u, pool[(i*7+3)%uint64(len(pool))])
				pool = append(pool, u)
			}
			for _, slot := range []int{0, 37} {
				if bad := foreign(inSlot(u, b.Head, slot), slot); bad != "" {
					t.Errorf("unit %d (%s) in slot %d: …%s…", i, u.Label, slot, bad)
				}
			}
		}
	})
}

func TestForeignNamesAreSeen(t *testing.T) {
	for text, want := range map[string]bool{"20045": true, "GET /?a=%20747 ": true, "s0.u20.test": true, "u07_up": true,
		"20005": false, "120045": false, "u00_a": false, "u123": false, "20452a": false, "2026/11/30": false} {
		if got := foreign([]byte(text), 0) != ""; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
