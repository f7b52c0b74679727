package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a running server, origin or client, and everything it has started.
type process struct {
	cmd *exec.Cmd
	err *bytes.Buffer
}

// pin puts a command on one core.
func pin(core int, argv []string) []string {
	return append([]string{"taskset", "-c", strconv.Itoa(core)}, argv...)
}

// closed gives a server command a private /var/lib and /run, since nginx makes its
// compiled-in folders for protocols that no workload uses; the same for both sides.
func closed(argv []string) []string {
	a := []string{"unshare", "--mount"}
	if os.Geteuid() != 0 {
		a = append(a, "--map-root-user")
	}
	const set = `for d in /var/lib /var/log /run; do mount -t tmpfs none $d; done; mkdir -p /var/lib/nginx /var/log/nginx; exec "$@"`
	return append(append(a, "sh", "-c", set, "sh"), argv...)
}

func start(argv []string) (*process, error) {
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), err: &bytes.Buffer{}}
	p.cmd.Stderr = p.err
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return p, nil
}

// gone tells whether the process has ended by itself.
func (p *process) gone() bool {
	f, err := statFields(p.cmd.Process.Pid)
	return err != nil || f[0] == "Z"
}

// stop ends a process gently, then by force, and waits for it.
func (p *process) stop() error {
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal: %w", err)
	}
	select {
	case err := <-done:
		var exit *exec.ExitError
		if err != nil && !(errors.As(err, &exit) && exit.ExitCode() < 0) {
			return fmt.Errorf("%s ended badly: %w: %s", p.cmd.Args[0], err, last(p.err.String()))
		}
		return nil
	case <-time.After(10 * time.Second):
		err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-done
		return errors.Join(fmt.Errorf("%s did not end within 10 s of TERM", p.cmd.Args[0]), err)
	}
}

// kill ends what has nothing to finish: the origin.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.cmd.Args[0], err)
	}
	p.cmd.Wait()
	return nil
}

func last(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// family lists a process and its descendants, by /proc.
func family(pid int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	parent := map[int]int{}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		f, err := statFields(n)
		if err != nil {
			continue // it ended meanwhile
		}
		parent[n] = atoi(f[1])
	}
	var pids []int
	for n := range parent {
		for m := n; m > 1; m = parent[m] {
			if m == pid {
				pids = append(pids, n)
				break
			}
		}
	}
	if len(pids) == 0 {
		return nil, fmt.Errorf("process %d is gone", pid)
	}
	return pids, nil
}

// statFields are the fields of /proc/PID/stat from the state on (proc(5), field 3).
func statFields(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if i < 0 || len(f) < 22 {
		return nil, fmt.Errorf("/proc/%d/stat: unexpected form", pid)
	}
	return f, nil
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// use is what a process and its descendants have used.
type use struct {
	user, system float64 // CPU time, microseconds
	memory       int64   // bytes; proportional (Pss), so that pages that a master and a worker share count once
	pids         []int
}

// usage is the use of a process and its descendants until now, from /proc/PID/stat and smaps_rollup.
func usage(pid int) (use, error) { return usageOf(pid, "Pss:") }

// anonymous is the proportional set of memory that is no file's: the pages of a program and its libraries
// count less when somebody else on the machine starts it.
func anonymous(pid int) (int64, error) {
	u, err := usageOf(pid, "Pss_Anon:")
	return u.memory, err
}

// usageOf looks again where a process ended between the list and the look.
func usageOf(pid int, field string) (u use, err error) {
	for range 3 {
		if u, err = lookAt(pid, field); !errors.Is(err, syscall.ESRCH) && !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	return u, err
}

func lookAt(pid int, field string) (u use, err error) {
	if u.pids, err = family(pid); err != nil {
		return u, err
	}
	slices.Sort(u.pids)
	const tick = 10000 // µs: USER_HZ is 100 on every Linux port that Go has
	for _, p := range u.pids {
		f, err := statFields(p)
		if err != nil {
			return u, err
		}
		u.user += float64(atoi(f[11])) * tick
		u.system += float64(atoi(f[12])) * tick
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p))
		if err != nil {
			return u, err
		}
		for _, line := range strings.Split(string(b), "\n") {
			if v, ok := strings.CutPrefix(line, field); ok {
				u.memory += int64(atoi(strings.Fields(v)[0])) << 10
			}
		}
	}
	return u, nil
}

// since is what was used after a first look. A process that ended in between has taken its time along.
func (u use) since(before use) (use, error) {
	if !slices.Equal(u.pids, before.pids) {
		return use{}, fmt.Errorf("its processes changed under load: %v before, %v after", before.pids, u.pids)
	}
	return use{u.user - before.user, u.system - before.system, u.memory, u.pids}, nil
}

// place is a folder with a configuration and a document root for one workload.
type place struct {
	dir          string
	port, origin int
}

func (r *runner) prepare(w Workload) (place, error) {
	p := place{dir: filepath.Join(r.opt.Dir, w.Name)}
	var err error
	if p.port, err = freePort(); err != nil {
		return p, err
	}
	if p.origin, err = freePort(); err != nil {
		return p, err
	}
	for _, d := range []string{"html", "logs"} {
		if err := os.MkdirAll(filepath.Join(p.dir, d), 0o755); err != nil {
			return p, err
		}
	}
	files := map[string][]byte{"html/s": []byte("ok\n")}
	if w.Path == "/m" {
		files["html/m"] = w.Body
	}
	files["nginx.conf"] = []byte(w.conf(p))
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(p.dir, name), data, 0o644); err != nil {
			return p, err
		}
	}
	return p, nil
}

// conf is the whole configuration file.
func (w Workload) conf(p place) string {
	return "user root;\nworker_processes 1;\nworker_rlimit_nofile 20000;\ndaemon off;\npid logs/nginx.pid;\nerror_log logs/error.log error;\n" +
		"events { worker_connections 10000; }\nhttp {\n" +
		strings.NewReplacer("{PORT}", strconv.Itoa(p.port), "{ORIGIN}", strconv.Itoa(p.origin), "{ROOT}", filepath.Join(p.dir, "html")).Replace(w.Conf) + "}\n"
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (p place) addr() string       { return fmt.Sprintf("127.0.0.1:%d", p.port) }
func (p place) originAddr() string { return fmt.Sprintf("127.0.0.1:%d", p.origin) }

// args are what both servers are started with.
func (p place) args(s Server, more ...string) []string {
	a := closed(s.Argv)
	return append(append(a, "-p", p.dir+"/", "-c", p.dir+"/nginx.conf", "-e", p.dir+"/logs/error.log"), more...)
}

// wait returns when addr accepts connections, or the process has ended.
func (p *process) wait(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			return c.Close()
		}
		if p.gone() {
			return fmt.Errorf("the server ended at its start: %s", last(p.err.String()))
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s does not accept connections on %s: %w", p.cmd.Args[0], addr, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
