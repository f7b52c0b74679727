package evsim

import (
	"syscall"

	"nginxoracle/proxy/ev"
)

// Client is a connection that the test holds the other end of. Its methods are called between turns of
// the loop, or from After.
type Client struct {
	n *Net
	s *socket
}

// Dial connects to a listening socket of the loop.
func (n *Net) Dial(a ev.Addr) (*Client, error) {
	s := &socket{fd: -1}
	if err := n.connect(s, a); err != nil {
		return nil, err
	}
	return &Client{n, s}, nil
}

// Send gives as many bytes as there is room for.
func (c *Client) Send(p []byte) int {
	if c.s.shut || c.s.reset || c.s.peer.closed {
		return 0
	}
	room := min(len(p), c.n.opt.Buffer-len(c.s.peer.buf))
	if room <= 0 {
		return 0
	}
	c.s.peer.buf = append(c.s.peer.buf, p[:room]...)
	c.n.notify(c.s.peer, true, false)
	return room
}

// Recv takes what has come. end is nil while the connection is open, else EOF or ECONNRESET.
func (c *Client) Recv() (p []byte, end error) {
	p = c.s.buf
	full := len(p) >= c.n.opt.Buffer
	c.s.buf = nil
	if full {
		c.n.notify(c.s.peer, false, true)
	}
	switch {
	case c.s.reset:
		return p, syscall.ECONNRESET
	case c.s.eof:
		return p, EOF
	}
	return p, nil
}

// EOF is a clean end.
const EOF = syscall.Errno(0)

// Shutdown sends a FIN and goes on reading; Close drops the connection; Reset sends a RST.
func (c *Client) Shutdown() { c.n.finish(c.s) }
func (c *Client) Close()    { c.n.close(c.s) }
func (c *Client) Reset() {
	c.s.closed = true
	if !c.s.peer.closed {
		c.s.peer.reset, c.s.peer.buf = true, nil
		c.n.notify(c.s.peer, true, true)
	}
}
