package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestInterrupted runs the scripts of testdata/interrupted: what a command says and keeps when a signal ends it.
func TestInterrupted(t *testing.T) { scripts(t, "testdata/interrupted") }

// appears waits until a file is there, with a text in it where one is given. A script fails by the bound, and never
// passes by it.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	text := strings.Join(args[1:], " ")
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.Contains(string(b), text) {
			return
		}
	}
	ts.Fatalf("%s has not appeared with %q", args[0], text)
}
