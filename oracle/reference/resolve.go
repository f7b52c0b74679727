package reference

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/engine/tool"
	"nginxoracle/oracle/exit"
)

// ErrNoContainers says that container cells cannot be had on this machine.
var ErrNoContainers = errors.New("no container cells")

// Auto lets the rig choose the kind of cell.
const Auto = "auto"

// Pair is what two targets need to be run side by side.
type Pair struct {
	Reference, Candidate engine.Options
}

// cacheAdvice is the next step where there is no cache folder.
const cacheAdvice = "set ORACLE_CACHE to a folder that can be written"

// hostAdvice is the next step where DOCKER_HOST names no engine.
const hostAdvice = "start that engine, or unset DOCKER_HOST"

// cacheFolder is where what is fetched lies; it is made where it is missing.
func cacheFolder() (string, error) {
	dir, err := engine.CacheDir()
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("the cache folder: %w (%s)", err, cacheAdvice)
	}
	return dir, nil
}

// Resolve turns the names of two targets and a kind of cell ("auto", "local" or
// "container") into what engine.Open needs. Names: "nginx" (the reference), "nginx:VERSION",
// "proxy" (the program beside this one), or a path. progress is told what takes time; it
// may be nil. A name that can never be a target is wrong usage (exit.Usage): no such word, no
// such file, a program without nginx's command line. What merely cannot be had here is not.
func Resolve(ctx context.Context, reference, candidate, kind string, progress func(string)) (Pair, error) {
	var p Pair
	var err error
	if progress == nil {
		progress = func(string) {}
	}
	if p.Reference, err = resolve(ctx, reference, kind, nil, progress); err != nil {
		return p, err
	}
	if p.Candidate, err = resolve(ctx, candidate, p.Reference.Kind, &p.Reference, progress); err != nil {
		return p, err
	}
	return p, errors.Join(isServer(ctx, reference, p.Reference), isServer(ctx, candidate, p.Candidate))
}

// isServer tries whether a program that a person named has nginx's command line: once here, rather
// than in every case.
func isServer(ctx context.Context, name string, o engine.Options) error {
	if !strings.ContainsRune(name, '/') {
		return nil
	}
	c, err := engine.Open(ctx, o)
	if errors.Is(err, engine.ErrNotServer) {
		err = errors.Unwrap(err) // that a cell was opened for it is no news to a person
		return exit.Errorf(exit.Usage, "target %w (want nginx, nginx:VERSION, proxy, or the path of such a server)", err)
	}
	if err != nil {
		return err
	}
	return c.Close()
}

// resolve finds one target. base is the reference, if it is known already.
func resolve(ctx context.Context, name, kind string, base *engine.Options, progress func(string)) (engine.Options, error) {
	version, isNginx := strings.CutPrefix(name, "nginx:")
	path := name
	switch {
	case name == "nginx":
		return findNginx(ctx, name, Version, kind, progress)
	case isNginx:
		return findNginx(ctx, name, version, kind, progress)
	case name == "proxy":
		var err error
		if path, err = findProxy(); err != nil {
			return engine.Options{}, err
		}
	case !strings.ContainsRune(name, '/'):
		return engine.Options{}, exit.Errorf(exit.Usage, "target %q: want nginx, nginx:VERSION, proxy, or a path with a slash", name)
	}
	return binary(ctx, name, path, kind, base, progress)
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
// libraries is shown this machine's, which only a local cell can do.
func binary(ctx context.Context, name, path, kind string, base *engine.Options, progress func(string)) (engine.Options, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return engine.Options{}, err
	}
	switch st, err := os.Stat(path); {
	case err != nil:
		return engine.Options{}, exit.Errorf(exit.Usage, "target %s: %w (want nginx, nginx:VERSION, proxy, or the path of a server)", name, errors.Unwrap(err))
	case !st.Mode().IsRegular() || st.Mode()&0o111 == 0:
		return engine.Options{}, exit.Errorf(exit.Usage, "target %s is no program that can be run (chmod +x?)", name)
	}
	static, err := tool.Static(path)
	if err != nil {
		return engine.Options{}, exit.Errorf(exit.Usage, "target %w (want the path of a server with nginx's command line, not of a script)", err)
	}
	if !static {
		if kind == engine.Container {
			return engine.Options{}, fmt.Errorf("target %s needs this machine's libraries: it can only run in a local cell (--cell local)", name)
		}
		return engine.Options{Kind: engine.Local, Target: engine.Target{Name: name, Root: "/", Binary: path}}, nil
	}
	if base == nil {
		o, err := findNginx(ctx, "nginx", Version, kind, progress)
		if err != nil {
			return engine.Options{}, err
		}
		base = &o
	}
	o := *base
	o.Target.Name, o.Target.Binary = name, path
	return o, nil
}

