package ev

import "golang.org/x/sys/unix"

// Socket options, for those who may not know the system's numbers.
const (
	SolSocket   = unix.SOL_SOCKET
	SoReuseport = unix.SO_REUSEPORT
	SoReuseaddr = unix.SO_REUSEADDR
	SoRcvbuf    = unix.SO_RCVBUF
	SoSndbuf    = unix.SO_SNDBUF
	SoKeepalive = unix.SO_KEEPALIVE
	SoType      = unix.SO_TYPE

	IPProtoTCP  = unix.IPPROTO_TCP
	IPProtoIP   = unix.IPPROTO_IP
	IPProtoIPv6 = unix.IPPROTO_IPV6
	IPv6V6only  = unix.IPV6_V6ONLY

	TCPKeepidle    = unix.TCP_KEEPIDLE
	TCPKeepintvl   = unix.TCP_KEEPINTVL
	TCPKeepcnt     = unix.TCP_KEEPCNT
	TCPFastopen    = unix.TCP_FASTOPEN
	TCPDeferAccept = unix.TCP_DEFER_ACCEPT
	TCPNodelay     = unix.TCP_NODELAY

	IPTransparent = unix.IP_TRANSPARENT
	IPBindNoPort  = unix.IP_BIND_ADDRESS_NO_PORT
	ShutRead      = unix.SHUT_RD
	ShutWrite     = unix.SHUT_WR
	ShutBoth      = unix.SHUT_RDWR
)
