package gen

import (
	"fmt"
	"strings"

	"nginxoracle/oracle/casefile"
)

// originScript is what an origin does with one connection.
func (u *unit) originScript(kind string) []casefile.Step {
	switch kind {
	case "hostile":
		return u.hostileScript()
	case "status":
		return []casefile.Step{recv(casefile.Request),
			send(fmt.Sprintf("HTTP/1.1 %s X\r\nContent-Length: 3\r\nX-A: st\r\n\r\nbad", u.pick("500", "502", "503", "504", "403", "404", "429", "408"))),
			step(u.endOp())}
	case "silent":
		if u.pct(30) {
			return []casefile.Step{recv(casefile.Request), send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")}
		}
		return []casefile.Step{recv(casefile.Request)}
	case "tunnel":
		return u.tunnelScript()
	case "early":
		return []casefile.Step{recv(casefile.Headers), send("HTTP/1.1 " + u.pick("200 OK", "413 Too Large", "401 No") + "\r\nContent-Length: 5\r\n\r\nearly"), step(casefile.Close)}
	case "accel":
		steps := []casefile.Step{recv(casefile.Request), send(u.accelResponse())}
		return append(steps, step(casefile.Close))
	}
	resp, keep := u.goodResponse()
	steps := []casefile.Step{recv(casefile.Request)}
	steps = append(steps, u.pieces(resp)...)
	switch {
	case keep && u.pct(65):
		return append(steps, step(casefile.Again))
	case keep && u.pct(70):
		return steps // the peer closes first
	}
	if keep { // a kept connection that ends at once: whether it was kept must not hang on who is faster
		steps = append(steps, step(casefile.Settle))
	}
	return append(steps, step(casefile.Close))
}

// steady waits for the server to rest wherever what it sees would otherwise hang
// on who is faster: between two writes, before a connection is cut, and before an
// answer to a request that was not read. The reference would answer such a race
// in two ways, and the case would say nothing.
func steady(steps []casefile.Step, all bool) []casefile.Step {
	var out []casefile.Step
	busy, unread := false, true // bytes were sent since the last wait; the script has read nothing yet
	answered := false           // a response was read: the server may be about to close
	for _, s := range steps {
		switch s.Op {
		case casefile.Send, casefile.Shutdown:
			switch {
			case !all && answered:
				out = append(out, recv(casefile.None)) // reads the end, should there be one
			case busy || all && unread:
				out = append(out, step(casefile.Settle))
			}
			busy = true
		case casefile.Close:
			switch {
			case !all && (answered || busy):
				out = append(out, recv(casefile.None))
			case all && unread:
				out = append(out, step(casefile.Settle))
			}
		case casefile.Reset:
			if !all && (answered || busy) {
				out = append(out, recv(casefile.None))
			} else if last := len(out) - 1; last < 0 || out[last].Op != casefile.Settle {
				out = append(out, step(casefile.Settle))
			}
		case casefile.Recv:
			busy, unread = false, s.What == casefile.Headers
			answered = s.What == casefile.Response || s.What == casefile.Head
		case casefile.Settle, casefile.Pause:
			busy, unread, answered = false, false, false
		}
		if s.Op == casefile.Send {
			answered = false
		}
		out = append(out, s)
	}
	return out
}

func (u *unit) endOp() casefile.Op {
	return []casefile.Op{casefile.Close, casefile.Close, casefile.Reset, casefile.Shutdown}[u.n(4)]
}

// pieces splits a response into writes; steady puts waits between them.
func (u *unit) pieces(resp string) []casefile.Step {
	if u.pct(86) || len(resp) < 4 {
		return []casefile.Step{send(resp)}
	}
	var out []casefile.Step
	for len(resp) > 0 {
		k := min(len(resp), u.in(1, len(resp)))
		out = append(out, send(resp[:k]))
		resp = resp[k:]
		if len(out) > 1 {
			return append(out, send(resp))
		}
	}
	return out
}

func (u *unit) originHeaders() string {
	var b strings.Builder
	for range u.n(5) {
		b.WriteString(u.pick(
			"X-A: one\r\n", "X-A: two\r\n", "Server: origin/1\r\n", "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\n", "Content-Type: text/plain\r\n",
			"Content-Type: text/html; charset=utf-8\r\n", "content-type: x/y\r\n", "Set-Cookie: c=1; Path=/\r\n", "Set-Cookie: foo=2; Domain=a.test; Path=/b/\r\n",
			"Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n", "ETag: \"abc\"\r\n", "ETag: W/\"abc\"\r\n", "Cache-Control: max-age=10\r\n", "Cache-Control: no-cache\r\n",
			"Expires: Thu, 01 Jan 1970 00:00:01 GMT\r\n", "Vary: Accept\r\n", "Link: </x>; rel=next\r\n", "Accept-Ranges: bytes\r\n", "Accept-Ranges: none\r\n", "X-Pad: p\r\n",
			"Location: http://127.0.0.1:20005/b/x\r\n", "Location: /rel\r\n", "Location: http://other.test/x\r\n", "Refresh: 5; url=http://127.0.0.1:20005/r\r\n",
			"Connection: keep-alive\r\n", "Connection: close\r\n", "Keep-Alive: timeout=5\r\n", "Content-Encoding: gzip\r\n", "WWW-Authenticate: Basic realm=x\r\n",
			"X-Powered-By: php\r\n", "Via: 1.1 up\r\n", "x_under: u\r\n", "Trailer: X-A\r\n", "X-Empty:\r\n", "X-Sp:   padded   \r\n", "Content-Disposition: x\r\n", "P3P: q\r\n",
			"Upgrade: h2c\r\n", "Transfer-Encoding: identity\r\n", "Status: 404 Nope\r\n", "Content-Language: en\r\n"))
	}
	return b.String()
}

func (u *unit) originBody() string {
	switch u.n(8) {
	case 0:
		return ""
	case 1:
		return strings.Repeat("0123456789abcdef", u.pick16())
	case 2:
		return "line\nline\r\n\x00\xff"
	}
	return u.pick("ok", "hello origin\n", "<html>x</html>", "a")
}

func (u *unit) pick16() int { return []int{1, 16, 64, 255, 256, 257, 300, 500}[u.n(8)] }

// goodResponse is a response by the book, and whether its end is known without closing.
func (u *unit) goodResponse() (string, bool) {
	status := u.pick("200 OK", "200 OK", "200 OK", "200", "200 Fine Words", "201 Created", "206 Partial Content", "301 Moved", "302 Found", "404 Not Found", "500 Err", "204 No Content", "304 Not Modified", "401 Unauthorized", "503 Busy", "299 ?", "418 Tea")
	ver := u.pick("HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0")
	head := ver + " " + status + "\r\n" + u.originHeaders()
	if strings.HasPrefix(status, "301") || strings.HasPrefix(status, "302") {
		head += u.pick("Location: http://127.0.0.1:20005/b/y\r\n", "Location: http://127.0.0.1:20005/\r\n", "Location: https://h/x\r\n", "Location: y\r\n", "Location: http://u00_up0/z\r\n")
	}
	body := u.originBody()
	if strings.HasPrefix(status, "204") || strings.HasPrefix(status, "304") {
		return head + "\r\n", true
	}
	pre := ""
	if u.pct(5) {
		pre = u.pick("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
	}
	switch {
	case u.pct(8): // large ones only with a length: how a chunked answer is cut hangs on how its bytes arrive
		body = strings.Repeat("0123456789abcdef", []int{1024, 2500, 4096, 9000}[u.n(4)])
		fallthrough
	case u.pct(55):
		return pre + head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body), true
	case u.pct(60):
		return pre + head + "Transfer-Encoding: chunked\r\n\r\n" + u.chunked(body, false), true
	}
	return pre + head + "\r\n" + body, false
}

// chunked cuts a body into chunks; odd ones have extensions, capitals, zeros in front, trailers.
func (u *unit) chunked(body string, odd bool) string {
	var b strings.Builder
	for len(body) > 0 {
		k := u.in(1, len(body))
		size := fmt.Sprintf("%x", k)
		if odd || u.pct(10) {
			size = u.pick(fmt.Sprintf("%X", k), "0"+size, "000000000000"+size, size+";ext=1", size+" ; q=\"a\"", size+";", size+"\t", size+";a\rb")
		}
		b.WriteString(size + "\r\n" + body[:k] + "\r\n")
		body = body[k:]
	}
	b.WriteString(u.pick("0\r\n", "0\r\n", "0\r\n", "00\r\n", "0;x\r\n"))
	if u.pct(15) {
		b.WriteString(u.pick("X-A: trailer\r\n", "X-T: a\r\nX-U: b\r\n", "Content-Length: 5\r\n"))
	}
	b.WriteString("\r\n")
	return b.String()
}

func (u *unit) accelResponse() string {
	h := ""
	for range u.in(1, 2) {
		h += u.pick("X-Accel-Redirect: /accel/a.txt\r\n", "X-Accel-Redirect: /accel/nope\r\n", "X-Accel-Redirect: @nope\r\n", "X-Accel-Redirect: /a.txt?q=1\r\n", "X-Accel-Redirect: /accel/../a.txt\r\n",
			"X-Accel-Redirect: bad\r\n", "X-Accel-Redirect: /accel/%61.txt\r\n", "X-Accel-Buffering: no\r\n", "X-Accel-Buffering: yes\r\n", "X-Accel-Charset: koi8-r\r\n", "X-Accel-Expires: 0\r\n", "X-Accel-Expires: @1\r\n", "X-Accel-Limit-Rate: 0\r\n", "X-Accel-Redirect: \r\n", "x-accel-redirect: /accel/dir/\r\n")
	}
	return "HTTP/1.1 " + u.pick("200 OK", "200 OK", "302 Found", "404 Nope") + "\r\n" + h + u.originHeaders() + "Content-Length: 4\r\n\r\nbody"
}

// hostileScript answers wrongly, partly, or not at all.
func (u *unit) hostileScript() []casefile.Step {
	r := step(casefile.Recv)
	r.What = casefile.Request
	with := func(data string, op casefile.Op) []casefile.Step {
		return append(append([]casefile.Step{r}, u.pieces(data)...), step(op))
	}
	big := strings.Repeat("x", u.pick16())
	switch u.n(34) {
	case 0:
		return []casefile.Step{r, step(casefile.Close)}
	case 1:
		return []casefile.Step{r, step(casefile.Reset)}
	case 2:
		return []casefile.Step{step(casefile.Close)}
	case 3:
		return []casefile.Step{step(casefile.Reset)}
	case 4:
		return with(u.pick("HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nX-A: 1", "HTTP/1.1 20", "HTT", "HTTP/1.1 200 OK\r\nX-A: 1\r\n\r"), u.endOp())
	case 5:
		return with("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", u.endOp())
	case 6:
		return with("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nlonger than that", u.endOp())
	case 7:
		return with("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: "+u.pick("3", "4", "x")+"\r\n\r\nabc", u.endOp())
	case 8:
		return with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"+u.chunked("abc", false), u.endOp())
	case 9:
		return with("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: "+u.pick("chunked", "gzip, chunked", "Chunked", "xchunked", "identity", "chunked, chunked", "")+"\r\n\r\nabc", u.endOp())
	case 10:
		return with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+u.chunked("abcdef"+big, true), u.endOp())
	case 11:
		return with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+u.pick("3\r\nabc", "3\r\nabcd\r\n0\r\n\r\n", "zz\r\n", "ffffffffffffffff\r\nabc", "-1\r\n", "3\nabc\n0\n\n", "3 \r\nabc\r\n0\r\n\r\n", "\r\n", "10000000000000000\r\n", "3\r\nabc\r\n0\r\nX-A: t\r\n", "3\r\nabc\r\n0\r\n", "3;"+big+"\r\nabc\r\n0\r\n\r\n", "3\rabc\r\n0\r\n\r\n"), u.endOp())
	case 12:
		return with(u.pick("HTTP/1.2 200 OK", "HTTP/2.0 200 OK", "HTTP/0.9 200 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 099 X", "HTTP/1.1 abc", "HTTP/1.1  200 OK", "http/1.1 200 OK", "ICY 200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 200OK", "HTTP/1.1 000 Z", "HTTP/11 200 OK", "HTTP/1.1\t200 OK", "HTTP/1.1 200 \xff\x01")+"\r\nContent-Length: 2\r\n\r\nok", u.endOp())
	case 13:
		return with("just a body, no status line\n"+u.pick("", big), u.endOp())
	case 14:
		return with("HTTP/1.1 200 OK\nX-A: lf\nContent-Length: 2\n\nok", u.endOp())
	case 15:
		return with("HTTP/1.1 200 OK\r\nX-A: a\r\n "+u.pick("folded", "\t", "")+"\r\nContent-Length: 2\r\n\r\nok", u.endOp())
	case 16:
		return with("HTTP/1.1 200 OK\r\n"+u.pick("no colon here", ": empty name", "Bad Name: x", "X-A : sp", "X-\x00: nul", "X-A: nul\x00", "X-A: \x01ctl", "X\xe9: hi", "X-A: cr\rx", "(paren): x")+"\r\nContent-Length: 2\r\n\r\nok", u.endOp())
	case 17:
		return with("HTTP/1.1 200 OK\r\nX-Big: "+strings.Repeat("h", []int{200, 2000, 3900, 4096, 5000, 9000}[u.n(6)])+"\r\nContent-Length: 2\r\n\r\nok", u.endOp())
	case 18:
		return with("HTTP/1.1 "+u.pick("100 Continue", "102 P", "103 E", "101 Switching Protocols")+"\r\nX-A: 1xx\r\n\r\n"+u.pick("", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), u.endOp())
	case 19:
		return with("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nraw bytes", u.endOp())
	case 20:
		return with("HTTP/1.1 "+u.pick("204 N", "304 N", "204 N", "205 R")+"\r\nContent-Length: 3\r\n\r\nabc", u.endOp())
	case 21:
		return with("HTTP/1.1 200 OK\r\nConnection: "+u.pick("close", "keep-alive", "upgrade", "close, keep-alive")+"\r\nContent-Length: 2\r\n\r\nok", casefile.Again)
	case 22:
		return []casefile.Step{send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly"), r, step(casefile.Close)}
	case 23:
		return []casefile.Step{recv(casefile.Headers), send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), step(u.endOp())}
	case 24:
		return with("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext", casefile.Again)
	case 25:
		return with("\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", u.endOp())
	case 26:
		return with("HTTP/1.1 200 OK\r\nContent-Length: "+u.pick("-1", "+2", "2 ", " 2", "0x2", "2,2", "99999999999999999999", "", "2abc", "9223372036854775807")+"\r\n\r\nok", u.endOp())
	case 27:
		return with("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+u.chunked("hi", false), u.endOp())
	case 28:
		return with("HTTP/1.1 200 OK\r\nLast-Modified: "+u.pick("garbage", "Tue, 14 Nov 2023 22:13:20 GMT", "Tuesday, 14-Nov-23 22:13:20 GMT")+"\r\nETag: "+u.pick(`"e"`, "bare", `W/"e"`)+"\r\nContent-Length: 10\r\n\r\n0123456789", u.endOp())
	case 29:
		return with("HTTP/1.1 200 OK\r\nServer: a\r\nServer: b\r\nDate: x\r\nDate: y\r\nContent-Type: a/b\r\nContent-Type: c/d\r\nLocation: /1\r\nLocation: /2\r\nLast-Modified: x\r\nETag: 1\r\nETag: 2\r\nContent-Length: 2\r\n\r\nok", u.endOp())
	case 30:
		return with("HTTP/1.1 200 OK\r\n\r\n"+big, u.endOp())
	case 31:
		return with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"+u.chunked("dup", false), u.endOp())
	case 32:
		return []casefile.Step{r, send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"), pause(u.in(2, 6)), send("def"), step(casefile.Again)}
	}
	return []casefile.Step{r, send(string(u.randomBytes(u.in(1, 60)))), step(u.endOp())}
}

func (u *unit) randomBytes(n int) []byte {
	b := make([]byte, n)
	u.rand().Read(b)
	return b
}
