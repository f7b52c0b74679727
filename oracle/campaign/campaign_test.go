package campaign

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/minimize"
	"nginxoracle/oracle/minimize/conftree"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
)

// cell is a fake cell: it only knows its name. -t says nothing and passes.
type cell struct {
	engine.Cell
	name   string
	closed *atomic.Int32
}

func (c *cell) Info() engine.Info                                  { return engine.Info{Target: c.name} }
func (c *cell) Reset(context.Context, []engine.File) error         { return nil }
func (c *cell) Do(context.Context, string, []string, []byte) error { return nil }
func (c *cell) Close() error                                       { c.closed.Add(1); return nil }
func (c *cell) Command(context.Context, ...string) (engine.Output, error) {
	return engine.Output{Exit: engine.Exit{Exited: true}}, nil
}

// rigged is a campaign's surroundings: every client is answered 200, but by the
// candidate 500 in units whose configuration has the bug's directive.
type rigged struct {
	t              *testing.T
	dir            string
	bug            string
	fail           func(run int32) error
	waver          bool
	twist          func(target string, n int32, slot, slots int) string // another answer; n counts this target's runs
	crash          string                                               // the reference's worker crashes with a configuration that has this text
	exits          bool                                                 // not its worker, the whole server
	turns          [2]atomic.Int32                                      // the reference's runs, the candidate's
	runs           atomic.Int32
	opened, closed atomic.Int32
}

func (r *rigged) config() Config {
	open := func(name string) func(context.Context) (engine.Cell, error) {
		return func(context.Context) (engine.Cell, error) {
			r.opened.Add(1)
			return &cell{name: name, closed: &r.closed}, nil
		}
	}
	return Config{Dir: filepath.Join(r.dir, "state"), Corpus: filepath.Join(r.dir, "corpus"), Seed: 5, Batches: 2, Jobs: 2, Units: 6, Wrong: 2,
		Feedback: true, Drain: time.Hour, OpenRef: open("nginx"), OpenCand: open("proxy"), Run: r.run, Compare: compare}
}

func (r *rigged) run(ctx context.Context, c engine.Cell, cs *casefile.Case, _ run.Options) (*observe.Observation, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	n := r.runs.Add(1)
	if r.fail != nil {
		if err := r.fail(n); err != nil {
			return nil, err
		}
	}
	conf := cs.File("nginx.conf").Data
	buggy := map[int]bool{}
	if top, err := conftree.Parse(conf); err == nil {
		conftree.Walk(top, "", func(n *conftree.Node, _ string) bool {
			if n.Name() == "server" && bytes.Contains(conftree.Print([]*conftree.Node{n}), []byte(" "+r.bug+" ")) {
				for _, k := range n.Kids {
					if k.Name() == "listen" && len(k.Words) > 1 {
						for _, s := range slotsIn([]byte(k.Words[1])) {
							buggy[s] = true
						}
						buggy[-1] = true // renamed by shrinking
					}
				}
			}
			return true
		})
	}
	o := &observe.Observation{Info: c.Info(), Process: observe.Process{Started: true}, Took: time.Millisecond}
	if c.Info().Target == "nginx" && r.crash != "" && bytes.Contains(conf, []byte(r.crash)) {
		if o.Process.Worker = "exited on signal 11"; r.exits {
			o.Process.Worker, o.Process.Exit = "", engine.Exit{Exited: true, Signal: 11}
		}
	}
	units, turn := map[int]bool{}, int32(0)
	for _, s := range cs.Sections {
		units[(s.ID-1)/100] = true
	}
	if c.Info().Target == "proxy" {
		turn = r.turns[1].Add(1)
	} else {
		turn = r.turns[0].Add(1)
	}
	for _, s := range cs.Sections {
		answer := "HTTP/1.1 200 OK\r\n\r\n"
		slots := slotsIn([]byte(s.Addr))
		if c.Info().Target == "proxy" && (len(slots) == 1 && buggy[slots[0]] || len(slots) == 0 && buggy[-1]) {
			answer = "HTTP/1.1 500 Oops\r\n\r\n"
		}
		if r.waver && n%3 == 0 {
			answer = fmt.Sprintf("HTTP/1.1 2%02d OK\r\n\r\n", n%90)
		}
		if r.twist != nil {
			answer = cmp.Or(r.twist(c.Info().Target, turn, (s.ID-1)/100, len(units)), answer)
		}
		if crash(o) != "" {
			answer = ""
		}
		o.Clients = append(o.Clients, observe.Conn{ID: s.ID, Addr: s.Addr, Recv: []byte(answer), End: observe.EndClosed})
	}
	return o, nil
}

