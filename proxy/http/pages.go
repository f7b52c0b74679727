package http

// errorPages are the pages of the codes that nginx has one for, without their tail
// (ngx_http_special_response.c, ngx_http_error_pages). 498 has 404's.
var errorPages = makePages([]pageRow{
	{code: 301, title: "301 Moved Permanently"},
	{code: 302, title: "302 Found"},
	{code: 303, title: "303 See Other"},
	{code: 307, title: "307 Temporary Redirect"},
	{code: 308, title: "308 Permanent Redirect"},
	{code: 400, title: "400 Bad Request"},
	{code: 401, title: "401 Authorization Required"},
	{code: 402, title: "402 Payment Required"},
	{code: 403, title: "403 Forbidden"},
	{code: 404, title: "404 Not Found"},
	{code: 405, title: "405 Not Allowed"},
	{code: 406, title: "406 Not Acceptable"},
	{code: 408, title: "408 Request Time-out"},
	{code: 409, title: "409 Conflict"},
	{code: 410, title: "410 Gone"},
	{code: 411, title: "411 Length Required"},
	{code: 412, title: "412 Precondition Failed"},
	{code: 413, title: "413 Request Entity Too Large"},
	{code: 414, title: "414 Request-URI Too Large"},
	{code: 415, title: "415 Unsupported Media Type"},
	{code: 416, title: "416 Requested Range Not Satisfiable"},
	{code: 421, title: "421 Misdirected Request"},
	{code: 429, title: "429 Too Many Requests"},
	{494, "400 Request Header Or Cookie Too Large", "400 Bad Request", "Request Header Or Cookie Too Large"},
	{495, "400 The SSL certificate error", "400 Bad Request", "The SSL certificate error"},
	{496, "400 No required SSL certificate was sent", "400 Bad Request", "No required SSL certificate was sent"},
	{497, "400 The plain HTTP request was sent to HTTPS port", "400 Bad Request", "The plain HTTP request was sent to HTTPS port"},
	{code: 498, title: "404 Not Found"},
	{code: 500, title: "500 Internal Server Error"},
	{code: 501, title: "501 Not Implemented"},
	{code: 502, title: "502 Bad Gateway"},
	{code: 503, title: "503 Service Temporarily Unavailable"},
	{code: 504, title: "504 Gateway Time-out"},
	{code: 505, title: "505 HTTP Version Not Supported"},
	{code: 507, title: "507 Insufficient Storage"},
})

type pageRow struct {
	code                    int
	title, headline, reason string
}

const (
	pageFirst = 301
	pageLast  = 507
)

func makePages(rows []pageRow) (pages [pageLast - pageFirst + 1][]byte) {
	for _, p := range rows {
		h := p.headline
		if h == "" {
			h = p.title
		}
		s := "<html>\r\n<head><title>" + p.title + "</title></head>\r\n<body>\r\n<center><h1>" + h + "</h1></center>\r\n"
		if p.reason != "" {
			s += "<center>" + p.reason + "</center>\r\n"
		}
		pages[p.code-pageFirst] = []byte(s)
	}
	return pages
}

func errorPage(code int) []byte {
	if code < pageFirst || code > pageLast {
		return nil
	}
	return errorPages[code-pageFirst]
}

const version = "nginx/1.26.3"

// Tails of the pages and Server fields by server_tokens: off, on, build (Debian's binary has
// no build name, so that "build" is as "on").
var (
	pageTails = [3][]byte{
		[]byte("<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"),
		[]byte("<hr><center>" + version + "</center>\r\n</body>\r\n</html>\r\n"),
		[]byte("<hr><center>" + version + "</center>\r\n</body>\r\n</html>\r\n"),
	}
	serverFields = [3]string{
		"Server: nginx\r\n",
		"Server: " + version + "\r\n",
		"Server: " + version + "\r\n",
	}
	msiePadding = makePadding()
)

func makePadding() (b []byte) {
	for range 6 {
		b = append(b, "<!-- a padding to disable MSIE and Chrome friendly error page -->\r\n"...)
	}
	return b
}

var (
	refreshHead = []byte("<html><head><meta http-equiv=\"Refresh\" content=\"0; URL=")
	refreshTail = []byte("\"></head><body></body></html>\r\n")
)

// statusLines are the reasons that nginx writes; other codes get the number alone
// (ngx_http_header_filter_module.c, ngx_http_status_lines).
var statusLines = map[int]string{
	200: "200 OK",
	201: "201 Created",
	202: "202 Accepted",
	204: "204 No Content",
	206: "206 Partial Content",
	301: "301 Moved Permanently",
	302: "302 Moved Temporarily",
	303: "303 See Other",
	304: "304 Not Modified",
	307: "307 Temporary Redirect",
	308: "308 Permanent Redirect",
	400: "400 Bad Request",
	401: "401 Unauthorized",
	402: "402 Payment Required",
	403: "403 Forbidden",
	404: "404 Not Found",
	405: "405 Not Allowed",
	406: "406 Not Acceptable",
	408: "408 Request Time-out",
	409: "409 Conflict",
	410: "410 Gone",
	411: "411 Length Required",
	412: "412 Precondition Failed",
	413: "413 Request Entity Too Large",
	414: "414 Request-URI Too Large",
	415: "415 Unsupported Media Type",
	416: "416 Requested Range Not Satisfiable",
	421: "421 Misdirected Request",
	429: "429 Too Many Requests",
	500: "500 Internal Server Error",
	501: "501 Not Implemented",
	502: "502 Bad Gateway",
	503: "503 Service Temporarily Unavailable",
	504: "504 Gateway Time-out",
	505: "505 HTTP Version Not Supported",
	507: "507 Insufficient Storage",
}

// statusTable is statusLines as whole first lines, by code.
var statusTable = func() (t [600]string) {
	for code, s := range statusLines {
		t[code] = "HTTP/1.1 " + s + "\r\n"
	}
	return t
}()
