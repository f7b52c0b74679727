package gen

import (
	"strings"

	fuzz "github.com/google/gofuzz"
)

// Typed values with their boundaries, as gofuzz functions: a value of such a
// type is asked for with r.c.Fuzz.
type (
	flag    string // on, off
	size    string // a limit for a body: boundary values around the bodies that are sent
	bufSize string // a buffer that may be tiny
	bigBuf  string // a buffer that must hold a response's head
	span    string // a time
	word    string // letters and digits
	// text is what a person might put into a header or a body: words, blanks,
	// quotes, bytes above 127; no variables.
	text   string
	method string
	mime   string
	status int
)

func oneOf(c fuzz.Continue, list ...string) string { return list[c.Intn(len(list))] }

var valueFuncs = []any{
	func(v *flag, c fuzz.Continue) { *v = flag(oneOf(c, "on", "off")) },
	func(v *size, c fuzz.Continue) {
		*v = size(oneOf(c, "0", "1", "2", "5", "10", "16", "100", "1k", "1K", "4k", "8k", "64k", "1m", "2M", "1g"))
	},
	func(v *bufSize, c fuzz.Continue) {
		*v = bufSize(oneOf(c, "1", "8", "16", "64", "100", "128", "256", "512", "1k", "2k", "4k", "8k", "16k"))
	},
	func(v *bigBuf, c fuzz.Continue) {
		*v = bigBuf(oneOf(c, "256", "512", "1k", "2k", "4k", "8k"))
	},
	func(v *span, c fuzz.Continue) {
		*v = span(oneOf(c, "0", "1", "1s", "5s", "10s", "1m", "1h", "1d", "2h30m", "1000ms", "1500ms", "1w"))
	},
	func(v *word, c fuzz.Continue) {
		*v = word(oneOf(c, "a", "b", "foo", "Bar", "x1", "test", "index", "w0rd", "on", "off", "default", "UPPER", "under_score", "dash-ed", "7"))
	},
	func(v *text, c fuzz.Continue) {
		var b strings.Builder
		for range 1 + c.Intn(4) {
			b.WriteString(oneOf(c, "a", "value", " ", "x=1", "; q", ", ", "é", "\\", "'", "\"", "%20", "~", "<b>", "&", "|", "#", "0", "=", "/", ":"))
		}
		*v = text(b.String())
	},
	func(v *method, c fuzz.Continue) {
		*v = method(oneOf(c, "GET", "GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "MKCOL", "COPY", "MOVE",
			"PROPFIND", "PROPPATCH", "LOCK", "UNLOCK", "get", "FOO", "A", "G-T", "G_T", "GETT", "PURGE"))
	},
	func(v *mime, c fuzz.Continue) {
		*v = mime(oneOf(c, "text/plain", "text/html", "application/octet-stream", "application/json", "image/png", "x/y", "text/css", "application/x-tar"))
	},
	func(v *status, c fuzz.Continue) {
		s := []int{200, 201, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 402, 403, 404, 405, 408, 409, 410, 411, 412, 413, 414, 415, 416, 418, 421,
			429, 431, 444, 494, 495, 497, 499, 500, 501, 502, 503, 504, 505, 507, 599, 100, 101, 150, 299, 306, 399, 999}
		*v = status(s[c.Intn(len(s))])
	},
}

func value[T any](r *rnd) T {
	var v T
	r.c.Fuzz(&v)
	return v
}
