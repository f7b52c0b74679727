package importer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// Ports stay and addresses stay apart: what nginx tells apart, it tells apart in the cell.
func TestListen(t *testing.T) {
	for in, want := range map[string]string{ // the address in the cell, and where a client goes
		"80": "80 127.0.0.1:80", "8080": "8080 127.0.0.1:8080", "*:8081": "*:8081 127.0.0.1:8081", "0.0.0.0:80": "0.0.0.0:80 127.0.0.1:80",
		"[::]:80": "[::]:80 [::1]:80", "[::1]": "[::1] [::1]:80", "10.0.0.1": "127.77.0.1:80 127.77.0.1:80", "127.0.0.2:9000": "127.0.0.2:9000 127.0.0.2:9000",
		"localhost:1024": "127.0.0.1:1024 127.0.0.1:1024", "example.org:80": "127.77.0.1:80 127.77.0.1:80", "[2001:db8::1]:80": "127.77.0.1:80 127.77.0.1:80",
		"80-90": "80-90 127.0.0.1:80", "unix:/run/x": "unix:/cell/listen-1.sock unix:/cell/listen-1.sock",
		"0": "refused", "x:99999": "refused", "90-80": "refused", "1:2:3": "1:2:3 127.0.0.1:3",
	} {
		m := &importer{shown: map[string]bool{}, addrs: newAddrs()}
		n := conftree.N("listen", in, "default_server")
		got := "refused"
		if err := m.listen(n, "x"); err == nil {
			got = n.Words[1] + " " + dial(n.Words[1])
		}
		if got != want {
			t.Errorf("listen %s is %s, want %s", in, got, want)
		}
	}
}

// Two addresses stay two, and an origin is where nobody listens.
func TestAddressesStayApart(t *testing.T) {
	c := imported(t, `http {
		server { listen 10.0.0.1:80; }
		server { listen 10.0.0.2:80; }
		server { listen 80; listen 8080; listen 30000-30005; location / { proxy_pass http://up:1/; } location /u { proxy_pass http://unix:/run/a.sock:/b/; } }
		server { listen 10.0.0.1:80; location / { proxy_pass https://other; } location /f { fastcgi_pass php:9000; } }
		upstream x { server unix:/run/a.sock weight=2; }
	}`)
	conf := string(c.Case.File("nginx.conf").Data)
	for _, want := range []string{"listen 127.77.0.1:80;", "listen 127.77.0.2:80;", "listen 80;", "listen 8080;", "proxy_pass http://127.0.0.1:30006/;",
		"proxy_pass http://unix:/cell/origin-2.sock:/b/;", "proxy_pass https://127.0.0.1:30007;", "fastcgi_pass 127.0.0.1:30008;", "server unix:/cell/origin-2.sock weight=2;"} {
		if !strings.Contains(conf, want) {
			t.Errorf("want %s in\n%s", want, conf)
		}
	}
	wrong := imported(t, "http { upstream x { server \"\"; server a:99999; }\n server { listen; listen $x; location / { proxy_pass http://; } location /b { proxy_pass http://a:0; } } }")
	for _, want := range []string{"server \"\";", "server a:99999;", "listen;", "listen $x;", "proxy_pass http://;", "proxy_pass http://a:0;"} {
		if conf := string(wrong.Case.File("nginx.conf").Data); !strings.Contains(conf, want) {
			t.Errorf("what nginx has a message for is left to it: want %s in\n%s", want, conf)
		}
	}
	if len(c.Case.Origins) != 2 {
		t.Errorf("origins: %+v, want the two of http", c.Case.Origins)
	}
}

