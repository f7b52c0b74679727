package gen

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// Features of what happens to bodies on their way: ranges, slices, what is compressed already, and what is recoded.

// answers is an origin of the unit's whose connections play scripts in turn; a connection more than there are plays the last one. "": there is
// no room for another origin.
func (u *unit) answers(scripts ...[]casefile.Step) string {
	i := len(u.origins)
	if i >= 4 { // see newOrigin
		return ""
	}
	o := casefile.Origin{Addr: fmt.Sprintf("127.0.0.1:%d", originPort+i)}
	for _, s := range scripts {
		o.Conns = append(o.Conns, steady(s, true))
	}
	u.origins = append(u.origins, o)
	return o.Addr
}

// answer is a script that reads one request and sends a response, in up to three writes, and closes.
func (u *unit) answer(resp string) []casefile.Step {
	steps := []casefile.Step{recv(casefile.Request)}
	return append(append(steps, u.writes(resp, 2)...), step(casefile.Close))
}

// writes sends text cut at up to so many places.
func (u *unit) writes(text string, cuts int) (steps []casefile.Step) {
	for range u.n(cuts + 1) {
		if len(text) > 2 {
			k := u.in(1, len(text)-1)
			steps = append(steps, send(text[:k]))
			text = text[k:]
		}
	}
	return append(steps, send(text))
}

// goodRanges are ranges of which most lie within size bytes.
func (u *unit) goodRanges(size int) string {
	at := make([]int, 2*u.in(1, 5))
	for i := range at {
		at[i] = u.n(size)
	}
	if u.pct(70) { // apart from each other and in order
		slices.Sort(at)
	}
	var list []string
	for i := 0; i < len(at); i += 2 {
		a, b := min(at[i], at[i+1]), max(at[i], at[i+1])
		list = append(list, fmt.Sprintf("%d-%d", a, b))
	}
	switch u.n(6) {
	case 0:
		list[len(list)-1] = fmt.Sprintf("%d-", at[len(at)-1])
	case 1:
		list[len(list)-1] = fmt.Sprintf("-%d", u.in(1, size))
	case 2:
		list = append(list, fmt.Sprintf("%d-%d", size, size+3))
	}
	return "bytes=" + strings.Join(list, u.pick(",", ", "))
}

