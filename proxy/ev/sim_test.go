package ev_test

import (
	"fmt"
	"strings"
	"testing"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/ev/evsim"
)

// history plays the same conversation and tells all that happened in it.
func history(t *testing.T, opt evsim.Options) string {
	t.Helper()
	n := evsim.New(opt)
	r := listening(t, n, 64, echo)
	var b strings.Builder
	type talk struct {
		p    *simPeer
		want string
		got  strings.Builder
		end  bool
	}
	var talks []*talk
	for i := 0; i < 8; i++ {
		c, err := n.Dial(r.addr)
		if err != nil {
			t.Fatal(err)
		}
		k := &talk{p: &simPeer{c: c}, want: strings.Repeat(fmt.Sprintf("<%d>", i), 500*i)}
		k.p.send(k.want)
		k.p.shutdown()
		talks = append(talks, k)
	}
	r.until(t, "all talks end", func() bool {
		all := true
		for _, k := range talks {
			s, end := k.p.recv()
			k.got.WriteString(s)
			k.end = k.end || end
			all = all && k.end
		}
		return all
	})
	for i, k := range talks {
		got := k.got.String()
		if !strings.HasPrefix(k.want, got) {
			t.Fatalf("seed %d: talk %d got bytes that it did not send", opt.Seed, i)
		}
		if opt.Resets == 0 && got != k.want {
			t.Fatalf("seed %d: talk %d got %d of %d bytes", opt.Seed, i, len(got), len(k.want))
		}
		fmt.Fprintf(&b, "talk %d: %d bytes\n", i, len(got))
	}
	if n.Open() != 1 || r.Free() != 63 {
		t.Fatalf("seed %d: %d descriptors are open, %d slots are free", opt.Seed, n.Open(), r.Free())
	}
	fmt.Fprintf(&b, "%d system calls, %d lines logged, clock %d\n", n.Steps, len(*r.log), n.Mono())
	return b.String()
}

// TestSeeds: whatever a seed cuts, stalls and resets, bytes come back in order or not at all, nothing
// leaks, and the same seed makes the same history.
func TestSeeds(t *testing.T) {
	distinct := map[string]bool{}
	for seed := uint64(1); seed <= 60; seed++ {
		for _, opt := range []evsim.Options{
			{Seed: seed, Split: true, Buffer: 300},
			{Seed: seed, Split: true, Stalls: 5},
			{Seed: seed, Split: true, Stalls: 7, Resets: 60, Buffer: 1000},
		} {
			a := history(t, opt)
			if b := history(t, opt); a != b {
				t.Fatalf("%+v: two histories:\n%s---\n%s", opt, a, b)
			}
			distinct[a] = true
		}
	}
	if len(distinct) < 100 {
		t.Errorf("180 seeds and options made %d different histories", len(distinct))
	}
}

var _ ev.Sys = (*evsim.Net)(nil)
