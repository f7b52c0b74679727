// Package rlimit remembers the limit of descriptors that the process was started with. Go's os package
// raises it when it is initialized; this package imports nothing but syscall and sorts before "os", so
// that it is initialized first (Go specification, package initialization).
package rlimit

import "syscall"

// Nofile is the limit as it was; OK is false when it could not be had.
var Nofile, OK = read()

func read() (syscall.Rlimit, bool) {
	var r syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r)
	return r, err == nil
}

// Restore undoes what Go did, so that descriptors run out where they would for nginx.
func Restore() {
	if OK {
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &Nofile)
	}
}
