package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/exit"
)

// writeTo checks before the work that the file that a flag names can be written. One that is there must be of the
// kind that is written, which is tells: a slip of the hand must not cost a person's own file.
func writeTo(command, flag, path string, is func(text []byte) bool) error {
	if path == "" {
		return nil
	}
	err := catalog.CanWrite(path)
	if err == nil && is != nil {
		if text, rerr := os.ReadFile(path); rerr == nil && len(text) > 0 && !is(text) {
			err = fmt.Errorf("%s is there and was not written by this command", path)
		}
	}
	return cannot(command, flag, err)
}

// fill is writeTo for a folder.
func fill(command, flag, dir string) error {
	if dir == "" {
		return nil
	}
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		return exit.Errorf(exit.Usage, "%s: %s is no folder: give another %s", command, dir, flag)
	}
	return cannot(command, flag, catalog.CanFill(dir))
}

// cannot gives the error of an output its code: a wrong place is wrong usage, a disk that has no room is not.
func cannot(command, flag string, err error) error {
	if err == nil {
		return nil
	}
	code := exit.Usage
	if noRoom(err) {
		code = exit.Rig
	}
	return exit.Errorf(code, "%s: %s: %w: give another", command, flag, err)
}

func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EIO)
}

// Kinds of files that commands write.
func isCase(text []byte) bool { _, err := casefile.Parse("", text); return err == nil }
func isPage(text []byte) bool { return bytes.HasPrefix(bytes.ToLower(text), []byte("<!doctype html")) }
func isFindings(text []byte) bool {
	return bytes.HasPrefix(text, []byte("# Findings\n"))
}

// sameFile tells whether two names are of one file, now or once it is written.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return os.SameFile(x, y)
	}
	return filepath.Clean(a) == filepath.Clean(b)
}

// targetName is a target as a campaign remembers it: a path does not hang on where the command was typed.
func targetName(name string) string {
	if strings.ContainsRune(name, '/') {
		if abs, err := filepath.Abs(name); err == nil {
			return abs
		}
	}
	return name
}
