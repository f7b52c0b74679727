package ev

import (
	"strconv"

	"nginxoracle/proxy/elog"

	"golang.org/x/sys/unix"
)

// askAbove is the size from which the kernel is asked before Go's heap is: the heap ends the process
// when the kernel refuses, and only sizes that no machine has are refused by a kernel that overcommits.
const askAbove = 1 << 28

// NoMemory is the panic of a buffer that there is no memory for; the connection is closed.
type NoMemory int64

func (n NoMemory) Error() string {
	return "malloc(" + strconv.FormatUint(uint64(n), 10) + ") failed"
}

// Obtainable tells whether the kernel has n bytes to give: nil, or what malloc(3) would leave in errno.
func Obtainable(n int64) error { return obtainable(n, unix.MAP_PRIVATE) }

// Mappable tells whether the kernel has n bytes for processes to share: nil, or what mmap(2) would leave in errno.
func Mappable(n int64) error { return obtainable(n, unix.MAP_SHARED) }

func obtainable(n int64, kind uintptr) error {
	if uint64(n) < askAbove {
		return nil
	}
	if n < 0 {
		return unix.ENOMEM
	}
	p, _, errno := unix.Syscall6(unix.SYS_MMAP, 0, uintptr(n), unix.PROT_READ|unix.PROT_WRITE,
		kind|unix.MAP_ANON, ^uintptr(0), 0)
	if errno != 0 {
		return errno
	}
	unix.Syscall(unix.SYS_MUNMAP, p, uintptr(n), 0)
	return nil
}

// Reserve logs as ngx_alloc does when there are no n bytes to get, and tells whether there are.
func Reserve(n int64, log *elog.Log) bool {
	if err := Obtainable(n); err != nil {
		log.Err(elog.Emerg, err, "%s", NoMemory(n).Error())
		return false
	}
	return true
}

// Bytes makes a buffer whose size a configuration chose. When there is no memory it panics with
// NoMemory, which the loop turns into the end of the connection.
func Bytes(n int64) []byte {
	if Obtainable(n) != nil {
		panic(NoMemory(n))
	}
	return make([]byte, n)
}
