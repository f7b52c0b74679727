package probe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From linux/sock_diag.h, linux/inet_diag.h and linux/unix_diag.h.
const (
	tcpdiagGetsock   = 18 // both families in one walk of the kernel's table
	sockDiagByFamily = 20
	sockDestroy      = 21

	sockIDAt  = 4  // in inet_diag_msg: struct inet_diag_sockid
	sockIDLen = 48 // with the cookie that tells one socket from all others

	inetReqLen   = 60 // struct inet_diag_req
	inetMsgLen   = 72 // struct inet_diag_msg
	inetDiagInfo = 2  // attribute: struct tcp_info
	inetDiagMark = 15 // attribute: the socket's mark

	unixReqLen       = 24 // struct unix_diag_req
	unixMsgLen       = 16 // struct unix_diag_msg
	unixShowRqlen    = 0x10
	unixShowName     = 0x01
	unixDiagName     = 0
	unixDiagRqlen    = 4
	unixStateListen  = 10
	tcpEstablished   = 1
	tcpSynSent       = 2
	tcpSynRecv       = 3
	tcpFinWait1      = 4
	tcpFinWait2      = 5
	tcpTimeWait      = 6
	tcpClose         = 7
	tcpCloseWait     = 8
	tcpLastAck       = 9
	tcpListen        = 10
	tcpClosing       = 11
	tcpNewSynRecv    = 12
	allButTimeWait   = 0x1fff &^ (1<<tcpTimeWait | 1<<tcpClose | 1<<tcpFinWait2)
	nlmsgHdrLen      = 16
	diagReceiveBytes = 64 << 10
)

// notSentAt is where tcp_info has the bytes that were written and not sent yet.
const notSentAt = int(unsafe.Offsetof(unix.TCPInfo{}.Notsent_bytes))

// OpenDiag opens a sock_diag socket of the caller's network namespace.
func OpenDiag() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return -1, fmt.Errorf("open sock_diag: %w", err)
	}
	// A dump always ends with a message; the limit only keeps a broken kernel from hanging a campaign.
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("open sock_diag: %w", err)
	}
	return fd, nil
}

// socket is one row of a dump.
type socket struct {
	state  uint8
	port   uint16 // own port (TCP)
	recv   int    // bytes not read, or connections not accepted
	unsent int    // bytes written that have not left (TCP)
	queued int    // bytes and ends written that the peer has not acknowledged, unsent ones too (TCP)
	mark   uint32
	inode  uint32
	name   string // own address (Unix)
	addr   [16]byte
	family uint8
	// The other end (TCP).
	peer     [16]byte
	peerPort uint16
}

// tcp dumps the TCP sockets, of IPv4 and IPv6, in the states given. info asks for unsent, which is 0 without.
func (p *Prober) tcp(states uint32, info bool, each func(*socket)) error {
	return p.rows(states, info, func(m []byte) {
		s := &p.row
		*s = socket{
			family: m[0],
			state:  m[1],
			port:   binary.BigEndian.Uint16(m[4:]),
			recv:   int(binary.NativeEndian.Uint32(m[56:])),
			queued: int(binary.NativeEndian.Uint32(m[60:])),
			inode:  binary.NativeEndian.Uint32(m[68:]),

			peerPort: binary.BigEndian.Uint16(m[6:]),
		}
		copy(s.addr[:], m[8:24])
		copy(s.peer[:], m[24:40])
		attributes(m[inetMsgLen:], func(kind uint16, v []byte) {
			switch {
			case kind == inetDiagMark && len(v) >= 4:
				s.mark = binary.NativeEndian.Uint32(v)
			case kind == inetDiagInfo && len(v) >= notSentAt+4:
				s.unsent = int(binary.NativeEndian.Uint32(v[notSentAt:]))
			}
		})
		each(s)
	})
}

