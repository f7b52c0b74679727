package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// OpenLoopJob asks for requests at a fixed rate, whether or not the server keeps up; at rate 0 for one
// request at a time.
type OpenLoopJob struct {
	Addr    string
	Request []byte
	Length  int  // of the whole response
	Rate    int  // requests a second
	Conns   int  // at a time
	Fresh   bool // a connection for each request; its time counts from before the connect
	Seconds float64
}

// phase of a connection of the open loop.
type phase int

const (
	resting    phase = iota // it has no request
	connecting              // its request waits for the connection
	waiting                 // its request is sent
	ending                  // its response is whole; the server is to close, so that no port is left behind here
)

type lane struct {
	fd    int // -1: none
	phase phase
	got   int
	due   time.Duration
}

// loop is an open-loop client at work.
type loop struct {
	OpenLoopJob
	to    *syscall.SockaddrInet4
	begin time.Time
	hist  *hdrhistogram.Histogram
	lat   Latency
	done  int
	buf   []byte
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
	o := &loop{OpenLoopJob: job, to: sa, hist: hdrhistogram.New(1, 60_000_000, 3), lat: Latency{Rate: job.Rate}, buf: make([]byte, 1<<20)}
	if err := o.run(); err != nil {
		return fmt.Errorf("open loop: %w", err)
	}
	o.lat.P50, o.lat.P99, o.lat.P999 = o.hist.ValueAtQuantile(50), o.hist.ValueAtQuantile(99), o.hist.ValueAtQuantile(99.9)
	return json.NewEncoder(out).Encode(o.lat)
}

func (o *loop) run() error {
	lanes := make([]lane, o.Conns)
	for i := range lanes {
		lanes[i].fd = -1
		if o.Fresh {
			continue
		}
		if err := o.connect(&lanes[i]); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("timer slack: %w", err)
	}
	gap := time.Duration(float64(time.Second) / float64(o.Rate))
	total := int(o.Seconds * float64(o.Rate))
	stop := time.Duration(o.Seconds*float64(time.Second)) + 5*time.Second
	polls := make([]unix.PollFd, len(lanes))
	o.begin = time.Now()
	for sent := 0; o.done < total; {
		now := time.Since(o.begin)
		if now > stop {
			o.lat.Errors += int64(total - o.done)
			o.first(fmt.Errorf("unanswered 5 s after the last request was due"))
			return nil
		}
		free := 0
		for i := range lanes {
			polls[i] = unix.PollFd{Fd: int32(lanes[i].fd)}
			switch lanes[i].phase {
			case resting:
				polls[i].Fd = -1
				free++
			case connecting:
				polls[i].Events = unix.POLLOUT
			default:
				polls[i].Events = unix.POLLIN
			}
		}
		wait := stop - now
		if free > 0 && sent < total {
			wait = max(time.Duration(sent)*gap-now, 0)
		}
		ts := unix.NsecToTimespec(wait.Nanoseconds())
		if _, err := unix.Ppoll(polls, &ts, nil); err != nil && err != unix.EINTR {
			return fmt.Errorf("ppoll: %w", err)
		}
		for i := range lanes {
			l := &lanes[i]
			if polls[i].Revents != 0 {
				o.fail(l, o.event(l))
			}
			due := time.Duration(sent) * gap
			if now = time.Since(o.begin); l.phase == resting && sent < total && now >= due {
				if now-due > gap {
					o.lat.Late++
				}
				l.due = due
				sent++
				o.fail(l, o.send(l))
			}
		}
	}
	return nil
}

// connect opens a connection and does not wait for it.
func (o *loop) connect(l *lane) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	l.fd = fd
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("TCP_NODELAY: %w", err)
	}
	if err := syscall.Connect(fd, o.to); err != nil && err != syscall.EINPROGRESS {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

// send begins a request whose time has come.
func (o *loop) send(l *lane) error {
	l.got = 0
	if l.fd < 0 {
		l.phase = connecting
		return o.connect(l)
	}
	l.phase = waiting
	n, err := syscall.Write(l.fd, o.Request)
	switch {
	case err == syscall.EAGAIN: // the connection is not there yet
		l.phase = connecting
		return nil
	case err != nil:
		return fmt.Errorf("send: %w", err)
	case n != len(o.Request):
		return fmt.Errorf("send: %d of %d bytes", n, len(o.Request))
	}
	return nil
}

// event takes what has come for a connection.
func (o *loop) event(l *lane) error {
	if l.phase == connecting {
		return o.send(l)
	}
	n, err := syscall.Read(l.fd, o.buf)
	switch {
	case err == syscall.EAGAIN || err == syscall.EINTR:
		return nil
	case l.phase == ending:
		syscall.Close(l.fd)
		l.fd, l.phase = -1, resting
		if n > 0 {
			o.lat.Errors++
			o.first(fmt.Errorf("%d bytes behind a response", n))
		}
		return nil
	case err != nil:
		return fmt.Errorf("after %d bytes of %d: %w", l.got, o.Length, err)
	case n == 0:
		return fmt.Errorf("an end after %d bytes of %d", l.got, o.Length)
	}
	if l.got += n; l.got < o.Length {
		return nil
	}
	if l.got > o.Length {
		return fmt.Errorf("a response of %d bytes, want %d", l.got, o.Length)
	}
	if err := o.hist.RecordValue(max(int64((time.Since(o.begin)-l.due)/time.Microsecond), 1)); err != nil {
		return err
	}
	o.done++
	if l.phase = resting; o.Fresh {
		l.phase = ending
	}
	return nil
}

// fail counts a request that went wrong, and gives its connection up.
func (o *loop) fail(l *lane, err error) {
	if err == nil {
		return
	}
	if l.fd >= 0 {
		syscall.Close(l.fd)
	}
	l.fd, l.phase = -1, resting
	o.done++
	o.lat.Errors++
	o.first(err)
}

func (o *loop) first(err error) {
	if o.lat.First == "" {
		o.lat.First = err.Error()
	}
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
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 10}); err != nil {
		return err
	}
	hist := hdrhistogram.New(1, 60_000_000_000, 3) // nanoseconds
	bad := func(format string, args ...any) error {
		return json.NewEncoder(out).Encode(Latency{Errors: 1, First: fmt.Sprintf(format, args...)})
	}
	buf := make([]byte, 1<<20)
	for begin := time.Now(); time.Since(begin).Seconds() < job.Seconds; {
		sent := time.Now()
		if n, err := syscall.Write(fd, job.Request); err != nil || n != len(job.Request) {
			return bad("send: %d bytes, %v", n, err)
		}
		for got := 0; got < job.Length; {
			n, err := syscall.Read(fd, buf)
			if err == syscall.EINTR {
				continue
			}
			if got += n; n <= 0 || err != nil || got > job.Length {
				return bad("%d bytes of a response of %d (%v)", got, job.Length, err)
			}
		}
		if err := hist.RecordValue(max(time.Since(sent).Nanoseconds(), 1)); err != nil {
			return err
		}
	}
	us := func(q float64) int64 { return hist.ValueAtQuantile(q) / 1000 }
	return json.NewEncoder(out).Encode(Latency{P50: us(50), P99: us(99), P999: us(99.9)})
}