func compare(ref, cand *observe.Observation) diff.Result {
	r := diff.Result{Verdict: diff.Agree}
	if a, b := crash(ref), crash(cand); a != b {
		r.Verdict = diff.Differ
		r.Mismatches = append(r.Mismatches, diff.Mismatch{Kind: diff.KindProcess, Where: diff.Workers, Ref: []byte(a), Cand: []byte(b)})
	}
	for i := range ref.Clients {
		if a, b := ref.Clients[i].Recv, cand.Clients[i].Recv; !bytes.Equal(a, b) {
			r.Verdict = diff.Differ
			r.Mismatches = append(r.Mismatches, diff.Mismatch{Kind: diff.KindClient, Where: fmt.Sprintf("client %d", ref.Clients[i].ID), Ref: a, Cand: b})
		}
	}
	return r
}

func (r *rigged) campaign(change func(*Config)) Summary {
	r.t.Helper()
	cfg := r.config()
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	sum, _ := c.Run(context.Background())
	return sum
}

// busiest is a directive that some of the generated units use.
func busiest(t *testing.T) string {
	t.Helper()
	g, err := gen.New(gen.Options{Units: 6})
	if err != nil {
		t.Fatal(err)
	}
	best, most := "", 0
	for _, name := range []string{"rewrite", "alias", "try_files", "proxy_pass", "return", "error_page"} {
		n := 0
		for b := range uint64(2) {
			for _, u := range g.Batch(5, b).Units {
				if uses(u, name) {
					n++
				}
			}
		}
		if n > most {
			best, most = name, n
		}
	}
	return best
}

func TestCampaignFilesABugOnceAndResumes(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: busiest(t)}
	sum := r.campaign(nil)
	if sum.Code != exit.Differ || len(sum.Findings) == 0 {
		t.Fatalf("code %v, %d findings: %s", sum.Code, len(sum.Findings), sum.Why)
	}
	if want := "client: 200 / 500 [" + r.bug + "]"; sum.Findings[0].Signature != want {
		t.Errorf("signature %q, want %q", sum.Findings[0].Signature, want)
	}
	if sum.Batches != 2 || sum.Units == 0 || sum.Wrong != 4 || sum.Exchanges == 0 {
		t.Errorf("counters: %+v", sum.State)
	}
	if sum.Mismatches == sum.Units && sum.Seeds != 0 {
		t.Errorf("every unit differs and %d are seeds: what differs is triage's until it is confirmed", sum.Seeds)
	}
	if r.opened.Load() != r.closed.Load() {
		t.Errorf("%d cells opened, %d closed", r.opened.Load(), r.closed.Load())
	}
	seen := map[string]bool{}
	c, err := catalog.Open(filepath.Join(r.dir, "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range c.Entries {
		if seen[e.Signature()] {
			t.Errorf("signature %q was filed twice", e.Signature())
		}
		seen[e.Signature()] = true
	}
	again := r.campaign(nil)
	if again.First != 2 || again.Next != 4 || again.Batches != 4 {
		t.Errorf("resumed at batch %d, went to %d, %d in all; want 2, 4 and 4", again.First, again.Next, again.Batches)
	}
	after, err := catalog.Open(filepath.Join(r.dir, "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range after.Entries[len(c.Entries):] {
		if seen[e.Signature()] {
			t.Errorf("signature %q was filed again after resuming", e.Signature())
		}
	}
}

func TestUnitsThatAgreeBecomeSeeds(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: "no such directive"}
	if sum := r.campaign(nil); sum.Mismatches != 0 || sum.Seeds == 0 {
		t.Errorf("%d mismatches, %d seeds", sum.Mismatches, sum.Seeds)
	}
}

