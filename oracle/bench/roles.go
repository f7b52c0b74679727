package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// The origin and the open-loop client are this program again, each on its own core: `oracle bench-role`.

// Origin answers every request on addr with a body of n bytes, kept alive unless the
// request is HTTP/1.0 or says close. One epoll loop, two system calls a request: it
// has to be far from the limit of what it serves.
func Origin(addr string, n int) error {
	runtime.LockOSThread()
	lfd, err := listen(addr)
	if err != nil {
		return fmt.Errorf("origin: listen %s: %w", addr, err)
	}
	body := bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n]
	keep := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", n, body)
	gone := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", n, body)
	ep, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	add := func(fd int) error {
		return syscall.EpollCtl(ep, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
	}
	if err := add(lfd); err != nil {
		return err
	}
	buf := make([]byte, 16<<10)
	evs := make([]syscall.EpollEvent, 256)
	pending := map[int][]byte{} // what did not fit the socket yet
	for {
		k, err := syscall.EpollWait(ep, evs, -1)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return err
		}
		for _, ev := range evs[:max(k, 0)] {
			fd := int(ev.Fd)
			if fd == lfd {
				for {
					c, _, err := syscall.Accept4(lfd, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
					if err != nil {
						break
					}
					if err := errors.Join(syscall.SetsockoptInt(c, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1), add(c)); err != nil {
						return err
					}
				}
				continue
			}
			out := pending[fd]
			closing := false
			if out == nil {
				n, err := syscall.Read(fd, buf)
				if err == syscall.EAGAIN {
					continue
				}
				if n <= 0 || err != nil {
					syscall.Close(fd)
					continue
				}
				out = keep
				if bytes.Contains(buf[:n], []byte(" HTTP/1.0\r\n")) || bytes.Contains(buf[:n], []byte("Connection: close\r\n")) {
					out, closing = gone, true
				}
			}
			m, err := syscall.Write(fd, out)
			if err != nil && err != syscall.EAGAIN {
				delete(pending, fd)
				syscall.Close(fd)
				continue
			}
			out = out[max(m, 0):]
			switch {
			case len(out) > 0 && !closing:
				pending[fd] = out
				err = syscall.EpollCtl(ep, syscall.EPOLL_CTL_MOD, fd, &syscall.EpollEvent{Events: syscall.EPOLLOUT, Fd: int32(fd)})
			case pending[fd] != nil:
				delete(pending, fd)
				err = syscall.EpollCtl(ep, syscall.EPOLL_CTL_MOD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
			case closing:
				err = syscall.Close(fd)
			default:
				err = nil
			}
			if err != nil {
				return err
			}
		}
	}
}

func listen(addr string) (int, error) {
	sa, err := sockaddr(addr)
	if err != nil {
		return 0, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	return fd, errors.Join(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), syscall.Bind(fd, sa), syscall.Listen(fd, 1024))
}

func sockaddr(addr string) (*syscall.SockaddrInet4, error) {
	var a, b, c, d byte
	var port int
	if _, err := fmt.Sscanf(addr, "%d.%d.%d.%d:%d", &a, &b, &c, &d, &port); err != nil {
		return nil, fmt.Errorf("address %q: want IPv4:PORT", addr)
	}
	return &syscall.SockaddrInet4{Addr: [4]byte{a, b, c, d}, Port: port}, nil
}

// OpenLoopJob asks for requests at a fixed rate, whether or not the server keeps up; at rate 0 for one
// request at a time.
type OpenLoopJob struct {
	Addr    string
	Request []byte
	Length  int // of the whole response
	Rate    int // requests a second
	Conns   int
	Seconds float64
}

// OpenLoop sends requests when they are due, and counts each one's latency from
// that time, so that a server that stalls is charged for the requests that
// waited behind the stall (coordinated omission). It sleeps in ppoll until a response comes
// or the next request is due, so that an origin on the same core gets its time.
func OpenLoop(in io.Reader, out io.Writer) error {
	runtime.LockOSThread()
	var job OpenLoopJob
	if err := json.NewDecoder(in).Decode(&job); err != nil {
		return fmt.Errorf("open loop: read the job: %w", err)
	}
	sa, err := sockaddr(job.Addr)
	if err != nil {
		return err
	}
	if job.Rate == 0 {
		return oneByOne(job, sa, out)
	}
	type conn struct {
		fd   int
		got  int
		busy bool
		due  time.Duration
	}
	conns := make([]conn, job.Conns)
	for i := range conns {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := syscall.Connect(fd, sa); err != nil {
			return fmt.Errorf("connect %s: %w", job.Addr, err)
		}
		if err := errors.Join(syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1), syscall.SetNonblock(fd, true)); err != nil {
			return err
		}
		conns[i].fd = fd
	}
	hist := hdrhistogram.New(1, 60_000_000, 3)
	var lat Latency
	lat.Rate = job.Rate
	gap := time.Duration(float64(time.Second) / float64(job.Rate))
	total := int(job.Seconds * float64(job.Rate))
	buf := make([]byte, 1<<20)
	polls := make([]unix.PollFd, len(conns))
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("open loop: timer slack: %w", err)
	}
	begin := time.Now()
	sent, done := 0, 0
	stop := time.Duration(job.Seconds*float64(time.Second)) + 5*time.Second
	for done < total {
		now := time.Since(begin)
		if now > stop {
			lat.Errors += int64(total - done)
			break
		}
		free := 0
		for i := range conns {
			c := &conns[i]
			polls[i] = unix.PollFd{Fd: int32(c.fd)}
			if c.busy {
				polls[i].Events = unix.POLLIN
			} else {
				free++
			}
		}
		wait := stop - now
		if free > 0 && sent < total {
			wait = max(time.Duration(sent)*gap-now, 0)
		}
		ts := unix.NsecToTimespec(wait.Nanoseconds())
		if _, err := unix.Ppoll(polls, &ts, nil); err != nil && err != unix.EINTR {
			return fmt.Errorf("open loop: ppoll: %w", err)
		}
		for i := range conns {
			c := &conns[i]
			if c.busy && polls[i].Revents != 0 {
				n, err := syscall.Read(c.fd, buf)
				if err == syscall.EAGAIN || err == syscall.EINTR {
					continue
				}
				if err != nil || n == 0 {
					return fmt.Errorf("open loop: connection ended after %d of %d responses (%d bytes, %v)", done, total, n, err)
				}
				if c.got += n; c.got < job.Length {
					continue
				}
				if c.got > job.Length {
					return fmt.Errorf("open loop: response of %d bytes, want %d", c.got, job.Length)
				}
				if err := hist.RecordValue(max(int64((time.Since(begin)-c.due)/time.Microsecond), 1)); err != nil {
					return err
				}
				c.busy, c.got = false, 0
				done++
			}
			due := time.Duration(sent) * gap
			if now = time.Since(begin); !c.busy && sent < total && now >= due {
				if now-due > gap {
					lat.Late++
				}
				c.busy, c.due = true, due
				sent++
				if n, err := syscall.Write(c.fd, job.Request); err != nil || n != len(job.Request) {
					return fmt.Errorf("open loop: send: %d bytes, %v", n, err)
				}
			}
		}
	}
	lat.P50, lat.P99, lat.P999 = hist.ValueAtQuantile(50), hist.ValueAtQuantile(99), hist.ValueAtQuantile(99.9)
	return json.NewEncoder(out).Encode(lat)
}

