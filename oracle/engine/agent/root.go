package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine/proto"
)

// Bounds of what a server can fill besides the work tree, in bytes.
const (
	scratchBytes = 256 << 20 // /run, /tmp, /var
	outputBytes  = 16 << 20  // what processes write to standard output and error
	inodes       = 65536
)

// Etc are the files of /etc that a server reads, the same in every kind of cell.
var Etc = map[string]string{
	"passwd": "root:x:0:0:root:/root:/bin/sh\n" +
		"www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n" +
		"nginx:x:101:101:nginx:/nonexistent:/bin/false\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	"group":         "root:x:0:\nwww-data:x:33:\nnginx:x:101:\nnogroup:x:65534:\n",
	"hosts":         "127.0.0.1 localhost\n::1 localhost\n",
	"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	"resolv.conf":   "",
}

// shown are the folders of the target's root that a cell shows, read-only.
var shown = []string{
	"lib", "lib32", "lib64", "libx32",
	"usr/lib", "usr/lib32", "usr/lib64", "usr/libx32", "usr/local/lib", "usr/local/nginx", "usr/share/nginx",
	"etc/nginx",
}

// Scratch are the folders that a server may write to besides the work tree:
// compiled-in places of Debian's build and of nginx.org's.
var Scratch = []string{"/run", "/tmp", "/var/lib/nginx", "/var/cache/nginx", "/var/log/nginx"}

// TreeOptions, ScratchOptions and OutputOptions are the mount options of the
// bounded file systems of a cell.
func TreeOptions(bytes int64) string {
	return fmt.Sprintf("size=%d,nr_inodes=%d,mode=0755", bytes, inodes)
}

// ScratchOptions is described with TreeOptions.
func ScratchOptions() string {
	return fmt.Sprintf("size=%d,nr_inodes=%d,mode=0755", scratchBytes, inodes)
}

// OutputOptions is described with TreeOptions.
func OutputOptions() string {
	return fmt.Sprintf("size=%d,nr_inodes=1024,mode=0700", outputBytes)
}

// buildRoot assembles the cell's file system on a.spec.Mountpoint and makes it
// the root. Afterwards nothing of the machine is in reach but what was shown.
func (a *agent) buildRoot() error {
	if err := unix.Sethostname([]byte("cell")); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	mp := a.spec.Mountpoint
	if err := tmpfs(mp, "size=1m,mode=0755"); err != nil {
		return err
	}
	b := builder{mp: mp}
	b.showRoot(a.spec.Root)
	b.file("usr/sbin/nginx", "")
	b.bind(a.spec.Binary, "usr/sbin/nginx", true)
	for name, text := range Etc {
		b.file("etc/"+name, text)
	}
	for _, d := range []string{"null", "zero", "full", "random", "urandom"} {
		b.file("dev/"+d, "")
		b.bind("/dev/"+d, "dev/"+d, false)
	}
	b.link("/proc/self/fd", "dev/fd")
	b.link("/proc/self/fd/0", "dev/stdin")
	b.link("/proc/self/fd/1", "dev/stdout")
	b.link("/proc/self/fd/2", "dev/stderr")
	b.dir("proc")
	if b.err == nil {
		b.err = mount("proc", mp+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
	b.tmpfs("var", ScratchOptions())
	b.dir("var/run")
	b.dir("var/tmp")
	b.link("var/run", "run")
	b.link("var/tmp", "tmp")
	b.tmpfs("cell", TreeOptions(a.spec.TreeBytes))
	b.tmpfs("outputs", OutputOptions())
	if b.err != nil {
		return b.err
	}
	var err error
	if a.outputs, err = unix.Open(mp+"/outputs", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("open folder of outputs: %w", err)
	}
	if err := unix.Unmount(mp+"/outputs", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("hide folder of outputs: %w", err)
	}
	if err := readOnly(mp, false); err != nil {
		return err
	}
	return pivot(mp)
}

func pivot(mp string) error {
	if err := unix.Chdir(mp); err != nil {
		return fmt.Errorf("chdir %s: %w", mp, err)
	}
	// Both on the same place: the old root then lies on top of the new one (pivot_root(2), NOTES).
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("chdir /: %w", err)
	}
	return nil
}

// builder does one step after the other and stops at the first error.
type builder struct {
	mp  string
	err error
}

func (b *builder) dir(name string) {
	if b.err == nil {
		b.err = os.MkdirAll(filepath.Join(b.mp, name), 0o755)
	}
}

func (b *builder) file(name, text string) {
	b.dir(filepath.Dir(name))
	if b.err == nil {
		b.err = os.WriteFile(filepath.Join(b.mp, name), []byte(text), 0o644)
	}
}

func (b *builder) link(to, name string) {
	b.dir(filepath.Dir(name))
	if b.err == nil {
		b.err = os.Symlink(to, filepath.Join(b.mp, name))
	}
}

func (b *builder) tmpfs(name, options string) {
	b.dir(name)
	if b.err == nil {
		b.err = tmpfs(filepath.Join(b.mp, name), options)
	}
}

func (b *builder) bind(from, name string, ro bool) {
	if b.err != nil {
		return
	}
	to := filepath.Join(b.mp, name)
	if err := mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		b.err = err
		return
	}
	if ro {
		b.err = readOnly(to, true)
	}
}

