package reference

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/engine/tool"
)

// ErrNoContainers says that container cells cannot be had on this machine.
var ErrNoContainers = errors.New("no container cells")

// Auto lets the rig choose the kind of cell.
const Auto = "auto"

// Pair is what two targets need to be run side by side.
type Pair struct {
	Reference, Candidate engine.Options
}

// Resolve turns the names of two targets and a kind of cell ("auto", "local" or
// "container") into what engine.Open needs. Names: "nginx" (the reference), "nginx:VERSION",
// "proxy" (the program beside this one), or a path. progress is told what takes time.
func Resolve(ctx context.Context, reference, candidate, kind string, progress func(string)) (Pair, error) {
	var p Pair
	var err error
	if p.Reference, err = resolve(ctx, reference, kind, "", progress); err != nil {
		return p, err
	}
	p.Candidate, err = resolve(ctx, candidate, p.Reference.Kind, p.Reference.Target.Root, progress)
	return p, err
}

func resolve(ctx context.Context, name, kind, root string, progress func(string)) (engine.Options, error) {
	if progress == nil {
		progress = func(string) {}
	}
	version, isNginx := strings.CutPrefix(name, "nginx:")
	switch {
	case name == "nginx":
		return findNginx(ctx, name, Version, kind, progress)
	case isNginx:
		return findNginx(ctx, name, version, kind, progress)
	case name == "proxy":
		path, err := findProxy()
		if err != nil {
			return engine.Options{}, err
		}
		return binary(ctx, name, path, kind, root, progress)
	case strings.ContainsRune(name, '/'):
		return binary(ctx, name, name, kind, root, progress)
	}
	return engine.Options{}, fmt.Errorf("target %q: want nginx, nginx:VERSION, proxy, or a path with a slash", name)
}

// findProxy finds the in-tree proxy: beside this program, or in bin/ of the tree.
func findProxy() (string, error) {
	var tried []string
	if self, err := os.Executable(); err == nil {
		tried = append(tried, filepath.Join(filepath.Dir(self), "proxy"))
	}
	if dir, err := os.Getwd(); err == nil {
		for ; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				tried = append(tried, filepath.Join(dir, "bin", "proxy"))
				break
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	for _, path := range tried {
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("target proxy: not built, looked for %s (run make build)", strings.Join(tried, " and "))
}

// binary is a target that is a program on this machine. A static one is shown
// the reference's file system, so that both see the same files; one that needs
// libraries is shown this machine's.
func binary(ctx context.Context, name, path, kind, root string, progress func(string)) (engine.Options, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return engine.Options{}, err
	}
	dynamic, err := needsLoader(path)
	if err != nil {
		return engine.Options{}, fmt.Errorf("target %s: %w", name, err)
	}
	if dynamic {
		root = "/"
	} else if root == "" {
		ref, err := findNginx(ctx, "nginx", Version, kind, progress)
		if err != nil {
			return engine.Options{}, err
		}
		kind, root = ref.Kind, ref.Target.Root
	}
	return engine.Options{Kind: kind, Target: engine.Target{Name: name, Root: root, Binary: path}}, nil
}

func needsLoader(path string) (bool, error) {
	f, err := elf.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return true, nil
		}
	}
	return false, nil
}

// findNginx finds an nginx: on PATH, or from Debian's packages.
func findNginx(ctx context.Context, name, version, kind string, progress func(string)) (engine.Options, error) {
	cache, err := engine.CacheDir()
	if err != nil {
		return engine.Options{}, err
	}
	if path, _ := onPath(ctx, version); path != "" {
		return engine.Options{Kind: engine.Local, Target: engine.Target{Name: name, Root: "/", Binary: path}}, nil
	}
	if kind == engine.Container {
		return engine.Options{}, fmt.Errorf("%w: not built", ErrNoContainers)
	}
	r, err := releaseOf(version)
	if err != nil {
		return engine.Options{}, err
	}
	t, err := fetch(ctx, cache, r, progress)
	if err != nil {
		return engine.Options{}, errors.Join(err, errors.New("no nginx: see oracle doctor"))
	}
	return engine.Options{Kind: engine.Local, Target: engine.Target{Name: name, Root: t.root, Binary: t.binary}}, nil
}

// onPath is the nginx of this machine, if it has that version, and what it is.
func onPath(ctx context.Context, version string) (path, found string) {
	path = tool.Look("nginx")
	if path == "" {
		return "", ""
	}
	_, stderr, err := tool.Run(ctx, tool.Cmd{Name: path, Args: []string{"-v"}})
	if err != nil {
		return "", path + ": " + err.Error()
	}
	v, err := parseVersion(stderr)
	if err != nil {
		return "", path + ": " + err.Error()
	}
	if v != version && !strings.HasPrefix(v, version+".") {
		return "", path + " is nginx " + v
	}
	return path, path + " is nginx " + v
}