// fRanges has several ranges of one response that are there: of a file, of what an origin sends, of what a filter has changed.
func (u *unit) fRanges() {
	s := u.server()
	n := u.location(s, s.node, "=", "/r.bin")
	if _, ok := u.byPath["u00/html/r.bin"]; n == nil || ok {
		return
	}
	size := []int{40, 700, 5000, 40000}[u.n(4)]
	data := strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz", size/36+1)[:size]
	lines := u.pick("", "Accept-Ranges: bytes\r\n", "Accept-Ranges: bytes\r\nETag: \"r\"\r\n", "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n")
	if addr := ""; u.pct(30) && u.ok("proxy_pass") {
		if addr = u.answers(u.answer(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Type: a/b\r\n%s\r\n%s", size, lines, data))); addr == "" {
			return
		}
		n.Add(u.dir("proxy_pass", originAsURL(addr)))
		u.put(n, "proxy_force_ranges", u.pick("on", "off"))
		u.put(n, "proxy_buffering", u.pick("on", "off"))
	} else {
		u.file("u00/html/r.bin", data, 0, 0)
		u.put(n, "root", "u00/html")
		u.put(n, "output_buffers", u.pick("1 512", "2 1k", "2 32k"))
		u.put(n, "sendfile", u.pick("on", "off"))
	}
	u.put(n, "max_ranges", u.pick("0", "1", "2", "3", "100"))
	u.sprinkle(n, "location", s, 2)
	for range u.in(2, 4) {
		t := u.hit(s, "/r.bin")
		t.headers = append(t.headers, "Range: "+u.goodRanges(size))
		if u.pct(20) {
			t.headers = append(t.headers, "If-Range: "+u.pick("\"r\"", "Tue, 14 Nov 2023 22:13:20 GMT", "W/\"r\""))
		}
	}
}

// fSlice has a response that is put together of slices: right, and wrong in each of the ways that the module looks at.
func (u *unit) fSlice() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	size := []int{4, 8, 100}[u.n(3)]
	total := size*u.in(1, 4) + u.n(size)
	data := strings.Repeat("slices of a body ", total/17+1)[:total]
	first := u.n(total/size + 1)
	from := min(first*size+u.n(size), total-1)
	rng := u.pick("", fmt.Sprintf("bytes=%d-", from), fmt.Sprintf("bytes=%d-%d", from, u.in(from, total-1)), fmt.Sprintf("bytes=%d-%d", from, total+9), fmt.Sprintf("bytes=%d-,1-2", from), fmt.Sprintf("bytes=-%d", u.in(1, total)))
	if rng == "" {
		first = 0
	}
	wrong := -1
	if u.pct(50) {
		wrong = first + u.n(3)
	}
	var scripts [][]casefile.Step
	for i := first; i*size < total || i == first; i++ {
		a, b := i*size, min((i+1)*size, total)
		status, tag, body := "206 Partial Content", "\"t\"", data[min(a, b):b]
		given := fmt.Sprintf("bytes %d-%d/%d", a, b-1, total)
		if i == wrong {
			switch u.n(7) {
			case 0:
				tag = "\"other\""
			case 1:
				given = fmt.Sprintf("bytes %d-%d/%d", a, b, total)
			case 2:
				given = fmt.Sprintf("bytes %d-%d/%d", a, b-1, total+1)
			case 3:
				given = u.pick("bytes 0-3/*", "bytes */10", "bytes 1-2", "x", "bytes  0 - 3 / 9 ", "bytes 9999999999999999999-1/2", "bytes 3-1/9")
			case 4:
				status = u.pick("200 OK", "404 Not Found", "416 No", "500 Err")
			case 5:
				body = body[:len(body)/2]
			case 6:
				given = ""
			}
		}
		resp := "HTTP/1.1 " + status + "\r\nETag: " + tag + fmt.Sprintf("\r\nContent-Length: %d\r\n", b-min(a, b))
		if given != "" {
			resp += "Content-Range: " + given + "\r\n"
		}
		scripts = append(scripts, u.answer(resp+"\r\n"+body))
	}
	addr := u.answers(scripts...)
	if addr == "" {
		return
	}
	n.Add(u.dir("slice", itoa(size)), u.dir("proxy_pass", originAsURL(addr)), u.dir("proxy_set_header", "Range $slice_range"))
	if u.pct(50) {
		u.put(n, "proxy_http_version", "1.1")
	}
	u.sprinkle(n, "location", s, 1)
	lines := u.pick("", "", "X-A: one\r\n")
	if rng != "" {
		lines += "Range: " + rng + "\r\n"
	}
	u.own = append(u.own, ownClients{s.port, []casefile.Section{{Steps: []casefile.Step{
		step(casefile.Settle), send(u.plainGet(s, p+"x", lines)), recv(casefile.Response), recv(casefile.None), send(u.plainGet(s, p+"x", "")), recv(casefile.Response),
	}}}})
}

// packed is text that is compressed, and perhaps spoiled.
func (u *unit) packed(text string) string {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, []int{0, 1, 9}[u.n(3)])
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // of writing to memory at a level that there is
	}
	data := b.Bytes()
	switch u.n(10) {
	case 0:
		data = data[:u.in(1, len(data)-1)]
	case 1:
		data[u.n(len(data))] ^= byte(1 << u.n(8))
	case 2:
		data = append(data, "garbage"...)
	case 3:
		data = append(data, data...)
	}
	return string(data)
}

