package gen

import (
	"fmt"
	"strings"
	"time"
)

// request is one request before it becomes bytes. Lines holds header lines
// without their line ends, in order.
type request struct {
	method, target, version string
	lines                   []string
	body                    string // as sent: chunked already, when it is
	last                    bool   // asks for, or brings, the connection's end
	head                    bool
	slow                    bool // see target
}

// bytes is the request as it is sent.
func (q *request) bytes() string {
	if q.version == "" {
		return q.method + " " + q.target + "\r\n"
	}
	var b strings.Builder
	b.WriteString(q.method + " " + q.target + " " + q.version + "\r\n")
	for _, l := range q.lines {
		b.WriteString(l + "\r\n")
	}
	b.WriteString("\r\n" + q.body)
	return b.String()
}

// request makes a request for a target; last tells that no other follows on its connection.
func (u *unit) request(t target, last bool) *request {
	q := &request{method: t.method, target: t.uri, version: "HTTP/1.1"}
	if q.method == "" {
		q.method = "GET"
		switch {
		case u.pct(10):
			q.method = "HEAD"
		case u.pct(8):
			q.method = string(value[method](u.rnd))
		}
	}
	q.head = q.method == "HEAD"
	if u.pct(12) {
		q.target = u.oddTarget(t)
	}
	host := pickOf(u.rnd, t.srv.hosts)
	if u.pct(70) {
		host = t.srv.hosts[0]
	}
	if u.pct(5) {
		host = u.oddHost(t.srv)
	}
	switch {
	case u.pct(10):
		q.version = "HTTP/1.0"
	case u.pct(1):
		return &request{method: "GET", target: q.target, last: true}
	}
	q.lines = append(q.lines, "Host: "+host)
	if q.version == "HTTP/1.0" {
		if u.pct(40) {
			q.lines = nil
		}
		if last || u.pct(50) {
			q.last = true
		} else {
			q.lines = append(q.lines, "Connection: keep-alive")
		}
	} else if last && u.pct(75) {
		q.lines = append(q.lines, "Connection: "+u.pick("close", "close", "close", "Close", "close, x"))
		q.last = true
	}
	q.lines = append(q.lines, t.headers...)
	for range u.n(3) {
		q.lines = append(q.lines, u.headerLine())
	}
	if t.file >= 0 || u.pct(15) {
		u.fileHeaders(q, t)
	}
	if t.body || q.method == "POST" && u.pct(50) || u.pct(3) {
		u.addBody(q)
	}
	return q
}

func (u *unit) oddHost(s *server) string {
	return u.pick("", "unknown.test", s.hosts[0]+":80", s.hosts[0]+".", strings.ToUpper(s.hosts[0]), s.hosts[0]+":", "a..b", "a/b", "[::1]", "[::1", "127.0.0.1:"+itoa(s.port), "a b", "\x00", "a@b", "x_y", "é", "..", ".", "-", strings.Repeat("h", 300)+".test", "%61", "a:b:c", "a,b")
}

func (u *unit) oddTarget(t target) string {
	p, q, _ := strings.Cut(t.uri, "?")
	if q != "" {
		q = "?" + q
	}
	switch u.n(22) {
	case 0:
		return "http://" + t.srv.hosts[0] + t.uri
	case 1:
		return "http://other.test" + t.uri
	case 2:
		return "HTTP://" + t.srv.hosts[0] + ":8080" + t.uri
	case 3:
		return "//" + p[1:] + q
	case 4:
		return "/." + p + q
	case 5:
		return "/x/.." + p + q
	case 6:
		return p + "/.." + q
	case 7:
		return "/../" + p[1:] + q
	case 8:
		if len(p) > 1 {
			i := u.in(1, len(p)-1)
			return p[:i] + fmt.Sprintf("%%%02x", p[i]) + p[i+1:] + q
		}
		return "/%2f"
	case 9:
		return p + "%" + u.pick("", "2", "zz", "00", "2e", "2E%2e/", "25", "ff", "0a", "3f", "23", "2f..%2f", "u0041", "%20")
	case 10:
		return p + "#frag" + q
	case 11:
		return p + "?" + u.pick("", "?", "a=1?b", "%00", "a=%2", "&&", "=", "a b", "é", "#", "a=1#f", "/../", strings.Repeat("q", 600))
	case 12:
		return u.pick("*", "", "x", "?", "#", "\\", "http:", "http://", "http:///", "http://h", "http://h?x", "http://h:/", "http://[::1]/", "https://h/x", "ftp://h/", "http://h:99999/", "/", "a:b", "host:80", "http://u@h/", "://", "/:", "http://h#f", "http://h\\x")
	case 13:
		return p + " " + q
	case 14:
		return p + "\t" + q
	case 15:
		return p + "\x00" + q
	case 16:
		return p + string([]byte{byte(u.in(0x80, 0xff))}) + q
	case 17:
		return p + "/./" + q
	case 18:
		return strings.ReplaceAll(p, "/", "//") + q
	case 19:
		return p + "/" + q
	case 20:
		return p + strings.Repeat(u.pick("/a", "x", "%41", "/../a", "//"), []int{10, 100, 250, 500}[u.n(4)]) + q
	}
	return strings.ToUpper(p) + q
}

