// Package core is ngx_http_core_module: the blocks of http, servers and locations, and the
// settings that every request obeys (src/http/ngx_http_core_module.c).
package core

import (
	"os"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_core_module; it is the first of the http modules.
var Module = &http.Module{
	Name:       "ngx_http_core_module",
	Directives: directives,
	Preconf:    http.AddCoreVariables,
	CreateMain: createMain,
	InitMain:   initMain,
	CreateSrv:  createSrv,
	MergeSrv:   mergeSrv,
	CreateLoc:  createLoc,
	MergeLoc:   mergeLoc,
}

const unset = module.Unset

func createMain(cf *module.Conf) any {
	return &http.CoreMain{
		Prefix: cf.Cycle.Prefix, Hostname: cf.Cycle.Hostname,
		ServerNamesHashMaxSize: unset, ServerNamesHashBucketSize: unset,
		VariablesHashMaxSize: unset, VariablesHashBucketSize: unset,
	}
}

const cacheLine = 64

func initMain(cf *module.Conf, conf any) error {
	c := conf.(*http.CoreMain)
	module.InitInt(&c.ServerNamesHashMaxSize, 512)
	module.InitInt(&c.ServerNamesHashBucketSize, cacheLine)
	c.ServerNamesHashBucketSize = http.AlignLine(c.ServerNamesHashBucketSize)
	module.InitInt(&c.VariablesHashMaxSize, 1024)
	module.InitInt(&c.VariablesHashBucketSize, 64)
	c.VariablesHashBucketSize = http.AlignLine(c.VariablesHashBucketSize)
	return nil
}

func createSrv(cf *module.Conf) any {
	return &http.CoreSrv{
		ConnectionPoolSize: unset, RequestPoolSize: unset, ClientHeaderBufferSize: unset,
		ClientHeaderTimeout:  unset,
		MaxHeaders:           http.DefaultMaxHeaders,
		IgnoreInvalidHeaders: unset, MergeSlashes: unset, UnderscoresInHeaders: unset,
		File: cf.File(), Line: cf.Line(),
	}
}

func mergeSrv(cf *module.Conf, prevAny, confAny any) error {
	prev, conf := prevAny.(*http.CoreSrv), confAny.(*http.CoreSrv)
	module.MergeInt64(&conf.ConnectionPoolSize, prev.ConnectionPoolSize, 64*8)
	module.MergeInt64(&conf.RequestPoolSize, prev.RequestPoolSize, 4096)
	module.MergeInt64(&conf.ClientHeaderTimeout, prev.ClientHeaderTimeout, 60000)
	module.MergeInt64(&conf.ClientHeaderBufferSize, prev.ClientHeaderBufferSize, 1024)
	module.MergeBufs(&conf.LargeClientHeaderBuffers, prev.LargeClientHeaderBuffers, 4, 8192)
	if conf.LargeClientHeaderBuffers.Size < conf.ConnectionPoolSize {
		return cf.Emerg(`the "large_client_header_buffers" size must be equal to or greater than "connection_pool_size"`)
	}
	module.MergeInt(&conf.IgnoreInvalidHeaders, prev.IgnoreInvalidHeaders, 1)
	module.MergeInt(&conf.MergeSlashes, prev.MergeSlashes, 1)
	module.MergeInt(&conf.UnderscoresInHeaders, prev.UnderscoresInHeaders, 0)

	if len(conf.Names) == 0 {
		conf.Names = []http.ServerName{{Srv: conf}}
	}
	name := conf.Names[0]
	switch conf.ServerName = name.Name; {
	case name.Regex != nil:
		conf.ServerName = "~" + name.Name
	case name.Name != "" && name.Name[0] == '.':
		conf.ServerName = name.Name[1:]
	}
	return nil
}

func createLoc(cf *module.Conf) any {
	return &http.CoreLoc{
		ClientMaxBodySize: unset, ClientBodyBufferSize: unset, ClientBodyTimeout: unset,
		Satisfy: unset, AuthDelay: unset, IfModifiedSince: unset, MaxRanges: unset,
		ClientBodyInFileOnly: unset, ClientBodyInSingleBuffer: unset, Internal: unset,
		Sendfile: unset, SendfileMaxChunk: unset, SubrequestOutputBufferSize: unset,
		Aio: unset, AioWrite: unset, ReadAhead: unset, Directio: unset, DirectioAlignment: unset,
		TCPNopush: unset, TCPNodelay: unset, SendTimeout: unset, PostponeOutput: unset,
		KeepaliveTime: unset, KeepaliveTimeout: unset, KeepaliveHeader: unset, KeepaliveRequests: unset,
		LingeringClose: unset, LingeringTime: unset, LingeringTimeout: unset, ResolverTimeout: unset,
		ResetTimedoutConnection: unset, AbsoluteRedirect: unset, ServerNameInRedirect: unset, PortInRedirect: unset,
		MsiePadding: unset, MsieRefresh: unset, LogNotFound: unset, LogSubrequest: unset,
		RecursiveErrorPages: unset, ChunkedTransferEncoding: unset, Etag: unset, ServerTokens: unset,
		TypesHashMaxSize: unset, TypesHashBucketSize: unset,
		OpenFileCacheValid: unset, OpenFileCacheMinUses: unset, OpenFileCacheErrors: unset, OpenFileCacheEvents: unset,
		GzipVary: unset, GzipHTTPVersion: unset, GzipDisableMSIE6: 3,
		DisableSymlinks: unset,
	}
}

var pageSize = int64(os.Getpagesize())

const directioOff = 1<<63 - 1 // NGX_OPEN_FILE_DIRECTIO_OFF

func mergeLoc(cf *module.Conf, prevAny, confAny any) error {
	prev, conf := prevAny.(*http.CoreLoc), confAny.(*http.CoreLoc)
	if conf.Resolver == nil {
		conf.Resolver = prev.Resolver
	}
	if !conf.Root.Set {
		conf.Alias, conf.Root, conf.RootValues, conf.RootText = prev.Alias, prev.Root, prev.RootValues, prev.RootText
		if !prev.Root.Set {
			conf.Root = module.Str{Set: true, V: cf.Prefix("html")}
		}
	}
	if !conf.PostActionSet {
		conf.PostAction, conf.PostActionSet = prev.PostAction, prev.PostActionSet
	}
	if err := mergeTypes(cf, prev, conf); err != nil {
		return err
	}
	if conf.ErrorLog == nil {
		conf.ErrorLog = prev.ErrorLog
		if conf.ErrorLog == nil {
			conf.ErrorLog = cf.Cycle.NewLog
		}
	}
	if conf.ErrorPages == nil {
		conf.ErrorPages = prev.ErrorPages
	}
	module.MergeStr(&conf.DefaultType, prev.DefaultType, "text/plain")

	for _, m := range locSizes {
		module.MergeInt64(m.at(conf), *m.at(prev), m.def)
	}
	for _, m := range locNumbers {
		module.MergeInt(m.at(conf), *m.at(prev), m.def)
	}
	conf.InternalSet = conf.Internal == 1
	module.MergeBits(&conf.KeepaliveDisable, prev.KeepaliveDisable, bitmaskSet|http.KeepaliveDisableMSIE6)
	module.MergeBits(&conf.GzipProxied, prev.GzipProxied, bitmaskSet|gzipProxiedOff)
	module.MergePtr(&conf.LimitRateValue, prev.LimitRateValue, nil)
	module.MergePtr(&conf.LimitRateAfterValue, prev.LimitRateAfterValue, nil)
	if !conf.OpenFileCacheSet {
		conf.OpenFileCacheSet, conf.OpenFileCache = prev.OpenFileCacheSet, prev.OpenFileCache
	}
	module.MergeSlice(&conf.GzipDisable, prev.GzipDisable)
	if !conf.OpenFileCacheSet {
		conf.OpenFileCacheSet, conf.OpenFileCache = prev.OpenFileCacheSet, prev.OpenFileCache
	}
	if conf.GzipDisableMSIE6 == 3 {
		conf.GzipDisableMSIE6 = prev.GzipDisableMSIE6
		if prev.GzipDisableMSIE6 == 3 {
			conf.GzipDisableMSIE6 = 0
		}
	}
	return cf.MergePath(&conf.ClientBodyTempPath, prev.ClientBodyTempPath, clientBodyTempPath, [3]int{})
}

const (
	bitmaskSet         = 1 // NGX_CONF_BITMASK_SET
	gzipProxiedOff     = 2
	clientBodyTempPath = "/var/lib/nginx/body" // --http-client-body-temp-path of Debian's build
)

// locSizes and locNumbers are what merges by itself: the level's own, the one above, the default.
var locSizes = []struct {
	at  func(c *http.CoreLoc) *int64
	def int64
}{
	{func(c *http.CoreLoc) *int64 { return &c.ClientMaxBodySize }, 1 << 20},
	{func(c *http.CoreLoc) *int64 { return &c.ClientBodyBufferSize }, 2 * pageSize},
	{func(c *http.CoreLoc) *int64 { return &c.ClientBodyTimeout }, 60000},
	{func(c *http.CoreLoc) *int64 { return &c.AuthDelay }, 0},
	{func(c *http.CoreLoc) *int64 { return &c.SendfileMaxChunk }, 2 << 20},
	{func(c *http.CoreLoc) *int64 { return &c.SubrequestOutputBufferSize }, pageSize},
	{func(c *http.CoreLoc) *int64 { return &c.ReadAhead }, 0},
	{func(c *http.CoreLoc) *int64 { return &c.Directio }, directioOff},
	{func(c *http.CoreLoc) *int64 { return &c.DirectioAlignment }, 512},
	{func(c *http.CoreLoc) *int64 { return &c.SendTimeout }, 60000},
	{func(c *http.CoreLoc) *int64 { return &c.PostponeOutput }, 1460},
	{func(c *http.CoreLoc) *int64 { return &c.KeepaliveTime }, 3600000},
	{func(c *http.CoreLoc) *int64 { return &c.KeepaliveTimeout }, 75000},
	{func(c *http.CoreLoc) *int64 { return &c.KeepaliveHeader }, 0},
	{func(c *http.CoreLoc) *int64 { return &c.LingeringTime }, 30000},
	{func(c *http.CoreLoc) *int64 { return &c.LingeringTimeout }, 5000},
	{func(c *http.CoreLoc) *int64 { return &c.ResolverTimeout }, 30000},
	{func(c *http.CoreLoc) *int64 { return &c.OpenFileCacheValid }, 60},
}

var locNumbers = []struct {
	at  func(c *http.CoreLoc) *int
	def int
}{
	{func(c *http.CoreLoc) *int { return &c.Satisfy }, http.SatisfyAll},
	{func(c *http.CoreLoc) *int { return &c.IfModifiedSince }, http.IMSExact},
	{func(c *http.CoreLoc) *int { return &c.MaxRanges }, 1<<31 - 1},
	{func(c *http.CoreLoc) *int { return &c.ClientBodyInFileOnly }, http.BodyFileOff},
	{func(c *http.CoreLoc) *int { return &c.ClientBodyInSingleBuffer }, 0},
	{func(c *http.CoreLoc) *int { return &c.Internal }, 0},
	{func(c *http.CoreLoc) *int { return &c.Sendfile }, 0},
	{func(c *http.CoreLoc) *int { return &c.Aio }, 0},
	{func(c *http.CoreLoc) *int { return &c.AioWrite }, 0},
	{func(c *http.CoreLoc) *int { return &c.TCPNopush }, 0},
	{func(c *http.CoreLoc) *int { return &c.TCPNodelay }, 1},
	{func(c *http.CoreLoc) *int { return &c.KeepaliveRequests }, 1000},
	{func(c *http.CoreLoc) *int { return &c.LingeringClose }, http.LingeringOn},
	{func(c *http.CoreLoc) *int { return &c.ResetTimedoutConnection }, 0},
	{func(c *http.CoreLoc) *int { return &c.AbsoluteRedirect }, 1},
	{func(c *http.CoreLoc) *int { return &c.ServerNameInRedirect }, 0},
	{func(c *http.CoreLoc) *int { return &c.PortInRedirect }, 1},
	{func(c *http.CoreLoc) *int { return &c.MsiePadding }, 1},
	{func(c *http.CoreLoc) *int { return &c.MsieRefresh }, 0},
	{func(c *http.CoreLoc) *int { return &c.LogNotFound }, 1},
	{func(c *http.CoreLoc) *int { return &c.LogSubrequest }, 0},
	{func(c *http.CoreLoc) *int { return &c.RecursiveErrorPages }, 0},
	{func(c *http.CoreLoc) *int { return &c.ChunkedTransferEncoding }, 1},
	{func(c *http.CoreLoc) *int { return &c.Etag }, 1},
	{func(c *http.CoreLoc) *int { return &c.ServerTokens }, http.TokensOn},
	{func(c *http.CoreLoc) *int { return &c.OpenFileCacheMinUses }, 1},
	{func(c *http.CoreLoc) *int { return &c.OpenFileCacheErrors }, 0},
	{func(c *http.CoreLoc) *int { return &c.OpenFileCacheEvents }, 0},
	{func(c *http.CoreLoc) *int { return &c.GzipVary }, 0},
	{func(c *http.CoreLoc) *int { return &c.GzipHTTPVersion }, http.HTTP11},
	{func(c *http.CoreLoc) *int { return &c.DisableSymlinks }, 0},
}
