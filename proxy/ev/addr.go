package ev

import (
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Families of an Addr.
const (
	INET  = unix.AF_INET
	INET6 = unix.AF_INET6
	UNIX  = unix.AF_UNIX
)

// AppendIP appends the address without the port as nginx prints it: "127.0.0.1", "::1" (without
// brackets), "unix:" (core/ngx_inet.c, ngx_sock_ntop with port 0).
func (a *Addr) AppendIP(b []byte) []byte {
	switch a.Family {
	case INET:
		for i := 0; i < 4; i++ {
			if i > 0 {
				b = append(b, '.')
			}
			b = strconv.AppendUint(b, uint64(a.IP[i]), 10)
		}
		return b
	case INET6:
		return appendIP6(b, &a.IP)
	}
	b = append(b, "unix:"...)
	return append(b, a.Path...)
}

// appendIP6 writes the longest run of zero words as "::", IPv4-mapped addresses with dots
// (core/ngx_inet.c, ngx_inet6_ntop).
func appendIP6(b []byte, ip *[16]byte) []byte {
	zero, max := -1, 1
	for i := 0; i < 16; {
		if ip[i] != 0 || ip[i+1] != 0 {
			i += 2
			continue
		}
		j := i
		for j < 16 && ip[j] == 0 && ip[j+1] == 0 {
			j += 2
		}
		if n := (j - i) / 2; n > max {
			max, zero = n, i
		}
		i = j
	}
	n := 16
	if zero == 0 && (max == 5 && ip[10] == 0xff && ip[11] == 0xff ||
		max == 6 || max == 7 && ip[14] != 0 && ip[15] != 1) {
		n = 12
	}
	for i := 0; i < n; i += 2 {
		if i == zero {
			b = append(b, ':')
			i += max*2 - 2
			if i+2 == 16 {
				b = append(b, ':')
			}
			continue
		}
		if i > 0 {
			b = append(b, ':')
		}
		b = strconv.AppendUint(b, uint64(ip[i])<<8|uint64(ip[i+1]), 16)
	}
	if n == 12 {
		b = append(b, ':')
		for i := 12; i < 16; i++ {
			if i > 12 {
				b = append(b, '.')
			}
			b = strconv.AppendUint(b, uint64(ip[i]), 10)
		}
	}
	return b
}

// AppendText appends the address with its port: "127.0.0.1:80", "[::1]:80", "unix:/path".
func (a *Addr) AppendText(b []byte) []byte {
	if a.Family == INET6 {
		b = append(a.AppendIP(append(b, '[')), ']')
	} else {
		b = a.AppendIP(b)
	}
	if a.Family != UNIX {
		b = append(b, ':')
		b = strconv.AppendUint(b, uint64(a.Port), 10)
	}
	return b
}

// Text is AppendText as a string.
func (a *Addr) Text() string { return string(a.AppendText(nil)) }

// encode fills in the kernel's form and tells its length.
func (a *Addr) encode(raw *unix.RawSockaddrAny) uintptr {
	switch a.Family {
	case INET:
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(raw))
		sa.Family = unix.AF_INET
		sa.Port = uint16(a.Port)<<8 | uint16(a.Port)>>8
		copy(sa.Addr[:], a.IP[:4])
		return unix.SizeofSockaddrInet4
	case INET6:
		sa := (*unix.RawSockaddrInet6)(unsafe.Pointer(raw))
		sa.Family = unix.AF_INET6
		sa.Port = uint16(a.Port)<<8 | uint16(a.Port)>>8
		sa.Addr = a.IP
		return unix.SizeofSockaddrInet6
	}
	sa := (*unix.RawSockaddrUnix)(unsafe.Pointer(raw))
	sa.Family = unix.AF_UNIX
	n := 0
	for ; n < len(a.Path) && n < len(sa.Path)-1; n++ {
		sa.Path[n] = int8(a.Path[n])
	}
	sa.Path[n] = 0
	return uintptr(2 + n + 1)
}

// decode reads the kernel's form of the given length.
func (a *Addr) decode(raw *unix.RawSockaddrAny, n uint32) {
	*a = Addr{Family: int(raw.Addr.Family)}
	switch a.Family {
	case INET:
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(raw))
		a.Port = int(sa.Port>>8 | sa.Port<<8)
		copy(a.IP[:4], sa.Addr[:])
	case INET6:
		sa := (*unix.RawSockaddrInet6)(unsafe.Pointer(raw))
		a.Port = int(sa.Port>>8 | sa.Port<<8)
		a.IP = sa.Addr
	default:
		a.Family = UNIX
		sa := (*unix.RawSockaddrUnix)(unsafe.Pointer(raw))
		if n <= 2 {
			return
		}
		p := make([]byte, 0, n)
		for i := 0; i < int(n)-2 && i < len(sa.Path) && sa.Path[i] != 0; i++ {
			p = append(p, byte(sa.Path[i]))
		}
		a.Path = string(p)
	}
}
