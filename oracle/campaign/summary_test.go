package campaign

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// What has no verdict is on nobody's list: the last lines say where it is kept and how to look again.
func TestSummaryNamesWhatIsKept(t *testing.T) {
	s := Summary{Dir: "campaign/x", Replay: "oracle replay --candidate x"}
	s.Batches, s.Unstable, s.Company, s.RigFailed = 1, 3, 1, 2
	var b strings.Builder
	s.Print(&b, 1)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	want := []string{
		"unstable  3 units that differed did not come again, or the reference wavers; kept, to look again:",
		"          oracle replay --candidate x campaign/x/unstable",
		"company   1 unit agreed alone; kept, to look again:",
		"          oracle replay --candidate x campaign/x/company",
		"rig       2 runs without verdict; kept, to look again:",
		"          oracle replay --candidate x campaign/x/rig",
	}
	if got := lines[max(0, len(lines)-len(want)):]; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the last lines are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !strings.Contains(b.String(), "compared  1 batch, 0 server blocks") {
		t.Errorf("one batch is not counted as one:\n%s", b.String())
	}
	s.Unstable, s.Company, s.RigFailed = 0, 0, 0
	if list := s.aside(); len(list) != 0 {
		t.Errorf("nothing is kept, and named all the same: %v", list)
	}
}

func TestOneFullDiskIsOneError(t *testing.T) {
	var c Campaign
	full := func(name string) error {
		return fmt.Errorf("campaign: keep %s: %w", name, &os.PathError{Op: "write", Path: name, Err: syscall.ENOSPC})
	}
	for _, err := range []error{full("a"), full("b"), &os.PathError{Op: "open", Path: "c", Err: syscall.EACCES}, full("d")} {
		c.failLocked(err)
	}
	if len(c.errs) != 2 || !strings.Contains(c.errs[0].Error(), "keep a") {
		t.Errorf("got %v, want the first of each cause", c.errs)
	}
}