// showRoot shows the folders of the target's file system. Links are made again;
// a root of extracted packages lacks the links that its base system would have made
// (/lib64 -> usr/lib64), so they are added.
func (b *builder) showRoot(root string) {
	for _, name := range shown {
		from := filepath.Join(root, name)
		st, err := os.Lstat(from)
		switch {
		case b.err != nil:
			return
		case errors.Is(err, fs.ErrNotExist):
			if under := filepath.Join(root, "usr", name); filepath.Dir(name) == "." && isDir(under) {
				b.link("usr/"+name, name)
			}
		case err != nil:
			b.err = err
		case st.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(from)
			if err != nil {
				b.err = err
				return
			}
			b.link(to, name)
		case st.IsDir():
			b.dir(name)
			b.bind(from, name, true)
		}
	}
	if cache := filepath.Join(root, "etc/ld.so.cache"); isFile(cache) {
		b.file("etc/ld.so.cache", "")
		b.bind(cache, "etc/ld.so.cache", true)
	}
}

func isDir(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.IsDir()
}

func isFile(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.Mode().IsRegular()
}

func tmpfs(at, options string) error {
	return mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
}

func mount(from, at, kind string, flags uintptr, options string) error {
	if err := unix.Mount(from, at, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s on %s: %w", from, at, err)
	}
	return nil
}

// readOnly makes a mount read-only without touching its other attributes, which
// a user namespace is not allowed to drop.
func readOnly(at string, recursive bool) error {
	flags := uint(0)
	if recursive {
		flags = unix.AT_RECURSIVE
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(-1, at, flags, &attr); err != nil {
		return fmt.Errorf("make %s read-only: %w (Linux 5.12 or newer is needed)", at, err)
	}
	return nil
}

// enterContainer uses what the container engine has built: the bounded file
// systems are mounted, the network namespace holds only lo.
func (a *agent) enterContainer() error {
	var err error
	if a.outputs, err = unix.Open(proto.AgentDir+"/outputs", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("open folder of outputs: %w", err)
	}
	if err := linkUp("lo"); err != nil {
		return err
	}
	return acknowledgeAtOnce()
}

// resetScratch empties the folders that a server may write to besides the work tree.
func (a *agent) resetScratch() error {
	for _, dir := range Scratch {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := empty(dir); err != nil {
			return err
		}
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return err
		}
		if err := a.own(dir); err != nil {
			return err
		}
	}
	return nil
}

// own gives a path to the server's user.
func (a *agent) own(path string) error {
	if !a.drop {
		return nil // the only user that there is
	}
	return os.Lchown(path, a.spec.Euid, a.spec.Egid)
}

// output makes a nameless, bounded file for a process to write to. Appending, so
// that a server which opens /dev/stderr by itself does not overwrite.
func (a *agent) output() (int, error) {
	fd, err := unix.Openat(a.outputs, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_APPEND|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return -1, fmt.Errorf("make a file for a process's output: %w", err)
	}
	if a.drop {
		if err := unix.Fchown(fd, a.spec.Euid, a.spec.Egid); err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("make a file for a process's output: %w", err)
		}
	}
	return fd, nil
}

func procPath(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }
