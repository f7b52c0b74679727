package nginxoracle

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// boundary is an import that is not free. A test file may stand anywhere unless the row binds tests too.
type boundary struct {
	imports string      // a path, or a prefix that ends in /
	where   []string    // folders (ending in /) and files
	except  []exception // from the rule that why says
	tests   bool
	why     string
}

// exception is a folder or a file in which a rule does not hold, and why that is right there.
type exception struct{ where, why string }

var boundaries = []boundary{
	{imports: "golang.org/x/sys/unix", where: []string{"proxy/ev/", "oracle/engine/"},
		why: "the proxy's system calls are made behind the loop's seam, the oracle's in the cell",
		except: []exception{
			{"oracle/wire/", "clients and origins move bytes over descriptors that were opened in a cell, and ask the kernel of them"},
			{"oracle/bench/openloop.go", "the open-loop generator waits to the microsecond: prctl, ppoll"},
			{"oracle/bench/cores.go", "the cores that may be used are the kernel's word: sched_getaffinity"},
			{"oracle/catalog/catalog.go", "one number a finding, though campaigns file side by side: flock"},
			{"oracle/campaign/lock.go", "one campaign a folder: flock, which the kernel frees when the process is killed"},
		}},
	{imports: "os/exec", where: []string{"oracle/engine/local.go", "oracle/engine/tool/"},
		why: "everything that runs is in a cell, which the engine makes, or a tool of this machine that is run to its end",
		except: []exception{
			{"oracle/bench/", "what is measured runs on the bare machine: pinned, under strace, without a cell's own cost"},
			{"tools/faults/", "it starts the oracle's own command, to kill it"},
			{"tools/mutants/", "it builds proxies and starts the oracle's own command on them"},
		}},
	{imports: "net", where: []string{"oracle/bench/"},
		why: "bytes are moved over descriptors, the proxy's by its loop and the oracle's on the wire; only a load's generator may have goroutines and a library"},
	{imports: "net/http", where: []string{"oracle/bench/session.go"},
		why: "the proxy's HTTP is nginx's and the oracle's is bytes, neither the library's; the bench looks at a hundred responses with another's eyes before it counts"},
	{imports: "regexp", where: []string{"oracle/", "fuzz/", "cmd/oracle/"},
		why: "a user's pattern is PCRE2's; Go's has other semantics"},
	{imports: "nginxoracle/proxy/", where: []string{"proxy/", "cmd/proxy/"}, tests: true,
		why: "to the oracle the proxy is a program: generator and proxy share no blind spot"},
	{imports: "nginxoracle/oracle/", where: []string{"oracle/", "fuzz/", "cmd/oracle/", "tools/"}, tests: true,
		why: "the proxy knows nothing of who watches it"},
	{imports: "nginxoracle/proxy/modules/", where: []string{"proxy/modules/", "proxy/server/"},
		why: "only the composition knows the modules"},
	{imports: "nginxoracle/proxy/server", where: []string{"cmd/proxy/"},
		why: "the composition is the end of the chain"},
}

// places are all that a row allows.
func (b *boundary) places() []string {
	all := slices.Clone(b.where)
	for _, e := range b.except {
		all = append(all, e.where)
	}
	return all
}

func TestImportBoundaries(t *testing.T) {
	used := make([]map[string]bool, len(boundaries)) // the places of a row in which something imports it
	for i := range used {
		used[i] = map[string]bool{}
	}
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
				test := strings.HasSuffix(path, "_test.go")
				place := inside(path, b.places())
				if place == "" && (b.tests || !test) {
					t.Errorf("%s imports %s, which only %s may: %s", path, name, strings.Join(b.places(), ", "), b.why)
				}
				if !test {
					used[i][place] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range boundaries {
		for _, place := range b.places() {
			if !used[i][place] {
				t.Errorf("nothing in %s imports %s: the row allows more than is needed", place, b.imports)
			}
		}
	}
}

// inside is the place that holds a path, "" where none does.
func inside(path string, where []string) string {
	for _, w := range where {
		if p := filepath.ToSlash(path); p == w || strings.HasSuffix(w, "/") && strings.HasPrefix(p, w) {
			return w
		}
	}
	return ""
}