func (u *unit) headerLine() string {
	return u.pick(
		"User-Agent: test/1.0", "User-Agent: Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", "User-Agent: Mozilla/5.0 Safari/5", "User-Agent: ", "Accept: */*", "Accept-Encoding: gzip", "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0", "Accept-Encoding: deflate, gzip;q=0.5", "Accept-Encoding: *", "X-Real-IP: 10.1.2.3", "X-Forwarded-For: 127.0.0.1, 10.9.8.7:99", "Referer: https://r.test/p?q", "Referer: x",
		"Referer: http://r.test/p", "Cookie: c=1", "Cookie: c=2; d=3", "Cookie: d=4;c=5", "X-A: one", "X-A: two", "x-a: three", "X-B: b", "X-B:no space", "X-B:   spaces   ", "X_Under: u", "X-A: é", "X-A: \"q\\\"",
		"Connection: keep-alive", "Keep-Alive: 5", "TE: trailers", "X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: 1.2.3.4, 5.6.7.8", "Via: 1.1 v", "Upgrade: websocket", "Content-Type: text/x", "Authorization: Basic dXNlcjpwYXNz",
		"Authorization: Bearer x", "Expect: 100-continue", "Range: bytes=0-3", "Range: bytes=1-", "If-None-Match: *", "If-Match: \"x\"", "Date: Mon, 01 Jan 2024 00:00:00 GMT", "Depth: 1", "Destination: /x", "Accept-Language: en", "X-Long: "+strings.Repeat("l", 200),
		"X-Accel-Redirect: /x", "Content-Language: en", "Proxy-Connection: keep-alive", "HTTP2-Settings: AA", "Overwrite: T", "Max-Forwards: 0")
}

// fileHeaders adds conditions and ranges that fit the file.
func (u *unit) fileHeaders(q *request, t target) {
	mtime, size := int64(defaultMTime), 26
	if t.file >= 0 {
		f := u.files[t.file]
		size = len(f.Data)
		if !f.MTime.IsZero() {
			mtime = f.MTime.Unix()
		}
	}
	date := func(off int64) string {
		d := time.Unix(mtime+off, 0).UTC()
		switch u.n(6) {
		case 0:
			return d.Format("Monday, 02-Jan-06 15:04:05 GMT")
		case 1:
			return d.Format("Mon Jan _2 15:04:05 2006")
		}
		return d.Format("Mon, 02 Jan 2006 15:04:05 GMT")
	}
	offset := []int64{0, 0, 0, 1, -1, 100000, -100000}[u.n(7)]
	etag := fmt.Sprintf("\"%x-%x\"", mtime, size)
	tag := u.pick(etag, etag, etag, "W/"+etag, "*", `"x"`, `"x", `+etag, etag+", W/\"y\"", strings.Trim(etag, `"`), "", ",,"+etag, "W/"+etag+",*", etag[:len(etag)-1])
	if u.pct(20) {
		q.lines = append(q.lines, "If-Modified-Since: "+u.pick(date(offset), date(offset), date(0), "garbage", "", "0", "Thu, 01 Jan 1970 00:00:00 GMT", "Tue, 31 Feb 2023 00:00:00 GMT"))
	}
	if u.pct(8) {
		q.lines = append(q.lines, "If-Unmodified-Since: "+u.pick(date(offset), "garbage", date(0)))
	}
	if u.pct(15) {
		q.lines = append(q.lines, "If-None-Match: "+tag)
	}
	if u.pct(7) {
		q.lines = append(q.lines, "If-Match: "+tag)
	}
	if u.pct(25) {
		q.lines = append(q.lines, u.pick("Range", "Range", "Range", "range", "Request-Range")+": "+u.rangeValue(size))
		if u.pct(30) {
			q.lines = append(q.lines, "If-Range: "+u.pick(date(offset), etag, tag, "garbage", date(0)))
		}
	}
}

