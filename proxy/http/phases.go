package http

import "nginxoracle/proxy/http/parse"

// CompilePhases fills the flat array of phase handlers from the modules' lists: within a phase
// the handler that was registered last runs first (ngx_http_init_phase_handlers).
func CompilePhases(cm *CoreMain) {
	cm.ServerRewriteIndex, cm.LocationRewriteIndex = -1, -1
	var ph []PhaseHandler
	findConfig := 0
	for phase := PostReadPhase; phase < LogPhase; phase++ {
		hs := cm.Phases[phase]
		next := len(ph) + len(hs)
		var checker func(*Request, *PhaseHandler) Rc
		switch phase {
		case ServerRewritePhase:
			cm.ServerRewriteIndex = len(ph)
			checker = rewritePhase
		case FindConfigPhase:
			findConfig = len(ph)
			ph = append(ph, PhaseHandler{Checker: findConfigPhase, Phase: phase})
			continue
		case RewritePhase:
			cm.LocationRewriteIndex = len(ph)
			checker = rewritePhase
		case PostRewritePhase:
			if len(cm.Phases[RewritePhase]) > 0 {
				ph = append(ph, PhaseHandler{Checker: postRewritePhase, Next: findConfig, Phase: phase})
			}
			continue
		case AccessPhase:
			checker = accessPhase
			next++ // over the post-access entry
		case PostAccessPhase:
			if len(cm.Phases[AccessPhase]) > 0 {
				ph = append(ph, PhaseHandler{Checker: postAccessPhase, Next: len(ph) + 1, Phase: phase})
			}
			continue
		case ContentPhase:
			checker = contentPhase
		default:
			checker = genericPhase
		}
		for i := len(hs) - 1; i >= 0; i-- {
			ph = append(ph, PhaseHandler{Checker: checker, Handler: hs[i], Next: next, Phase: phase})
		}
	}
	cm.Handlers = ph
}

// The filter chains, built by BuildFilters.
var (
	topHeaderFilter HeaderFilter
	topBodyFilter   BodyFilter
	topRequestBody  BodyFilter
)

// BuildFilters chains the filters of Modules: each wraps those registered before it, so that
// the last module's filter runs first (ngx_http_top_header_filter and its likes).
func BuildFilters() {
	topHeaderFilter, topBodyFilter, topRequestBody = nil, nil, requestBodySaveFilter
	for _, m := range Modules {
		if m.HeaderFilter != nil {
			topHeaderFilter = m.HeaderFilter(topHeaderFilter)
		}
		if m.BodyFilter != nil {
			topBodyFilter = m.BodyFilter(topBodyFilter)
		}
		if m.RequestBodyFilter != nil {
			topRequestBody = m.RequestBodyFilter(topRequestBody)
		}
	}
}

// handler starts a request's phases (ngx_http_handler).
func handler(r *Request) {
	r.Conn.Log.Action = ""
	if !r.Internal {
		switch r.HeadersIn.ConnectionType {
		case 0:
			r.KeepAlive = r.Version > HTTP10
		case ConnClose:
			r.KeepAlive = false
		case ConnKeepAlive:
			r.KeepAlive = true
		}
		r.LingeringClose = r.HeadersIn.ContentLengthN > 0 || r.HeadersIn.Chunked
		r.phase = 0
	} else {
		r.phase = r.CoreMain().ServerRewriteIndex
	}
	r.ValidLocation = true
	r.GzipTested, r.GzipOK, r.GzipVary = false, false, false
	r.WriteHandler = runPhases
	runPhases(r)
}

func runPhases(r *Request) { r.RunPhases() }

// RunPhases runs the compiled phases from the request's current one until a checker says that
// the request waits or is over (ngx_http_core_run_phases).
func (r *Request) RunPhases() {
	ph := r.CoreMain().Handlers
	for r.phase < len(ph) {
		if ph[r.phase].Checker(r, &ph[r.phase]) == OK {
			return
		}
	}
}

// genericPhase is the checker of the post-read, preaccess and precontent phases.
func genericPhase(r *Request, ph *PhaseHandler) Rc {
	rc := ph.Handler(r)
	switch rc {
	case OK:
		r.phase = ph.Next
		return Again
	case Declined:
		r.phase++
		return Again
	case Again, Done:
		return OK
	}
	r.Finalize(rc)
	return OK
}

func rewritePhase(r *Request, ph *PhaseHandler) Rc {
	rc := r.answer(ph.Handler)
	switch rc {
	case Declined:
		r.phase++
		return Again
	case Done:
		return OK
	}
	r.Finalize(rc)
	return OK
}

