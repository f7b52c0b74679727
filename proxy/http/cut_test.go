package http_test

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
)

// oneClient is a kernel with one client: it hands out the client's pieces one after the other,
// each when the server has read the one before and sleeps, and takes at most room bytes of the
// answer at a time when room is not 0.
type oneClient struct {
	pieces   [][]byte
	now      []byte
	room     int
	space    int
	out      bytes.Buffer
	accepted bool
	ended    bool // the end of the client's stream has been told
	closed   bool
	done     bool
	slots    map[int][2]uint32
}

const (
	listenFD = 3
	clientFD = 4
)

func (k *oneClient) Accept(int) (int, ev.Addr, error) {
	if k.accepted {
		return 0, ev.Addr{}, syscall.EAGAIN
	}
	k.accepted = true
	return clientFD, ev.Addr{Family: ev.INET, IP: [16]byte{127, 0, 0, 1}, Port: 1}, nil
}

func (k *oneClient) Read(fd int, p []byte) (int, error) {
	if len(k.now) == 0 {
		if k.ended {
			return 0, nil
		}
		return 0, syscall.EAGAIN
	}
	n := copy(p, k.now)
	k.now = k.now[n:]
	return n, nil
}

func (k *oneClient) Peek(fd int, p []byte) (int, error) { return copy(p, k.now), nil }

func (k *oneClient) Readv(fd int, iov [][]byte) (int, error) { return k.Read(fd, iov[0]) }

func (k *oneClient) Write(fd int, p []byte) (int, error) {
	if k.room == 0 {
		return k.out.Write(p)
	}
	if k.space == 0 {
		return 0, syscall.EAGAIN
	}
	n := min(len(p), k.space)
	k.out.Write(p[:n])
	k.space -= n
	return n, nil
}

func (k *oneClient) Writev(fd int, iov [][]byte) (int, error) {
	total := 0
	for _, p := range iov {
		n, err := k.Write(fd, p)
		total += n
		if err != nil && total == 0 {
			return 0, err
		}
		if n < len(p) {
			break
		}
	}
	return total, nil
}

func (k *oneClient) Sendfile(out, in int, off *int64, n int) (int, error) {
	return 0, syscall.EINVAL
}

func (k *oneClient) EpollAdd(fd int, slot, gen uint32, mode ev.Mode) error {
	k.slots[fd] = [2]uint32{slot, gen}
	return nil
}

func (k *oneClient) EpollWait(evs []ev.Ready, timeout int) (int, error) {
	if timeout == 0 {
		return 0, nil // something is posted
	}
	if !k.accepted {
		evs[0] = ev.Ready{Slot: k.slots[listenFD][0], Gen: k.slots[listenFD][1], Read: true}
		return 1, nil
	}
	if k.closed {
		k.done = true
		return 0, nil
	}
	r := ev.Ready{Slot: k.slots[clientFD][0], Gen: k.slots[clientFD][1]}
	switch {
	case k.room != 0 && k.space == 0:
		k.space = k.room
		r.Write = true
	case len(k.pieces) > 0:
		k.now = append(k.now, k.pieces[0]...)
		k.pieces = k.pieces[1:]
		r.Read = true
	case !k.ended:
		k.ended = true
		r.Read, r.RdHup = true, true
	default:
		k.done = true
		return 0, nil
	}
	evs[0] = r
	return 1, nil
}

func (k *oneClient) Socket(ev.Addr) (int, error)            { return -1, syscall.EINVAL }
func (k *oneClient) Connect(int, ev.Addr) error             { return syscall.EINVAL }
func (k *oneClient) Bind(int, ev.Addr) error                { return nil }
func (k *oneClient) Listen(int, int) error                  { return nil }
func (k *oneClient) SockError(int) error                    { return nil }
func (k *oneClient) SetInt(fd, level, opt, v int) error     { return nil }
func (k *oneClient) GetInt(fd, level, opt int) (int, error) { return 0, nil }
func (k *oneClient) LingerReset(int) error                  { return nil }
func (k *oneClient) Shutdown(int, int) error                { return nil }
func (k *oneClient) Close(fd int) error                     { k.closed = k.closed || fd == clientFD; return nil }
func (k *oneClient) LocalAddr(int) (ev.Addr, error) {
	return ev.Addr{Family: ev.INET, IP: [16]byte{127, 0, 0, 1}, Port: 8080}, nil
}
func (k *oneClient) EpollDel(int) error { return nil }
func (k *oneClient) Wake()              {}
func (k *oneClient) Now() (int64, int)  { return 1_000_000_000, 0 }
func (k *oneClient) Mono() int64        { return 1 }