func (u *unit) rangeValue(size int) string {
	if size > 0 && u.pct(30) {
		return u.goodRanges(size)
	}
	pos := func() string {
		return u.pick("0", "1", "5", itoa(size-1), itoa(size), itoa(size+1), itoa(u.n(size+1)), "", "00", "9999999999", "99999999999999999999", "-", " 1", "1 ", "x")
	}
	r := u.pick("bytes=", "bytes=", "bytes=", "bytes=", "bytes=", "Bytes=", "bytes =", "bytes= ", "bits=", "", "bytes")
	for i := range u.in(1, 4) {
		if i > 0 {
			r += u.pick(",", ",", ", ", ",,", " , ")
		}
		switch u.n(5) {
		case 0:
			r += "-" + pos()
		case 1:
			r += pos() + "-"
		default:
			r += pos() + "-" + pos()
		}
		if u.pct(60) {
			break
		}
	}
	return r
}

func (u *unit) addBody(q *request) {
	body := u.pick("", "a", "body", "a=1&b=2", "12345", "123456", strings.Repeat("B", 100), strings.Repeat("0123456789abcdef", u.pick16()))
	if q.version != "HTTP/1.1" || u.pct(65) {
		q.lines = append(q.lines, fmt.Sprintf("Content-Length: %d", len(body)))
		q.body = body
		return
	}
	q.lines = append(q.lines, "Transfer-Encoding: "+u.pick("chunked", "chunked", "chunked", "Chunked"))
	q.body = u.chunked(body, u.pct(15))
}

// damage is one way to spoil a request's bytes.
type damage struct {
	name string
	do   func(u *unit, raw string) string
}

// line replaces the request line; header puts a line after it.
func onLine(f func(u *unit, line string) string) func(*unit, string) string {
	return func(u *unit, raw string) string {
		i := strings.Index(raw, "\r\n")
		if i < 0 {
			return f(u, raw)
		}
		return f(u, raw[:i]) + raw[i:]
	}
}

func insertLine(f func(u *unit) string) func(*unit, string) string {
	return func(u *unit, raw string) string {
		i := strings.Index(raw, "\r\n")
		if i < 0 {
			return raw + f(u)
		}
		if j := strings.Index(raw, "\r\n\r\n"); j > i && u.pct(50) {
			i = j
		}
		return raw[:i] + "\r\n" + f(u) + raw[i:]
	}
}

