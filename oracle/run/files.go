package run

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/observe"
)

// DefaultMTime is the time of every file that the case gives none, so that
// Last-Modified, ETag and listings are the same for every target and run.
var DefaultMTime = time.Unix(1700000000, 0).UTC()

// LogDir is made in every work tree: the default logs are written there.
const LogDir = "logs"

// setAside takes the instruments' files out of what a cell holds.
func setAside(o *observe.Observation, files []engine.File) (rest []engine.File) {
	for _, f := range files {
		if strings.HasPrefix(f.Path, engine.AsideDir+"/") {
			o.Aside = append(o.Aside, f)
			continue
		}
		rest = append(rest, f)
	}
	return rest
}

// tree lists the work tree of c as an engine takes it: every folder spelled out, an
// origin's socket's too, modes and times filled in.
func tree(c *casefile.Case) []engine.File {
	var files []engine.File
	have := map[string]bool{}
	var dir func(p string)
	dir = func(p string) {
		if p == "." || have[p] {
			return
		}
		dir(path.Dir(p))
		have[p] = true
		files = append(files, engine.File{Path: p, Dir: true, Mode: 0o755, MTime: DefaultMTime.Unix()})
	}
	for i := range c.Files {
		f := &c.Files[i]
		dir(path.Dir(f.Path))
		e := engine.File{Path: f.Path, Data: f.Data, Mode: uint32(f.Mode), Link: f.Link, Dir: f.Dir, MTime: DefaultMTime.Unix()}
		if !f.MTime.IsZero() {
			e.MTime = f.MTime.Unix()
		}
		switch {
		case f.Link != "":
			e.Mode = 0
		case e.Mode == 0 && f.Dir:
			e.Mode = 0o755
		case e.Mode == 0:
			e.Mode = 0o644
		}
		if f.Dir && have[f.Path] { // an entry before this one has made it as a parent
			i := slices.IndexFunc(files, func(x engine.File) bool { return x.Path == f.Path })
			files[i] = e
			continue
		}
		have[f.Path] = true
		files = append(files, e)
	}
	dir(LogDir)
	for _, o := range c.Origins {
		if p, ok := strings.CutPrefix(o.Addr, "unix:"); ok && !strings.HasPrefix(treePath(p), "/") {
			dir(path.Dir(treePath(p)))
		}
	}
	return files
}

// treeAge is more than the time for which a server takes a file for just written, whose times may not tell its next
// change: it keeps nothing of such a file. A change's time (ctime) cannot be set, so it is waited for.
const treeAge = 120 * time.Millisecond

// age waits until the documents of a started server's work tree are treeAge old.
func (r *Running) age(ctx context.Context) error {
	document := func(f casefile.File) bool { return !f.Dir && f.Link == "" && path.Ext(f.Path) != ".conf" }
	if r.srv == nil || !slices.ContainsFunc(r.c.Files, document) {
		return nil
	}
	if left := treeAge - time.Since(r.wrote); left > 0 {
		if err := r.player.Pause(ctx, left); err != nil {
			return r.errorf("let the work tree grow older", err)
		}
	}
	r.spent("age")
	return nil
}

// treePath makes a path as written in a configuration what the work tree calls it:
// relative to /cell, or absolute when it lies elsewhere.
func treePath(name string) string {
	if !strings.HasPrefix(name, "/") {
		name = "/cell/" + name
	}
	return strings.TrimPrefix(path.Clean(name), "/cell/")
}
