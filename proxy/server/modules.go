package server

import (
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/modules/access"
	"nginxoracle/proxy/modules/addition"
	"nginxoracle/proxy/modules/auth_basic"
	"nginxoracle/proxy/modules/autoindex"
	"nginxoracle/proxy/modules/charset"
	"nginxoracle/proxy/modules/core"
	"nginxoracle/proxy/modules/empty_gif"
	"nginxoracle/proxy/modules/events"
	"nginxoracle/proxy/modules/geo"
	"nginxoracle/proxy/modules/gunzip"
	"nginxoracle/proxy/modules/gzip"
	"nginxoracle/proxy/modules/gzip_static"
	"nginxoracle/proxy/modules/header_count"
	"nginxoracle/proxy/modules/headers"
	"nginxoracle/proxy/modules/index"
	"nginxoracle/proxy/modules/limit_conn"
	"nginxoracle/proxy/modules/limit_req"
	"nginxoracle/proxy/modules/log"
	main_ "nginxoracle/proxy/modules/main"
	mapmod "nginxoracle/proxy/modules/map"
	"nginxoracle/proxy/modules/mirror"
	"nginxoracle/proxy/modules/not_modified"
	"nginxoracle/proxy/modules/proxy"
	"nginxoracle/proxy/modules/random_index"
	"nginxoracle/proxy/modules/range_filter"
	"nginxoracle/proxy/modules/realip"
	"nginxoracle/proxy/modules/referer"
	"nginxoracle/proxy/modules/regex"
	"nginxoracle/proxy/modules/rewrite"
	"nginxoracle/proxy/modules/secure_link"
	"nginxoracle/proxy/modules/slice"
	"nginxoracle/proxy/modules/split_clients"
	"nginxoracle/proxy/modules/static"
	"nginxoracle/proxy/modules/stub_status"
	"nginxoracle/proxy/modules/sub_filter"
	"nginxoracle/proxy/modules/thread_pool"
	"nginxoracle/proxy/modules/try_files"
	"nginxoracle/proxy/modules/upstream"
	"nginxoracle/proxy/modules/upstream_hash"
	"nginxoracle/proxy/modules/upstream_ip_hash"
	"nginxoracle/proxy/modules/upstream_keepalive"
	"nginxoracle/proxy/modules/upstream_least_conn"
	"nginxoracle/proxy/modules/upstream_random"
	"nginxoracle/proxy/modules/upstream_zone"
)

// httpModules are the http modules in nginx's order, which decides the order of phase handlers and
// filters (a later module's run before an earlier's): the modules proper, then the filters
// (auto/modules; objs/ngx_modules.c of the Debian build).
var httpModules = []*http.Module{
	core.Module,
	log.Module,
	header_count.Module,
	upstream.Module,

	static.Module,
	gzip_static.Module,
	// dav
	autoindex.Module,
	index.Module,
	random_index.Module,
	mirror.Module,
	try_files.Module,
	// auth_request
	auth_basic.Module,
	access.Module,
	limit_conn.Module,
	limit_req.Module,
	realip.Module,
	geo.Module,
	mapmod.Module,
	split_clients.Module,
	referer.Module,
	rewrite.Module,
	// ssl
	proxy.Module,
	// fastcgi, uwsgi, scgi, grpc, memcached
	empty_gif.Module,
	// browser
	secure_link.Module,
	// flv, mp4
	upstream_hash.Module,
	upstream_ip_hash.Module,
	upstream_least_conn.Module,
	upstream_random.Module,
	upstream_keepalive.Module,
	upstream_zone.Module,
	stub_status.Module,

	http.WriteFilterModule,
	http.HeaderFilterModule,
	http.ChunkedFilterModule,
	range_filter.Header,
	gzip.Module,
	http.PostponeFilterModule,
	// ssi
	charset.Module,
	sub_filter.Module,
	addition.Module,
	gunzip.Module,
	// userid
	headers.Module,
	http.CopyFilterModule,
	range_filter.Body,
	not_modified.Module,
	slice.Module,
}

// refused is the name of the sets of what is not supported.
const refused = "not supported"

// moduleSets are all modules as the reader of configurations sees them.
func moduleSets() []*module.Set {
	sets := []*module.Set{main_.Set, main_.Errlog, module.IncludeSet, events.Set, events.Core, events.Epoll, httpSet, regex.Set, thread_pool.Set}
	for _, m := range http.Modules {
		sets = append(sets, &module.Set{Name: m.Name, Type: module.HTTPModule, Directives: m.Directives, Conf: httpConf(m.Index)})
	}
	return append(sets, refusals(sets)...)
}

// httpConf finds an http module's configuration of a directive's level.
func httpConf(index int) func(cf *module.Conf, cmd *module.Directive) any {
	return func(cf *module.Conf, cmd *module.Directive) any {
		ctx, ok := cf.Ctx.(*http.ConfCtx)
		if !ok {
			return nil
		}
		var level []any
		switch cmd.Level {
		case module.MainConf:
			level = ctx.Main
		case module.SrvConf:
			level = ctx.Srv
		case module.LocConf:
			level = ctx.Loc
		}
		if level == nil {
			return nil
		}
		return level[index]
	}
}

// httpSet is ngx_http_module: the http block.
var httpSet = &module.Set{Name: "ngx_http_module", Type: module.CoreModule}

func init() {
	httpSet.Directives = []module.Directive{{
		Name: "http", Where: module.Main, Args: module.Block | module.NoArgs,
		Set: func(cf *module.Conf, _ *module.Directive, _ any) error {
			if cf.Cycle.Confs[httpSet] != nil {
				return module.ErrDuplicate
			}
			cf.Cycle.Used = true
			cf.Cycle.Confs[httpSet] = true
			ctx, err := http.Block(cf)
			if err != nil {
				return err
			}
			cf.Cycle.Confs[httpSet] = ctx
			return nil
		},
	}}
}
