// Package tool runs other programs to their end: the one place besides cells
// where the oracle starts any.
package tool

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Cmd is a program to run.
type Cmd struct {
	Name string
	Args []string
	Dir  string
	Env  []string // added to this process's
}

// Run runs c and returns what it wrote. An error names the program and the end
// of what it said.
func Run(ctx context.Context, c Cmd) (stdout, stderr []byte, err error) {
	cmd := exec.CommandContext(ctx, c.Name, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), c.Env...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w%s", c.Name, err, tail(said.String()))
	}
	return out.Bytes(), said.Bytes(), err
}

// Look finds a program: on PATH, or in the folders of system programs, which are
// not on every user's PATH. It is "" when there is none.
func Look(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if st, err := os.Stat(dir + "/" + name); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return dir + "/" + name
		}
	}
	return ""
}

// tail is the end of a program's complaint, as a part of an error's text.
func tail(s string) string {
	const lines = 5
	l := strings.Split(strings.TrimSpace(s), "\n")
	if l[0] == "" {
		return ""
	}
	if len(l) > lines {
		l = append([]string{"…"}, l[len(l)-lines:]...)
	}
	return ":\n  " + strings.Join(l, "\n  ")
}