// What differed is on disk before anything else happens to it, and a campaign
// that dies then takes it up again.
func TestPendingCasesSurvive(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: busiest(t)}
	died := r.campaign(func(c *Config) { c.Drain = 0; c.Batches = 1; c.Jobs = 1; c.Wrong = 0 })
	if len(died.Waiting) == 0 || died.Code != exit.Differ {
		t.Fatalf("nothing waits: code %v, %s", died.Code, died.Why)
	}
	for _, f := range died.Waiting {
		if _, err := casefile.Load(f); err != nil {
			t.Error(err)
		}
	}
	if err := os.Remove(filepath.Join(r.dir, "state", "state.json")); err != nil { // died before its first save
		t.Fatal(err)
	}
	sum := r.campaign(func(c *Config) { c.Batches = 1; c.Jobs = 1; c.Wrong = 0 })
	if len(sum.Findings) == 0 || len(sum.Waiting) != 0 {
		t.Errorf("after resuming: %d findings, %d waiting", len(sum.Findings), len(sum.Waiting))
	}
}

func TestKnownDivergenceIsNoFinding(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: busiest(t)}
	r.campaign(nil)
	c, err := catalog.Open(filepath.Join(r.dir, "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range c.Entries {
		e.Case.Meta[1].Value = catalog.Divergence
		e.Case.Meta = append(e.Case.Meta, casefile.Field{Key: "reason", Value: "r"}, casefile.Field{Key: "decision", Value: "1"})
		if err := catalog.WriteFile(e.Path, e.Case.Print()); err != nil {
			t.Fatal(err)
		}
	}
	sum := r.campaign(func(c *Config) { c.Dir = filepath.Join(r.dir, "state2") })
	if sum.Code != exit.Agree || len(sum.Known) == 0 {
		t.Errorf("code %v (%s), known %v", sum.Code, sum.Why, sum.Known)
	}
}

func TestWaveringReferenceIsNoFinding(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: "none", waver: true}
	sum := r.campaign(func(c *Config) { c.Self = true; c.Jobs = 1 })
	if len(sum.Findings) != 0 || sum.Unstable == 0 || sum.Code != exit.Unstable {
		t.Errorf("code %v, %d findings, %d unstable: %s", sum.Code, len(sum.Findings), sum.Unstable, sum.Why)
	}
}

func TestBrokenRigNeverAgrees(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: "none", fail: func(int32) error { return errors.New("the agent is gone") }}
	sum := r.campaign(func(c *Config) { c.Wrong = 0 })
	if sum.Code != exit.Rig || sum.RigFailed == 0 {
		t.Errorf("code %v, %d rig failures: %s", sum.Code, sum.RigFailed, sum.Why)
	}
	if !strings.Contains(sum.LastRig, "the agent is gone") {
		t.Errorf("last rig failure %q", sum.LastRig)
	}
	// one broken run is made good by new cells
	r = &rigged{t: t, dir: t.TempDir(), bug: "none", fail: func(n int32) error {
		if n == 3 {
			return errors.New("the agent is gone")
		}
		return nil
	}}
	sum = r.campaign(nil)
	if sum.Batches != 2 || sum.RigFailed != 1 || r.opened.Load() != 6 {
		t.Errorf("%d batches, %d rig failures, %d cells opened; want 2, 1 and 6", sum.Batches, sum.RigFailed, r.opened.Load())
	}
}

