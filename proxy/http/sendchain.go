package http

import (
	"fmt"
	"strings"
	"syscall"

	"nginxoracle/proxy/ev"
)

const (
	maxIovs     = 64 // NGX_IOVS_PREALLOCATE
	pageSize    = 4096
	sendfileMax = 1<<31 - 1 - pageSize
)

// iovs is a list of pieces for one writev; the connections of a loop share it.
type iovs struct {
	v     [][]byte
	size  int64
	apart bool // the content of a file has a send of its own
	filed bool // the content of a file follows other memory
}

func loopIovs(c *ev.Conn) *iovs {
	v, ok := c.Loop.Scratch.(*iovs)
	if !ok {
		v = &iovs{v: make([][]byte, 0, maxIovs)}
		c.Loop.Scratch = v
	}
	return v
}

// fill takes the memory at the front of in, at most limit bytes, joining pieces that touch; it
// gives the first link that it did not take as a whole (ngx_output_chain_to_iovec).
func (v *iovs) fill(c *ev.Conn, in *Chain, limit int64) (*Chain, bool) {
	v.v, v.size, v.filed = v.v[:0], 0, false
	memory := false // that is no file's content
	for ; in != nil && v.size < limit; in = in.Next {
		b := in.Buf
		if b.Special() {
			continue
		}
		if b.InFile {
			break
		}
		if !b.InMemory() {
			c.Log.Err(logAlert, nil, "bad buf in output chain t:%d r:%d f:%d %s %s-%s %s %d-%d",
				bit(b.Temporary), bit(b.Recycled), bit(b.InFile), address(b.Start), address(b.Data), address(b.Data), address(b.File), b.FilePos, b.FileLast)
			return nil, false
		}
		v.filed = v.filed || b.Pieces && memory
		memory = memory || !b.Pieces
		if len(v.v) == maxIovs || v.apart && b.Pieces && len(v.v) > 0 {
			break
		}
		p := b.Data
		if int64(len(p)) > limit-v.size {
			p = p[:limit-v.size]
		}
		v.v = append(v.v, p)
		v.size += int64(len(p))
	}
	return in, true
}

// address is how nginx prints one (%p): sixteen hexadecimal digits.
func address(v any) string {
	s := strings.TrimPrefix(fmt.Sprintf("%p", v), "0x")
	return strings.ToUpper(strings.Repeat("0", max(0, 16-len(s))) + s)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// SendChain sends as much of in as the connection takes, at most limit bytes when limit is not 0,
// memory with writev and files with sendfile, which sendfile tells to be used for what a cache holds of one, too; it gives what is left. false: the connection is
// broken (ngx_linux_sendfile_chain).
func SendChain(c *ev.Conn, in *Chain, limit int64, sendfile bool) (*Chain, bool) {
	wev := &c.Write
	if !wev.Ready {
		return in, true
	}
	if limit == 0 || limit > sendfileMax {
		limit = sendfileMax
	}
	// What waits is sent before anything of this is in the list that the loop's connections share.
	c.Loop.Flush()
	v := loopIovs(c)
	// Where the peer may have gone, nginx's sendfile fails behind a header that was sent: a request that waits behind this
	// one is then never served.
	v.apart = sendfile && c.Read.PendingEOF
	var send int64
	for {
		prev := send
		cl, ok := v.fill(c, in, limit-send)
		if !ok {
			return nil, false
		}
		send += v.size
		file := cl != nil && cl.Buf.InFile || v.filed && sendfile
		if c.TCPNopush == ev.TCPUnset && len(v.v) != 0 && file && !cork(c) {
			return nil, false
		}
		var n int
		if len(v.v) == 0 && cl != nil && cl.Buf.InFile && send < limit {
			size := coalesceFile(cl, limit-send)
			if size == 0 {
				return nil, false
			}
			send += size
			n = sendFile(c, cl.Buf, size)
		} else {
			n = c.Writev(v.v)
		}
		clear(v.v)
		if n == ev.Err {
			return nil, false
		}
		sent := int64(max(n, 0))
		in = updateSent(in, sent)
		if n == ev.Again {
			wev.Ready = false
			return in, true
		}
		// A send may have been cut short without the socket being full: only Again tells.
		send = prev + sent
		if send >= limit || in == nil {
			return in, true
		}
	}
}

// cork holds the header back until the file's first bytes are there (tcp_nopush); false: the
// connection is broken. TCP_NODELAY excludes it.
func cork(c *ev.Conn) bool {
	if c.TCPNodelay == ev.TCPSet {
		if err := c.ClearNodelay(); err != nil {
			if err != syscall.EINTR {
				c.Write.Error = true
				c.Fault(err, "setsockopt(TCP_NODELAY) failed")
				return false
			}
		} else {
			c.TCPNodelay = ev.TCPUnset
		}
	}
	if c.TCPNodelay == ev.TCPUnset {
		if err := c.Cork(true); err != nil {
			if err != syscall.EINTR {
				c.Write.Error = true
				c.Fault(err, "setsockopt(TCP_CORK) failed")
				return false
			}
		} else {
			c.TCPNopush = ev.TCPSet
		}
	}
	return true
}

// sendFile sends size bytes of b's file: the number sent, Again or Err.
func sendFile(c *ev.Conn, b *Buf, size int64) int {
	off := b.FilePos
	n, ok := c.Sendfile(b.File.FD, &off, int(size))
	if !ok {
		return ev.Err
	}
	if n == 0 {
		c.Log.Err(logAlert, nil, "sendfile() reported that \"%s\" was truncated at %d", b.File.Name, b.FilePos)
		return ev.Err
	}
	return n
}

// coalesceFile is the size of the neighbouring ranges of one file at the front of cl, at most
// limit, then cut at a page (ngx_chain_coalesce_file).
func coalesceFile(cl *Chain, limit int64) int64 {
	var total int64
	fd := cl.Buf.File.FD
	for {
		b := cl.Buf
		size := b.FileLast - b.FilePos
		if size > limit-total {
			size = limit - total
			aligned := (b.FilePos + size + pageSize - 1) &^ (pageSize - 1)
			if aligned <= b.FileLast {
				size = aligned - b.FilePos
			}
			return total + size
		}
		total += size
		end := b.FilePos + size
		cl = cl.Next
		if cl == nil || !cl.Buf.InFile || total >= limit || cl.Buf.File.FD != fd || cl.Buf.FilePos != end {
			return total
		}
	}
}

// updateSent moves in on by so many bytes (ngx_chain_update_sent).
func updateSent(in *Chain, sent int64) *Chain {
	for ; in != nil; in = in.Next {
		b := in.Buf
		if b.Special() {
			continue
		}
		if sent == 0 {
			break
		}
		size := b.Size()
		if sent >= size {
			sent -= size
			b.Data = b.Data[len(b.Data):]
			if b.InFile {
				b.FilePos = b.FileLast
			}
			continue
		}
		if b.InMemory() {
			b.Data = b.Data[sent:]
		}
		if b.InFile {
			b.FilePos += sent
		}
		break
	}
	return in
}
