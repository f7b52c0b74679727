package core

import (
	"maps"
	"slices"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// setTypes reads types { text/html html; } (ngx_http_core_types).
func setTypes(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*http.CoreLoc)
	if c.Types == nil {
		c.Types = map[string]string{}
	}
	saved := *cf
	cf.Handler = func(cf *module.Conf) error { return addType(cf, c) }
	err := cf.ReadBlock()
	cf.Handler, cf.Args = saved.Handler, saved.Args
	return err
}

func addType(cf *module.Conf, c *http.CoreLoc) error {
	if module.Is(cf.Args[0], "include") {
		if len(cf.Args) != 2 {
			return cf.Emerg(`invalid number of arguments in "include" directive`)
		}
		return cf.Include(cf.Args[1])
	}
	for _, ext := range cf.Args[1:] {
		ext = ascii.Lower(ext)
		if key, dup := module.Same(c.Types, ext); dup {
			cf.Warn(`duplicate extension "%s", content type: "%s", previous content type: "%s"`, ext, cf.Args[0], c.Types[key])
			ext = key
		}
		c.Types[ext] = cf.Args[0]
	}
	return nil
}

var defaultTypes = map[string]string{"html": "text/html", "gif": "image/gif", "jpg": "image/jpeg"}

func mergeTypes(cf *module.Conf, prev, conf *http.CoreLoc) error {
	module.MergeInt(&conf.TypesHashMaxSize, prev.TypesHashMaxSize, 1024)
	module.MergeInt(&conf.TypesHashBucketSize, prev.TypesHashBucketSize, 64)
	conf.TypesHashBucketSize = http.AlignLine(conf.TypesHashBucketSize)
	limits := http.HashLimits{Name: "types_hash", Max: conf.TypesHashMaxSize, BucketSize: conf.TypesHashBucketSize}
	check := func(c *http.CoreLoc) error {
		c.TypesChecked = true
		return limits.Check(cf, slices.Sorted(maps.Keys(c.Types)))
	}
	if prev.Types != nil && !prev.TypesChecked {
		if err := check(prev); err != nil {
			return err
		}
	}
	if conf.Types == nil {
		conf.Types, conf.TypesChecked = prev.Types, prev.TypesChecked
	}
	if conf.Types == nil {
		conf.Types = defaultTypes
	}
	if conf.TypesChecked {
		return nil
	}
	return check(conf)
}
