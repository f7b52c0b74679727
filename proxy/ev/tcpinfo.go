package ev

import "golang.org/x/sys/unix"

// TCPInfo gives what the kernel knows of a connection: round trip time and its variance in
// microseconds, the sending window in segments, the receiving one in bytes.
func TCPInfo(fd int) (rttVarCwndSpace [4]uint32, ok bool) {
	ti, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return rttVarCwndSpace, false
	}
	return [4]uint32{ti.Rtt, ti.Rttvar, ti.Snd_cwnd, ti.Rcv_space}, true
}