// Messages name the person's own lines, be they included or moved by what was left out or added.
func TestMessagesNameOwnLines(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	site := write("site.conf", "# a comment\nserver {\n    listen 80;\n    add_header A \"b\nc\";\n    root html;\n}\n")
	conf := write("nginx.conf", "user www;\npid x;\n\nhttp {\n    include site.conf;\n    server_tokens off;\n    bad_word on;\n}\n")
	res, err := Import(conf, Options{})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(res.Case.File("nginx.conf").Data), "\n")
	if len(res.Places) != len(lines)-1 {
		t.Errorf("%d places for %d lines", len(res.Places), len(lines)-1)
	}
	for i, line := range lines {
		msg := res.Own(fmt.Sprintf("in /cell/nginx.conf:%d", i+1))
		for word, want := range map[string]string{"bad_word": conf + ":7", "root": site + ":6", "listen": site + ":3", "server_tokens": conf + ":6", "server {": site + ":2"} {
			if strings.HasPrefix(strings.TrimSpace(line), word) && msg != "in "+want && !strings.HasPrefix(line, "http") {
				t.Errorf("%s: %s, want in %s", line, msg, want)
			}
		}
	}
	if got, want := res.Own(`open() "/cell/files/etc/x" failed; configuration file /cell/nginx.conf test failed`), `open() "/etc/x" failed; configuration file `+conf+` test failed`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What a folder of documents holds is followed where the server follows it, and left out by name where it cannot be had.
func TestDocuments(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"release/sub", "shared"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"release/index.html": "hello", "release/sub/a": "a", "shared/b": "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"current": "release", "release/b": "../shared/b", "release/none": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "release/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	res := imported(t, "http { server { root "+dir+"/current; } }")
	for name, want := range map[string]string{"index.html": "hello", "sub/a": "a", "b": "b"} {
		f := res.Case.File("files" + dir + "/current/" + name)
		if f == nil || string(f.Data) != want {
			t.Errorf("%s: got %+v, want %s", name, f, want)
		}
	}
	if notes := strings.Join(res.Notes, "\n"); !strings.Contains(notes, "left out: links to folders or to nothing, and what is no file, below") {
		t.Errorf("notes: %s", notes)
	}
}

// A file of conf.d is checked in an http block of its own; a snippet has no server that it could be asked of.
func TestFragments(t *testing.T) {
	if res := imported(t, "upstream u { server a:1; }\nserver { listen 80; }\n"); !strings.HasPrefix(string(res.Case.File("nginx.conf").Data), "events {\n}\nhttp {\n    upstream") {
		t.Errorf("got %s", res.Case.File("nginx.conf").Data)
	}
	for text, want := range map[string]string{
		"location / { }\n":            ":1: location stands outside of a server: give the nginx.conf that includes this file",
		"":                            ":1: no server block: there is nothing to ask",
		"http {\n server {\n":         ":3: unexpected end of text, want ; or }",
		"http {\n include a*b/c; }\n": ":1: no server block",
	} {
		_, err := Import(conf(t, text), Options{})
		if r := (*Refusal)(nil); !errors.As(err, &r) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// What is no file is named and not read: a pipe would never end.
func TestWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: "is a folder: give the nginx.conf in it", pipe: "is a pipe: want a file", conf(t, "http {\n include "+pipe+"; }"): ":2: include: " + pipe + " is a pipe",
		conf(t, "http {\n server { auth_basic_user_file /dev/zero; } }"): ":2: auth_basic_user_file: /dev/zero is a device: want a file",
	} {
		if _, err := Import(path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

// conf is a configuration file with a text.
func conf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nginx.conf")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func imported(t *testing.T, text string) *Result {
	t.Helper()
	res, err := Import(conf(t, text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := casefile.Parse("made", res.Case.Print()); err != nil {
		t.Fatal(err)
	}
	return res
}

// A sample of a pattern is a path that the pattern matches.
func TestSample(t *testing.T) {
	for in, want := range map[string]string{
		`\.(png|jpg)$`: "/a.png", `^/a/(\d+)/b`: "/a/0/b", `/x{2}y*`: "/xx", `^/[^/]+/z$`: "/a/z", `(?<year>\d{4})`: "/a0000", `(?=look)x`: "",
	} {
		got := ""
		if list := sample(in); len(list) > 0 {
			got = list[0]
		}
		if got != want {
			t.Errorf("sample of %s is %q, want %q", in, got, want)
		}
	}
}

// A refusal names the file that the directive stands in, be it included.
func TestRefusalNamesTheIncludedFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"nginx.conf": "http {\n\n\n\n\n    include site.conf;\n}\n",
		"site.conf":  "server {\n    ssl_certificate missing.pem;\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Import(filepath.Join(dir, "nginx.conf"), Options{})
	var r *Refusal
	if !errors.As(err, &r) || r.File != filepath.Join(dir, "site.conf") || r.Line != 2 {
		t.Errorf("got %v, want a refusal at site.conf:2", err)
	}
}
