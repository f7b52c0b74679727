package nginxoracle

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// boundaries are the imports that are not free. where is prefixes of folders; a test file may stand
// anywhere unless the row binds tests too.
var boundaries = []struct {
	imports string // a path, or a prefix that ends in /
	where   []string
	tests   bool
	why     string
}{
	{"golang.org/x/sys/unix", []string{"proxy/ev/", "oracle/"}, false,
		"the proxy's system calls are made behind the loop's seam, the oracle's in the cell and on the wire"},
	{"os/exec", []string{"oracle/engine/", "oracle/bench/", "tools/"}, false,
		"everything that runs is in a cell, which the engine makes; only measuring needs the bare machine"},
	{"net", []string{"oracle/", "tools/"}, false,
		"no goroutine per connection in the serving path: its sockets are the loop's"},
	{"net/http", []string{"oracle/", "tools/"}, false,
		"the proxy's HTTP is nginx's, not the library's"},
	{"regexp", []string{"oracle/", "fuzz/", "tools/", "cmd/oracle/"}, false,
		"a user's pattern is PCRE2's; Go's has other semantics"},
	{"nginxoracle/proxy/", []string{"proxy/", "cmd/proxy/"}, true,
		"to the oracle the proxy is a program: generator and proxy share no blind spot"},
	{"nginxoracle/oracle/", []string{"oracle/", "fuzz/", "cmd/oracle/", "tools/"}, true,
		"the proxy knows nothing of who watches it"},
	{"nginxoracle/proxy/modules/", []string{"proxy/modules/", "proxy/server/", "cmd/proxy/"}, false,
		"only the composition knows the modules"},
	{"nginxoracle/proxy/server", []string{"cmd/proxy/"}, false,
		"the composition is the end of the chain"},
}

func TestImportBoundaries(t *testing.T) {
	seen := make([]bool, len(boundaries))
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			for i := range boundaries {
				b := &boundaries[i]
				if name != b.imports && !(strings.HasSuffix(b.imports, "/") && strings.HasPrefix(name, b.imports)) {
					continue
				}
				seen[i] = true
				if !inside(path, b.where) && (b.tests || !strings.HasSuffix(path, "_test.go")) {
					t.Errorf("%s imports %s, which only %s may: %s", path, name, strings.Join(b.where, ", "), b.why)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, ok := range seen {
		if !ok {
			t.Errorf("nothing imports %s: the row tests nothing", boundaries[i].imports)
		}
	}
}

func inside(path string, where []string) bool {
	for _, w := range where {
		if strings.HasPrefix(filepath.ToSlash(path), w) {
			return true
		}
	}
	return false
}
