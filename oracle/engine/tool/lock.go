package tool

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes the lock file at path, making it where it is missing, and waits for
// a process that has it. The kernel frees it when this process ends in any way.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	got := make(chan error, 1)
	go func() {
		for {
			if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
				got <- err
				return
			}
		}
	}()
	select {
	case err = <-got:
	case <-ctx.Done():
		go func() { <-got; f.Close() }() // flock cannot be interrupted
		return nil, fmt.Errorf("lock %s: %w", path, ctx.Err())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
