package reference

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"nginxoracle/oracle/engine/tool"
)

// tree is an extracted set of packages.
type tree struct {
	root     string
	binary   string
	version  string   // "1.26.3"
	packages []string // files' names: name_version_architecture.deb
}

func treeDir(cache string, r release) string {
	return filepath.Join(cache, "reference", "nginx-"+r.version+"-"+runtime.GOARCH)
}

// cached is the tree of r in the cache, if there is one.
func cached(cache string, r release) (tree, bool) {
	dir := treeDir(cache, r)
	text, err := os.ReadFile(filepath.Join(dir, "packages"))
	if err != nil {
		return tree{}, false
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	t := tree{root: filepath.Join(dir, "root"), version: lines[0], packages: lines[1:]}
	t.binary = filepath.Join(t.root, "usr/sbin/nginx")
	for _, p := range r.packages { // a cache of before the list grew
		if !slices.ContainsFunc(t.packages, func(deb string) bool { return strings.HasPrefix(deb, p+"_") }) {
			return tree{}, false
		}
	}
	_, err = os.Stat(t.binary)
	return t, err == nil
}

// fetch is the tree of r, taken from the cache or fetched into it. Several
// processes may fetch at once: one does, the others wait for it. A tree appears
// whole or not at all.
func fetch(ctx context.Context, cache string, r release, progress func(string)) (tree, error) {
	if t, ok := cached(cache, r); ok {
		return t, nil
	}
	t, err := fetchLocked(ctx, cache, r, progress)
	if err != nil {
		return t, fmt.Errorf("get nginx %s from Debian's packages: %w", r.version, err)
	}
	return t, nil
}

func fetchLocked(ctx context.Context, cache string, r release, progress func(string)) (t tree, err error) {
	apt, dpkg := tool.Look("apt-get"), tool.Look("dpkg-deb")
	if apt == "" || dpkg == "" {
		return t, errors.New("apt-get and dpkg-deb are needed, and not here")
	}
	dir := treeDir(cache, r)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return t, err
	}
	unlock, err := tool.Lock(ctx, dir+".lock")
	if err != nil {
		return t, err
	}
	defer unlock()
	if t, ok := cached(cache, r); ok { // while we waited
		return t, nil
	}
	work := dir + ".part"
	if err := os.RemoveAll(work); err != nil { // what a killed process left
		return t, err
	}
	defer os.RemoveAll(work)
	for _, d := range []string{"root", "debs", "state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(work, d), 0o755); err != nil {
			return t, err
		}
	}
	m := findMirror("/etc/apt")
	progress(fmt.Sprintf("fetching nginx %s: packages of Debian %s from %s", r.version, r.suite, m.uri))
	if err := download(ctx, apt, work, m, r); err != nil {
		return t, err
	}
	debs, err := filepath.Glob(filepath.Join(work, "debs", "*.deb"))
	if err != nil {
		return t, err
	}
	if len(debs) != len(r.packages) {
		return t, fmt.Errorf("apt-get download: %d packages came, want %d", len(debs), len(r.packages))
	}
	root := filepath.Join(work, "root")
	var list strings.Builder
	for _, deb := range debs {
		if _, _, err := tool.Run(ctx, tool.Cmd{Name: dpkg, Args: []string{"-x", deb, root}}); err != nil {
			return t, fmt.Errorf("extract %s: %w", filepath.Base(deb), err)
		}
		fmt.Fprintln(&list, filepath.Base(deb))
	}
	version, err := tryTree(ctx, root)
	if err != nil {
		return t, err
	}
	if !strings.HasPrefix(version, r.version+".") {
		return t, fmt.Errorf("Debian %s has nginx %s now, not %s", r.suite, version, r.version)
	}
	if err := os.WriteFile(filepath.Join(work, "packages"), []byte(version+"\n"+list.String()), 0o644); err != nil {
		return t, err
	}
	for _, d := range []string{"debs", "state", "cache"} {
		if err := os.RemoveAll(filepath.Join(work, d)); err != nil {
			return t, err
		}
	}
	if err := os.RemoveAll(dir); err != nil { // an incomplete one
		return t, err
	}
	if err := os.Rename(work, dir); err != nil {
		return t, err
	}
	t, ok := cached(cache, r)
	if !ok {
		return t, fmt.Errorf("%s is not what was just written", dir)
	}
	return t, nil
}

