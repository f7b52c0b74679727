package campaign

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the campaign's folder for this process, so that two campaigns do not write one state.
// The kernel lets go of it when the process ends, also by kill -9: a leftover file locks nothing.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("campaign: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close() // nothing was written
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("campaign: %s: another campaign runs in this folder: wait for its end, or give another --dir", path)
		}
		return nil, fmt.Errorf("campaign: lock %s: %w", path, err)
	}
	return f, nil
}