// oneByOne sends the next request when the last one has been answered: what it measures is a latency
// without any waiting, and says nothing of throughput.
func oneByOne(job OpenLoopJob, sa *syscall.SockaddrInet4, out io.Writer) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := syscall.Connect(fd, sa); err != nil {
		return fmt.Errorf("connect %s: %w", job.Addr, err)
	}
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1); err != nil {
		return err
	}
	hist := hdrhistogram.New(1, 60_000_000_000, 3) // nanoseconds
	buf := make([]byte, 1<<20)
	for begin := time.Now(); time.Since(begin).Seconds() < job.Seconds; {
		sent := time.Now()
		if n, err := syscall.Write(fd, job.Request); err != nil || n != len(job.Request) {
			return fmt.Errorf("one by one: send: %d bytes, %v", n, err)
		}
		for got := 0; got < job.Length; {
			n, err := syscall.Read(fd, buf)
			if err == syscall.EINTR {
				continue
			}
			if got += n; n <= 0 || err != nil || got > job.Length {
				return fmt.Errorf("one by one: %d bytes of a response of %d (%v)", got, job.Length, err)
			}
		}
		if err := hist.RecordValue(max(time.Since(sent).Nanoseconds(), 1)); err != nil {
			return err
		}
	}
	us := func(q float64) int64 { return hist.ValueAtQuantile(q) / 1000 }
	return json.NewEncoder(out).Encode(Latency{P50: us(50), P99: us(99), P999: us(99.9)})
}
