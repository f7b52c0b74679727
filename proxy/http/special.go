package http

import (
	"bytes"

	"nginxoracle/proxy/http/parse"
)

var (
	textHTML    = []byte("text/html")
	keyLocation = []byte("Location")
	getMethod   = []byte("GET")
)

// SpecialResponse makes the page of an error or a redirect, or goes where error_page says
// (ngx_http_special_response_handler).
func (r *Request) SpecialResponse(rc Rc) Rc {
	r.ErrStatus = int(rc)
	if r.KeepAlive {
		switch rc {
		case 400, 413, 414, codeToHTTPS, codeCertError, codeNoCert, 500, 501:
			r.KeepAlive = false
		}
	}
	if r.LingeringClose {
		switch rc {
		case 400, codeToHTTPS, codeCertError, codeNoCert:
			r.LingeringClose = false
		}
	}
	r.HeadersOut.ContentType = nil
	clcf := r.Core
	if !r.ErrorPage && len(clcf.ErrorPages) > 0 && r.URIChanges != 0 {
		if clcf.RecursiveErrorPages <= 0 {
			r.ErrorPage = true
		}
		for _, p := range clcf.ErrorPages {
			if p.Status == int(rc) {
				return r.sendErrorPage(p)
			}
		}
	}
	r.ExpectTested = true
	if r.DiscardRequestBody() != OK {
		r.KeepAlive = false
	}
	if clcf.MsieRefresh > 0 && r.HeadersIn.MSIE && (rc == 301 || rc == 302) {
		return r.sendRefresh()
	}
	switch rc {
	case codeToHTTPS, codeCertError, codeNoCert, codeHeaderTooLarge:
		r.ErrStatus = 400
	}
	return r.sendSpecialPage(clcf, int(rc))
}

// FilterFinalizeRequest replaces the response from inside m's filter
// (ngx_http_filter_finalize_request).
func (r *Request) FilterFinalizeRequest(m *Module, rc Rc) Rc {
	r.CleanHeader()
	var ctx any
	if m != nil {
		ctx = r.ctx[m.Index]
	}
	r.clearCtx()
	if m != nil {
		r.ctx[m.Index] = ctx
	}
	r.FilterFinalize = true
	res := r.SpecialResponse(rc)
	if res == OK || res == Done {
		return Error // resets what is pending
	}
	return res
}

// CleanHeader forgets the response's header (ngx_http_clean_header).
func (r *Request) CleanHeader() {
	r.HeadersOut = HeadersOut{
		Headers: r.HeadersOut.Headers[:0], Trailers: r.HeadersOut.Trailers[:0],
		ContentLengthN: -1, LastModifiedTime: -1,
	}
}

func (r *Request) sendErrorPage(p *ErrorPage) Rc {
	overwrite := p.Overwrite
	if overwrite != 0 && overwrite != 200 {
		r.ExpectTested = true
	}
	if overwrite >= 0 {
		r.ErrStatus = overwrite
	}
	uri, rc := r.Complex(p.Value)
	if rc != OK {
		return Error
	}
	if len(uri) > 0 && uri[0] == '/' {
		args := p.Args
		if !p.Value.Static {
			uri, args = r.splitArgs(uri)
		}
		if r.Method != HEAD {
			r.Method = GET
			r.MethodName = getMethod
		}
		return r.InternalRedirect(uri, args)
	}
	if len(uri) > 0 && uri[0] == '@' {
		return r.NamedLocation(uri)
	}
	r.ExpectTested = true
	if r.DiscardRequestBody() != OK {
		r.KeepAlive = false
	}
	switch overwrite {
	case 301, 302, 303, 307, 308:
	default:
		r.ErrStatus = 302
	}
	r.ClearLocation()
	r.HeadersOut.Location = r.AddHeaderOut(keyLocation, uri)
	clcf := r.Core
	if clcf.MsieRefresh > 0 && r.HeadersIn.MSIE {
		return r.sendRefresh()
	}
	return r.sendSpecialPage(clcf, r.ErrStatus)
}

// splitArgs cuts a URI at its first question mark (ngx_http_split_args). Without one nginx leaves the
// pointer to the arguments unset, and what it finds there depends on who asked for the page: the reference's
// build finds a null (no arguments) behind a file that static or try_files did not find, and something
// else (empty arguments) behind everything else; scenarios/core/error-page-args.txtar.
func (r *Request) splitArgs(uri []byte) (path, args []byte) {
	if i := bytes.IndexByte(uri, '?'); i >= 0 {
		return uri[:i], uri[i+1:]
	}
	if r.NullPageArgs {
		r.NullPageArgs = false
		return uri, nil
	}
	return uri, uri[len(uri):]
}

func (r *Request) clearForPage() {
	o := &r.HeadersOut
	if o.ContentLength != nil {
		o.ContentLength.Hash = 0
		o.ContentLength = nil
	}
	r.ClearAcceptRanges()
	r.ClearLastModified()
	r.ClearETag()
}

func (r *Request) setTextHTML() {
	r.HeadersOut.ContentType = textHTML
	r.HeadersOut.ContentTypeLen = len(textHTML)
	r.HeadersOut.ContentTypeLow = nil
}

// sendSpecialPage answers with the page of code, which is empty for codes without one
// (ngx_http_send_special_response).
func (r *Request) sendSpecialPage(clcf *CoreLoc, code int) Rc {
	tail := pageTails[serverTokens(clcf)]
	page := errorPage(code)
	padding := false
	if page != nil {
		n := len(page) + len(tail)
		if clcf.MsiePadding > 0 && (r.HeadersIn.MSIE || r.HeadersIn.Chrome) && r.Version >= HTTP10 && code >= 400 {
			n += len(msiePadding)
			padding = true
		}
		r.HeadersOut.ContentLengthN = int64(n)
		r.setTextHTML()
	} else {
		r.HeadersOut.ContentLengthN = 0
	}
	r.clearForPage()
	rc := r.SendHeader()
	if rc == Error || r.HeaderOnly {
		return rc
	}
	if page == nil {
		return r.SendSpecial(true, false)
	}
	b := r.NewBuf()
	b.Memory, b.Data = true, page
	out := r.NewChain(b)
	b = r.NewBuf()
	b.Memory, b.Data = true, tail
	out.Next = r.NewChain(b)
	if padding {
		b = r.NewBuf()
		b.Memory, b.Data = true, msiePadding
		out.Next.Next = r.NewChain(b)
	}
	b.LastBuf = r == r.Main
	b.LastInChain = true
	return r.OutputFilter(out)
}

func serverTokens(clcf *CoreLoc) int {
	if t := clcf.ServerTokens; t >= 0 && t < len(pageTails) {
		return t
	}
	return 1
}

// sendRefresh redirects an old MSIE with a page (ngx_http_send_refresh).
func (r *Request) sendRefresh() Rc {
	loc := r.HeadersOut.Location
	body := append([]byte(nil), refreshHead...)
	body = parse.Escape(body, loc.Value, parse.EscapeRefresh)
	body = append(body, refreshTail...)
	r.ErrStatus = 200
	r.setTextHTML()
	loc.Hash = 0
	r.HeadersOut.Location = nil
	r.HeadersOut.ContentLengthN = int64(len(body))
	r.clearForPage()
	rc := r.SendHeader()
	if rc == Error || r.HeaderOnly {
		return rc
	}
	b := r.NewBuf()
	b.Temporary, b.Data = true, body
	b.LastBuf = r == r.Main
	b.LastInChain = true
	return r.OutputFilter(r.NewChain(b))
}