func findConfigPhase(r *Request, ph *PhaseHandler) Rc {
	r.ContentHandler = nil
	r.URIChanged = false
	rc := r.FindLocation()
	if rc == Error {
		r.Finalize(500)
		return OK
	}
	clcf := r.Core
	if !r.Internal && clcf.InternalSet {
		r.Finalize(404)
		return OK
	}
	r.UpdateLocationConfig()
	if n := r.HeadersIn.ContentLengthN; n != -1 && !r.DiscardBody &&
		clcf.ClientMaxBodySize != 0 && clcf.ClientMaxBodySize < n {
		r.Conn.Log.Err(logError, nil, "client intended to send too large body: %d bytes", n)
		r.ExpectTested = true
		r.DiscardRequestBody()
		r.Finalize(413)
		return OK
	}
	if rc == Done {
		r.ClearLocation()
		h := r.AddHeaderOut(keyLocation, nil)
		r.HeadersOut.Location = h
		// Wording of ngx_http_core_find_config_phase: the escaped name, then the arguments.
		name := parse.Escape(nil, []byte(clcf.Name), parse.EscapeURI)
		if len(r.Args) == 0 {
			h.Value = name
		} else {
			v := r.Alloc(len(name) + 1 + len(r.Args))
			n := copy(v, name)
			v[n] = '?'
			copy(v[n+1:], r.Args)
			h.Value = v
		}
		r.Finalize(301)
		return OK
	}
	r.phase++
	return Again
}

func postRewritePhase(r *Request, ph *PhaseHandler) Rc {
	if !r.URIChanged {
		r.phase++
		return Again
	}
	if r.changesURI(); r.URIChanges == 0 {
		r.Conn.Log.Err(logError, nil, "rewrite or internal redirection cycle while processing \"%s\"", r.URI)
		r.Finalize(500)
		return OK
	}
	r.phase = ph.Next
	r.setLoc(r.CoreSrv().Ctx.Loc)
	return Again
}

func accessPhase(r *Request, ph *PhaseHandler) Rc {
	if r != r.Main {
		r.phase = ph.Next
		return Again
	}
	rc := ph.Handler(r)
	switch rc {
	case Declined:
		r.phase++
		return Again
	case Again, Done:
		return OK
	}
	if r.Core.Satisfy == SatisfyAll {
		if rc == OK {
			r.phase++
			return Again
		}
	} else {
		if rc == OK {
			r.AccessCode = 0
			for h := r.HeadersOut.WWWAuthenticate; h != nil; h = h.Next {
				h.Hash = 0
			}
			r.phase = ph.Next
			return Again
		}
		if rc == 403 || rc == 401 {
			if r.AccessCode != 401 {
				r.AccessCode = rc
			}
			r.phase++
			return Again
		}
	}
	if rc == 401 {
		return authDelay(r)
	}
	r.Finalize(rc)
	return OK
}

func postAccessPhase(r *Request, ph *PhaseHandler) Rc {
	if code := r.AccessCode; code != 0 {
		r.AccessCode = 0
		if code == 403 {
			r.Conn.Log.Err(logError, nil, "access forbidden by rule")
		}
		if code == 401 {
			return authDelay(r)
		}
		r.Finalize(code)
		return OK
	}
	r.phase++
	return Again
}

// authDelay holds a 401 back for auth_delay (ngx_http_core_auth_delay).
func authDelay(r *Request) Rc {
	delay := r.Core.AuthDelay
	if delay == 0 {
		r.Finalize(401)
		return OK
	}
	c := r.Conn
	c.Log.Err(logInfo, nil, "delaying unauthorized request")
	if c.Read.Ready {
		c.Loop.Post(&c.Read)
	}
	c.Read.Watch()
	r.ReadHandler = testReading
	r.WriteHandler = authDelayHandler
	c.Write.Delayed = true
	c.Loop.AddTimer(&c.Write, delay)
	c.Loop.PostNext(&c.Write)
	return OK
}

func authDelayHandler(r *Request) {
	if r.Conn.Write.Delayed {
		return
	}
	r.Finalize(401)
}

func contentPhase(r *Request, ph *PhaseHandler) Rc {
	if r.ContentHandler != nil {
		r.WriteHandler = requestEmptyHandler
		r.Finalize(r.answer(r.ContentHandler))
		return OK
	}
	rc := r.answer(ph.Handler)
	if rc != Declined {
		r.Finalize(rc)
		return OK
	}
	if r.phase+1 < len(r.CoreMain().Handlers) {
		r.phase++
		return Again
	}
	if r.URIEndsInSlash() {
		if path, _, ok := r.MapURIToPath(0); ok {
			r.Conn.Log.Err(logError, nil, "directory index of \"%s\" is forbidden", path)
		}
		r.Finalize(403)
		return OK
	}
	r.Conn.Log.Err(logError, nil, "no handler found")
	r.Finalize(404)
	return OK
}

// changesURI counts down what is left of changes of the URI. Nginx has four bits for it, so that what goes on behind a
// cycle, a post_action, has 15 more.
func (r *Request) changesURI() { r.URIChanges = (r.URIChanges - 1) & 15 }
