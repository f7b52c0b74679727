package campaign

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/minimize/conftree"
)

// picky loads no configuration with the word in it, and says where the word is, or does not.
type picky struct {
	engine.Cell
	word   string
	places bool
	conf   []byte
}

func (p *picky) Do(_ context.Context, _ string, _ []string, data []byte) error {
	p.conf = data
	return nil
}

func (p *picky) Command(context.Context, ...string) (engine.Output, error) {
	before, _, bad := bytes.Cut(p.conf, []byte(p.word))
	out := engine.Output{Exit: engine.Exit{Exited: true}}
	if bad {
		out.Exit.Code = 1
		out.Stderr = []byte("nginx: [emerg] cannot\n")
		if p.places {
			out.Stderr = fmt.Appendf(nil, "nginx: [emerg] cannot in /cell/nginx.conf:%d\n", 1+bytes.Count(before, []byte("\n")))
		}
	}
	return out, nil
}

func TestFirstBad(t *testing.T) {
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
			ok, text, err := loads(context.Background(), cell, b.Case())
			if err != nil || ok {
				t.Fatalf("loads: %v %v", ok, err)
			}
			got, found := badSlot(b.Case(), text)
			if found != places {
				t.Fatalf("badSlot(%q): found %v", strings.TrimSpace(text), found)
			}
			if !found {
				if got, err = firstBad(context.Background(), cell, b); err != nil {
					t.Fatal(err)
				}
			}
			if got != bad {
				t.Errorf("places %v: got %d, want %d", places, got, bad)
			}
		}
	}
}
