package engine_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine"
)

func TestServerStartsAnswersAndStops(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		if v := c.Info().Version; !strings.HasPrefix(v, "nginx version: nginx/1.26.") {
			t.Errorf("the reference is %q, want nginx 1.26", v)
		}
		for range 2 { // a cell is used again
			s := start(t, c, "server { listen 127.0.0.1:8080; return 200 hello; }")
			if status, body := get(t, c, "127.0.0.1:8080", "/"); status != 200 || body != "hello" {
				t.Errorf("answer %d %q, want 200 hello", status, body)
			}
			if err := c.Reset(t.Context(), nil); err == nil {
				t.Error("a cell was reset under a running server")
			}
			r := rest(t, c)
			if r.Procs != 2 || !r.Alive || r.FDs < 10 || r.RecvQ != 0 || r.SendQ != 0 {
				t.Errorf("at rest: %+v, want two processes alive with their descriptors and empty queues", r)
			}
			stop(t, s)
			if _, err := c.Dial(t.Context(), "127.0.0.1:8080", 1); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("dial after the stop: %v, want ECONNREFUSED", err)
			}
		}
	})
}

func TestLowPortsAndUnixSockets(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		addrs := []string{"0.0.0.0:80", "[::1]:81", "unix:/cell/s.sock"}
		var b strings.Builder
		for _, a := range addrs {
			b.WriteString("server { listen " + a + "; return 200 $server_port; }")
		}
		s := start(t, c, b.String(), "127.0.0.1:80", "[::1]:81", "unix:/cell/s.sock")
		for addr, want := range map[string]string{"127.0.0.1:80": "80", "127.0.0.2:80": "80", "[::1]:81": "81", "unix:/cell/s.sock": ""} {
			if status, body := get(t, c, addr, "/"); status != 200 || body != want {
				t.Errorf("%s: answer %d %q, want 200 %q", addr, status, body, want)
			}
		}
		stop(t, s)
	})
}

func TestFailedStart(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		if err := c.Reset(t.Context(), []engine.File{{Path: "nginx.conf", Data: []byte("events {}\nhttp { nonsense; }\n")}}); err != nil {
			t.Fatal(err)
		}
		const want = `unknown directive "nonsense" in /cell/nginx.conf:2`
		out, err := c.Command(t.Context(), append(slices.Clone(serve), "-t")...)
		if err != nil {
			t.Fatal(err)
		}
		if out.Exit.Code != 1 || !bytes.Contains(out.Stderr, []byte(want)) || len(out.Stdout) > 0 {
			t.Errorf("-t: %+v %q %q, want code 1 and %q", out.Exit, out.Stdout, out.Stderr, want)
		}
		s, err := c.Start(t.Context(), []string{"127.0.0.1:8080"}, serve...)
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.Wait(t.Context(), 0)
		if err != nil || e != (engine.Exit{Exited: true, Code: 1}) {
			t.Errorf("start: %+v, %v, want code 1", e, err)
		}
		says(t, s, want)
		if e, left, err := s.Stop(t.Context()); err != nil || e.Code != 1 || len(left) > 0 {
			t.Errorf("stop: %+v %q %v, want the code 1 again", e, left, err)
		}
	})
}

func TestReload(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		s := start(t, c, "server { listen 127.0.0.1:8080; return 200 one; }")
		conf := "error_log stderr; events {} http { access_log off; server { listen 127.0.0.1:8080; return 200 two; } }"
		if err := c.Do(t.Context(), "write", []string{"nginx.conf"}, []byte(conf)); err != nil {
			t.Fatal(err)
		}
		if err := s.Signal(t.Context(), int(unix.SIGHUP)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the new configuration", func() bool {
			_, body := get(t, c, "127.0.0.1:8080", "/")
			return body == "two"
		})
		stop(t, s)
	})
}

func TestCrashOfWorkerIsSeen(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		s := start(t, c, "server { listen 127.0.0.1:8080; return 200 hello; }")
		pid, err := engine.KillTitled(t.Context(), c, "nginx: worker", int(unix.SIGSEGV))
		if err != nil {
			t.Fatal(err)
		}
		says(t, s, "exited on signal 11")
		if status, _ := get(t, c, "127.0.0.1:8080", "/"); status != 200 { // by a new worker
			t.Errorf("answer %d after the crash of worker %d, want 200", status, pid)
		}
		stop(t, s)
	})
}

func TestCrashOfMasterIsSeen(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		s := start(t, c, "server { listen 127.0.0.1:8080; return 200 hello; }")
		if err := s.Signal(t.Context(), int(unix.SIGKILL)); err != nil {
			t.Fatal(err)
		}
		want := engine.Exit{Exited: true, Signal: int(unix.SIGKILL)}
		if e, err := s.Wait(t.Context(), deadline); err != nil || e != want {
			t.Errorf("the master ended as %+v, %v, want %+v", e, err, want)
		}
		if r, err := c.Probe(t.Context()); err != nil || r.Alive {
			t.Errorf("probe: %+v, %v, want it not alive", r, err)
		}
		e, left, err := s.Stop(t.Context())
		if err != nil || e != want || len(left) != 1 || !strings.HasPrefix(left[0], "nginx: worker process") {
			t.Errorf("stop: %+v, left %q, %v, want the worker left behind", e, left, err)
		}
		if r := rest(t, c); r.Procs != 0 {
			t.Errorf("%d processes after the stop, want none", r.Procs)
		}
	})
}

