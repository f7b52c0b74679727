package exit

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestSummaryNamesCode(t *testing.T) {
	for c, want := range map[Code]string{
		Agree:    "2 cases: exit 0 (agree)",
		Differ:   "2 cases: exit 1 (differ)",
		Usage:    "2 cases: exit 2 (wrong usage)",
		Rig:      "2 cases: exit 3 (rig failed)",
		Unstable: "2 cases: exit 4 (unstable)",
		Stale:    "2 cases: exit 5 (stale)",
		Refused:  "2 cases: exit 6 (refused)",
		Code(9):  "2 cases: exit 9 (code 9)",
	} {
		if got := c.Summary("2 cases"); got != want {
			t.Errorf("Summary of %d = %q, want %q", int(c), got, want)
		}
	}
}

// A number without a verdict stays what scripts know; only its word says who ended the command.
func TestInterruptedBlamesNobody(t *testing.T) {
	if got, want := Rig.Interrupted("2 cases"), "2 cases: exit 3 (interrupted)"; got != want {
		t.Errorf("Interrupted = %q, want %q", got, want)
	}
	if got, want := Usage.Interrupted("bad flag"), "bad flag: exit 2 (wrong usage)"; got != want {
		t.Errorf("Interrupted = %q, want %q", got, want)
	}
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Code
	}{
		{nil, Agree},
		{io.EOF, Rig},
		{Errorf(Stale, "F-0001"), Stale},
		{fmt.Errorf("replay: %w", Errorf(Usage, "bad")), Usage},
		{Wrap(Rig, Errorf(Usage, "bad")), Usage},
		{Wrap(Refused, io.EOF), Refused},
	} {
		if got := Of(c.err); got != c.want {
			t.Errorf("Of(%v) = %v, want %v", c.err, got, c.want)
		}
	}
	if Wrap(Rig, nil) != nil {
		t.Error("Wrap made an error of nil")
	}
	if !errors.Is(Wrap(Rig, io.EOF), io.EOF) {
		t.Error("Wrap hides what it wraps")
	}
}

func TestWorst(t *testing.T) {
	order := []Code{Agree, Unstable, Refused, Stale, Differ, Usage, Rig}
	for i, lo := range order {
		for _, hi := range order[i:] {
			if Worst(lo, hi) != hi || Worst(hi, lo) != hi {
				t.Errorf("Worst(%v, %v) is not %v", lo, hi, hi)
			}
		}
	}
}
