package importer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"nginxoracle/oracle/minimize/conftree"
)

func TestListen(t *testing.T) {
	for in, want := range map[string]string{
		"80": "127.0.0.1:8080", "*:8081": "127.0.0.1:8081", "[::]:80": "[::1]:8080", "10.0.0.1": "127.0.0.1:8080", "127.0.0.2:9000": "127.0.0.2:9000",
		"localhost:1024": "127.0.0.1:1024", "unix:/run/x": "refused", "80-90": "refused", "0": "refused",
	} {
		m := &importer{shown: map[string]bool{}}
		n := conftree.N("listen", in, "default_server", "ipv6only=on")
		got := "refused"
		if err := m.listen(n, "x"); err == nil {
			got = n.Words[1]
			if len(n.Words) != 3 {
				t.Errorf("%s: words %q, want ipv6only gone", in, n.Words)
			}
		}
		if got != want {
			t.Errorf("listen %s is %s, want %s", in, got, want)
		}
	}
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
