package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/engine/tool"
	"nginxoracle/oracle/reference"
)

// The same campaign and the same cases give the same verdicts in both kinds of cell.
func TestKindsOfCellAgree(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reference.Resolve(t.Context(), "nginx", "nginx", engine.Container, nil); errors.Is(err, reference.ErrNoContainers) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	if ok, err := tool.Static(self); err != nil || !ok {
		t.Skipf("the test binary is not static, so it cannot be process 1 of a container (CGO_ENABLED=0 makes it so): %v", err)
	}
	bin := t.TempDir()
	for _, name := range []string{"oracle", "nginx"} {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	oracle := func(args ...string) string {
		t.Helper()
		out, said, err := tool.Run(t.Context(), tool.Cmd{Name: filepath.Join(bin, "oracle"), Args: args})
		if err != nil && !strings.Contains(string(said), "exit 1 (differ)") && !strings.Contains(string(said), "exit 4 (unstable)") {
			t.Fatalf("oracle %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	// What a busy machine holds up differs once and not again, and has nothing to do with the kind of cell; what
	// the kind of cell does comes every time. So where the kinds disagree both run again, and only what came in
	// all runs of a kind counts.
	seen := map[string]*verdicts{}
	for range kindRuns {
		for _, kind := range []string{engine.Local, engine.Container} {
			v := play(t, oracle, bin, kind)
			if seen[kind] != nil {
				v = seen[kind].always(v)
			}
			seen[kind] = v
		}
		d := seen[engine.Local].diff(seen[engine.Container])
		if d == "" {
			return
		}
		t.Logf("the kinds of cell differ (-local +container):\n%s", d)
	}
	t.Errorf("the kinds of cell differ in each of %d runs", kindRuns)
}

// kindRuns is how often the kinds may disagree. Four campaigns side by side on two cores had a unit held up in every
// second one; that one kind of cell has the same unit held up in four runs and the other in none is beyond chance.
const kindRuns = 4

// verdicts are what a kind of cell gives.
type verdicts struct {
	Cases    map[string][]string // of replay: a case's verdicts in all runs
	Campaign struct {
		Cases, Units, Wrong, Exchanges, Refused, RigFailed int
		Cores                                              map[string]int // what differed: how, and in how many units
	}
	Unstable map[string]int // on what the reference wavered, and where
}

// diff tells in what two kinds differ, "" where they do not: every case has a verdict that both have given.
func (v *verdicts) diff(w *verdicts) string {
	d := cmp.Diff(v.Campaign, w.Campaign) + cmp.Diff(v.Unstable, w.Unstable) + cmp.Diff(slices.Sorted(maps.Keys(v.Cases)), slices.Sorted(maps.Keys(w.Cases)))
	for name, list := range v.Cases {
		if !slices.ContainsFunc(list, func(one string) bool { return slices.Contains(w.Cases[name], one) }) {
			d += fmt.Sprintf("- %s: %v\n+ %s: %v\n", name, list, name, w.Cases[name])
		}
	}
	return d
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

var verdictLine = regexp.MustCompile(`(?m)^(\S+\.txtar) +(\w+)$`)

// play replays some cases and runs a campaign's batch in a kind of cell.
func play(t *testing.T, oracle func(...string) string, bin, kind string) *verdicts {
	v := &verdicts{Cases: map[string][]string{}, Unstable: map[string]int{}}
	out := oracle("replay", "-v", "--jobs", "1", "--cell", kind, "--candidate", filepath.Join(bin, "nginx"), "testdata/cases/good.txtar", "../../scenarios/index", "../../scenarios/access")
	for _, m := range verdictLine.FindAllStringSubmatch(out, -1) {
		v.Cases[m[1]] = []string{m[2]}
	}
	if len(v.Cases) < 20 {
		t.Errorf("%s: %d verdicts, want at least 20", kind, len(v.Cases))
	}
	if proxy := "../../bin/proxy"; exists(proxy) { // make builds it before the tests
		cases, err := filepath.Glob("../../scenarios/proxy/[a-c]*.txtar")
		if err != nil || len(cases) < 20 {
			t.Fatalf("%d cases with an upstream, want at least 20 (%v)", len(cases), err)
		}
		out := oracle(append([]string{"replay", "-v", "--jobs", "1", "--cell", kind, "--candidate", proxy}, cases...)...)
		for _, m := range verdictLine.FindAllStringSubmatch(out, -1) {
			v.Cases["proxy: "+m[1]] = []string{m[2]}
		}
	} else {
		t.Log("bin/proxy is not built: only the reference with itself is compared")
	}
	dir := t.TempDir()
	out = oracle("fuzz", "--json", "--cases", "1", "--seed", "11", "--no-feedback", "--jobs", "1", "--cell", kind,
		"--candidate", "nginx", "--dir", filepath.Join(dir, "state"), "--corpus", filepath.Join(dir, "corpus"))
	if err := json.Unmarshal([]byte(out), &v.Campaign); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "state", "unstable", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range kept {
		c, err := casefile.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		v.Unstable[c.Title+": "+strings.Join(c.Prose, " ")]++
	}
	if c := &v.Campaign; c.Exchanges < 50 || c.RigFailed > 0 {
		t.Errorf("%s: the campaign made %+v, want at least 50 exchanges and no failure of the rig", kind, *c)
	}
	return v
}

// always folds two runs of one kind: what differed in a campaign counts if it did in both, and a case has
// all verdicts that it was given.
func (v *verdicts) always(w *verdicts) *verdicts {
	both := &verdicts{Cases: map[string][]string{}, Campaign: w.Campaign, Unstable: common(v.Unstable, w.Unstable)}
	for name, list := range w.Cases {
		both.Cases[name] = slices.Concat(v.Cases[name], list)
	}
	both.Campaign.Cores = common(v.Campaign.Cores, w.Campaign.Cores)
	return both
}

func common(a, b map[string]int) map[string]int {
	both := map[string]int{}
	for name, n := range a {
		if b[name] > 0 {
			both[name] = min(n, b[name])
		}
	}
	return both
}

// What comes in every run of one kind stays a difference; what came once does not.
func TestKindsFold(t *testing.T) {
	run := func(verdict string, cores ...string) *verdicts {
		v := &verdicts{Cases: map[string][]string{"a.txtar": {verdict}}}
		v.Campaign.Exchanges, v.Campaign.Cores, v.Unstable = 700, map[string]int{}, map[string]int{}
		for _, c := range cores {
			v.Campaign.Cores[c]++
		}
		return v
	}
	quiet := run("agree")
	if d := run("agree", "client: 200 / nothing").always(quiet).diff(quiet); d != "" {
		t.Errorf("what came once is still a difference:\n%s", d)
	}
	if d := run("differ").always(quiet).diff(quiet); d != "" {
		t.Errorf("a case that wavers is still a difference:\n%s", d)
	}
	twice := run("agree", "end: closed / reset", "client: 200 / nothing").always(run("agree", "end: closed / reset"))
	if d := twice.diff(quiet); !strings.Contains(d, "end: closed / reset") {
		t.Errorf("what came twice is no difference:\n%s", d)
	}
	if d := run("differ").always(run("differ")).diff(quiet.always(quiet)); !strings.Contains(d, "a.txtar: [differ differ]") {
		t.Errorf("a case with another verdict in each run is no difference:\n%s", d)
	}
}
