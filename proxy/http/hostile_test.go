package http_test

import (
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// hostile are streams that a server must survive; random cuts, repeats, aborts and damage are added.
var hostile = []string{
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc",
	"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET /404 HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
	"GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /../../ HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /" + strings.Repeat("a", 40000) + " HTTP/1.1\r\n",
	"GET / HTTP/1.1\r\nX: " + strings.Repeat("b", 40000) + "\r\n\r\n",
	"GET / HTTP/1.1\r\n" + strings.Repeat("X-Y: z\r\n", 2000) + "\r\n",
	"\r\n\r\n\r\n\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"GET /404\r\n",
	"\x00\x00\x00",
}

// A server that has been through thousands of broken streams has as many goroutines, descriptors
// and connections as before, has logged no alert, and still answers.
func TestHostileStreamsLeaveNothing(t *testing.T) {
	// A reset that is found while a body is thrown away leaves the connection to the keep-alive timer, as in nginx.
	addr, mem := serve(t, `server { listen 127.0.0.1:8080; client_max_body_size 8; lingering_close off; client_header_timeout 1s;
		lingering_timeout 1s; keepalive_timeout 1s;
		location / { answer 200 hello; } location /404 { answer 404 x; } }`)
	answers := func() {
		t.Helper()
		if got := talk(t, addr, "GET / HTTP/1.0\r\n\r\n"); !strings.HasSuffix(got, "\r\n\r\nhello") {
			t.Fatalf("got %q\nlog:\n%s", got, mem)
		}
	}
	answers()
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	const seed = 1
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 600 {
		attack(t, rnd, addr)
	}
	answers()
	settles(t, goroutines, files, mem)
	if log := mem.String(); strings.Contains(log, "[alert]") || strings.Contains(log, "[crit]") {
		t.Errorf("seed %d: the log has\n%s", seed, log)
	}
}

// The same behind proxy_pass, with an origin that is as broken as the clients: no connection to it is left either.
func TestHostileOriginsLeaveNothing(t *testing.T) {
	const seed = 2
	origin := brokenOrigin(t, seed)
	addr, mem := serve(t, `server { listen 127.0.0.1:8080; lingering_close off; client_header_timeout 1s; client_body_timeout 1s;
		lingering_timeout 1s; keepalive_timeout 1s; proxy_read_timeout 1s; proxy_send_timeout 1s;
		location / { proxy_pass http://`+origin+`; } location /local { answer 200 hello; } }`)
	answers := func() {
		t.Helper()
		if got := talk(t, addr, "GET /local HTTP/1.0\r\n\r\n"); !strings.HasSuffix(got, "\r\n\r\nhello") {
			t.Fatalf("got %q\nlog:\n%s", got, mem)
		}
	}
	answers()
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		attack(t, rnd, addr)
	}
	answers()
	settles(t, goroutines, files, mem)
	log := mem.String()
	if strings.Contains(log, "[alert]") || strings.Contains(log, "[crit]") {
		t.Errorf("seed %d: the log has\n%s", seed, log)
	}
	if !strings.Contains(log, "upstream") {
		t.Errorf("seed %d: nothing was said of the origin: it was not reached\n%s", seed, log)
	}
}

// brokenOrigin answers each connection with one of several right and wrong responses, and goes away.
func brokenOrigin(t *testing.T, seed uint64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	answers := []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 20000),
		"HTTP/1.1 100 Continue\r\n\r\n", "\x00\x01\x02", "",
	}
	go func() {
		rnd := rand.New(rand.NewPCG(seed, 1))
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte(answers[rnd.IntN(len(answers))]))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// settles waits until there are no more goroutines and descriptors than before.
func settles(t *testing.T, goroutines, files int, mem *logMemory) {
	t.Helper()
	// The server closes its side when it has seen the client's end: that is soon, and may not be now.
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		g, f := runtime.NumGoroutine(), descriptors(t)
		if g <= goroutines && f <= files {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines and %d descriptors before, %d and %d after\nlog:\n%s", goroutines, files, g, f, mem)
		}
	}
}

// attack sends one broken stream, in pieces, and goes away in one of several ways.
func attack(t *testing.T, rnd *rand.Rand, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tcp := c.(*net.TCPConn)
	text := []byte(hostile[rnd.IntN(len(hostile))])
	for range rnd.IntN(4) {
		text[rnd.IntN(len(text))] = byte(rnd.Uint32())
	}
	for len(text) > 0 {
		n := 1 + rnd.IntN(len(text))
		if _, err := c.Write(text[:n]); err != nil {
			return // the server had enough
		}
		if text = text[n:]; rnd.IntN(6) == 0 {
			break
		}
	}
	switch rnd.IntN(3) {
	case 0:
		if err := tcp.SetLinger(0); err != nil {
			t.Fatal(err)
		}
	case 1:
		if tcp.CloseWrite() == nil {
			buf := make([]byte, 4096)
			for {
				if _, err := c.Read(buf); err != nil {
					return
				}
			}
		}
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
