package ev

import (
	"sort"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Files: thin wrappers that begin again after EINTR. Errors are syscall.Errno. Those that serving a
// file needs are raw, as the sockets' are: a disk can hold up a worker, as it does in nginx, and what the
// others then wait for, a collection, is rare.

// Modes of Open (ngx_files.h); all are close-on-exec.
const (
	ReadOnly  = unix.O_RDONLY
	WriteOnly = unix.O_WRONLY
	ReadWrite = unix.O_RDWR
	Create    = unix.O_CREAT
	Excl      = unix.O_EXCL
	Truncate  = unix.O_TRUNC
	Append    = unix.O_APPEND
	Nonblock  = unix.O_NONBLOCK
	NoFollow  = unix.O_NOFOLLOW
	Directory = unix.O_DIRECTORY
	PathOnly  = unix.O_PATH
)

// FileInfo is what stat tells. Mode has the type's bits.
type FileInfo struct {
	Dev, Ino   uint64
	Mode       uint32
	UID, GID   uint32
	Size       int64
	MtimeSec   int64
	MtimeNsec  int64
	Blocks     int64
	HardLinks  uint64
	BlockBytes int64
}

// IsDir, IsFile and IsLink tell the type.
func (f *FileInfo) IsDir() bool  { return f.Mode&unix.S_IFMT == unix.S_IFDIR }
func (f *FileInfo) IsFile() bool { return f.Mode&unix.S_IFMT == unix.S_IFREG }
func (f *FileInfo) IsLink() bool { return f.Mode&unix.S_IFMT == unix.S_IFLNK }

// retry calls f until it was not interrupted.
func retry(f func() error) error {
	for {
		if err := f(); err != syscall.EINTR {
			return err
		}
	}
}

// CString is s as a C function has it: up to its first zero byte. A configuration may hold one in a
// path, and nginx then uses what stands before it.
func CString(s string) string {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return s[:i]
	}
	return s
}

// Open opens a file; perm is for a new one.
func Open(name string, mode int, perm uint32) (fd int, err error) {
	var path [unix.PathMax]byte // ended by a zero
	if name = CString(name); len(name) >= len(path) {
		return -1, unix.ENAMETOOLONG
	}
	copy(path[:], name)
	at := unix.AT_FDCWD
	for {
		r, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(&path[0])), uintptr(mode|unix.O_CLOEXEC|unix.O_LARGEFILE), uintptr(perm), 0, 0)
		if errno == 0 {
			return int(r), nil
		}
		if errno != unix.EINTR {
			return -1, errno
		}
	}
}

// OpenAt is Open under the folder dir.
func OpenAt(dir int, name string, mode int, perm uint32) (fd int, err error) {
	for {
		fd, err = unix.Openat(dir, CString(name), mode|unix.O_CLOEXEC, perm)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

func info(st *unix.Stat_t, f *FileInfo) {
	*f = FileInfo{
		Dev: st.Dev, Ino: st.Ino, Mode: st.Mode, UID: st.Uid, GID: st.Gid, Size: st.Size,
		MtimeSec: st.Mtim.Sec, MtimeNsec: st.Mtim.Nsec,
		Blocks: st.Blocks, HardLinks: uint64(st.Nlink), BlockBytes: int64(st.Blksize),
	}
}

// Fstat tells about an open file.
func Fstat(fd int) (f FileInfo, err error) {
	var st unix.Stat_t
	if _, _, errno := unix.RawSyscall(unix.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&st)), 0); errno != 0 {
		return f, errno
	}
	info(&st, &f)
	return f, nil
}

// Stat tells about a file, following links.
func Stat(name string) (f FileInfo, err error) {
	var st unix.Stat_t
	if err = unix.Stat(CString(name), &st); err == nil {
		info(&st, &f)
	}
	return f, err
}

// Lstat tells about a file or a link.
func Lstat(name string) (f FileInfo, err error) {
	var st unix.Stat_t
	if err = unix.Lstat(CString(name), &st); err == nil {
		info(&st, &f)
	}
	return f, err
}

// FstatAt is Stat under the folder dir; nofollow for Lstat.
func FstatAt(dir int, name string, nofollow bool) (f FileInfo, err error) {
	var st unix.Stat_t
	flags := 0
	if nofollow {
		flags = unix.AT_SYMLINK_NOFOLLOW
	}
	if err = unix.Fstatat(dir, CString(name), &st, flags); err == nil {
		info(&st, &f)
	}
	return f, err
}

