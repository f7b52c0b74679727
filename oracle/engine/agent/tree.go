package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine/proto"
)

// reset empties the work tree and the other folders that a server may have
// written to, and writes files.
func (a *agent) reset(files []proto.File) error {
	pids, err := others()
	if err != nil {
		return err
	}
	if a.server != 0 || len(pids) > 0 {
		return fmt.Errorf("reset: a server is still running (processes %v)", pids)
	}
	a.reaper.reset()
	if err := a.prober.Forget(); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	if err := empty(proto.CellDir); err != nil {
		return err
	}
	if err := a.resetScratch(); err != nil {
		return err
	}
	if err := a.own(proto.CellDir); err != nil {
		return err
	}
	a.written = make(map[string]uint64, len(files))
	a.folders = map[string]bool{}
	defer func() { a.folders = nil }() // from now on others may remove them
	for _, f := range files {
		if err := a.write(f); err != nil {
			return fmt.Errorf("reset: %w", err)
		}
	}
	// Writing into a folder changes its time: folders' times come last.
	for _, f := range files {
		if f.Dir {
			if err := setTime(f); err != nil {
				return fmt.Errorf("reset: %w", err)
			}
		}
	}
	// The coarse clock is the one that file systems take their times from.
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &a.wrote); err != nil {
		return fmt.Errorf("reset: read the clock: %w", err)
	}
	return nil
}

// empty removes everything in dir.
func empty(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := os.RemoveAll(filepath.Join(dir, n.Name())); err != nil {
			return err
		}
	}
	return nil
}

// inside is the absolute form of a path relative to the work tree.
func inside(path string) (string, error) {
	if !filepath.IsLocal(strings.TrimSuffix(path, "/")) {
		return "", fmt.Errorf("path %q: want a path relative to %s", path, proto.CellDir)
	}
	return filepath.Join(proto.CellDir, path), nil
}

func (a *agent) write(f proto.File) error {
	path, err := inside(f.Path)
	if err != nil {
		return err
	}
	if err := a.parents(path); err != nil {
		return err
	}
	switch {
	case f.Link != "":
		if err := os.Symlink(f.Link, path); err != nil {
			return err
		}
		if err := a.own(path); err != nil {
			return err
		}
		return setTime(f)
	case f.Dir:
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := a.own(path); err != nil || f.Mode == 0 {
			return err
		}
		if err := unix.Chmod(path, f.Mode); err != nil {
			return &fs.PathError{Op: "chmod", Path: path, Err: err}
		}
		return nil
	}
	return a.writeFile(path, f)
}

// writeFile writes a file with its owner, mode and time. A batch has more than a thousand: it is done by
// descriptor, in as few calls as there can be.
func (a *agent) writeFile(path string, f proto.File) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	failed := func(op string, err error) error { return &fs.PathError{Op: op, Path: path, Err: err} }
	for data := f.Data; len(data) > 0; {
		n, err := unix.Write(fd, data)
		if err != nil && err != unix.EINTR {
			return failed("write", err)
		}
		data = data[max(n, 0):]
	}
	if a.drop {
		if err := unix.Fchown(fd, a.spec.Euid, a.spec.Egid); err != nil {
			return failed("chown", err)
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return failed("stat", err)
	}
	if f.Mode != 0 && st.Mode&0o7777 != f.Mode {
		if err := unix.Fchmod(fd, f.Mode); err != nil {
			return failed("chmod", err)
		}
	}
	if f.MTime != 0 {
		t := []unix.Timespec{{Sec: f.MTime}, {Sec: f.MTime}}
		if err := unix.UtimesNanoAt(fd, "", t, unix.AT_EMPTY_PATH); err != nil {
			return failed("set time", err)
		}
	}
	a.written[path] = st.Ino
	return nil
}

// parents makes the folders above path, owned by the server's user.
func (a *agent) parents(path string) error {
	dir := filepath.Dir(path)
	if len(dir) <= len(proto.CellDir) || a.folders[dir] {
		return nil
	}
	if a.folders != nil {
		a.folders[dir] = true
	}
	if isDir(dir) {
		return nil
	}
	if err := a.parents(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return a.own(dir)
}

func setTime(f proto.File) error {
	path, err := inside(f.Path)
	if err != nil || f.MTime == 0 {
		return err
	}
	t := []unix.Timespec{{Sec: f.MTime}, {Sec: f.MTime}}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, t, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "set time", Path: path, Err: err}
	}
	return nil
}

