package reference

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nginxoracle/oracle/engine"
)

// The proxy follows one build of nginx: Debian 13's, which has a directive more than nginx has (max_headers) and
// paths of its own. What differs there differs in every other build, nginx.org's too.
const (
	follows    = "nginx/1.26.3"
	patchConf  = "events {}\nhttp { max_headers 5; }\n"
	configured = "configure arguments:"
)

// followsArgs are the configure arguments by which that build is known, as -V prints them.
var followsArgs = []string{
	"--prefix=/usr/share/nginx",
	"--conf-path=/etc/nginx/nginx.conf",
	"--http-log-path=/var/log/nginx/access.log",
	"--error-log-path=stderr",
	"--pid-path=/run/nginx.pid",
	"--http-client-body-temp-path=/var/lib/nginx/body",
	"--http-proxy-temp-path=/var/lib/nginx/proxy",
}

// differs says in what a server's -V is not of the build that the proxy follows; "" where nothing tells.
func differs(v string) string {
	first, _, _ := strings.Cut(v, "\n")
	if name := strings.TrimPrefix(first, "nginx version: "); name != follows {
		return "it is " + name
	}
	_, args, ok := strings.Cut(v, configured)
	if !ok {
		return "it does not say how it was configured"
	}
	words := strings.Fields(args)
	for _, want := range followsArgs {
		if !slices.Contains(words, want) {
			return "it was not configured with " + want
		}
	}
	return ""
}

// examine opens a cell for a target and says in what it is not the build that the proxy follows; "" when it is that.
func examine(ctx context.Context, o engine.Options) string {
	c, err := engine.Open(ctx, o)
	if err != nil {
		return "it cannot be asked: " + oneLine(err)
	}
	why, err := unlike(ctx, c)
	if end := c.Close(); err == nil {
		err = end
	}
	if err != nil {
		return "it cannot be asked: " + oneLine(err)
	}
	return why
}

func unlike(ctx context.Context, c engine.Cell) (string, error) {
	if why := differs(c.Info().V); why != "" {
		return why, nil
	}
	if err := c.Reset(ctx, []engine.File{{Path: "nginx.conf", Data: []byte(patchConf)}}); err != nil {
		return "", err
	}
	out, err := c.Command(ctx, "-p", "/cell/", "-c", "/cell/nginx.conf", "-e", "stderr", "-t")
	if err != nil {
		return "", err
	}
	if !out.Exit.Exited || out.Exit.Code != 0 {
		return "it has no max_headers", nil
	}
	return "", nil
}

// source is one way to get an nginx.
type source string

const (
	theImage      source = "the image that is here"
	pulledImage   source = "the image, pulled"
	theProgram    source = "the nginx on PATH"
	packagesLocal source = "Debian's packages in a local cell"
	packagesBuilt source = "Debian's packages as an image"
)

// here is what a machine has.
type here struct {
	docker, spaces bool   // can containers, local cells be had
	image, program bool   // is the image nginx:VERSION, an nginx of that version on PATH here
	imageOther     string // in what they are another build; "" when they are the one that the proxy follows
	programOther   string
}

// order lists the ways that are tried for a kind of cell, best first. anyBuild: a person asked for this
// version by name. Otherwise another build than the proxy follows is taken only where that cannot be had.
func order(kind string, h here, anyBuild bool) (list []source) {
	add := func(ok bool, s source) {
		if ok && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	containers, local := h.docker && kind != engine.Local, h.spaces && kind != engine.Container || kind == engine.Local
	add(containers && h.image && (anyBuild || h.imageOther == ""), theImage)
	add(containers && anyBuild, pulledImage)
	add(local && h.program && (anyBuild || h.programOther == ""), theProgram)
	add(local, packagesLocal)
	add(containers && !local, packagesBuilt)
	add(containers && h.image, theImage)
	add(containers && !h.image, pulledImage)
	add(local && h.program, theProgram)
	return list
}

// warning tells of a reference that is another build than the proxy follows.
func warning(what, why string) string {
	return fmt.Sprintf("warning: %s is another build of nginx than the proxy follows (%s): expect differences that are no faults", what, why)
}