// Pread reads at an offset; 0 is the end of the file.
func Pread(fd int, p []byte, off int64) (n int, err error) {
	for {
		r, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), ptr(p), uintptr(len(p)), uintptr(off), 0, 0)
		if errno == 0 {
			return int(r), nil
		}
		if errno != unix.EINTR {
			return 0, errno
		}
	}
}

// Pwrite writes at an offset; it may write less.
func Pwrite(fd int, p []byte, off int64) (n int, err error) {
	for {
		n, err = unix.Pwrite(fd, p, off)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// ReadFD reads from where the file stands.
func ReadFD(fd int, p []byte) (n int, err error) {
	for {
		n, err = unix.Read(fd, p)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// WriteFD writes once, as ngx_write_fd does: a shorter write is the caller's matter.
func WriteFD(fd int, p []byte) (n int, err error) {
	for {
		n, err = unix.Write(fd, p)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// CloseFD closes a file; an interrupted close has closed it.
func CloseFD(fd int) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0); errno != unix.EINTR {
		return errnoErr(errno)
	}
	return nil
}

// Unlink, Mkdir, Rmdir, Rename, Chmod, Chown, Fchmod, Utimes and Ftruncate are the system calls of
// those names.
func Unlink(name string) error { return retry(func() error { return unix.Unlink(CString(name)) }) }

func Mkdir(name string, perm uint32) error {
	return retry(func() error { return unix.Mkdir(CString(name), perm) })
}

func Rmdir(name string) error { return retry(func() error { return unix.Rmdir(CString(name)) }) }

func Rename(from, to string) error {
	return retry(func() error { return unix.Rename(CString(from), CString(to)) })
}

func Chmod(name string, perm uint32) error {
	return retry(func() error { return unix.Chmod(CString(name), perm) })
}

func Chown(name string, uid, gid int) error {
	return retry(func() error { return unix.Chown(CString(name), uid, gid) })
}

func Fchmod(fd int, perm uint32) error { return retry(func() error { return unix.Fchmod(fd, perm) }) }

func Ftruncate(fd int, size int64) error {
	return retry(func() error { return unix.Ftruncate(fd, size) })
}

// Utimes sets the times of access and change, in seconds.
func Utimes(name string, sec int64) error {
	tv := []unix.Timeval{{Sec: sec}, {Sec: sec}}
	return retry(func() error { return unix.Utimes(CString(name), tv) })
}

// Readahead asks the kernel for the bytes to come.
func Readahead(fd int, off, n int64) { unix.Fadvise(fd, off, n, unix.FADV_SEQUENTIAL) }

// Access asks whether the file is readable, writable or executable (R_OK 4, W_OK 2, X_OK 1).
func Access(name string, mode uint32) error { return unix.Access(CString(name), mode) }

// DirEntry is a name in a folder; Type is DT_UNKNOWN where the file system does not tell.
type DirEntry struct {
	Name string
	Type uint8
}

// Types of a DirEntry.
const (
	DTUnknown = unix.DT_UNKNOWN
	DTDir     = unix.DT_DIR
	DTFile    = unix.DT_REG
	DTLink    = unix.DT_LNK
)

// ReadDir lists a folder in the kernel's order, without "." and "..".
func ReadDir(name string) ([]DirEntry, error) {
	fd, err := Open(name, ReadOnly|Directory, 0)
	if err != nil {
		return nil, err
	}
	defer CloseFD(fd)
	return ReadDirFD(fd)
}

// ReadDirFD lists an open folder from where it stands.
func ReadDirFD(fd int) ([]DirEntry, error) {
	var out []DirEntry
	buf := make([]byte, 16384)
	for {
		var n int
		err := retry(func() (err error) { n, err = unix.Getdents(fd, buf); return err })
		if err != nil {
			return out, err
		}
		if n == 0 {
			return out, nil
		}
		for b := buf[:n]; len(b) > 0; {
			size := int(b[16]) | int(b[17])<<8
			name := b[19:size]
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			if s := string(name); s != "." && s != ".." {
				out = append(out, DirEntry{Name: s, Type: b[18]})
			}
			b = b[size:]
		}
	}
}

// Glob lists the files that a pattern names, in byte order, as glob(3) in the C locale does:
// a leading dot is matched by a dot only. Faults of folders on the way are no matches.
func Glob(pattern string) []string {
	if pattern == "" {
		return nil
	}
	dirs := []string{""}
	rest := pattern
	for rest != "" {
		slashes := 0
		for slashes < len(rest) && rest[slashes] == '/' {
			slashes++
		}
		for i := range dirs {
			dirs[i] += rest[:slashes]
		}
		rest = rest[slashes:]
		if rest == "" {
			break
		}
		end := 0
		for end < len(rest) && rest[end] != '/' {
			end++
		}
		part := rest[:end]
		rest = rest[end:]
		dirs = globPart(dirs, part, rest != "")
	}
	sort.Strings(dirs)
	return dirs
}

// globPart extends each folder by the names that match part.
func globPart(dirs []string, part string, more bool) []string {
	var next []string
	for _, d := range dirs {
		if !hasMeta(part) {
			name := d + unescapeGlob(part)
			if _, err := Lstat(name); err == nil {
				next = append(next, name)
			}
			continue
		}
		where := d
		if where == "" {
			where = "."
		}
		es, err := ReadDir(where)
		names := make([]string, 0, len(es)+2)
		for _, e := range es {
			names = append(names, e.Name)
		}
		if err == nil {
			names = append(names, ".", "..")
		}
		for _, name := range names {
			if !Fnmatch(part, name) {
				continue
			}
			if more {
				if st, err := Stat(d + name); err != nil || !st.IsDir() {
					continue
				}
			}
			next = append(next, d+name)
		}
	}
	return next
}

func hasMeta(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '*', '?', '[':
			return true
		case '\\':
			i++
		}
	}
	return false
}

func unescapeGlob(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b = append(b, s[i])
	}
	return string(b)
}

// Fnmatch is fnmatch(3) with FNM_PERIOD for one name of a path.
func Fnmatch(pattern, name string) bool {
	if name != "" && name[0] == '.' && (pattern == "" || pattern[0] != '.' && (pattern[0] != '\\' || len(pattern) < 2 || pattern[1] != '.')) {
		return false
	}
	return fnmatch(pattern, name)
}

func fnmatch(p, s string) bool {
	for p != "" {
		switch p[0] {
		case '*':
			for i := 0; i <= len(s); i++ {
				if fnmatch(p[1:], s[i:]) {
					return true
				}
			}
			return false
		case '?':
			if s == "" {
				return false
			}
			p, s = p[1:], s[1:]
			continue
		case '[':
			if s == "" {
				return false
			}
			if rest, in, ok := class(p[1:], s[0]); ok {
				if !in {
					return false
				}
				p, s = rest, s[1:]
				continue
			}
		case '\\':
			if len(p) > 1 {
				p = p[1:]
			}
		}
		if s == "" || p[0] != s[0] {
			return false
		}
		p, s = p[1:], s[1:]
	}
	return s == ""
}

// class tests c against the bracket expression that p is the inside of; ok is false when it is not
// closed, and "[" is then a plain byte.
func class(p string, c byte) (rest string, in, ok bool) {
	not := p != "" && (p[0] == '!' || p[0] == '^')
	if not {
		p = p[1:]
	}
	for first := true; p != "" && (first || p[0] != ']'); first = false {
		lo := p[0]
		if lo == '\\' && len(p) > 1 {
			p = p[1:]
			lo = p[0]
		}
		p = p[1:]
		hi := lo
		if len(p) > 1 && p[0] == '-' && p[1] != ']' {
			hi = p[1]
			p = p[2:]
			if hi == '\\' && p != "" {
				hi, p = p[0], p[1:]
			}
		}
		if lo <= c && c <= hi {
			in = true
		}
	}
	if p == "" {
		return "", false, false
	}
	return p[1:], in != not, true
}

// ReadWhole reads a file that is expected to be small; call is the one that failed.
func ReadWhole(name string) (data []byte, call string, err error) {
	fd, err := Open(name, unix.O_RDONLY, 0)
	if err != nil {
		return nil, "open()", err
	}
	defer CloseFD(fd)
	buf := make([]byte, 4096)
	for {
		n, err := Pread(fd, buf, int64(len(data)))
		if err != nil || n == 0 {
			return data, "pread()", err
		}
		data = append(data, buf[:n]...)
	}
}