// A target that fills its disk harms nothing but itself.
func TestFullDisk(t *testing.T) {
	eachKind(t, engine.Options{TreeBytes: 1 << 20}, func(t *testing.T, c engine.Cell) {
		s := start(t, c, `log_format long $request_uri; large_client_header_buffers 4 16k;
			server { access_log /cell/a.log long; listen 127.0.0.1:8080; return 200 hello; }`)
		uri := "/" + strings.Repeat("x", 12<<10)
		for range 100 { // 1.2 MB of log
			if status, _ := get(t, c, "127.0.0.1:8080", uri); status != 200 {
				t.Fatalf("answer %d, want 200", status)
			}
		}
		says(t, s, `write() to "/cell/a.log" `) // "failed" or "was incomplete"
		if err := c.Do(t.Context(), "write", []string{"more"}, make([]byte, 64<<10)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("write into the full tree: %v, want ENOSPC", err)
		}
		stop(t, s)
		files, err := c.Tree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var size int64
		for _, f := range files {
			size += f.Size
		}
		if size < 900<<10 || size > 1<<20 {
			t.Errorf("the tree holds %d bytes, want about 1 MiB", size)
		}
		if err := c.Reset(t.Context(), nil); err != nil {
			t.Errorf("reset of the full tree: %v", err)
		}
	})
}

func TestTree(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		const mtime = 1700000000
		in := []engine.File{
			{Path: "a.d", Dir: true, Mode: 0o700, MTime: mtime},
			{Path: "a.d/hidden", Data: []byte{0, 255, '\n'}, Mode: 0o200, MTime: mtime, Size: 3},
			{Path: "b", Link: "../etc/passwd"},
			{Path: "c/d/e", Data: []byte("x"), Mode: 0o640, MTime: mtime, Size: 1},
		}
		if err := c.Reset(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		out, err := c.Tree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []engine.File
		for _, f := range out {
			switch f.Path {
			case "c", "c/d":
				if !f.Dir || f.Mode != 0o755 {
					t.Errorf("folder %s has mode %o", f.Path, f.Mode)
				}
				continue
			case "b":
				f.Mode, f.MTime, f.Size = 0, 0, 0
			}
			got = append(got, f)
		}
		if d := cmp.Diff(in, got); d != "" {
			t.Errorf("the tree is not what was written (-want +got):\n%s", d)
		}
		for _, bad := range []string{"/etc/x", "../x", "a/../../x", ""} {
			if err := c.Reset(t.Context(), []engine.File{{Path: bad}}); err == nil {
				t.Errorf("path %q was written", bad)
			}
		}
	})
}

// What is as it was written is not read again: every way in which a file can become another must show.
func TestTreeShowsChanges(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		var in []engine.File
		for _, name := range []string{"kept", "rewritten", "moved", "under", "gone", "x/f", "y/f"} {
			in = append(in, engine.File{Path: name, Data: []byte("of " + name), MTime: 1700000000})
		}
		in = append(in, engine.File{Path: "./odd//name", Data: []byte("of odd")}, engine.File{Path: "empty"})
		if err := c.Reset(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			op   string
			args []string
			data string
		}{
			{"write", []string{"rewritten"}, "of somebody"},
			{"rename", []string{"moved", "under"}, ""},
			{"remove", []string{"gone"}, ""},
			{"rename", []string{"x", "z"}, ""},
			{"rename", []string{"y", "x"}, ""},
			{"rename", []string{"z", "y"}, ""},
		} {
			if err := c.Do(t.Context(), step.op, step.args, []byte(step.data)); err != nil {
				t.Fatal(err)
			}
		}
		files, err := c.Tree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, f := range files {
			if !f.Dir {
				got[f.Path] = string(f.Data)
			}
		}
		want := map[string]string{"kept": "of kept", "rewritten": "of somebody", "under": "of moved", "x/f": "of y/f", "y/f": "of x/f",
			"odd/name": "of odd", "empty": ""}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("the files (-want +got):\n%s", d)
		}
	})
}

