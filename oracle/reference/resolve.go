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
	Warning              string // of a reference that is another build than the proxy follows
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
	if p.Reference, p.Warning, err = resolve(ctx, reference, kind, nil, progress); err != nil {
		return p, err
	}
	if reference == candidate && !strings.ContainsRune(reference, '/') {
		p.Candidate = p.Reference
	} else if p.Candidate, _, err = resolve(ctx, candidate, p.Reference.Kind, &p.Reference, progress); err != nil {
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
func resolve(ctx context.Context, name, kind string, base *engine.Options, progress func(string)) (engine.Options, string, error) {
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
			return engine.Options{}, "", err
		}
	case !strings.ContainsRune(name, '/'):
		return engine.Options{}, "", exit.Errorf(exit.Usage, "target %q: want nginx, nginx:VERSION, proxy, or a path with a slash", name)
	}
	o, err := binary(ctx, name, path, kind, base, progress)
	return o, "", err
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
		o, _, err := findNginx(ctx, "nginx", Version, kind, progress)
		if err != nil {
			return engine.Options{}, err
		}
		base = &o
	}
	o := *base
	o.Target.Name, o.Target.Binary = name, path
	return o, nil
}

// findNginx finds nginx VERSION for a kind of cell. What is here already comes first: the image nginx:VERSION,
// the nginx on PATH; then Debian's packages. Asked for as "nginx", they count only when they are the build that the
// proxy follows; another one is taken, with a warning, where the packages cannot be had.
func findNginx(ctx context.Context, name, version, kind string, progress func(string)) (engine.Options, string, error) {
	cache, err := cacheFolder()
	if err != nil {
		return engine.Options{}, "", err
	}
	f := finder{cache: cache, name: name, version: version, progress: progress, anyBuild: name != "nginx"}
	if kind != Auto && kind != engine.Local && kind != engine.Container {
		return engine.Options{}, "", fmt.Errorf("kind of cell %q: want auto, local or container", kind)
	}
	return f.find(ctx, kind)
}

type finder struct {
	cache, name, version string
	progress             func(string)
	anyBuild             bool

	d          *engine.Docker
	path, said string // the nginx on PATH, if it has the version, and what it is
}

func (f *finder) find(ctx context.Context, kind string) (engine.Options, string, error) {
	var h here
	var missing []error
	if kind != engine.Local {
		var err error
		if f.d, err = engine.OpenDocker(ctx); err == nil {
			defer f.d.Close()
			h.docker = true
			h.image, err = f.d.Has(ctx, registryImage(f.version))
		}
		if errors.As(err, new(*engine.HostError)) {
			err = fmt.Errorf("%w (%s)", err, hostAdvice)
			if kind == Auto {
				f.progress(err.Error() + "; taking a local cell")
			}
		}
		if err != nil {
			missing = append(missing, fmt.Errorf("%w: %w", ErrNoContainers, err))
		}
	}
	if kind != engine.Container {
		err := engine.Namespaces()
		if h.spaces = err == nil; err != nil && kind == Auto {
			missing = append(missing, err)
		}
		if f.path, f.said = onPath(ctx, f.version); f.path != "" {
			h.program = true
		} else if f.said != "" {
			missing = append(missing, errors.New(f.said))
		}
	}
	if !f.anyBuild {
		if h.image {
			h.imageOther = examine(ctx, f.image())
		}
		if h.program {
			h.programOther = examine(ctx, f.program())
		}
	}
	for _, s := range order(kind, h, f.anyBuild) {
		o, err := f.take(ctx, s)
		if err != nil {
			missing = append(missing, err)
			continue
		}
		warn := ""
		switch {
		case f.anyBuild:
		case s == theImage && h.imageOther != "":
			warn = warning("the image "+registryImage(f.version), h.imageOther)
		case s == theProgram && h.programOther != "":
			warn = warning(f.path, h.programOther)
		case s == pulledImage:
			if why := examine(ctx, o); why != "" {
				warn = warning("the image "+registryImage(f.version), why)
			}
		}
		if warn != "" {
			f.progress(warn)
		}
		return o, warn, nil
	}
	err := errors.Join(missing...)
	if kind == Auto {
		err = fmt.Errorf("no nginx %s can be had (oracle doctor tells more):\n%w", f.version, err)
	}
	return engine.Options{}, "", err
}

// take gets an nginx in one way.
func (f *finder) take(ctx context.Context, s source) (o engine.Options, err error) {
	switch s {
	case theImage:
		return f.image(), nil
	case pulledImage:
		return f.image(), pull(ctx, f.d, f.cache, registryImage(f.version), f.progress)
	case theProgram:
		return f.program(), nil
	}
	r, err := f.release()
	if err != nil {
		return o, err
	}
	if s == packagesBuilt {
		o = f.image()
		o.Target.Image, err = packagesImage(ctx, f.d, f.cache, r, f.progress)
		return o, err
	}
	t, err := fetch(ctx, f.cache, r, f.progress)
	o = f.program()
	o.Target.Root, o.Target.Binary = t.root, t.binary
	return o, err
}

func (f *finder) image() engine.Options {
	return engine.Options{Kind: engine.Container, Target: engine.Target{Name: f.name, Image: registryImage(f.version)}}
}

func (f *finder) program() engine.Options {
	return engine.Options{Kind: engine.Local, Target: engine.Target{Name: f.name, Root: "/", Binary: f.path}}
}

// release is where Debian has the version; the error says where else it may be had.
func (f *finder) release() (release, error) {
	r, err := releaseOf(f.version)
	if err != nil {
		err = fmt.Errorf("%w; take one of these, a path, or an engine that has the image: docker pull %s, then --cell container", err, registryImage(f.version))
	}
	return r, err
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
