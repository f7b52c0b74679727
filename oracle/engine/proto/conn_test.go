package proto

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func pair(t *testing.T) (*Conn, *Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b := NewConn(fds[0]), NewConn(fds[1])
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// Values of every size arrive whole, with the descriptors that were sent beside them.
func TestValuesAndDescriptors(t *testing.T) {
	a, b := pair(t)
	sent := make(chan error, 1)
	sizes := []int{0, 1, 64 << 10, 5 << 20}
	go func() {
		for i, size := range sizes {
			fds := make([]int, i)
			for j := range fds {
				fds[j], _ = unix.Dup(0)
			}
			err := a.Send(&Answer{FDs: i, Stdout: bytes.Repeat([]byte{byte(i)}, size)}, fds...)
			for _, fd := range fds {
				unix.Close(fd)
			}
			if err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for i, size := range sizes {
		var ans Answer
		if err := b.Recv(&ans); err != nil {
			t.Fatal(err)
		}
		if len(ans.Stdout) != size || ans.FDs != i {
			t.Errorf("value %d has %d bytes and %d descriptors, want %d and %d", i, len(ans.Stdout), ans.FDs, size, i)
		}
		fds, err := b.TakeFDs(i)
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			if err := os.NewFile(uintptr(fd), "taken").Close(); err != nil {
				t.Errorf("descriptor %d of value %d: %v", fd, i, err)
			}
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if _, err := b.TakeFDs(1); err == nil {
		t.Error("a descriptor was taken that was never sent")
	}
}

func TestMostDescriptors(t *testing.T) {
	a, b := pair(t)
	fds := make([]int, MaxFDs)
	for i := range fds {
		fds[i] = 0
	}
	if err := a.Send(&Answer{FDs: len(fds)}, fds...); err != nil {
		t.Fatal(err)
	}
	var ans Answer
	if err := b.Recv(&ans); err != nil {
		t.Fatal(err)
	}
	got, err := b.TakeFDs(MaxFDs)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range got {
		unix.Close(fd)
	}
	if err := a.Send(&Answer{}, make([]int, MaxFDs+1)...); err == nil {
		t.Error("more descriptors than fit were sent")
	}
}

func TestEndOfPeer(t *testing.T) {
	a, b := pair(t)
	a.Close()
	if err := b.Recv(new(Answer)); !errors.Is(err, io.EOF) {
		t.Errorf("receive after the peer's end: %v, want EOF", err)
	}
	if err := b.Send(new(Answer)); !errors.Is(err, unix.EPIPE) {
		t.Errorf("send after the peer's end: %v, want EPIPE", err)
	}
}

// The receiver of a whole value is the only one who holds what came with it: what it closes is closed.
func TestDescriptorsThatAreSentAway(t *testing.T) {
	a, b := pair(t)
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	go a.SendAway(&Answer{FDs: 1}, p[1])
	var ans Answer
	if err := b.Recv(&ans); err != nil {
		t.Fatal(err)
	}
	fds, err := b.TakeFDs(1)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fds[0])
	if n, err := unix.Read(p[0], make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("read: %d %v: somebody else can still write", n, err)
	}
}
