package campaign

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/minimize/conftree"
)

// picky loads no configuration with the word in it, and says where the word is, or does not.
type picky struct {
	engine.Cell
	word   string
	says   string // of it, when it does not say where it is
	places bool
	conf   []byte
	runs   int
}

func (p *picky) Reset(context.Context, []engine.File) error { return nil }

func (p *picky) Do(_ context.Context, _ string, _ []string, data []byte) error {
	p.conf = data
	return nil
}

func (p *picky) Command(context.Context, ...string) (engine.Output, error) {
	p.runs++
	before, _, bad := bytes.Cut(p.conf, []byte(p.word))
	out := engine.Output{Exit: engine.Exit{Exited: true}}
	if bad {
		out.Exit.Code = 1
		out.Stderr = fmt.Appendf(nil, "nginx: [warn] %q is old\nnginx: [emerg] cannot %s\n", "good", p.says)
		if p.places {
			out.Stderr = fmt.Appendf(nil, "nginx: [emerg] cannot in /cell/nginx.conf:%d\n", 1+bytes.Count(before, []byte("\n")))
		}
	}
	return out, nil
}

// Whichever unit does not load is found, whether the diagnosis has its place or not, and also behind
// units that were taken out before.
func TestSieveFindsTheBadOne(t *testing.T) {
	for bad := range 9 {
		b := &gen.Batch{}
		for i := range 9 {
			word := "good"
			if i == bad {
				word = "unloadable"
			}
			b.Units = append(b.Units, &gen.Unit{Body: []*conftree.Node{{Words: []string{word}}}})
		}
		for _, places := range []bool{false, true} {
			cell := &picky{word: "unloadable", places: places}
			s := &sieving{cell: cell, sheet: b.Sheet()}
			var slots []int
			for i := range 9 {
				if i == bad || i != 1 && i != 4 {
					slots = append(slots, i)
				}
			}
			at, err := s.bad(context.Background(), slots)
			if err != nil {
				t.Fatal(err)
			}
			if at < 0 || slots[at] != bad {
				t.Errorf("places %v: got place %d of %v, want unit %d", places, at, slots, bad)
			}
			if places && cell.runs != 1 {
				t.Errorf("%d runs, want 1", cell.runs)
			}
			if at, err = s.bad(context.Background(), slices.Delete(slots, at, at+1)); at != -1 || err != nil {
				t.Errorf("the others: got %d %v", at, err)
			}
		}
	}
}

// What a diagnosis mentions is looked for first, and the unit is found as well where it mentions nothing of it.
func TestSieveLooksWhereTheDiagnosisPoints(t *testing.T) {
	const n = 64
	for _, bad := range []int{0, 17, 40, 41, n - 1} {
		for _, points := range []bool{true, false} {
			b := &gen.Batch{}
			for i := range n {
				body := []*conftree.Node{{Words: []string{"good"}}}
				if i == 40 || points && i == bad {
					body = append(body, &conftree.Node{Words: []string{"buffers_size"}})
				}
				if i == bad {
					body = append(body, &conftree.Node{Words: []string{"unloadable"}})
				}
				b.Units = append(b.Units, &gen.Unit{Body: body})
			}
			cell := &picky{word: "unloadable", says: `the "buffers_size" and the "pool_size" do not fit`}
			var slots []int
			for i := range n {
				slots = append(slots, i)
			}
			at, err := (&sieving{cell: cell, sheet: b.Sheet()}).bad(context.Background(), slots)
			if err != nil || at != bad {
				t.Errorf("points %v: got unit %d, %v, want %d", points, at, err, bad)
			}
			if most := 1 + 3; points && cell.runs > most {
				t.Errorf("unit %d: %d runs, want %d at most", bad, cell.runs, most)
			}
		}
	}
}

// A candidate that has taken some batches as they are is not asked before it plays the next one, until it refuses something.
func TestSieveTrustsWhoTakesAll(t *testing.T) {
	b := &gen.Batch{Units: []*gen.Unit{{Body: []*conftree.Node{{Words: []string{"good"}}}}}}
	cell := &picky{word: "unloadable"}
	c, rig := &Campaign{}, &cells{cand: cell}
	try := func(want int) {
		t.Helper()
		cell.runs = 0
		for range 3 * takenEnough {
			if left, err := c.sieveRefused(context.Background(), rig, b); err != nil || len(left.Units) != 1 {
				t.Fatalf("%+v, %v", left, err)
			}
		}
		if cell.runs != want {
			t.Errorf("%d runs, want %d", cell.runs, want)
		}
	}
	try(takenEnough)
	try(0)
	c.refuse("bad")
	try(takenEnough)
}

// A sieved batch has the units that load, in their order, and every one of the others is named.
func TestSieve(t *testing.T) {
	for _, places := range []bool{false, true} {
		b := &gen.Batch{}
		for i := range 12 {
			word := "good"
			if i == 0 || i == 5 || i == 6 || i == 11 {
				word = "unloadable"
			}
			b.Units = append(b.Units, &gen.Unit{Label: fmt.Sprint(i), Body: []*conftree.Node{{Words: []string{word}}}})
		}
		c := &Campaign{}
		left, bad, err := c.sieve(context.Background(), &cells{ref: &picky{word: "unloadable", places: places}}, b)
		if err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, u := range left.Units {
			labels = append(labels, u.Label)
		}
		slices.Sort(bad)
		if got := fmt.Sprint(labels, bad); got != "[1 2 3 4 7 8 9 10] [0 5 6 11]" {
			t.Errorf("places %v: got %s", places, got)
		}
	}
}

// Probes keep their own files: two units' lie in their slots, and no probe's nginx.conf is another's.
func TestProbeFiles(t *testing.T) {
	b := &gen.Batch{}
	for range 2 {
		b.Units = append(b.Units, &gen.Unit{Files: []casefile.File{
			{Path: "u00/geo.conf", Data: []byte("u00;\n")}, {Path: "u00/html/a.txt", Data: []byte("a")},
		}})
	}
	list := []probe{
		{conf: []byte("wrong"), files: []casefile.File{{Path: "nginx.conf", Data: []byte("wrong")}, {Path: "conf/one.conf", Data: []byte("#")}}},
		{conf: b.Sheet().Conf(0), files: b.Files()},
		{conf: b.Sheet().Conf(1), files: b.Files()},
	}
	var got []string
	for _, f := range probeFiles(list) {
		got = append(got, f.Path)
	}
	if want := "logs w00.conf conf/one.conf w01.conf u00/geo.conf u01/geo.conf w02.conf"; strings.Join(got, " ") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, " "), want)
	}
}
