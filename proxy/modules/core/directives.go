package core

import (
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

const (
	main = module.HTTPMain
	srv  = module.HTTPMain | module.HTTPSrv
	loc  = module.HTTPMain | module.HTTPSrv | module.HTTPLoc
	lif  = loc | module.HTTPLif
)

type (
	mainConf = http.CoreMain
	srvConf  = http.CoreSrv
	locConf  = http.CoreLoc
	field    = func(c *locConf) *int
)

func flag(name string, where module.Where, at field) module.Directive {
	return module.Directive{Name: name, Where: where, Args: module.Flag, Level: module.LocConf, Set: module.FlagSlot(at)}
}

func num(name string, at field) module.Directive {
	return module.Directive{Name: name, Where: loc, Args: module.Take1, Level: module.LocConf, Set: module.NumSlot(at)}
}

func enum(name string, at field, table []module.Enum) module.Directive {
	return module.Directive{Name: name, Where: loc, Args: module.Take1, Level: module.LocConf, Set: module.EnumSlot(at, table)}
}

func msec(name string, at func(c *locConf) *int64) module.Directive {
	return module.Directive{Name: name, Where: loc, Args: module.Take1, Level: module.LocConf, Set: module.MsecSlot(at)}
}

func size(name string, at func(c *locConf) *int64) module.Directive {
	return module.Directive{Name: name, Where: loc, Args: module.Take1, Level: module.LocConf, Set: module.SizeSlot(at)}
}

func mainNum(name string, at func(c *mainConf) *int) module.Directive {
	return module.Directive{Name: name, Where: main, Args: module.Take1, Level: module.MainConf, Set: module.NumSlot(at)}
}

func srvSize(name string, at func(c *srvConf) *int64, post any) module.Directive {
	return module.Directive{Name: name, Where: srv, Args: module.Take1, Level: module.SrvConf, Set: module.SizeSlot(at), Post: post}
}

func srvFlag(name string, at func(c *srvConf) *int) module.Directive {
	return module.Directive{Name: name, Where: srv, Args: module.Flag, Level: module.SrvConf, Set: module.FlagSlot(at)}
}

var directives = []module.Directive{
	mainNum("variables_hash_max_size", func(c *mainConf) *int { return &c.VariablesHashMaxSize }),
	mainNum("variables_hash_bucket_size", func(c *mainConf) *int { return &c.VariablesHashBucketSize }),
	mainNum("server_names_hash_max_size", func(c *mainConf) *int { return &c.ServerNamesHashMaxSize }),
	mainNum("server_names_hash_bucket_size", func(c *mainConf) *int { return &c.ServerNamesHashBucketSize }),
	{Name: "server", Where: main, Args: module.Block | module.NoArgs, Set: http.ServerBlock},
	srvSize("connection_pool_size", func(c *srvConf) *int64 { return &c.ConnectionPoolSize }, poolSize),
	srvSize("request_pool_size", func(c *srvConf) *int64 { return &c.RequestPoolSize }, poolSize),
	{Name: "client_header_timeout", Where: srv, Args: module.Take1, Level: module.SrvConf,
		Set: module.MsecSlot(func(c *srvConf) *int64 { return &c.ClientHeaderTimeout })},
	srvSize("client_header_buffer_size", func(c *srvConf) *int64 { return &c.ClientHeaderBufferSize }, nil),
	{Name: "large_client_header_buffers", Where: srv, Args: module.Take2, Level: module.SrvConf,
		Set: module.BufsSlot(func(c *srvConf) *module.Bufs { return &c.LargeClientHeaderBuffers })},
	srvFlag("ignore_invalid_headers", func(c *srvConf) *int { return &c.IgnoreInvalidHeaders }),
	srvFlag("merge_slashes", func(c *srvConf) *int { return &c.MergeSlashes }),
	srvFlag("underscores_in_headers", func(c *srvConf) *int { return &c.UnderscoresInHeaders }),
	{Name: "location", Where: module.HTTPSrv | module.HTTPLoc, Args: module.Block | module.Take12, Set: location},
	{Name: "listen", Where: module.HTTPSrv, Args: module.OneMore, Level: module.SrvConf, Set: listen},
	{Name: "server_name", Where: module.HTTPSrv, Args: module.OneMore, Level: module.SrvConf, Set: serverName},
	num("types_hash_max_size", func(c *locConf) *int { return &c.TypesHashMaxSize }),
	num("types_hash_bucket_size", func(c *locConf) *int { return &c.TypesHashBucketSize }),
	{Name: "types", Where: loc, Args: module.Block | module.NoArgs, Level: module.LocConf, Set: setTypes},
	{Name: "default_type", Where: loc, Args: module.Take1, Level: module.LocConf,
		Set: module.StrSlot(func(c *locConf) *module.Str { return &c.DefaultType })},
	{Name: "root", Where: lif, Args: module.Take1, Level: module.LocConf, Set: setRoot},
	{Name: "alias", Where: module.HTTPLoc, Args: module.Take1, Level: module.LocConf, Set: setRoot},
	{Name: "limit_except", Where: module.HTTPLoc, Args: module.Block | module.OneMore, Level: module.LocConf, Set: limitExcept},
	{Name: "client_max_body_size", Where: loc, Args: module.Take1, Level: module.LocConf,
		Set: module.OffSlot(func(c *locConf) *int64 { return &c.ClientMaxBodySize })},
	size("client_body_buffer_size", func(c *locConf) *int64 { return &c.ClientBodyBufferSize }),
	msec("client_body_timeout", func(c *locConf) *int64 { return &c.ClientBodyTimeout }),
	{Name: "client_body_temp_path", Where: loc, Args: module.Take1234, Level: module.LocConf,
		Set: module.PathSlot(func(c *locConf) **module.Path { return &c.ClientBodyTempPath })},
	enum("client_body_in_file_only", func(c *locConf) *int { return &c.ClientBodyInFileOnly }, []module.Enum{
		{Name: "off", Value: http.BodyFileOff}, {Name: "on", Value: http.BodyFileOn}, {Name: "clean", Value: http.BodyFileClean}}),
	flag("client_body_in_single_buffer", loc, func(c *locConf) *int { return &c.ClientBodyInSingleBuffer }),
	flag("sendfile", lif, func(c *locConf) *int { return &c.Sendfile }),
	size("sendfile_max_chunk", func(c *locConf) *int64 { return &c.SendfileMaxChunk }),
	size("subrequest_output_buffer_size", func(c *locConf) *int64 { return &c.SubrequestOutputBufferSize }),
	{Name: "aio", Where: loc, Args: module.Take1, Level: module.LocConf, Set: setAio},
	flag("aio_write", loc, func(c *locConf) *int { return &c.AioWrite }),
	size("read_ahead", func(c *locConf) *int64 { return &c.ReadAhead }),
	{Name: "directio", Where: loc, Args: module.Take1, Level: module.LocConf, Set: setDirectio},
	{Name: "directio_alignment", Where: loc, Args: module.Take1, Level: module.LocConf,
		Set: module.OffSlot(func(c *locConf) *int64 { return &c.DirectioAlignment })},
	flag("tcp_nopush", loc, func(c *locConf) *int { return &c.TCPNopush }),
	flag("tcp_nodelay", loc, func(c *locConf) *int { return &c.TCPNodelay }),
	msec("send_timeout", func(c *locConf) *int64 { return &c.SendTimeout }),
	size("postpone_output", func(c *locConf) *int64 { return &c.PostponeOutput }),
	{Name: "limit_rate", Where: lif, Args: module.Take1, Level: module.LocConf,
		Set: http.ComplexSizeSlot(func(c *locConf) **http.ComplexValue { return &c.LimitRateValue })},
	{Name: "limit_rate_after", Where: lif, Args: module.Take1, Level: module.LocConf,
		Set: http.ComplexSizeSlot(func(c *locConf) **http.ComplexValue { return &c.LimitRateAfterValue })},
	msec("keepalive_time", func(c *locConf) *int64 { return &c.KeepaliveTime }),
	{Name: "keepalive_timeout", Where: loc, Args: module.Take12, Level: module.LocConf, Set: keepaliveTimeout},
	num("keepalive_requests", func(c *locConf) *int { return &c.KeepaliveRequests }),
	{Name: "keepalive_disable", Where: loc, Args: module.Take12, Level: module.LocConf,
		Set: module.BitmaskSlot(func(c *locConf) *int { return &c.KeepaliveDisable }, []module.Enum{
			{Name: "none", Value: http.KeepaliveDisableNone}, {Name: "msie6", Value: http.KeepaliveDisableMSIE6},
			{Name: "safari", Value: http.KeepaliveDisableSafari}})},
	enum("satisfy", func(c *locConf) *int { return &c.Satisfy }, []module.Enum{
		{Name: "all", Value: http.SatisfyAll}, {Name: "any", Value: http.SatisfyAny}}),
	msec("auth_delay", func(c *locConf) *int64 { return &c.AuthDelay }),
	{Name: "internal", Where: module.HTTPLoc, Args: module.NoArgs, Level: module.LocConf, Set: internal},
	enum("lingering_close", func(c *locConf) *int { return &c.LingeringClose }, []module.Enum{
		{Name: "off", Value: http.LingeringOff}, {Name: "on", Value: http.LingeringOn}, {Name: "always", Value: http.LingeringAlways}}),
	msec("lingering_time", func(c *locConf) *int64 { return &c.LingeringTime }),
	msec("lingering_timeout", func(c *locConf) *int64 { return &c.LingeringTimeout }),
	flag("reset_timedout_connection", loc, func(c *locConf) *int { return &c.ResetTimedoutConnection }),
	flag("absolute_redirect", loc, func(c *locConf) *int { return &c.AbsoluteRedirect }),
	flag("server_name_in_redirect", loc, func(c *locConf) *int { return &c.ServerNameInRedirect }),
	flag("port_in_redirect", loc, func(c *locConf) *int { return &c.PortInRedirect }),
	flag("msie_padding", loc, func(c *locConf) *int { return &c.MsiePadding }),
	flag("msie_refresh", loc, func(c *locConf) *int { return &c.MsieRefresh }),
	flag("log_not_found", loc, func(c *locConf) *int { return &c.LogNotFound }),
	flag("log_subrequest", loc, func(c *locConf) *int { return &c.LogSubrequest }),
	flag("recursive_error_pages", loc, func(c *locConf) *int { return &c.RecursiveErrorPages }),
	enum("server_tokens", func(c *locConf) *int { return &c.ServerTokens }, []module.Enum{
		{Name: "off", Value: http.TokensOff}, {Name: "on", Value: http.TokensOn}, {Name: "build", Value: http.TokensBuild}}),
	enum("if_modified_since", func(c *locConf) *int { return &c.IfModifiedSince }, []module.Enum{
		{Name: "off", Value: http.IMSOff}, {Name: "exact", Value: http.IMSExact}, {Name: "before", Value: http.IMSBefore}}),
	num("max_ranges", func(c *locConf) *int { return &c.MaxRanges }),
	flag("chunked_transfer_encoding", loc, func(c *locConf) *int { return &c.ChunkedTransferEncoding }),
	flag("etag", loc, func(c *locConf) *int { return &c.Etag }),
	{Name: "error_page", Where: lif, Args: module.TwoMore, Level: module.LocConf, Set: errorPage},
	{Name: "post_action", Where: lif, Args: module.Take1, Level: module.LocConf, Set: postAction},
	{Name: "error_log", Where: loc, Args: module.OneMore, Level: module.LocConf, Set: errorLog},
	{Name: "open_file_cache", Where: loc, Args: module.Take12, Level: module.LocConf, Set: openFileCache},
	{Name: "open_file_cache_valid", Where: loc, Args: module.Take1, Level: module.LocConf,
		Set: module.SecSlot(func(c *locConf) *int64 { return &c.OpenFileCacheValid })},
	num("open_file_cache_min_uses", func(c *locConf) *int { return &c.OpenFileCacheMinUses }),
	flag("open_file_cache_errors", loc, func(c *locConf) *int { return &c.OpenFileCacheErrors }),
	flag("open_file_cache_events", loc, func(c *locConf) *int { return &c.OpenFileCacheEvents }),
	{Name: "resolver", Where: loc, Args: module.OneMore, Level: module.LocConf, Set: setResolver},
	msec("resolver_timeout", func(c *locConf) *int64 { return &c.ResolverTimeout }),
	flag("gzip_vary", loc, func(c *locConf) *int { return &c.GzipVary }),
	enum("gzip_http_version", func(c *locConf) *int { return &c.GzipHTTPVersion }, []module.Enum{
		{Name: "1.0", Value: http.HTTP10}, {Name: "1.1", Value: http.HTTP11}}),
	{Name: "gzip_proxied", Where: loc, Args: module.OneMore, Level: module.LocConf,
		Set: module.BitmaskSlot(func(c *locConf) *int { return &c.GzipProxied }, gzipProxied)},
	{Name: "gzip_disable", Where: loc, Args: module.OneMore, Level: module.LocConf, Set: gzipDisable},
	{Name: "send_lowat", Where: loc, Args: module.Take1, Level: module.LocConf, Set: sendLowat},
	{Name: "disable_symlinks", Where: loc, Args: module.Take12, Level: module.LocConf, Set: disableSymlinks},
}

var gzipProxied = []module.Enum{
	{Name: "off", Value: gzipProxiedOff}, {Name: "expired", Value: 4}, {Name: "no-cache", Value: 8},
	{Name: "no-store", Value: 16}, {Name: "private", Value: 32}, {Name: "no_last_modified", Value: 64},
	{Name: "no_etag", Value: 128}, {Name: "auth", Value: 256}, {Name: "any", Value: 512},
}