// download fetches the packages of r with apt, in a state of its own: the
// machine's lists, packages and pins are neither used nor changed. What is not signed by
// the archive's key is refused.
func download(ctx context.Context, apt, work string, m mirror, r release) error {
	sources := filepath.Join(work, "debian.sources")
	text := fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n", m.uri, r.suite, m.key)
	if err := os.WriteFile(sources, []byte(text), 0o644); err != nil {
		return err
	}
	if _, err := os.Stat(m.key); err != nil {
		return fmt.Errorf("the key of Debian's archive: %w (install the package debian-archive-keyring)", err)
	}
	status := filepath.Join(work, "state", "status")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		return err
	}
	options := []string{"-q"}
	for _, o := range []string{
		"Dir::Etc::sourcelist=" + sources,
		"Dir::Etc::sourceparts=/dev/null",
		"Dir::Etc::preferences=/dev/null",
		"Dir::Etc::preferencesparts=/dev/null",
		"Dir::State=" + filepath.Join(work, "state"),
		"Dir::State::Lists=" + filepath.Join(work, "state", "lists"),
		"Dir::State::status=" + status,
		"Dir::Cache=" + filepath.Join(work, "cache"),
		"Acquire::Languages=none",
		"Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
		"Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled=false",
		"Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled=false",
		"Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false",
		"Acquire::Retries=2",
		"Acquire::http::Timeout=20",
		"Acquire::https::Timeout=20",
		"Acquire::AllowInsecureRepositories=false",
		"APT::Get::AllowUnauthenticated=false",
		"APT::Update::Error-Mode=any",
		// As root, apt would fetch as a user who may not be able to write here; the folder is ours alone.
		"APT::Sandbox::User=",
	} {
		options = append(options, "-o", o)
	}
	env := []string{"LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"}
	run := func(args ...string) error {
		_, _, err := tool.Run(ctx, tool.Cmd{Name: apt, Args: append(options[:len(options):len(options)], args...), Env: env, Dir: filepath.Join(work, "debs")})
		if err != nil {
			return fmt.Errorf("%s from %s (as in %s): %w", args[0], m.uri, m.from, err)
		}
		return nil
	}
	if err := run("update"); err != nil {
		return err
	}
	return run(append([]string{"download"}, r.packages...)...)
}

var versionLine = regexp.MustCompile(`nginx version: \S+?/(\d+\.\d+\.\d+)`)

// tryTree runs the extracted nginx through its own loader: a library that is
// missing shows here, with its name.
func tryTree(ctx context.Context, root string) (string, error) {
	loader, err := findLoader(root)
	if err != nil {
		return "", err
	}
	dirs, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*"))
	if err != nil {
		return "", err
	}
	_, stderr, err := tool.Run(ctx, tool.Cmd{Name: loader, Args: []string{
		"--library-path", strings.Join(append(dirs, filepath.Join(root, "usr/lib")), ":"),
		filepath.Join(root, "usr/sbin/nginx"), "-v",
	}})
	if err != nil {
		return "", fmt.Errorf("try the extracted nginx: %w", err)
	}
	return parseVersion(stderr)
}

func parseVersion(text []byte) (string, error) {
	v := versionLine.FindSubmatch(text)
	if v == nil {
		return "", fmt.Errorf("no nginx version in %q", text)
	}
	return string(v[1]), nil
}

func findLoader(root string) (string, error) {
	for _, pattern := range []string{"usr/lib/*/ld-linux*.so.*", "lib/*/ld-linux*.so.*", "usr/lib/ld-linux*.so.*", "lib/ld-linux*.so.*"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return "", err
		}
		if len(names) > 0 {
			return names[0], nil
		}
	}
	return "", fmt.Errorf("find the loader in %s: %w", root, fs.ErrNotExist)
}
