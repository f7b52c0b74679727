package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		if err != nil && !strings.Contains(string(said), "exit 1 (differ)") {
			t.Fatalf("oracle %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	verdict := regexp.MustCompile(`(?m)^\S+\.txtar +\w+$`)
	verdicts := map[string][]string{}
	campaigns := map[string]any{}
	for _, kind := range []string{engine.Local, engine.Container} {
		out := oracle("replay", "-v", "--jobs", "1", "--cell", kind, "--candidate", filepath.Join(bin, "nginx"), "testdata/cases/good.txtar", "../../scenarios/index", "../../scenarios/access")
		verdicts[kind] = verdict.FindAllString(out, -1)

		dir := t.TempDir()
		var c struct {
			Cases, Units, Wrong, Exchanges, Differed, Mismatches, Unstable, Refused, RigFailed int
			Cores                                                                              map[string]int
		}
		out = oracle("fuzz", "--json", "--cases", "1", "--seed", "11", "--no-feedback", "--jobs", "1", "--cell", kind,
			"--candidate", "nginx", "--dir", filepath.Join(dir, "state"), "--corpus", filepath.Join(dir, "corpus"))
		if err := json.Unmarshal([]byte(out), &c); err != nil {
			t.Fatal(err)
		}
		if c.Exchanges < 50 || c.RigFailed > 0 {
			t.Errorf("%s: the campaign made %+v, want at least 50 exchanges and no failure of the rig", kind, c)
		}
		campaigns[kind] = c
	}
	if len(verdicts[engine.Local]) < 20 {
		t.Errorf("%d verdicts, want at least 20", len(verdicts[engine.Local]))
	}
	if d := cmp.Diff(verdicts[engine.Local], verdicts[engine.Container]); d != "" {
		t.Errorf("verdicts of cases differ (-local +container):\n%s", d)
	}
	if d := cmp.Diff(campaigns[engine.Local], campaigns[engine.Container]); d != "" {
		t.Errorf("campaigns differ (-local +container):\n%s", d)
	}
}
