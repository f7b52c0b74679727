package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/reference"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"oracle": main, "nginx": halfNginx})
}

// TestReplay runs the scripts of testdata/replay on the real reference. The
// candidate is the reference again, or halfNginx, which answers a little differently.
func TestReplay(t *testing.T) {
	scripts(t, "testdata/replay")
}

// TestFaulty runs the scripts of testdata/faulty: targets that crash, hang, flood and fill their disk.
func TestFaulty(t *testing.T) { scripts(t, "testdata/faulty") }

func scripts(t *testing.T, dir string) {
	if _, err := reference.Resolve(context.Background(), "nginx", "nginx", engine.Local, nil); err != nil {
		t.Skipf("no reference nginx: %v", err)
	}
	cache, err := engine.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := filepath.Abs("testdata/cases")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			env.Setenv("ORACLE_CACHE", cache)
			env.Setenv("CASES", cases)
			// The programs of this test come first on PATH.
			bin, _, _ := strings.Cut(env.Getenv("PATH"), string(os.PathListSeparator))
			env.Setenv("HALF", filepath.Join(bin, "nginx"))
			return fullDisk(env)
		},
		Condition: func(cond string) (bool, error) {
			if cond == "full" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("condition %q is unknown", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"paste": paste, "room": room, "appears": appears},
	})
}

// paste runs the command that the last output tells to run again.
func paste(ts *testscript.TestScript, neg bool, args []string) {
	m := regexp.MustCompile(`(?m)^  again:   (oracle .*)$`).FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("the output names no command to paste")
	}
	words := strings.Fields(m[1])
	if err := ts.Exec(words[0], words[1:]...); (err != nil) != neg {
		ts.Fatalf("%s: %v", m[1], err)
	}
}

// halfNginx is a candidate that is like nginx until its second answer on a
// connection, and does not know the directive "gzip".
func halfNginx() {
	args := strings.Join(os.Args[1:], " ")
	conf, err := os.ReadFile("/cell/nginx.conf")
	switch {
	case strings.Contains(args, "-V"):
		fmt.Fprintln(os.Stderr, "nginx version: half/0")
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case strings.Contains(string(conf), "gzip"):
		fmt.Fprintln(os.Stderr, `nginx: [emerg] directive "gzip" is not supported in /cell/nginx.conf:2`)
		os.Exit(1)
	case strings.HasSuffix(args, "-t"):
		behave(string(conf), "test")
		fmt.Fprint(os.Stderr, "nginx: the configuration file /cell/nginx.conf syntax is ok\n"+
			"nginx: configuration file /cell/nginx.conf test is successful\n")
		return
	}
	behave(string(conf), "start")
	for _, name := range []string{"/cell/logs/error.log", "/var/log/nginx/access.log"} {
		if f, err := os.Create(name); err == nil {
			f.Close()
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGQUIT, syscall.SIGTERM)
	go func() { <-stop; os.Exit(0) }()
	for {
		c, err := ln.Accept()
		if err != nil {
			os.Exit(1)
		}
		go halfServe(c)
	}
}

// behave does what the configuration's comment "# half: WHEN WHAT" says, as a target that is at fault would.
func behave(conf, when string) {
	_, what, ok := strings.Cut(conf, "# half: "+when+" ")
	if !ok {
		return
	}
	what, _, _ = strings.Cut(what, "\n")
	switch what {
	case "crash":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		select {}
	case "hang":
		signal.Ignore(syscall.SIGQUIT, syscall.SIGTERM)
		for {
		}
	case "exit":
		os.Exit(7)
	case "flood":
		flood("/cell/logs/error.log", "2026/01/01 00:00:00 [error] 1#1: *1 the same again\n", 8<<20)
	case "fill":
		flood("/cell/html/rubbish", strings.Repeat("x", 4096), 1<<40)
	}
}

// flood writes a line again and again, until the disk is full or most bytes are written.
func flood(name, line string, most int) {
	_ = os.MkdirAll(filepath.Dir(name), 0o755)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	defer f.Close()
	block := strings.Repeat(line, 64<<10/len(line)+1)
	for n := 0; n < most; n += len(block) {
		if _, err := f.WriteString(block); err != nil {
			return
		}
	}
}

func halfServe(c net.Conn) {
	defer c.Close()
	lines := bufio.NewScanner(c)
	for n := 1; lines.Scan(); {
		if lines.Text() != "" {
			continue
		}
		conf, _ := os.ReadFile("/cell/nginx.conf")
		behave(string(conf), "request")
		body := "ok\n"
		if n == 2 {
			body = "ko\n"
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nServer: half\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n%s", body)
		n++
	}
}
