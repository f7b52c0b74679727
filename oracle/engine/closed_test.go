package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/reference"
)

// No configuration can send a byte outside: there is no way out of a cell.
func TestOutsideIsUnreachable(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		s := start(t, c, `server { listen 127.0.0.1:8080; location /4 { proxy_pass http://192.0.2.1; }
			location /6 { proxy_pass http://[2001:db8::1]; } }`)
		for _, addr := range []string{"192.0.2.1:80", "8.8.8.8:53", "[2001:db8::1]:80"} {
			if _, err := c.Dial(t.Context(), addr, 1); !errors.Is(err, syscall.ENETUNREACH) {
				t.Errorf("dial %s from inside: %v, want ENETUNREACH", addr, err)
			}
		}
		for uri, text := range map[string]string{
			"/4": "connect() to 192.0.2.1:80 failed (101: Network is unreachable)",
			"/6": "connect() to [2001:db8::1]:80 failed (101: Network is unreachable)",
		} {
			if status, _ := get(t, c, "127.0.0.1:8080", uri); status != 502 {
				t.Errorf("%s: status %d, want 502", uri, status)
			}
			says(t, s, text)
		}
		dev, err := engine.ReadProc(c, fmt.Sprintf("%d/net/dev", s.Pid()))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, line := range strings.Split(string(dev), "\n")[2:] {
			if name, _, ok := strings.Cut(line, ":"); ok {
				names = append(names, strings.TrimSpace(name))
			}
		}
		if !slices.Equal(names, []string{"lo"}) {
			t.Errorf("the cell has the interfaces %q, want only lo", names)
		}
		stop(t, s)
	})
}

// The server sees nothing of the machine and is nobody in particular.
func TestServerIsConfined(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		s := start(t, c, "server { listen 127.0.0.1:8080; root /; autoindex on; }")
		status, err := engine.ReadProc(c, fmt.Sprintf("%d/status", s.Pid()))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "CapAmb:\t0000000000000000"} {
			if !strings.Contains(string(status), want) {
				t.Errorf("the server's status lacks %q:\n%s", want, status)
			}
		}
		if code, body := get(t, c, "127.0.0.1:8080", "/cell/"); code != 200 || !strings.Contains(body, "nginx.conf") {
			t.Errorf("/cell/ shows %d %q, want the work tree", code, body)
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		if code, _ := get(t, c, "127.0.0.1:8080", self); code != 404 {
			t.Errorf("%s of the machine gives %d inside, want 404", self, code)
		}
		stop(t, s)
	})
}

// Nothing is left of a cell when the oracle is killed.
func TestKillOfOracleLeavesNothing(t *testing.T) {
	for _, kind := range []string{engine.Local, engine.Container} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			open(t, kind, engine.Options{}) // skips where there is no such kind
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "ENGINE_TEST_HOLD="+kind)
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			ns := strings.TrimSpace(line)
			if err != nil || !strings.HasPrefix(ns, "pid:[") {
				_ = cmd.Process.Kill()
				t.Fatalf("the holder said %q, %v, want a namespace", line, err)
			}
			if n := inNamespace(t, ns); n < 3 {
				t.Errorf("%d processes in the cell, want agent, master and worker", n)
			}
			if kind == engine.Container {
				if n := containersOf(t, cmd.Process.Pid); n != 1 {
					t.Errorf("%d containers while the oracle runs, want 1", n)
				}
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			eventually(t, "the end of all processes of the cell", func() bool { return inNamespace(t, ns) == 0 })
			if kind == engine.Container {
				eventually(t, "the removal of the container", func() bool { return containersOf(t, cmd.Process.Pid) == 0 })
			}
		})
	}
}

// hold opens a cell of the kind with a server in it, says its pid namespace, and waits.
func hold(kind string) int {
	ctx := context.Background()
	p, err := reference.Resolve(ctx, "nginx", "nginx", kind, func(string) {})
	if err == nil {
		var c engine.Cell
		if c, err = engine.Open(ctx, p.Reference); err == nil {
			err = holdServer(ctx, c)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func holdServer(ctx context.Context, c engine.Cell) error {
	conf := "events {} http { access_log off; server { listen 127.0.0.1:8080; } }"
	if err := c.Reset(ctx, []engine.File{{Path: "nginx.conf", Data: []byte(conf)}}); err != nil {
		return err
	}
	s, err := c.Start(ctx, []string{"127.0.0.1:8080"}, serve...)
	if err != nil {
		return err
	}
	ns, err := engine.Namespace(c, s.Pid())
	if err != nil {
		return err
	}
	fmt.Println(ns)
	select {} // until killed
}

// inNamespace counts the machine's processes in a pid namespace.
func inNamespace(t *testing.T, ns string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && to == ns {
			n++
		}
	}
	return n
}

// containersOf counts the containers that the oracle with this process id has left.
func containersOf(t *testing.T, pid int) int {
	t.Helper()
	d, err := engine.OpenDocker(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ids, err := d.Containers(t.Context(), pid)
	if err != nil {
		t.Fatal(err)
	}
	return len(ids)
}