func TestDo(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		if err := c.Reset(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			op   string
			args []string
			data string
		}{
			{"write", []string{"d/a"}, "first"},
			{"write", []string{"d/a", "0600"}, "one"},
			{"rename", []string{"d/a", "b"}, ""},
			{"remove", []string{"d"}, ""},
			{"mkdir", []string{"e"}, ""},
			{"chmod", []string{"e", "0711"}, ""},
		} {
			if err := c.Do(t.Context(), step.op, step.args, []byte(step.data)); err != nil {
				t.Fatal(err)
			}
		}
		files, err := c.Tree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != 2 || files[0].Path != "b" || string(files[0].Data) != "one" || files[0].Mode != 0o600 ||
			files[1].Path != "e" || !files[1].Dir || files[1].Mode != 0o711 {
			t.Errorf("the tree is %+v", files)
		}
		for _, bad := range []struct {
			op   string
			args []string
		}{{"erase", []string{"b"}}, {"rename", []string{"b"}}, {"chmod", []string{"b", "9"}}, {"remove", []string{"../x"}}, {"chmod", []string{"no", "0600"}}, {"remove", []string{"no"}}} {
			if err := c.Do(t.Context(), bad.op, bad.args, nil); err == nil {
				t.Errorf("do %s %q was carried out", bad.op, bad.args)
			}
		}
	})
}

func TestManyDials(t *testing.T) {
	eachKind(t, engine.Options{}, func(t *testing.T, c engine.Cell) {
		s := start(t, c, "server { listen 127.0.0.1:8080 backlog=1000; listen unix:/cell/s; return 200 hello; }")
		for _, addr := range []string{"127.0.0.1:8080", "unix:/cell/s"} {
			fds, err := c.Dial(t.Context(), addr, 400)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(fds)
			if n := len(slices.Compact(slices.Clone(fds))); n != 400 {
				t.Errorf("%s: %d descriptors, want 400", addr, n)
			}
			for _, fd := range fds {
				unix.Close(fd)
			}
		}
		stop(t, s)
	})
}

// Connections that are over are forgotten between runs: every look at the sockets goes over them, and the kernel keeps
// only so many.
func TestResetForgetsClosedConnections(t *testing.T) {
	c := open(t, "local", engine.Options{})
	waiting := func() string { return waiting(t, c) }
	s := start(t, c, "server { listen 127.0.0.1:8080; return 200 hello; }")
	for range 20 {
		get(t, c, "127.0.0.1:8080", "/")
	}
	eventually(t, "connections in TIME-WAIT", func() bool { return waiting() != "0" })
	stop(t, s)
	if err := c.Reset(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if n := waiting(); n != "0" {
		t.Errorf("%s connections are left in TIME-WAIT", n)
	}
}

// waiting counts the connections of a cell that have no socket any more.
func waiting(t *testing.T, c engine.Cell) string {
	t.Helper()
	text, err := engine.ReadProc(c, "1/net/sockstat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), " tw ")
	n, _, _ := strings.Cut(rest, " ")
	return n
}

// While a server runs, a connection is forgotten at its rest when both ends are over, and not when one is: what the
// server says to the end that has gone is answered.
func TestRestForgetsWhatIsOver(t *testing.T) {
	c := open(t, engine.Local, engine.Options{})
	origin, err := c.Listen(t.Context(), "127.0.0.1:9000")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(origin)
	s := start(t, c, `server { listen 127.0.0.1:8080; return 200 hello; }
		server { listen 127.0.0.1:8081; location / { proxy_ignore_client_abort on; proxy_pass http://127.0.0.1:9000; } }`)
	fds, err := c.Dial(t.Context(), "127.0.0.1:8081", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(fds[0], []byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	unix.Close(fds[0])
	for range 20 {
		get(t, c, "127.0.0.1:8080", "/")
	}
	eventually(t, "connections of which both ends are over", func() bool { return len(waiting(t, c)) > 1 })
	look := func() bool {
		r, err := c.Probe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r.Asleep
	}
	eventually(t, "one connection that is half open", func() bool { look(); return waiting(t, c) == "1" })
	for rests := 0; rests < 20; {
		if look() {
			rests++
		}
	}
	if n := waiting(t, c); n != "1" {
		t.Errorf("%s connections without a socket are left, want the one that the server has open", n)
	}
	stop(t, s)
}

// Two cells are apart: both listen on the same address.
func TestCellsAreApart(t *testing.T) {
	a, b := open(t, engine.Local, engine.Options{}), open(t, engine.Local, engine.Options{})
	start(t, a, "server { listen 127.0.0.1:8080; return 200 a; }")
	start(t, b, "server { listen 127.0.0.1:8080; return 200 b; }")
	for want, c := range map[string]engine.Cell{"a": a, "b": b} {
		if _, body := get(t, c, "127.0.0.1:8080", "/"); body != want {
			t.Errorf("the server of cell %s answers %q", want, body)
		}
	}
}

func TestCellWithoutServer(t *testing.T) {
	c := open(t, engine.Local, engine.Options{})
	if r, err := c.Probe(t.Context()); err != nil || r.Alive || r.Procs != 0 {
		t.Errorf("probe: %+v, %v, want nothing alive", r, err)
	}
	for _, addr := range []string{"8080", "localhost:80", "unix:/none"} {
		if _, err := c.Dial(t.Context(), addr, 1); err == nil {
			t.Errorf("dial %s succeeded", addr)
		}
	}
	if _, err := engine.Open(t.Context(), engine.Options{Kind: engine.Local, Target: engine.Target{Name: "none", Binary: "/none"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open with a missing binary: %v, want that it does not exist", err)
	}
}
