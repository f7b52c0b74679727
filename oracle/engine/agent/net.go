package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine/proto"
)

// buildNet gives the cell a network of its own with nothing but lo. The network
// namespace that the agent was started in has already no way out; a second one is
// entered because only then can it have a small table of connections, which
// makes asking for all sockets (sock_diag) cost microseconds, not a walk over the
// machine's table. A dump takes a lock for every row of the table that holds anything; how many
// connections that are over are kept (TIME-WAIT) would follow from the table's size, and is set by itself.
func (a *agent) buildNet() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/tcp_child_ehash_entries", []byte("64"), 0); err == nil {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare network: %w", err)
		}
		if err := os.WriteFile("/proc/sys/net/ipv4/tcp_max_tw_buckets", []byte("512"), 0); err != nil {
			return fmt.Errorf("keep connections that are over: %w", err)
		}
	}
	if err := linkUp("lo"); err != nil {
		return err
	}
	if err := steadyNet(); err != nil {
		return err
	}
	if err := acknowledgeAtOnce(); err != nil {
		return err
	}
	// The server is not root, in no kind of cell; a configuration may still listen on port 80.
	const ports = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
	if err := os.WriteFile(ports, []byte("0"), 0); err != nil {
		return fmt.Errorf("allow low ports: %w", err)
	}
	return nil
}

// linkUp sets an interface up.
func linkUp(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("set %s up: socket: %w", name, err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq(name)
	if err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return fmt.Errorf("set %s up: get flags: %w", name, err)
	}
	if req.Uint16()&unix.IFF_UP != 0 {
		return nil
	}
	req.SetUint16(req.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("set %s up: set flags: %w", name, err)
	}
	return nil
}

// sockets makes n unconnected, marked TCP sockets of the cell's network. The
// oracle connects or binds them by itself: a socket stays in the network it was made in.
func sockets(family string, n int) ([]int, error) {
	af := map[string]int{"tcp4": unix.AF_INET, "tcp6": unix.AF_INET6}[family]
	if af == 0 {
		return nil, fmt.Errorf("sockets: family %q: want tcp4 or tcp6", family)
	}
	fds := make([]int, 0, n)
	for range n {
		fd, err := unix.Socket(af, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fds, fmt.Errorf("socket %s: %w", family, err)
		}
		fds = append(fds, fd)
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, proto.Mark); err != nil {
			return fds, fmt.Errorf("mark a socket: %w", err)
		}
	}
	return fds, nil
}

// dialUnix connects n sockets to the Unix socket at path.
func dialUnix(addr string, n int) ([]int, error) {
	path := strings.TrimPrefix(addr, "unix:")
	fds := make([]int, 0, n)
	for range n {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fds, fmt.Errorf("socket: %w", err)
		}
		fds = append(fds, fd)
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			return fds, fmt.Errorf("connect %s: %w", addr, err)
		}
	}
	return fds, nil
}

// listenUnix listens on the Unix socket at path, which the server may use.
func (a *agent) listenUnix(addr string) ([]int, error) {
	path := strings.TrimPrefix(addr, "unix:")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	fds := []int{fd}
	var folder unix.Stat_t
	if err := unix.Stat(filepath.Dir(path), &folder); err != nil {
		return fds, fmt.Errorf("bind %s: %w", addr, err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return fds, fmt.Errorf("bind %s: %w", addr, err)
	}
	// A listing shows times: the socket's and its folder's must not be the clock's.
	for _, p := range []string{path, filepath.Dir(path)} {
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{folder.Atim, folder.Mtim}, 0); err != nil {
			return fds, fmt.Errorf("set the time of %s: %w", p, err)
		}
	}
	if err := unix.Listen(fd, 511); err != nil {
		return fds, fmt.Errorf("listen %s: %w", addr, err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		return fds, err
	}
	return fds, a.own(path)
}