// exchange plays the pieces and gives what the client got.
func exchange(t *testing.T, conf *served, room int, pieces ...[]byte) string {
	t.Helper()
	k := &oneClient{pieces: pieces, room: room, space: room, slots: map[int][2]uint32{}}
	l := ev.NewLoop(k, 16, conf.log)
	l.Panicked = http.Panicked
	if err := l.Listen(&ev.Listener{FD: listenFD, Text: "127.0.0.1:8080", Handler: http.InitConnection, Data: conf.port, Log: conf.log}); err != nil {
		t.Fatal(err)
	}
	for turn := 0; !k.done; turn++ {
		if turn > 100000 {
			t.Fatal("no end after 100000 turns")
		}
		l.Turn()
	}
	return k.out.String()
}

type served struct {
	port any
	log  *elog.Log
	mem  *logMemory
}

func prepare(t *testing.T, inside string) *served {
	cycle, mem := readConf(t, inside)
	return &served{port: cycle.Listen[0].Servers, log: cycle.Log, mem: mem}
}

const cutServer = `
client_header_buffer_size 64;
large_client_header_buffers 2 512;
server {
	listen 127.0.0.1:8080;
	location / { answer 200 "a text that is sent as it is"; }
	location /404 { answer 404 x; }
	location /500 { answer 500 x; }
	location /302 { answer 302 x; }
	location /big { answer 200 "` + "%s" + `"; }
}
`

var cutCorpus = []string{
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a\r\n",
	"\r\n\r\nGET /%61/../b?c=d#e HTTP/1.1\nHost: a\n\n",
	"HEAD /404 HTTP/1.1\r\nHost: a\r\n\r\nGET /404 HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: 0123456789012345678901234567890123456789012345678901234567890123456789\r\nY: z\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /" + strings.Repeat("l", 300) + " HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\nGET /302 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /" + strings.Repeat("l", 600) + " HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("l", 600) + "\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\n\r\n",
	"G@T / HTTP/1.1\r\n\r\n",
	"GET / HTTP/3.0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: 1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabcGET /",
	"GET /500 HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
}

// The answer to a request does not depend on how its bytes arrive, nor on how its own bytes are taken.
func TestCutAnywhere(t *testing.T) {
	conf := prepare(t, fmt.Sprintf(cutServer, strings.Repeat("0123456789", 100)))
	for _, in := range cutCorpus {
		want := exchange(t, conf, 0, []byte(in))
		if !strings.Contains(want, "<") && !strings.Contains(want, "text") && !strings.Contains(want, "0123456789") {
			t.Errorf("%q: no answer: %q\n%s", in, want, conf.mem)
		}
		for i := 1; i < len(in); i++ {
			if got := exchange(t, conf, 0, []byte(in[:i]), []byte(in[i:])); got != want {
				t.Fatalf("%q cut at %d:\ngot  %q\nwant %q", in, i, got, want)
			}
		}
		var bytewise [][]byte
		for i := range in {
			bytewise = append(bytewise, []byte{in[i]})
		}
		if got := exchange(t, conf, 0, bytewise...); got != want {
			t.Fatalf("%q byte by byte:\ngot  %q\nwant %q", in, got, want)
		}
		for _, room := range []int{1, 7, 200} {
			if got := exchange(t, conf, room, []byte(in)); got != want {
				t.Fatalf("%q answered by %d bytes:\ngot  %q\nwant %q", in, room, got, want)
			}
		}
	}
}
