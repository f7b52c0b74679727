package http_test

import (
	"net"
	"testing"
)

// An exchange on a connection that is warm takes no memory.
func TestNoAllocationWhenWarm(t *testing.T) {
	addr, _ := serve(t, "keepalive_requests 1000000;\n"+oneServer)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	req := []byte("GET /a HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\n\r\n")
	buf := make([]byte, 4096)
	once := func() {
		if _, err := c.Write(req); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(buf); err != nil {
			t.Fatal(err)
		}
	}
	once()
	if n := testing.AllocsPerRun(200, once); n >= 1 {
		t.Errorf("%v allocations a request, want none", n)
	}
}
