package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A run goes on where another has ended, but for what was changed since and what the rig has spoiled.
func TestBook(t *testing.T) {
	src := []byte(sample)
	all, err := inFile("p.go", src)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mutants.json")
	b, err := openBook(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range []outcome{survived, broken, killed} {
		if err := b.put(record{Key: key(all[i], src), Source: hash(src), Mutant: all[i], Outcome: o}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.put(record{Key: key(all[0], src), Source: hash(src), Mutant: all[0], Outcome: killed, Stage: "corpus"}); err != nil {
		t.Fatal(err)
	}
	if b, err = openBook(path); err != nil {
		t.Fatal(err)
	}
	if len(b.list) != 3 {
		t.Errorf("%d records, want 3: one was put twice", len(b.list))
	}
	if r, ok := b.find(all[0], src); !ok || r.Outcome != killed || r.Mutant != all[0] {
		t.Errorf("the first is %v %v %v", ok, r.Outcome, r.Mutant)
	}
	if _, ok := b.find(all[1], src); ok {
		t.Error("what the rig has spoiled is taken as known")
	}
	if _, ok := b.find(all[2], append(src, "// changed\n"...)); ok {
		t.Error("a mutant of a file that was changed is taken as known")
	}
}

func TestSummary(t *testing.T) {
	campaign := func(at time.Duration) record {
		return record{Outcome: killed, Stage: "campaign", Sure: at, Blocks: int(at / time.Second)}
	}
	list := []record{campaign(2 * time.Second), campaign(8 * time.Second), campaign(30 * time.Second), {Outcome: killed, Stage: "corpus"},
		{Outcome: survived}, {Outcome: equivalent}, {Outcome: stillborn}, {Outcome: unbuilt}}
	var out strings.Builder
	if code := summary(&out, list); code != 1 {
		t.Errorf("code %d, want 1: one survived", code)
	}
	for _, want := range []string{"killed 4 of 5 (80%); survived 1, equivalent 1; not counted: 1 died at start, 1 did not compile",
		"by the campaign alone: 3 of 5 (60%), in under 10s of it 2 of 5 (40%)", "median 8.0s and 8 server blocks, longest 30.0s and 30", "corpus 1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if n := counted(list); n != 6 {
		t.Errorf("%d count, want 6", n)
	}
	if code := summary(&out, append(list, record{Outcome: broken})); code != 3 {
		t.Errorf("code %d, want 3: the rig broke", code)
	}
	if code := summary(&out, []record{{Outcome: stillborn}}); code != 3 {
		t.Errorf("code %d, want 3: nothing was tried", code)
	}
}