// findNginx finds nginx VERSION for a kind of cell. In a container: the image
// nginx:VERSION, else the image of Debian's packages. In a local cell: the nginx on
// PATH, else Debian's packages. Auto takes the image nginx:VERSION where it can be
// had, else a local cell, else a container of the packages.
func findNginx(ctx context.Context, name, version, kind string, progress func(string)) (engine.Options, error) {
	cache, err := cacheFolder()
	if err != nil {
		return engine.Options{}, err
	}
	f := finder{cache: cache, name: name, version: version, progress: progress}
	switch kind {
	case engine.Container:
		return f.container(ctx, true)
	case engine.Local:
		return f.local(ctx)
	case Auto:
	default:
		return engine.Options{}, fmt.Errorf("kind of cell %q: want auto, local or container", kind)
	}
	o, noImage := f.container(ctx, false)
	if noImage == nil {
		return o, nil
	}
	if errors.As(noImage, new(*engine.HostError)) {
		progress(noImage.Error() + "; taking a local cell")
	}
	noSpaces := engine.Namespaces()
	if noSpaces == nil {
		o, err := f.local(ctx)
		if err != nil {
			return o, fmt.Errorf("no nginx %s can be had (oracle doctor tells more):\n%w", version, errors.Join(noImage, err))
		}
		return o, nil
	}
	if o, err = f.container(ctx, true); err != nil {
		return o, fmt.Errorf("no cell can be had (oracle doctor tells more):\n%w", errors.Join(noSpaces, err))
	}
	return o, nil
}

type finder struct {
	cache, name, version string
	progress             func(string)
}

// container finds an image; built says whether one may be built from packages.
func (f finder) container(ctx context.Context, built bool) (engine.Options, error) {
	o := engine.Options{Kind: engine.Container, Target: engine.Target{Name: f.name}}
	d, err := engine.OpenDocker(ctx)
	if errors.As(err, new(*engine.HostError)) {
		err = fmt.Errorf("%w (%s)", err, hostAdvice)
	}
	if err != nil {
		return o, fmt.Errorf("%w: %w", ErrNoContainers, err)
	}
	defer d.Close()
	var why error
	if o.Target.Image, why = findImage(ctx, d, f.cache, f.version, f.progress); why == nil {
		return o, nil
	}
	if !built {
		return o, why
	}
	r, err := f.release()
	if err == nil {
		o.Target.Image, err = packagesImage(ctx, d, f.cache, r, f.progress)
	}
	if err != nil {
		return o, errors.Join(why, err)
	}
	return o, nil
}

// release is where Debian has the version; the error says where else it may be had.
func (f finder) release() (release, error) {
	r, err := releaseOf(f.version)
	if err != nil {
		err = fmt.Errorf("%w; take one of these, a path, or an engine that has the image: docker pull %s, then --cell container", err, registryImage(f.version))
	}
	return r, err
}

func (f finder) local(ctx context.Context) (engine.Options, error) {
	o := engine.Options{Kind: engine.Local, Target: engine.Target{Name: f.name}}
	path, found := onPath(ctx, f.version)
	if path != "" {
		o.Target.Root, o.Target.Binary = "/", path
		return o, nil
	}
	r, err := f.release()
	if err != nil {
		return o, err
	}
	t, err := fetch(ctx, f.cache, r, f.progress)
	if err != nil && found != "" {
		return o, fmt.Errorf("%w (and %s)", err, found)
	}
	o.Target.Root, o.Target.Binary = t.root, t.binary
	return o, err
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