// treeBytes bounds what tree hands out: a sparse file can be larger than its file system.
const treeBytes = 256 << 20

// tree reads the work tree, in lexical order, and behind it what lies in the
// other folders that a server may write to: there only files (temporary ones that
// were left, a default log, a socket), by their absolute paths. kept are those, by index, that are as the last reset
// wrote them.
func (a *agent) tree() (files []proto.File, kept []int, err error) {
	w := &walker{agent: a, left: treeBytes}
	if err := w.walk(proto.CellDir, false); err != nil {
		return nil, nil, fmt.Errorf("read the work tree: %w", err)
	}
	for _, dir := range Scratch {
		if err := w.walk(dir+"/", true); err != nil { // the slash: it may be a link
			return nil, nil, fmt.Errorf("read %s: %w", dir, err)
		}
	}
	return w.files, w.kept, nil
}

type walker struct {
	agent *agent
	files []proto.File
	kept  []int
	left  int64 // bytes that may still be handed out
}

// untouched tells whether a file is the very one that the last reset wrote at this path, and has not been changed
// since. Only the kernel sets a file's change time.
func (a *agent) untouched(path string, st *unix.Stat_t) bool {
	ino, ok := a.written[path]
	return ok && ino == st.Ino && (st.Ctim.Sec < a.wrote.Sec || st.Ctim.Sec == a.wrote.Sec && st.Ctim.Nsec < a.wrote.Nsec)
}

func (w *walker) walk(root string, filesOnly bool) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		if filesOnly && d.IsDir() {
			return nil
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return &fs.PathError{Op: "lstat", Path: path, Err: err}
		}
		f := proto.File{
			Path:  strings.TrimPrefix(path, proto.CellDir+"/"),
			Mode:  st.Mode & 0o7777,
			MTime: st.Mtim.Sec,
			Size:  st.Size,
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			f.Dir, f.Size = true, 0
		case unix.S_IFLNK:
			f.Link, err = os.Readlink(path)
		case unix.S_IFREG:
			if w.agent.untouched(path, &st) {
				w.kept = append(w.kept, len(w.files))
				break
			}
			f.Data, err = readFile(path, min(w.left, st.Size))
			w.left -= int64(len(f.Data))
		default:
			f.Mode = st.Mode
		}
		w.files = append(w.files, f)
		return err
	})
}

func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// writtenTime is the time of a file that a case writes while the server runs: a
// minute after that of the files that are there from the start.
const writtenTime = 1700000060

// change carries out one change of the work tree.
func (a *agent) change(op string, args []string, data []byte) error {
	want := map[string]int{"write": 1, "remove": 1, "rename": 2, "chmod": 2, "mkdir": 1}
	n, ok := want[op]
	switch {
	case !ok:
		return fmt.Errorf("do %q: want write, remove, rename, chmod or mkdir", op)
	case len(args) < n:
		return fmt.Errorf("do %s: want %d arguments, have %d", op, n, len(args))
	}
	path, err := inside(args[0])
	if err != nil {
		return fmt.Errorf("do %s: %w", op, err)
	}
	switch op {
	case "write":
		f := proto.File{Path: args[0], Data: data}
		if len(args) > 1 {
			if f.Mode, err = parseMode(args[1]); err != nil {
				return fmt.Errorf("do write: %w", err)
			}
		}
		// The time of a file is part of what is compared (Last-Modified): it must not be the clock's.
		f.MTime = writtenTime
		err = a.write(f)
	case "remove":
		if _, err = os.Lstat(path); err == nil { // removing nothing is a mistake in a script
			err = os.RemoveAll(path)
		}
	case "rename":
		var to string
		if to, err = inside(args[1]); err == nil {
			err = os.Rename(path, to)
		}
	case "chmod":
		var mode uint32
		if mode, err = parseMode(args[1]); err == nil {
			err = unix.Chmod(path, mode)
		}
	case "mkdir":
		err = a.write(proto.File{Path: args[0], Dir: true})
	}
	if err != nil {
		return fmt.Errorf("do %s %s: %w", op, args[0], err)
	}
	return nil
}

func parseMode(s string) (uint32, error) {
	v, err := strconv.ParseUint(s, 8, 12)
	if err != nil {
		return 0, fmt.Errorf("mode %q: want octal digits such as 0644", s)
	}
	return uint32(v), nil
}

// hash is the SHA-256 of a file, in hexadecimal.
func hash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
