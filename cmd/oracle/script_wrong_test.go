package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestWrong runs the scripts of testdata/wrong: what a person may give wrong, and what a machine may
// lack. Each ends in an error that names the thing and the next step, with the right code.
func TestWrong(t *testing.T) { scripts(t, "testdata/wrong") }

// fullDisk gives a script a folder, $FULL, with room for little. Without root there is none, and what needs it is skipped.
func fullDisk(env *testscript.Env) error {
	dir := filepath.Join(env.WorkDir, "full")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=32k"); err != nil {
		return nil
	}
	env.Setenv("FULL", dir)
	env.Defer(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return nil
}

// room makes the small disk large.
func room(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(syscall.Mount("tmpfs", ts.Getenv("FULL"), "tmpfs", syscall.MS_REMOUNT, "size=64m"))
}