// rows is tcp with the rows as the kernel gives them: an inet_diag_msg and its attributes each.
func (p *Prober) rows(states uint32, info bool, each func(m []byte)) error {
	req := p.req[:nlmsgHdrLen+inetReqLen]
	clear(req)
	if info {
		req[nlmsgHdrLen+3] = 1 << (inetDiagInfo - 1)
	}
	binary.NativeEndian.PutUint32(req[nlmsgHdrLen+52:], states)
	return p.dump(tcpdiagGetsock, req, func(m []byte) error {
		if len(m) < inetMsgLen {
			return errors.New("short inet_diag_msg")
		}
		each(m)
		return nil
	})
}

// unix dumps the Unix sockets.
func (p *Prober) unix(each func(*socket)) error {
	req := p.req[:nlmsgHdrLen+unixReqLen]
	clear(req)
	req[nlmsgHdrLen] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(req[nlmsgHdrLen+4:], ^uint32(0))
	binary.NativeEndian.PutUint32(req[nlmsgHdrLen+12:], unixShowRqlen|unixShowName)
	return p.dump(sockDiagByFamily, req, func(m []byte) error {
		if len(m) < unixMsgLen {
			return errors.New("short unix_diag_msg")
		}
		s := &p.row
		*s = socket{family: m[0], state: m[2], inode: binary.NativeEndian.Uint32(m[4:])}
		attributes(m[unixMsgLen:], func(kind uint16, v []byte) {
			switch {
			case kind == unixDiagName:
				s.name = string(bytes.TrimRight(v, "\x00"))
			case kind == unixDiagRqlen && len(v) >= 8:
				s.recv = int(binary.NativeEndian.Uint32(v))
			}
		})
		each(s)
		return nil
	})
}

// destroyMost is how many sockets one message to the kernel ends.
const destroyMost = 128

// Forget ends the connections that are over and that the kernel keeps for a minute still (TIME-WAIT, RFC 9293 section
// 3.6), and those of which one end is (FIN-WAIT-2 without a socket). It is for between two runs: every dump goes over
// them, and a cell may hold half as many as its table has places; from then on, ends of connections would be
// answered otherwise. Where the system does not allow it, they stay.
func (p *Prober) Forget() error { return p.forgetOver(1<<tcpTimeWait | 1<<tcpFinWait2) }

// forgetEvery is how many looks at the queues go by until what is over meanwhile is forgotten: a crowd ends some fifty
// connections at a rest, and a dump goes over each of them as over one that is open.
const forgetEvery = 8

// forgetBoth ends, now and then, the connections of which both ends are over, while a server is at rest. No packet is on
// its way, so the last acknowledgement has come and nothing can be answered otherwise.
func (p *Prober) forgetBoth() error {
	if p.looks++; p.looks%forgetEvery != 0 {
		return nil
	}
	return p.forgetOver(1 << tcpTimeWait)
}