// fPacked has files and answers that are compressed already: sent as they are, or unpacked for whom does not take them.
func (u *unit) fPacked() {
	s := u.server()
	text := u.pick("", "a", "some text, some text, some more text\n", strings.Repeat("0123456789abcdef", []int{10, 300, 3000}[u.n(3)]))
	var n *conftree.Node
	uri := "/p.txt"
	if u.pct(50) {
		n = u.location(s, s.node, "=", uri)
		if _, ok := u.byPath["u00/html/p.txt"]; n == nil || ok {
			return
		}
		u.file("u00/html/p.txt", text, 0, 0)
		u.file("u00/html/p.txt.gz", u.packed(text), 0, 0)
		u.put(n, "root", "u00/html")
		u.put(n, "gzip_static", u.pick("on", "on", "always", "off"))
	} else {
		var p string
		if n, p = u.prefixLocation(s); n == nil || !u.ok("proxy_pass") {
			return
		}
		uri = p
		body := u.packed(text)
		length := u.pick(fmt.Sprintf("Content-Length: %d\r\n", len(body)), "", "Transfer-Encoding: chunked\r\n")
		if strings.HasPrefix(length, "T") {
			body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		}
		addr := u.answers(u.answer("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: " + u.pick("gzip", "gzip", "gzip", "GZIP", "x-gzip", "deflate") + "\r\n" + u.pick("", "ETag: \"e\"\r\n", "Vary: A\r\n") + length + "\r\n" + body))
		if addr == "" {
			return
		}
		n.Add(u.dir("proxy_pass", originAsURL(addr)))
		u.put(n, "proxy_http_version", u.pick("1.0", "1.1"))
		u.put(n, "proxy_buffering", u.pick("on", "on", "off"))
	}
	u.put(n, "gunzip", u.pick("on", "on", "off"))
	u.put(n, "gunzip_buffers", u.pick("1 512", "2 1k", "32 4k"))
	u.put(n, "gzip_vary", u.pick("on", "off"))
	u.put(n, "gzip_http_version", u.pick("1.0", "1.1"))
	u.put(n, "gzip_proxied", u.pick("any", "off", "expired"))
	u.sprinkle(n, "location", s, 2)
	for range u.in(2, 3) {
		t := u.hit(s, uri)
		t.headers = append(t.headers, u.pick("X-A: one", "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0", "Accept-Encoding: identity", "Accept-Encoding: br, gzip;q=0.2"))
		if u.pct(25) {
			t.headers = append(t.headers, "Range: bytes=1-3")
		}
	}
}

// fRecode has text that is recoded while it comes in pieces, which end within characters.
func (u *unit) fRecode() {
	s := u.server()
	n, p := u.prefixLocation(s)
	if n == nil || !u.ok("proxy_pass") || slices.ContainsFunc(u.http, func(k *conftree.Node) bool { return len(k.Words) > 1 && k.Words[1] == "u00_r" }) {
		return
	}
	m := conftree.B([]string{"charset_map", "u00_r", "utf-8"})
	for _, from := range some(u.rnd, []string{"80 D0B0", "C1 D18F", "E9 C3A9", "a4 E282AC", "61 C3A0", "FF E29C93", "7e CC81"}, 3, 7) {
		from, to, _ := strings.Cut(from, " ")
		m.Add(u.dir(from, to))
	}
	u.http = append(u.http, m)
	from, to := "utf-8", "u00_r"
	if u.pct(40) {
		from, to = to, from
	}
	text := ""
	for range u.in(1, 30) {
		text += u.pick("а", "я", "é", "€", "😀", "a", "~", "&", "\xd0", "\xe2\x82", "\xff", "\x80", "\xe9", "\xc1", "plain words ", "\xf0\x9f", "\xed\xa0\x80", "ж", "中")
	}
	if u.pct(20) {
		text = strings.Repeat(text, 60)
	}
	steps := []casefile.Step{recv(casefile.Request), send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")}
	addr := u.answers(append(append(steps, u.writes(text, 3)...), step(casefile.Close)))
	if addr == "" {
		return
	}
	n.Add(u.dir("proxy_pass", originAsURL(addr)), u.dir("source_charset", from), u.dir("charset", to), u.dir("charset_types", "*"))
	u.put(n, "override_charset", u.pick("on", "off"))
	u.put(n, "proxy_buffering", u.pick("on", "off", "off"))
	u.sprinkle(n, "location", s, 1)
	u.hit(s, p)
	u.hit(s, p+"?a=%e9")
}
