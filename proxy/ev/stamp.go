package ev

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Stamp is what must be the same for a file to be unchanged.
type Stamp struct {
	Dev, Ino            uint64
	Size                int64
	MtimeSec, MtimeNsec int64
	CtimeSec, CtimeNsec int64
	Mode                uint32
}

func stamp(st *unix.Stat_t, s *Stamp) {
	*s = Stamp{
		Dev: st.Dev, Ino: st.Ino, Size: st.Size, Mode: st.Mode,
		MtimeSec: st.Mtim.Sec, MtimeNsec: st.Mtim.Nsec,
		CtimeSec: st.Ctim.Sec, CtimeNsec: st.Ctim.Nsec,
	}
}

// StampOf tells about a file, following links, without an allocation and without telling the
// scheduler: it is the one system call of a cached file's request. The name is shorter than
// PATH_MAX or the answer is ENAMETOOLONG.
func StampOf(name []byte, s *Stamp) syscall.Errno {
	var path [unix.PathMax]byte // ended by a zero
	if len(name) >= len(path) {
		return unix.ENAMETOOLONG
	}
	copy(path[:], name)
	var st unix.Stat_t
	at := unix.AT_FDCWD
	_, _, errno := unix.RawSyscall6(unix.SYS_NEWFSTATAT, uintptr(at), uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&st)), 0, 0, 0)
	if errno == 0 {
		stamp(&st, s)
	}
	return errno
}

// FstampOf is StampOf for an open file.
func FstampOf(fd int, s *Stamp) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	stamp(&st, s)
	return nil
}

// KeepsTimes reports a local file system whose times of change can be trusted: those of network
// and user-space ones come from other clocks.
func KeepsTimes(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC:
		return true
	}
	return false
}
