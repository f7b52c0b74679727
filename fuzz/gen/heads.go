package gen

import (
	"fmt"
	"slices"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// fHeads has requests whose heads are about as long as the buffers for them, in one stream of bytes that is cut anywhere: what is
// behind a body, or behind a request, moves from one buffer to another, and the large ones are used again.
func (u *unit) fHeads() {
	s := u.server()
	set := func(k *conftree.Node) bool {
		return strings.HasSuffix(k.Name(), "client_header_buffers") || k.Name() == "client_header_buffer_size"
	}
	if s.timers || slices.ContainsFunc(s.node.Kids, set) {
		return
	}
	n, p := u.prefixLocation(s)
	if n == nil {
		return
	}
	if u.pct(70) && u.ok("proxy_pass") { // the body is read, not discarded
		n.Add(u.dir("proxy_pass", u.originURL("good")))
		u.put(n, "client_body_buffer_size", u.pick("1", "8", "64", "1k", "8k"))
	}
	large := []int{512, 600, 1024, 2048}[u.n(4)]
	small := []int{64, 128, 256, 512, 1024}[u.n(5)]
	u.put(s.node, "large_client_header_buffers", fmt.Sprintf("%d %d", u.in(1, 4), large))
	u.put(s.node, "client_header_buffer_size", itoa(small))
	if u.pct(40) {
		u.behindBody(s, p, large)
		return
	}
	stream := ""
	k := u.in(3, 6)
	for i := range k {
		stream += u.longHead(s, p, i, small, large)
	}
	c := casefile.Section{Steps: []casefile.Step{step(casefile.Settle)}}
	for len(stream) > 0 {
		cut := len(stream)
		switch at := strings.Index(stream, "\r\n\r\n") + len("\r\n\r\n"); u.n(4) {
		case 0: // anywhere
			cut = 1 + u.n(len(stream))
		case 1: // behind a head
			cut = min(at, len(stream))
		case 2: // a few bytes of the body too
			cut = min(at+u.in(1, 6), len(stream))
		}
		c.Steps = append(c.Steps, send(stream[:cut]), step(casefile.Settle))
		stream = stream[cut:]
	}
	for range k {
		c.Steps = append(c.Steps, recv(casefile.Response))
	}
	u.own = append(u.own, ownClients{s.port, []casefile.Section{c}})
}

// behindBody has a head that was read along with the body before it, and is as long as two buffers. The first request has needed two, and
// the second one stands in one of them: the other is free to be used again, which a connection that has been idle has none of.
func (u *unit) behindBody(s *server, uri string, large int) {
	field := func(of int) string { return fmt.Sprintf("X-%c: %s\r\n", 'A'+u.n(4), strings.Repeat("f", max(0, of))) }
	first := u.plainGet(s, uri+"?q="+strings.Repeat("q", u.in(large/3, 2*large/3)), field(u.in(large/2, large-60)))
	post := "POST " + uri + " HTTP/1.1\r\nHost: " + s.hosts[0] + "\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab"
	last := u.plainGet(s, uri+"?q="+strings.Repeat("q", u.in(large/4, 2*large/3)), field(u.in(large/4, large-40))+field(u.in(0, large/2)))
	cut := u.in(large/4, min(large, len(last)))
	c := casefile.Section{Steps: []casefile.Step{
		step(casefile.Settle), send(first + post), recv(casefile.Response), step(casefile.Settle),
		send("c\r\n0\r\n\r\n" + last[:cut]), step(casefile.Settle), send(last[cut:]), recv(casefile.Response), recv(casefile.Response),
		send(u.plainGet(s, uri, "")), recv(casefile.Response),
	}}
	u.own = append(u.own, ownClients{s.port, []casefile.Section{c}})
}

// longHead is a request with fields of any length up to a little more than one of the buffers takes, and perhaps a body.
func (u *unit) longHead(s *server, uri string, i, small, large int) string {
	about := func() int {
		return max(0, []int{0, 8, small / 2, small, small + large, large / 2, large, large, 2 * large}[u.n(9)]-u.in(0, 60)+u.n(20))
	}
	method, body := "GET", ""
	switch u.n(3) {
	case 0:
		method, body = "POST", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"+u.pick("0\r\n\r\n", "a\r\n0123456789\r\n0\r\n\r\n", "1;x=y\r\nz\r\n000\r\nT: u\r\n\r\n")
	case 1:
		b := strings.Repeat("b", u.in(0, 40))
		method, body = "POST", fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(b), b)
	default:
		body = "\r\n"
	}
	line := uri
	if u.pct(40) {
		line += fmt.Sprintf("?q%d=", i) + strings.Repeat("q", about())
	}
	head := method + " " + line + " HTTP/1.1\r\nHost: " + s.hosts[0] + "\r\n"
	for j := range u.n(3) {
		head += fmt.Sprintf("X-%c: %d%s\r\n", 'A'+j, i, strings.Repeat(string(rune('a'+i)), about()))
	}
	return head + body
}
