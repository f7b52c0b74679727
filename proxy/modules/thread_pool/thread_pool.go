// Package thread_pool is the thread_pool directive (nginx: src/core/ngx_thread_pool.c). A pool serves
// nothing but aio threads, which is refused, so that its threads are never asked for: what is left
// of a pool is its name and what nginx says of its parameters.
package thread_pool

import (
	"strconv"
	"strings"

	"nginxoracle/proxy/module"
)

// most is the number of threads up to which every machine can start them. More may fail when a worker
// starts, which nobody would see of threads that are not there.
const most = 256

// Conf is the names of the pools (ngx_thread_pool_conf_t).
type Conf struct{ Pools map[string]bool }

// Set is ngx_thread_pool_module.
var Set = &module.Set{
	Name: "ngx_thread_pool_module", Type: module.CoreModule,
	Create: func(*module.Cycle) any { return &Conf{Pools: map[string]bool{}} },
}

func init() {
	Set.Conf = module.Core(Set)
	Set.Directives = []module.Directive{
		{Name: "thread_pool", Where: module.Main | module.Direct, Args: module.Take23, Set: setPool},
	}
}

func setPool(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*Conf)
	name := cf.Args[1]
	if c.Pools[name] {
		return cf.Emerg(`duplicate thread pool "%s"`, name)
	}
	c.Pools[name] = true
	threads := 0
	for _, arg := range cf.Args[2:] {
		var ok bool
		if v, is := strings.CutPrefix(arg, "threads="); is {
			if threads, ok = module.Atoi(v); !ok || threads == 0 {
				return cf.Emerg(`invalid threads value "%s"`, arg)
			}
		} else if v, is := strings.CutPrefix(arg, "max_queue="); is {
			if _, ok = module.Atoi(v); !ok {
				return cf.Emerg(`invalid max_queue value "%s"`, arg)
			}
		}
	}
	switch {
	case threads == 0:
		return cf.Emerg(`"%s" must have "threads" parameter`, cmd.Name)
	case threads > most:
		return cf.NotSupported("thread_pool threads=" + strconv.Itoa(threads))
	}
	return nil
}
