package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine/agent"
	"nginxoracle/oracle/engine/proto"
	"nginxoracle/oracle/engine/tool"
)

const (
	helloLimit  = 30 * time.Second // for the engine to start a container, and its agent to call
	removeLimit = 30 * time.Second // for the engine to remove it
	processes   = 256              // at most in a container
)

// Label marks the containers of cells; its value is the oracle's process id.
const Label = "nginx-oracle.pid"

// ErrNotStatic says that this program cannot be process 1 of a container.
var ErrNotStatic = errors.New("process 1 of a container must be a static program (build it with CGO_ENABLED=0, as make does)")

// containerCaps are what the agent needs as process 1 of a container: keeping the
// work tree, dropping to the server's user, marking sockets, looking at processes.
var containerCaps = []string{
	"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETUID", "SETGID", "NET_ADMIN", "SYS_PTRACE",
}

// openContainer starts a container without a network whose process 1 is the
// agent. The engine removes it when the agent ends, and the agent ends when the
// oracle's socket closes, which the kernel does even for a killed oracle.
func openContainer(ctx context.Context, o Options) (*cell, error) {
	if o.Target.Image == "" {
		return nil, errors.New("no image is known for it")
	}
	if err := quietTestcontainers(); err != nil {
		return nil, err
	}
	self, err := agentPath(o.Agent)
	if err != nil {
		return nil, err
	}
	sweepFolders.Do(removeDead)
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", folderPrefix, os.Getpid()))
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // what is mounted stays in the container
	if err := writeEtc(dir); err != nil {
		return nil, err
	}
	listener, err := listenAt(filepath.Join(dir, "socket", "agent"))
	if err != nil {
		return nil, err
	}
	defer unix.Close(listener)

	req, err := containerRequest(o, self, dir)
	if err != nil {
		return nil, err
	}
	c, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{ContainerRequest: req, Started: true})
	if err != nil {
		if c != nil {
			err = errors.Join(err, ignoreGone(c.Terminate(context.WithoutCancel(ctx), testcontainers.StopTimeout(0))))
		}
		return nil, err
	}
	fd, err := acceptAgent(ctx, listener, c)
	if err != nil {
		return nil, errors.Join(err, ignoreGone(c.Terminate(context.WithoutCancel(ctx), testcontainers.StopTimeout(0))))
	}
	id := c.GetContainerID()
	return newCell(ctx, fd, Info{Target: o.Target.Name, Kind: Container}, o, func() error { return waitRemoved(id) })
}

// folderPrefix begins the name of a container's folder of this machine; the oracle's process id
// follows. The folder lives while the container is being started.
const folderPrefix = "oracle-cell-"

var sweepFolders sync.Once

// removeDead removes the folders of oracles that were killed while they started a container.
func removeDead() {
	list, err := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*-*"))
	if err != nil {
		return
	}
	for _, dir := range list {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), folderPrefix), "-")
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
			_ = os.RemoveAll(dir) // another user's folder stays
		}
	}
}

func containerRequest(o Options, self, dir string) (testcontainers.ContainerRequest, error) {
	spec, err := json.Marshal(proto.Spec{
		Kind: Container, Socket: proto.AgentDir + "/socket/agent", TreeBytes: o.TreeBytes, Env: o.Target.Env, Euid: proto.UID, Egid: proto.GID,
	})
	if err != nil {
		return testcontainers.ContainerRequest{}, err
	}
	binds := []string{
		self + ":" + proto.AgentDir + "/oracle:ro",
		filepath.Join(dir, "socket") + ":" + proto.AgentDir + "/socket",
	}
	if o.Target.Binary != "" {
		binary, err := filepath.Abs(o.Target.Binary)
		if err != nil {
			return testcontainers.ContainerRequest{}, err
		}
		if _, err := os.Stat(binary); err != nil { // the engine would make a folder of that name
			return testcontainers.ContainerRequest{}, err
		}
		binds = append(binds, binary+":"+proto.ServerPath+":ro")
	}
	for name := range agent.Etc {
		binds = append(binds, filepath.Join(dir, name)+":/etc/"+name+":ro")
	}
	tmpfs := map[string]string{
		proto.CellDir:               agent.TreeOptions(o.TreeBytes),
		proto.AgentDir + "/outputs": agent.OutputOptions(),
	}
	for _, s := range agent.Scratch {
		tmpfs[s] = agent.ScratchOptions()
	}
	limit := int64(processes)
	return testcontainers.ContainerRequest{
		Image:      o.Target.Image,
		Entrypoint: []string{proto.AgentDir + "/oracle"},
		Cmd:        []string{agent.Arg, string(spec)},
		Labels:     map[string]string{Label: strconv.Itoa(os.Getpid())},
		Tmpfs:      tmpfs,
		ConfigModifier: func(c *container.Config) {
			c.Hostname, c.User, c.WorkingDir = "cell", "0:0", "/"
			c.Env = []string{"GOMAXPROCS=2"}
		},
		HostConfigModifier: func(h *container.HostConfig) {
			h.NetworkMode = "none"
			h.Binds = binds
			h.AutoRemove = true
			h.ReadonlyRootfs = true
			h.CapDrop = []string{"ALL"}
			h.CapAdd = containerCaps
			// The same from inside as a local cell, which has no filter of system calls either;
			// SELinux would keep the agent from its socket.
			h.SecurityOpt = []string{"no-new-privileges", "seccomp=unconfined", "label=disable"}
			h.PidsLimit = &limit
			h.Sysctls = map[string]string{
				"net.ipv4.ip_unprivileged_port_start": "0",
				"net.ipv6.conf.all.disable_ipv6":      "0",
				"net.ipv6.conf.lo.disable_ipv6":       "0",
			}
			for name, value := range agent.Steady {
				h.Sysctls["net.ipv4."+name] = value
			}
		},
	}, nil
}

