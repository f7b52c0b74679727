package ev

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// setgroups is of the calling thread only: the library's own would change all threads.
func setgroups(gids []uint32) error {
	var p unsafe.Pointer
	if len(gids) > 0 {
		p = unsafe.Pointer(&gids[0])
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(gids)), uintptr(p), 0); e != 0 {
		return e
	}
	return nil
}
