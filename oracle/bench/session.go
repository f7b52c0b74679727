package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// wrong is what a server did wrong itself: other bytes than asked for, an end at its start. It is the candidate's
// FAIL, and the rig's end if the reference does it.
type wrong struct {
	of  string // the server's name
	err error
}

func (w *wrong) Error() string { return w.err.Error() }

func (w *wrong) Unwrap() error { return w.err }

// blame makes an error a server's own.
func blame(server string, err error) error {
	if err == nil || errors.As(err, new(*wrong)) {
		return err
	}
	return &wrong{server, err}
}

// session is a client of a workload that looks at every byte of its responses' bodies.
type session struct {
	w    Workload
	addr string
	c    net.Conn // nil: the next request opens one
	in   counter
}

// ask sends one request and reads its response; it returns the length of the whole response.
func (s *session) ask() (length int, err error) {
	if s.c == nil {
		if s.c, err = net.DialTimeout("tcp", s.addr, 5*time.Second); err != nil {
			return 0, err
		}
		s.in.r = s.c
	}
	s.in.n = 0
	if err = s.c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return 0, err
	}
	if _, err = s.c.Write(s.w.request()); err != nil {
		return 0, fmt.Errorf("send: %w", err)
	}
	br := bufio.NewReader(&s.in)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		return 0, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, fmt.Errorf("body: %w", err)
	}
	if resp.StatusCode != 200 || !bytes.Equal(body, s.w.Body) {
		return 0, fmt.Errorf("status %d and %d bytes %.40q, want 200 and %d bytes %.40q", resp.StatusCode, len(body), body, len(s.w.Body), s.w.Body)
	}
	length = s.in.n - br.Buffered()
	if s.w.Fresh || resp.Close {
		err = s.close()
	}
	return length, err
}

func (s *session) close() error {
	if s.c == nil {
		return nil
	}
	err := s.c.Close()
	s.c = nil
	return err
}

// verify asks n times and compares each response's status and body, byte for byte;
// it returns the length of a whole response.
func (w Workload) verify(addr string, n int) (length int, err error) {
	s := session{w: w, addr: addr}
	for i := range n {
		if length, err = s.ask(); err != nil {
			return 0, errors.Join(fmt.Errorf("response %d: %w", i+1, err), s.close())
		}
	}
	return length, s.close()
}

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}
