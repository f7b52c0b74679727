package run

import (
	"bytes"
	"path"
	"slices"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// A server is kept in the foreground, where its agent watches it: with "daemon off;" on its command line, unless the
// configuration says something of it, which nginx then takes for a second time.

// daemon finds what a configuration says of daemon, outside of all blocks: the file, the directive (nil where a text that
// cannot be cut into directives has the word), and whether there is anything.
func daemon(c *casefile.Case) (f *casefile.File, n *conftree.Node, said bool) {
	for _, f := range loaded(c) {
		if !bytes.Contains(f.Data, []byte(daemonWord.name)) { // the usual case, and no batch is cut up for it
			continue
		}
		top, err := conftree.Parse(f.Data)
		if err != nil && daemonWord.in(f.Data) {
			return f, nil, true
		}
		for _, n := range top {
			if n.Name() == daemonWord.name {
				return f, n, true
			}
		}
	}
	return nil, nil, false
}

// loaded are nginx.conf and what it includes, in no particular order.
func loaded(c *casefile.Case) []*casefile.File {
	var list []*casefile.File
	add := func(f *casefile.File) {
		if f != nil && f.Data != nil && !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	add(c.File("nginx.conf"))
	for i := 0; i < len(list); i++ { // list grows
		includeWord.each(list[i].Data, func(groups [][]byte) bool {
			pattern := treePath(string(groups[1]))
			for k := range c.Files {
				if ok, err := path.Match(pattern, c.Files[k].Path); err == nil && ok {
					add(&c.Files[k])
				}
			}
			return true
		})
	}
	return list
}
