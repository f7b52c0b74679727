package report

import (
	"os/exec"
	"testing"
)

// A shell reads a word back as it was.
func TestWord(t *testing.T) {
	for _, s := range []string{"scenarios/a.txtar", "", "a b", "it's", "$x`y`", "a\nb", "*?[", "~", "a;b&", "ü", `\`, "-n"} {
		out, err := exec.Command("/bin/sh", "-c", `printf %s "$1"; exit`, "sh", s).Output()
		if err != nil || string(out) != s {
			t.Fatalf("the shell by itself: %q, %v", out, err)
		}
		out, err = exec.Command("/bin/sh", "-c", "printf '%s' "+Word(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q as %s is read as %q, %v", s, Word(s), out, err)
		}
	}
}