func TestSlotsOfMismatches(t *testing.T) {
	for _, x := range []struct {
		m    diff.Mismatch
		want int
	}{
		{diff.Mismatch{Where: "client 1203"}, 12},
		{diff.Mismatch{Where: "origin 127.0.0.1:20076, connection 2"}, 7},
		{diff.Mismatch{Where: "logs/u31.log"}, 31},
		{diff.Mismatch{Where: "logs/error.log", Ref: []byte("same u01\nopen() \"/cell/u09/html/x\" failed"), Cand: []byte("same u01\n")}, 9},
	} {
		if got, ok := slotOf(x.m); !ok || got != x.want {
			t.Errorf("%s: slot %d %v, want %d", x.m.Where, got, ok, x.want)
		}
	}
	if _, ok := slotOf(diff.Mismatch{Where: "processes"}); ok {
		t.Error("a mismatch of the processes is no unit's")
	}
}

// Seeds are changed under the campaign's lock, with what the generator knows of the candidate: it must not ask for the lock.
func TestSeedsAreChanged(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir()}
	c, err := New(r.config())
	if err != nil {
		t.Fatal(err)
	}
	defer c.locked.Close()
	c.refuse("add_header X-A one")
	g, err := c.generator()
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(8) {
		for _, u := range g.Batch(1, n).Units {
			c.pool.Add(u, "response", 1, n)
		}
	}
	changed := 0
	for n := range uint64(8) {
		for _, u := range c.make(g, n).Units {
			if u.From != "" {
				changed++
			}
		}
	}
	if changed == 0 {
		t.Error("no seed was changed")
	}
}

// What shrinking did not bring to its end is a divergence's where nothing is left but what its entry names and covers.
func TestUnfinishedMinimumIsCovered(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: busiest(t)}
	few := func(dir string) func(*Config) {
		return func(c *Config) {
			c.Dir, c.Batches, c.Jobs, c.Wrong, c.Shrink = filepath.Join(r.dir, dir), 1, 1, 0, minimize.Budget{Attempts: 2}
		}
	}
	if sum := r.campaign(few("first")); len(sum.Findings) == 0 {
		t.Fatalf("no findings: %s", sum.Why)
	}
	c, err := catalog.Open(filepath.Join(r.dir, "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	own, covers := "client: 200 / 500 ["+r.bug+"]", map[string]bool{}
	for i, e := range c.Entries {
		core, list, _ := strings.Cut(strings.TrimSuffix(e.Signature(), "]"), " [")
		if core != "client: 200 / 500" || e.Signature() == own {
			t.Fatalf("%s was shrunk to its end", e.Signature())
		}
		for _, d := range strings.Fields(list) {
			covers[d] = d != r.bug
		}
		if i > 0 {
			if err := os.Remove(e.Path); err != nil {
				t.Fatal(err)
			}
		}
	}
	e, may := c.Entries[0], slices.DeleteFunc(slices.Sorted(maps.Keys(covers)), func(d string) bool { return !covers[d] })
	for i := range e.Case.Meta {
		switch e.Case.Meta[i].Key {
		case "status":
			e.Case.Meta[i].Value = catalog.Divergence
		case "signature":
			e.Case.Meta[i].Value = own
		}
	}
	e.Case.Meta = append(e.Case.Meta, casefile.Field{Key: "reason", Value: "r"}, casefile.Field{Key: "decision", Value: "1"}, casefile.Field{Key: "covers", Value: strings.Join(may, " ")})
	if err := catalog.WriteFile(e.Path, e.Case.Print()); err != nil {
		t.Fatal(err)
	}
	if sum := r.campaign(few("second")); len(sum.Findings) != 0 || len(sum.Known) == 0 {
		t.Errorf("covered: %d findings, known %v (%s)", len(sum.Findings), sum.Known, sum.Why)
	}
	may = may[1:] // one that it does not speak of: another finding
	e.Case.Meta[len(e.Case.Meta)-1].Value = strings.Join(may, " ")
	if err := catalog.WriteFile(e.Path, e.Case.Print()); err != nil {
		t.Fatal(err)
	}
	if sum := r.campaign(few("third")); len(sum.Findings) == 0 {
		t.Errorf("not covered, but no finding: known %v (%s)", sum.Known, sum.Why)
	}
}
