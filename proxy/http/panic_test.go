package http_test

import (
	"strings"
	"testing"

	"nginxoracle/proxy/http"
)

// A panic in a handler costs its own connection: the file that the request had open is closed, and
// the next client is served.
func TestPanicCostsOneClient(t *testing.T) {
	conf := prepare(t, `server {
		listen 127.0.0.1:8080;
		location / { answer 200 hello; }
		location /panic { answer 200 panic; }
	}`)
	cleaned := false
	panicking = func(r *http.Request) {
		r.AddCleanup(func() { cleaned = true })
		panic("for the test")
	}
	defer func() { panicking = nil }()
	if got := exchange(t, conf, 0, []byte("GET /panic HTTP/1.1\r\nHost: a\r\n\r\n")); got != "" {
		t.Errorf("got %q after a panic, want nothing", got)
	}
	if !cleaned {
		t.Error("the request was not cleaned up")
	}
	if got := exchange(t, conf, 0, []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); !strings.HasSuffix(got, "hello") {
		t.Errorf("got %q from the next connection", got)
	}
	if !strings.Contains(conf.mem.String(), "[alert] ") {
		t.Errorf("the panic was not logged:\n%s", conf.mem)
	}
}