// agentPath is the real path of the agent's binary. Inside an image there may be
// no loader for it: it must be static.
func agentPath(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	static, err := tool.Static(path)
	if err != nil {
		return "", err
	}
	if !static {
		return "", fmt.Errorf("%s: %w", path, ErrNotStatic)
	}
	return path, nil
}

// writeEtc writes the files of /etc that a cell shows.
func writeEtc(dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for name, text := range agent.Etc {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func listenAt(path string) (int, error) {
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("bind %s: %w", path, err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listen %s: %w", path, err)
	}
	return fd, os.Chmod(path, 0o777) // an engine may map the container's root to another user
}

// acceptAgent waits for the agent's call.
func acceptAgent(ctx context.Context, listener int, c testcontainers.Container) (int, error) {
	for end := time.Now().Add(helloLimit); ; {
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		switch err {
		case nil:
			return fd, nil
		case unix.EAGAIN, unix.EINTR:
		default:
			return -1, fmt.Errorf("accept the agent: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return -1, err
		}
		switch s, err := c.State(ctx); {
		case err != nil:
			return -1, fmt.Errorf("the agent in the container has not called: %w", err)
		case !s.Running:
			return -1, fmt.Errorf("the agent in the container ended with code %d before it called%s", s.ExitCode, logsOf(ctx, c))
		case time.Now().After(end):
			return -1, fmt.Errorf("the agent in the container has not called within %v%s", helloLimit, logsOf(ctx, c))
		}
		p := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(p, int(pollStep/time.Millisecond)); err != nil && err != unix.EINTR {
			return -1, fmt.Errorf("accept the agent: poll: %w", err)
		}
	}
}

func logsOf(ctx context.Context, c testcontainers.Container) string {
	r, err := c.Logs(ctx)
	if err != nil {
		return ""
	}
	defer r.Close()
	b, _ := io.ReadAll(io.LimitReader(r, 4096))
	if s := strings.TrimSpace(string(b)); s != "" {
		return ": " + s
	}
	return ""
}

// waitRemoved waits until the engine has removed the container, which it does
// when the agent ends.
func waitRemoved(id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
	defer cancel()
	d, err := OpenDocker(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	w := d.client.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	select {
	case r := <-w.Result:
		if r.Error != nil && !strings.Contains(r.Error.Message, "No such container") {
			return fmt.Errorf("wait for the end of container %.12s: %s", id, r.Error.Message)
		}
		return nil
	case err := <-w.Error:
		if err := ignoreGone(err); err != nil {
			return fmt.Errorf("wait for the end of container %.12s: %w", id, err)
		}
		return nil
	}
}

func ignoreGone(err error) error {
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) { // gone, or on its way out
		return nil
	}
	return err
}

// Containers lists the containers of cells that the oracle with this process id has opened.
func (d *Docker) Containers(ctx context.Context, pid int) ([]string, error) {
	f := make(client.Filters).Add("label", Label+"="+strconv.Itoa(pid))
	list, err := d.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: f})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	var ids []string
	for _, c := range list.Items {
		ids = append(ids, c.ID)
	}
	return ids, nil
}
