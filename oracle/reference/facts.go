package reference

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/engine/tool"
)

// Fact is one thing that was looked for on this machine.
type Fact struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`            // what was found, or why it cannot be used
	Next  string `json:"next,omitempty"`   // what a person can do about it
	Extra bool   `json:"extra,omitempty"`  // not needed for comparing
	Fault bool   `json:"fault,omitempty"`  // not missing but set up wrongly
	Needs string `json:"needed,omitempty"` // what it would be used for
}

// Facts looks for everything from which the rig can choose, in the order in
// which it is tried. It fetches nothing, and makes nothing but the cache folder.
func Facts(ctx context.Context) []Fact {
	var all []Fact
	cache, err := cacheFolder()
	if err != nil {
		all = append(all, Fact{Name: "cache folder", Fault: true, Found: strings.TrimSuffix(oneLine(err), " ("+cacheAdvice+")"), Next: cacheAdvice})
	} else {
		all = append(all, Fact{Name: "cache folder", OK: true, Found: cache})
	}
	all = append(all, dockerFacts(ctx, cache)...)
	path, found := onPath(ctx, Version)
	if found == "" {
		found = "none"
	}
	program := Fact{Name: "nginx on PATH", OK: path != "", Found: found}
	f := finder{name: "nginx", version: Version, path: path}
	if program.OK {
		program.passOver(ctx, f.program(), "--reference "+path)
	}
	all = append(all, program)
	all = append(all, packagesFact(cache))
	spaces := Fact{Name: "namespaces", OK: true, Found: "allowed: local cells work"}
	if err := engine.Namespaces(); err != nil {
		spaces = Fact{Name: "namespaces", Found: err.Error(), Next: "allow namespaces, or use containers"}
	}
	all = append(all, spaces)
	proxy := Fact{Name: "proxy", OK: true}
	if proxy.Found, err = findProxy(); err != nil {
		proxy = Fact{Name: "proxy", Found: err.Error(), Next: "make build"}
	}
	return append(append(all, proxy), toolFacts()...)
}

func dockerFacts(ctx context.Context, cache string) []Fact {
	d, err := engine.OpenDocker(ctx)
	if err != nil {
		if errors.As(err, new(*engine.HostError)) {
			return []Fact{{Name: "docker", Fault: true, Found: oneLine(err), Next: hostAdvice}}
		}
		next := "install Docker for container cells"
		if strings.Contains(err.Error(), "permission denied") {
			next = "add this user to the group that may use the engine's socket (docker), for container cells"
		}
		return []Fact{{Name: "docker", Found: oneLine(err), Next: next}}
	}
	defer d.Close()
	facts := []Fact{{Name: "docker", OK: true, Found: "engine " + d.Version + ", API " + d.API}}
	image := Fact{Name: "image " + registryImage(Version)}
	switch ok, err := d.Has(ctx, registryImage(Version)); {
	case err != nil:
		image.Found = oneLine(err)
	case ok:
		image.OK, image.Found = true, "present"
		image.passOver(ctx, (&finder{name: "nginx", version: Version}).image(), "--reference "+registryImage(Version))
	default:
		image.Found = "not present, and not needed where the packages can be had"
		if text := pullNote(cache, registryImage(Version)); text != "" {
			image.Found = "not present: " + text
		}
	}
	facts = append(facts, image)
	r, err := releaseOf(Version)
	if err != nil {
		return facts
	}
	if t, ok := cached(cache, r); ok {
		own := Fact{Name: "image of the packages", Found: "not built", Next: "oracle image"}
		if ok, err := d.Has(ctx, t.image()); err == nil && ok {
			own = Fact{Name: own.Name, OK: true, Found: t.image()}
		}
		facts = append(facts, own)
	}
	return facts
}

// passOver notes that an nginx is another build than the proxy follows, and how to take it all the same.
func (f *Fact) passOver(ctx context.Context, o engine.Options, how string) {
	if why := examine(ctx, o); why != "" {
		f.OK, f.Found, f.Next = false, f.Found+", passed over: another build ("+why+")", how+" takes it all the same"
	}
}

func packagesFact(cache string) Fact {
	f := Fact{Name: "Debian's packages"}
	r, err := releaseOf(Version)
	if err != nil {
		f.Found = err.Error()
		return f
	}
	if t, ok := cached(cache, r); ok {
		f.OK, f.Found = true, "nginx "+t.version+" in "+filepath.Dir(t.root)
		return f
	}
	m := findMirror("/etc/apt")
	if tool.Look("apt-get") == "" || tool.Look("dpkg-deb") == "" {
		f.Found, f.Next = "apt-get or dpkg-deb is missing", "use a Debian system, or Docker"
		return f
	}
	f.OK = true
	f.Found = fmt.Sprintf("not fetched yet; will come from %s (%s), suite %s", m.uri, m.from, r.suite)
	return f
}

func toolFacts() []Fact {
	var all []Fact
	for _, t := range []struct{ name, pkg, use string }{
		{"strace", "strace", "oracle bench counts system calls with it"},
		{"wrk", "wrk", "oracle bench drives HTTP/1.1 with it"},
		{"h2load", "nghttp2-client", "oracle bench drives HTTP/2 with it"},
	} {
		f := Fact{Name: t.name, Extra: true, Needs: t.use, Found: tool.Look(t.name)}
		if f.OK = f.Found != ""; !f.OK {
			f.Found, f.Next = "not found", "apt-get install "+t.pkg
		}
		all = append(all, f)
	}
	return all
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", " ") }
