package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// outcome of one mutant.
type outcome string

const (
	killed     outcome = "killed"
	survived   outcome = "survived"
	equivalent outcome = "equivalent"    // the same program, or listed as equivalent with a reason
	stillborn  outcome = "died at start" // serves not even the plainest request: not counted
	unbuilt    outcome = "unbuilt"       // does not compile: not counted
	broken     outcome = "rig failed"
)

// record is what is known of one mutant.
type record struct {
	Key     string // of the change, see key
	Source  string // hash of the file that was changed
	Mutant  Mutant
	Seed    uint64 // of its campaign
	Outcome outcome
	Stage   string        // that killed it: campaign, scenarios or corpus
	Seen    time.Duration // of the campaign, until the unit differed that killed the mutant
	Sure    time.Duration // and until it was sure that it does so again
	Blocks  int           // server blocks that the campaign had compared by then, or in all of its time
	What    string        // what differed
	Where   string        // the unit or the case; the unit's case is in the folder, by the key
	Stages  []string      // what each stage that was run said
	Why     string        // of an equivalent one, or of a broken rig
	Diff    string
}

// letLive tells whether the campaign did not see the difference.
func (r record) letLive() bool {
	return r.Outcome == survived || r.Outcome == killed && r.Stage != "campaign"
}

// line is the record's row in the table.
func (r record) line() string {
	at := "-"
	if r.Outcome == killed && r.Stage == "campaign" {
		at = fmt.Sprintf("%.1fs %4d", r.Sure.Seconds(), r.Blocks)
	}
	m := r.Mutant
	return strings.TrimSpace(fmt.Sprintf("%-13s %-9s %11s  %-18s %s:%d  %s -> %s  %s", r.Outcome, cmp.Or(r.Stage, "-"), at, m.Kind, m.File, m.Line, short(m.Old), short(m.New), cmp.Or(r.What, r.Why)))
}

func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return fmt.Sprintf("%q", s)
}

// key names a mutant in equivalent.tsv and in the book: file, kind, old and new text, and the text around it.
func key(m Mutant, src []byte) string {
	around := src[max(0, m.Start-60):min(len(src), m.End+60)]
	sum := sha256.Sum256([]byte(strings.Join([]string{m.File, m.Kind, m.Old, m.New, string(around)}, "\x00")))
	return fmt.Sprintf("%x", sum[:6])
}

// book keeps the records of a folder, written whole after each mutant.
type book struct {
	path string
	list []record
}

func openBook(path string) (*book, error) {
	b := &book{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return b, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &b.list)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

func hash(src []byte) string { return fmt.Sprintf("%x", sha256.Sum256(src))[:16] }

// find gives the record of a mutant of the file as it is now, unless the rig broke then.
func (b *book) find(m Mutant, src []byte) (record, bool) {
	i := slices.IndexFunc(b.list, func(r record) bool { return r.Key == key(m, src) && r.Source == hash(src) && r.Outcome != broken })
	if i < 0 {
		return record{}, false
	}
	return b.list[i], true
}

// put keeps a record in the place of an older one of the same change.
func (b *book) put(r record) error {
	if i := slices.IndexFunc(b.list, func(o record) bool { return o.Key == r.Key }); i >= 0 {
		b.list[i] = r
	} else {
		b.list = append(b.list, r)
	}
	text, err := json.MarshalIndent(b.list, "", " ")
	if err == nil {
		err = os.WriteFile(b.path+".new", append(text, '\n'), 0o644)
	}
	if err == nil {
		err = os.Rename(b.path+".new", b.path)
	}
	if err != nil {
		return fmt.Errorf("keep what is known: %w", err)
	}
	return nil
}

// counted is how many of the records are of mutants that compile and start.
func counted(rs []record) (n int) {
	for _, r := range rs {
		if r.Outcome != unbuilt && r.Outcome != stillborn {
			n++
		}
	}
	return n
}

// quick is what the campaign should need for most mutants.
const quick = 10 * time.Second

// summary prints the counts; the code is 1 when any mutant survived, 3 when the rig broke or nothing was tried.
func summary(w io.Writer, rs []record) int {
	count, stage := map[outcome]int{}, map[string]int{}
	var times []time.Duration
	var blocks []int
	for _, r := range rs {
		count[r.Outcome]++
		if r.Outcome == killed {
			stage[r.Stage]++
			if r.Stage == "campaign" {
				times, blocks = append(times, r.Sure), append(blocks, r.Blocks)
			}
		}
	}
	live := count[killed] + count[survived]
	share := func(n int) string {
		return fmt.Sprintf("%d of %d (%.0f%%)", n, live, 100*float64(n)/float64(max(live, 1)))
	}
	slices.Sort(times)
	slices.Sort(blocks)
	fast, _ := slices.BinarySearch(times, quick)
	fmt.Fprintf(w, "mutants: killed %s; survived %d, equivalent %d; not counted: %d died at start, %d did not compile; rig failed %d\n",
		share(count[killed]), count[survived], count[equivalent], count[stillborn], count[unbuilt], count[broken])
	fmt.Fprintf(w, "  by the campaign alone: %s, in under %s of it %s\n", share(stage["campaign"]), quick, share(fast))
	if len(times) > 0 {
		fmt.Fprintf(w, "  to a kill: median %.1fs and %d server blocks, longest %.1fs and %d\n",
			times[len(times)/2].Seconds(), blocks[len(blocks)/2], times[len(times)-1].Seconds(), blocks[len(blocks)-1])
	}
	fmt.Fprintf(w, "  of those that the campaign let live: scenarios %d, corpus %d\n", stage["scenarios"], stage["corpus"])
	switch {
	case count[broken] > 0 || live == 0:
		return 3
	case count[survived] > 0:
		return 1
	}
	return 0
}

// readEquivalents reads the mutants that a person has found to be equivalent: key, reason.
func readEquivalents(path string) (map[string]string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		k, why, ok := strings.Cut(line, "\t")
		if !ok || len(k) != 12 || why == "" {
			return nil, fmt.Errorf("%s:%d: want a key of 12 digits, a tab, and the reason", path, i+1)
		}
		known[k] = why
	}
	return known, nil
}
