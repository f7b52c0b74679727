package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Loopback in a cell waits for nothing that no network would need. What is sent stays the same; how soon the
// server's bytes arrive, and so whether it is at rest, is no longer a matter of the kernel's timers.

// Steady are the network's settings under /proc/sys/net/ipv4 that keep the kernel's own decisions out of what a
// case sees. Congestion control that paces (BBR) sends by a timer; reno, which every kernel has, at once. Buffers that
// grow as bytes come and go decide how much a server can write at a time: these have one size, large enough that what
// a slow client leaves unread seldom makes a race of the server's writing and the client's reading. A container is
// started with the same settings.
var Steady = map[string]string{
	"tcp_congestion_control": "reno",
	"tcp_moderate_rcvbuf":    "0",
	"tcp_rmem":               "4096 1048576 1048576",
	"tcp_wmem":               "4096 4194304 4194304",
}

func steadyNet() error {
	for name, value := range Steady {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// acknowledgeAtOnce has receivers acknowledge at once: an acknowledgement that is held back for 40 ms
// holds the sender back, too (Nagle's algorithm, RFC 896).
func acknowledgeAtOnce() error {
	lo, err := loopback()
	if err != nil {
		return err
	}
	for _, p := range []string{"127.0.0.0/8", "127.0.0.1/32"} {
		if err := quickAck(netip.MustParsePrefix(p), lo); err != nil {
			return fmt.Errorf("route of %s: %w", p, err)
		}
	}
	// A kernel without IPv6 refuses this one. Where it does, the player asks for acknowledgements one by one.
	_ = quickAck(netip.MustParsePrefix("::1/128"), lo)
	return nil
}

// loopback is the index of lo.
func loopback() (uint32, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("index of lo: socket: %w", err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, req)
	}
	if err != nil {
		return 0, fmt.Errorf("index of lo: %w", err)
	}
	return req.Uint32(), nil
}

// rtaxQuickAck is RTAX_QUICKACK of linux/rtnetlink.h: a route whose receivers acknowledge at once.
const rtaxQuickAck = 15

// quickAck replaces the local route to dst by one that acknowledges at once.
func quickAck(dst netip.Prefix, dev uint32) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	family, addr, scope := byte(unix.AF_INET), dst.Addr().AsSlice(), byte(unix.RT_SCOPE_HOST)
	if dst.Addr().Is6() {
		family, scope = unix.AF_INET6, unix.RT_SCOPE_UNIVERSE
	}
	m := make([]byte, unix.NLMSG_HDRLEN, 256)
	m = append(m, family, byte(dst.Bits()), 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_KERNEL, scope, unix.RTN_LOCAL, 0, 0, 0, 0)
	m = attribute(m, unix.RTA_DST, addr)
	m = attribute(m, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, dev))
	if dst.Addr().Is4() {
		m = attribute(m, unix.RTA_PREFSRC, []byte{127, 0, 0, 1})
	}
	m = attribute(m, unix.RTA_METRICS, attribute(nil, rtaxQuickAck, binary.NativeEndian.AppendUint32(nil, 1)))
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint16(m[4:], unix.RTM_NEWROUTE)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_REPLACE|unix.NLM_F_CREATE)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	if n < unix.NLMSG_HDRLEN+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("the kernel's answer is no acknowledgement")
	}
	if e := -int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])); e != 0 {
		return unix.Errno(e)
	}
	return nil
}

// attribute appends a netlink attribute, padded to four bytes.
func attribute(m []byte, kind uint16, v []byte) []byte {
	m = binary.NativeEndian.AppendUint16(m, uint16(4+len(v)))
	m = binary.NativeEndian.AppendUint16(m, kind)
	m = append(m, v...)
	for len(m)%4 != 0 {
		m = append(m, 0)
	}
	return m
}
