package proto

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// fits is what a socket's buffer surely holds, so that one goroutine can write all and then read it.
const fits = 32 << 10

// bytesOf is what a request is on the wire, as the first of its connection.
func bytesOf(tb testing.TB, req *Request) []byte {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	c, peer := NewConn(fds[0]), os.NewFile(uintptr(fds[1]), "peer")
	defer peer.Close()
	if err := c.Send(req); err != nil {
		tb.Fatal(err)
	}
	c.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(peer); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// Whatever a peer sends, in whatever pieces, receiving ends in values or in an error; a request comes out as it
// went in, and rubbish behind it does not change it.
func FuzzConn(f *testing.F) {
	names, err := filepath.Glob("../../../corpus/*.txtar")
	if err != nil || len(names) == 0 {
		f.Fatalf("no corpus: %v", err)
	}
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		text = text[:min(len(text), 200)] // small inputs are what the engine makes most of
		req := &Request{Op: OpReset, Files: []File{{Path: filepath.Base(name), Data: text, Mode: 0o644}}}
		f.Add(bytesOf(f, req), string(OpCommand), text, i)
	}
	f.Add([]byte{}, "", []byte("-t"), 0)
	f.Add([]byte{0xf8, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "hello", []byte{}, -1) // a message of 2^63 bytes
	f.Fuzz(func(t *testing.T, raw []byte, op string, data []byte, n int) {
		if len(raw)+len(data)+2*len(op) > fits {
			return
		}
		want := &Request{Op: Op(op), Name: op, Data: data, N: n, Limit: time.Duration(n), Mine: []uint32{uint32(n)}}
		if len(data) == 0 {
			want.Data = nil // nothing and empty are the same on the wire
		}
		for _, c := range []struct {
			wire []byte
			want *Request
		}{{raw, nil}, {append(bytesOf(t, want), raw...), want}} {
			if got := receive(t, c.wire); c.want != nil && (len(got) == 0 || !cmp.Equal(got[0], c.want)) {
				t.Fatalf("received %+v, sent %+v", got, c.want)
			}
		}
	})
}

// receive reads requests to the end of what the peer has written.
func receive(t *testing.T, wire []byte) (got []*Request) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, peer := NewConn(fds[0]), os.NewFile(uintptr(fds[1]), "peer")
	defer c.Close()
	if _, err := peer.Write(wire); err != nil {
		t.Fatal(err)
	}
	peer.Close()
	for {
		req := new(Request)
		if err := c.Recv(req); err != nil {
			return got
		}
		got = append(got, req)
	}
}
