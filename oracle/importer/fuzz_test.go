package importer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nginxoracle/oracle/casefile"
)

// Whatever a configuration holds, it is refused with a place, or made into a case that can be read back, each line of which
// is known to come from somewhere.
func FuzzImport(f *testing.F) {
	for _, text := range []string{
		"http { server { listen; } }", "http { server { listen 80 ssl; listen [::]:81-90; server_name ~^(a|b)$ *.x .y; root html; } }",
		"server { location ~ (a|b {2}c) { proxy_pass http://unix:/x.sock:/y; } location = / { fastcgi_pass $x; } }", "location / {}", "http {",
		"upstream a { server unix:; server b:0; }\nserver { listen \"1\n2\"; auth_basic_user_file off; proxy_pass; }", "http { include *; map a b { include c; } }",
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Contains(text, []byte("/")) && bytes.Contains(text, []byte("include")) || bytes.Contains(text, []byte("..")) {
			t.Skip("reads this machine's files")
		}
		path := filepath.Join(dir, "nginx.conf")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		res, err := Import(path, Options{HideVersion: len(text)%2 == 0})
		if r := (*Refusal)(nil); errors.As(err, &r) && r.File != "" && r.Line > 0 {
			return
		}
		if err != nil {
			t.Fatalf("%q: no refusal: %v", text, err)
		}
		if _, err := casefile.Parse("made", res.Case.Print()); err != nil {
			t.Fatalf("%q: the case that was made: %v", text, err)
		}
		if conf := string(res.Case.File("nginx.conf").Data); len(res.Places) != strings.Count(conf, "\n") {
			t.Fatalf("%q: %d places for\n%s", text, len(res.Places), conf)
		}
	})
}