var damages = []damage{
	{"version", onLine(func(u *unit, l string) string {
		i := strings.LastIndex(l, " ")
		if i < 0 {
			return l
		}
		return l[:i] + u.pick(" HTTP/1.2", " HTTP/2.0", " HTTP/0.9", " HTTP/1.10", " http/1.1", " HTTP/1.", " HTTP/1", " HTTP/", " HTTP/1.1 ", " HTTP/1.1x", "  HTTP/1.1", "\tHTTP/1.1", "HTTP/1.1", " HTTP/01.1", " HTTP/1.01", " HTTP/9.9", " HTTP/1.999", " HTTP/1000.1", " HTTP /1.1", " X", " HTTP/1.0 HTTP/1.1")
	})},
	{"method", onLine(func(u *unit, l string) string {
		_, rest, _ := strings.Cut(l, " ")
		return u.pick("", "G", "GE T", "get", "GET\x00", "G\xe9T", "GET:", "123", "_", "-", strings.Repeat("M", 40), "PRI", "GET\t", " GET", "POST\r", "CONNECT", "(", "\"GET\"") + " " + rest
	})},
	{"lead", func(u *unit, raw string) string {
		return u.pick("\r\n", "\n", "\r\n\r\n", "\r", " ", "\x00", "\r\r\n", "\n\n\n", "x\r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", "\xef\xbb\xbf") + raw
	}},
	{"lf", func(u *unit, raw string) string { return strings.ReplaceAll(raw, "\r\n", "\n") }},
	{"one-lf", func(u *unit, raw string) string {
		k := strings.Count(raw, "\r\n")
		if k == 0 {
			return raw
		}
		return replaceNth(raw, "\r\n", u.pick("\n", "\r", "\r\r\n", "\n\r", "\r \n", "\x00\r\n", " \r\n", "\t\r\n", "\r\n ", "\n\n"), u.n(k))
	}},
	{"header", insertLine(func(u *unit) string {
		return u.pick("NoColon", ": novalue", "X-A : space", "X A: space", "X-A:", ":", "X\x00A: nul", "X-A: v\x00w", "X-A: \x01\x02", "\tX-A: tab", " X-A: lead", "X-A: a\rb", "X@A: at", "X-\xe9: high", "{}: x", "X-A\t: t", "\"q\": x", "X-A;y: 1", "-: -", "_: u", "X-A: \x7f", "Content-Length", strings.Repeat("N", 300)+": long name")
	})},
	{"fold", insertLine(func(u *unit) string {
		return u.pick("X-A: folded\r\n  here", "X-A: f\r\n\tx", "X-A: f\r\n ", " starts folded", "X-A:\r\n x")
	})},
	{"host", insertLine(func(u *unit) string {
		return u.pick("Host: second.test", "Host:", "host: x", "HOST: y", "Host: a b", "Host: a\x00b", "Host:\ts0.u00.test", "Host : z", "Host: [::1]:80", "Host: /", "Host: a..b", "Host: .")
	})},
	{"no-host", func(u *unit, raw string) string {
		i := strings.Index(raw, "Host: ")
		if i < 0 {
			return raw
		}
		j := strings.Index(raw[i:], "\r\n")
		return raw[:i] + raw[i+j+2:]
	}},
	{"length", insertLine(func(u *unit) string {
		return "Content-Length: " + u.pick("0", "3", "5", "-1", "+5", "5 ", "5x", "0x5", "", "5, 5", "5,6", "99999999999999999999", "9223372036854775807", "05", "1e1", "\t5", "5\t", "five", "2147483648")
	})},
	{"two-lengths", insertLine(func(u *unit) string {
		return u.pick("Content-Length: 3\r\nContent-Length: 3", "Content-Length: 3\r\nContent-Length: 4", "Content-Length: 4\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 4", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Content-Length: 5\r\nContent-length: 5")
	})},
	{"coding", insertLine(func(u *unit) string {
		return u.pick("Transfer-Encoding: ", "Transfer-Encoding:chunked", "transfer-encoding: CHUNKED", "Transfer-Encoding : chunked", "Transfer_Encoding: chunked") + u.pick("", "chunked", "identity", "gzip, chunked", "chunked, gzip", "xchunked", "chunked;q=1", "chunked\x0b", "chun\r\n ked", ",chunked", "\"chunked\"", "chunked ", "\tchunked")
	})},
	{"chunk", func(u *unit, raw string) string {
		i := strings.Index(raw, "\r\n\r\n")
		if i < 0 {
			return raw
		}
		if !strings.Contains(raw, "hunked") {
			j := strings.Index(raw, "\r\n")
			raw = raw[:j] + "\r\nTransfer-Encoding: chunked" + raw[j:]
			i = strings.Index(raw, "\r\n\r\n")
		}
		return raw[:i+4] + u.pick("3\r\nabc\r\n0\r\n\r\n", "3;a=b\r\nabc\r\n0\r\n\r\n", "3\nabc\n0\n\n", "03\r\nabc\r\n00\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "3\r\nab\r\n0\r\n\r\n", "zz\r\n", "-1\r\n\r\n", "\r\n\r\n", "ffffffffffffffff\r\nabc", "10000000000000000\r\n", "7fffffffffffffff\r\nx", "0x3\r\nabc\r\n0\r\n\r\n", "3\r\nabc\r\n0\r\nTrailer: x\r\n\r\n", "3\r\nabc\r\n0\r\nbad trailer\r\n\r\n", "3\r\nabc0\r\n\r\n", "3\r\nabc\r\n0\r\n", "3\r\nabc", "0\r\n\r", "3;"+strings.Repeat("e", 500)+"\r\nabc\r\n0\r\n\r\n", "3;\"\r\n\"\r\nabc\r\n0\r\n\r\n", " 3\r\nabc\r\n0\r\n\r\n", "3\r\r\nabc\r\n0\r\n\r\n", "0;x\r\n\r\n", "A\r\n0123456789\r\n0\r\n\r\n", "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
	}},
	{"long-line", insertLine(func(u *unit) string {
		return "X-Long: " + strings.Repeat("v", []int{400, 500, 600, 1000, 1010, 1024, 2000, 4090, 8180, 8200, 9000}[u.n(11)])
	})},
	{"many-headers", insertLine(func(u *unit) string {
		return strings.TrimSuffix(strings.Repeat("X-M: "+strings.Repeat("m", u.in(1, 40))+"\r\n", []int{10, 50, 101, 200}[u.n(4)]), "\r\n")
	})},
	{"connection", insertLine(func(u *unit) string {
		return "Connection: " + u.pick("keep-alive, close", "close, keep-alive", "Upgrade", "upgrade, close", "", "x-a", "Keep-Alive", "CLOSE", "closed", "close\t", "close;", "\"close\"")
	})},
	{"upgrade", insertLine(func(u *unit) string {
		return u.pick("Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk", "Upgrade: websocket\r\nConnection: Upgrade")
	})},
	{"expect", insertLine(func(u *unit) string {
		return "Expect: " + u.pick("100-continue", "100-Continue", "200-ok", "", "100-continue, x")
	})},
	{"twice", insertLine(func(u *unit) string {
		h := u.pick("User-Agent: a", "Referer: a", "Content-Type: a", "Range: bytes=0-1", "If-Modified-Since: x", "If-None-Match: \"a\"", "Authorization: Basic YTpi", "Cookie: z=1", "X-Forwarded-For: 9.9.9.9", "Expect: 100-continue", "Upgrade: x", "Via: a", "If-Range: x", "Connection: close", "Keep-Alive: x", "Accept-Encoding: gzip")
		return h + "\r\n" + h
	})},
	{"flip", func(u *unit, raw string) string {
		b := []byte(raw)
		for range u.in(1, 3) {
			if len(b) > 0 {
				b[u.n(len(b))] ^= 1 << u.n(8)
			}
		}
		return string(b)
	}},
	{"insert", func(u *unit, raw string) string {
		i := u.n(len(raw) + 1)
		return raw[:i] + u.pick("\x00", "\r", "\n", " ", "\t", ":", "/", "%", "\xff", "\r\n", "\r\n\r\n", "\x1b", "0", "#", "?") + raw[i:]
	}},
	{"delete", func(u *unit, raw string) string {
		if len(raw) < 2 {
			return raw
		}
		i := u.n(len(raw) - 1)
		return raw[:i] + raw[i+u.in(1, min(4, len(raw)-i)):]
	}},
	{"cut", func(u *unit, raw string) string { return raw[:u.n(len(raw)+1)] }},
	{"junk-after", func(u *unit, raw string) string {
		return raw + u.pick("junk", "\r\n", "\x00\x00", "GET", "GET / HTTP/1.1\r\n", "\r\n\r\n", " ", "x\r\n\r\n")
	}},
	{"not-http", func(u *unit, raw string) string {
		return u.pick("\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "SSH-2.0-x\r\n", "\x80\x2e\x01\x03\x01", "{}\r\n\r\n", "\x00", strings.Repeat("A", 3000), "HELO x\r\n", string(u.randomBytes(40)))
	}},
}

func replaceNth(s, old, repl string, n int) string {
	at := 0
	for range n {
		at += strings.Index(s[at:], old) + len(old)
	}
	i := strings.Index(s[at:], old)
	if i < 0 {
		return s
	}
	return s[:at+i] + repl + s[at+i+len(old):]
}

// DamageNames lists the kinds of damage, for tests and pages.
func DamageNames() []string {
	var out []string
	for _, d := range damages {
		out = append(out, d.name)
	}
	return out
}