// forgetOver ends the connections in some of the states of those that are over.
func (p *Prober) forgetOver(states uint32) error {
	if p.keeps {
		return nil
	}
	var ids [][1 + sockIDLen]byte
	if err := p.rows(states, false, func(m []byte) {
		id := [1 + sockIDLen]byte{m[0]}
		copy(id[1:], m[sockIDAt:])
		ids = append(ids, id)
	}); err != nil {
		return err
	}
	const size = nlmsgHdrLen + 8 + sockIDLen
	for len(ids) > 0 && !p.keeps {
		n := min(len(ids), destroyMost)
		req := make([]byte, n*size)
		for i, id := range ids[:n] {
			b := req[i*size:]
			p.seq++
			binary.NativeEndian.PutUint32(b[0:], size)
			binary.NativeEndian.PutUint16(b[4:], sockDestroy)
			binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
			binary.NativeEndian.PutUint32(b[8:], p.seq)
			b[nlmsgHdrLen], b[nlmsgHdrLen+1] = id[0], unix.IPPROTO_TCP
			copy(b[nlmsgHdrLen+8:size], id[1:])
		}
		// The last one is answered in any case. A refusal of another comes before; one that is gone by itself is none.
		binary.NativeEndian.PutUint16(req[(n-1)*size+6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
		if err := retry(func() error { _, err := unix.Write(p.diag, req); return err }); err != nil {
			return fmt.Errorf("sock_diag: write: %w", err)
		}
		if err := p.answered(); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// answered reads up to the answer to the last message, and notes whether the system allows what was asked for.
func (p *Prober) answered() error {
	for {
		var n int
		if err := retry(func() (err error) { n, err = unix.Read(p.diag, p.buf); return }); err != nil {
			return fmt.Errorf("sock_diag: read: %w", err)
		}
		for b := p.buf[:n]; len(b) >= nlmsgHdrLen; {
			size := int(binary.NativeEndian.Uint32(b))
			if size < nlmsgHdrLen || size > len(b) {
				return errors.New("sock_diag: message is cut off")
			}
			if binary.NativeEndian.Uint16(b[4:]) == unix.NLMSG_ERROR && size >= nlmsgHdrLen+4 {
				switch unix.Errno(-int32(binary.NativeEndian.Uint32(b[nlmsgHdrLen:]))) {
				case unix.EPERM, unix.EACCES, unix.EOPNOTSUPP:
					p.keeps = true
				}
				if binary.NativeEndian.Uint32(b[8:]) == p.seq {
					return nil
				}
			}
			b = b[min(align4(size), len(b)):]
		}
	}
}

// dump sends a dump request and calls each for every message.
func (p *Prober) dump(kind uint16, req []byte, each func([]byte) error) error {
	p.seq++
	binary.NativeEndian.PutUint32(req[0:], uint32(len(req)))
	binary.NativeEndian.PutUint16(req[4:], kind)
	binary.NativeEndian.PutUint16(req[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	binary.NativeEndian.PutUint32(req[8:], p.seq)
	binary.NativeEndian.PutUint32(req[12:], 0)
	// The kernel answers while it is asked, and while it is read from.
	if err := retry(func() error { _, err := call(unix.SYS_SENDTO, p.diag, req, 0); return err }); err != nil {
		return fmt.Errorf("sock_diag: write: %w", err)
	}
	for {
		n, err := call(unix.SYS_RECVFROM, p.diag, p.buf, unix.MSG_DONTWAIT)
		if err != nil {
			err = retry(func() (err error) { n, err = unix.Read(p.diag, p.buf); return })
		}
		if err != nil {
			return fmt.Errorf("sock_diag: read: %w", err)
		}
		for b := p.buf[:n]; len(b) >= nlmsgHdrLen; {
			size := int(binary.NativeEndian.Uint32(b))
			if size < nlmsgHdrLen || size > len(b) {
				return errors.New("sock_diag: message is cut off")
			}
			body := b[nlmsgHdrLen:size]
			if binary.NativeEndian.Uint32(b[8:]) == p.seq {
				switch binary.NativeEndian.Uint16(b[4:]) {
				case unix.NLMSG_DONE:
					return nil
				case unix.NLMSG_ERROR:
					if len(body) >= 4 {
						if e := -int32(binary.NativeEndian.Uint32(body)); e != 0 {
							return fmt.Errorf("sock_diag: %w", unix.Errno(e))
						}
					}
					return errors.New("sock_diag: error without a number")
				default:
					if err := each(body); err != nil {
						return fmt.Errorf("sock_diag: %w", err)
					}
				}
			}
			b = b[min(align4(size), len(b)):]
		}
	}
}

func attributes(b []byte, each func(kind uint16, v []byte)) {
	for len(b) >= 4 {
		size := int(binary.NativeEndian.Uint16(b))
		if size < 4 || size > len(b) {
			return
		}
		each(binary.NativeEndian.Uint16(b[2:]), b[4:size])
		b = b[min(align4(size), len(b)):]
	}
}

func align4(n int) int { return (n + 3) &^ 3 }

func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}
