package http

// Flags of a subrequest (ngx_http_request.h, NGX_HTTP_SUBREQUEST_*).
const (
	SubInMemory   = 2
	SubWaited     = 4
	SubClone      = 8
	SubBackground = 16
)

// Subrequest starts a request inside of r, whose output goes where r is now (ngx_http_subrequest).
func (r *Request) Subrequest(uri, args []byte, ps *PostSub, flags int) (*Request, Rc) {
	c := r.Conn
	if r.Subrequests == 0 {
		c.Log.Err(logError, nil, "subrequests cycle while processing \"%s\"", uri)
		return nil, Error
	}
	if r.Main.Count >= 65535-1000 {
		c.Log.Err(logCrit, nil, "request reference counter overflow while processing \"%s\"", uri)
		return nil, Error
	}
	if r.SubrequestInMemory {
		c.Log.Err(logError, nil, "nested in-memory subrequest \"%s\"", uri)
		return nil, Error
	}
	ctx := r.CoreSrv().Ctx
	sr := &Request{
		Conn: c, HC: r.HC, Log: r.Log, pool: r.pool, headerIn: r.headerIn,
		Main: r.Main, Parent: r, PostSub: ps,
		MainConf: ctx.Main, SrvConf: ctx.Srv,
		ctx:       make([]any, len(Modules)),
		HeadersIn: r.HeadersIn, Body: r.Body,
		Method: GET, MethodName: getMethod, Version: r.Version,
		RequestLine: r.RequestLine, URI: uri, Args: args,
		UnparsedURI: r.UnparsedURI, Protocol: r.Protocol, Schema: r.Schema,
		SubrequestInMemory: flags&SubInMemory != 0,
		Waited:             flags&SubWaited != 0,
		Background:         flags&SubBackground != 0,
		ReadHandler:        requestEmptyHandler, WriteHandler: handler,
		Variables: r.Variables,
		Internal:  true, DiscardBody: r.DiscardBody, ExpectTested: true,
		MainFilterNeedInMemory: r.MainFilterNeedInMemory,
		URIChanges:             maxURIChanges + 1, Subrequests: r.Subrequests - 1,
	}
	sr.setLoc(ctx.Loc)
	sr.HeadersOut.ContentLengthN, sr.HeadersOut.LastModifiedTime = -1, -1
	sr.FilterNeedInMemory = sr.SubrequestInMemory
	sr.SetExten()
	if !sr.Background {
		if c.Data == any(r) && r.Postponed == nil {
			c.Data = sr
		}
		pp := &r.Postponed
		for *pp != nil {
			pp = &(*pp).Next
		}
		*pp = &Postponed{Request: sr}
	}
	sr.StartSec, sr.StartMsec = c.Loop.Now()
	r.Main.Count++
	if flags&SubClone != 0 {
		sr.Method, sr.MethodName = r.Method, r.MethodName
		sr.setLoc(r.LocConf)
		sr.ValidLocation, sr.ValidUnparsedURI = r.ValidLocation, r.ValidUnparsedURI
		sr.ContentHandler = r.ContentHandler
		sr.phase = r.phase
		sr.WriteHandler = runPhases
		sr.Captures, sr.CapturesData = r.Captures, r.CapturesData
		sr.RealloCaptures, r.RealloCaptures = true, true
		sr.UpdateLocationConfig()
	}
	sr.Post()
	return sr, OK
}

// InternalRedirect starts the request again with another URI (ngx_http_internal_redirect).
func (r *Request) InternalRedirect(uri, args []byte) Rc { return r.RedirectBehind(nil, uri, args) }

// RedirectBehind is InternalRedirect to a URI that lies behind the path root in memory, which tells whether an
// empty one is a folder's: nginx looks at the byte before its end.
func (r *Request) RedirectBehind(root, uri, args []byte) Rc {
	if r.changesURI(); r.URIChanges == 0 {
		r.Conn.Log.Err(logError, nil, "rewrite or internal redirection cycle while internally redirecting to \"%s\"", uri)
		r.Main.Count++
		r.Finalize(500)
		return Done
	}
	r.URI, r.Args = uri, args
	r.SetExten()
	r.clearCtx()
	r.setLoc(r.CoreSrv().Ctx.Loc)
	r.UpdateLocationConfig()
	r.Internal = true
	r.ValidUnparsedURI = false
	r.AddURIToAlias = false
	r.emptyIsFolder = len(root) > 0 && root[len(root)-1] == '/'
	r.Main.Count++
	handler(r)
	return Done
}

// NamedLocation goes on in a named location (ngx_http_named_location).
func (r *Request) NamedLocation(name []byte) Rc {
	log := r.Conn.Log
	r.Main.Count++
	if r.changesURI(); r.URIChanges == 0 {
		log.Err(logError, nil, "rewrite or internal redirection cycle while redirect to named location \"%s\"", name)
		r.Finalize(500)
		return Done
	}
	if len(r.URI) == 0 {
		log.Err(logError, nil, "empty URI in redirect to named location \"%s\"", name)
		r.Finalize(500)
		return Done
	}
	for _, l := range r.CoreSrv().NamedLocs {
		if l.Name != string(name) {
			continue
		}
		r.Internal = true
		r.ContentHandler = nil
		r.URIChanged = false
		r.setLoc(l.Ctx.Loc)
		r.clearCtx()
		r.UpdateLocationConfig()
		r.phase = r.CoreMain().LocationRewriteIndex
		r.WriteHandler = runPhases
		r.RunPhases()
		return Done
	}
	log.Err(logError, nil, "could not find named location \"%s\"", name)
	r.Finalize(500)
	return Done
}
