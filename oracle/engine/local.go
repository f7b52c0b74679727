package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine/agent"
	"nginxoracle/oracle/engine/proto"
)

// CacheDir is where the oracle keeps what it can make again: $ORACLE_CACHE, or
// nginx-oracle in the user's cache folder.
func CacheDir() (string, error) {
	if dir := os.Getenv("ORACLE_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache folder: %w (set ORACLE_CACHE)", err)
	}
	return filepath.Join(dir, "nginx-oracle"), nil
}

// agentCaps are what the agent needs inside its own namespaces where it is not
// root: building the root, setting lo up, reading and giving away all files of
// the work tree. They hold for nothing outside.
var agentCaps = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_KILL,
	unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_FSETID,
}

// openLocal starts the agent in namespaces of its own. As root no user namespace
// is needed and the server drops to www-data; otherwise the user becomes www-data
// in a user namespace, the only id that exists there.
func openLocal(ctx context.Context, o Options) (*cell, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	spec := proto.Spec{
		Kind:       Local,
		Mountpoint: filepath.Join(cache, "cell"),
		Root:       o.Target.Root,
		Binary:     o.Target.Binary,
		TreeBytes:  o.TreeBytes,
		Env:        o.Target.Env,
		Euid:       proto.UID,
		Egid:       proto.GID,
	}
	if spec.Root == "" {
		spec.Root = "/"
	}
	if spec.Binary == "" {
		spec.Binary = filepath.Join(spec.Root, proto.ServerPath)
	}
	for _, p := range []*string{&spec.Root, &spec.Binary} {
		if *p, err = filepath.Abs(*p); err != nil {
			return nil, err
		}
	}
	if st, err := os.Stat(spec.Binary); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() || st.Mode()&0o001 == 0 && os.Geteuid() == 0 {
		return nil, fmt.Errorf("%s is not a program that everybody may run", spec.Binary)
	}
	if err := os.MkdirAll(spec.Mountpoint, 0o755); err != nil {
		return nil, err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "agent's socket")
	defer theirs.Close()

	said := &limitedBuffer{left: 64 << 10}
	cmd := &exec.Cmd{
		Path:        o.Agent,
		Args:        []string{"oracle", agent.Arg, string(text)},
		Env:         []string{"GOMAXPROCS=2", "GODEBUG=" + os.Getenv("GODEBUG")},
		Dir:         "/",
		Stderr:      said,
		ExtraFiles:  []*os.File{theirs},
		SysProcAttr: namespaces(),
	}
	if err := cmd.Start(); err != nil {
		unix.Close(pair[0])
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EINVAL) {
			return nil, fmt.Errorf("make namespaces: %w (%s)", err, namespaceAdvice)
		}
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	end := func() error {
		err := cmd.Wait()
		if err != nil && said.Len() > 0 {
			return fmt.Errorf("agent: %w: %s", err, strings.TrimSpace(said.String()))
		}
		if err != nil {
			return fmt.Errorf("agent: %w", err)
		}
		return nil
	}
	return newCell(ctx, pair[0], Info{Target: o.Target.Name, Kind: Local}, o, end)
}

const namespaceAdvice = "this system does not let its users make namespaces: run as root, or allow them " +
	"(sysctl kernel.apparmor_restrict_unprivileged_userns=0, kernel.unprivileged_userns_clone=1), or use --cell container"

func namespaces() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Pdeathsig:  unix.SIGKILL,
		Setsid:     true, // a terminal's ^C is the oracle's to handle
	}
	if os.Geteuid() != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: proto.UID, HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: proto.GID, HostID: os.Getegid(), Size: 1}}
		a.AmbientCaps = agentCaps
	}
	return a
}

// Namespaces tells why local cells cannot be had here; nil where they can. Some
// systems let everybody make namespaces and forbid everything inside: so it is tried.
func Namespaces() error {
	said := &limitedBuffer{left: 4096}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"oracle", agent.Arg, agent.Try},
		Env: []string{}, Dir: "/", Stderr: said, SysProcAttr: namespaces(),
	}
	if err := cmd.Run(); err != nil {
		why := err.Error()
		if text := strings.TrimSpace(said.String()); text != "" {
			why = text // what was forbidden inside, rather than that the trial ended with code 1
		}
		return fmt.Errorf("make namespaces: %s (%s)", why, namespaceAdvice)
	}
	return nil
}

// limitedBuffer keeps the first bytes written to it.
type limitedBuffer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	left int
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(p), l.left)
	l.left -= n
	l.b.Write(p[:n])
	return len(p), nil
}

func (l *limitedBuffer) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Len()
}

func (l *limitedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
