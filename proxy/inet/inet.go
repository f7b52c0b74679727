// Package inet reads and writes socket addresses and networks as nginx does
// (src/core/ngx_inet.c): which texts are addresses, how they are printed, and
// the forms that the listen directive takes.
package inet

import (
	"syscall"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
)

// Addr4 reads "127.0.0.1". As in nginx an octet may be empty ("1..2.3") and
// 255.255.255.255 is not an address (ngx_inet_addr).
func Addr4[T string | []byte](s T) (ip [4]byte, ok bool) {
	octet, n := 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			octet = octet*10 + int(c-'0')
			if octet > 255 {
				return ip, false
			}
		case c == '.':
			if n < 3 {
				ip[n] = byte(octet)
			}
			octet = 0
			n++
		default:
			return ip, false
		}
	}
	ip[3] = byte(octet)
	return ip, n == 3 && ip != [4]byte{255, 255, 255, 255}
}

// Addr6 reads "::1", without brackets or zone (ngx_inet6_addr).
func Addr6[T string | []byte](s T) (ip [16]byte, ok bool) {
	if len(s) == 0 {
		return ip, false
	}
	p := 0
	if s[0] == ':' {
		p = 1
	}
	var word uint32
	out, zero, digit, nibbles, left := 0, -1, -1, 0, 8
	put := func(w uint32) {
		ip[out], ip[out+1] = byte(w>>8), byte(w)
		out += 2
	}
	for ; p < len(s); p++ {
		c := s[p]
		if c == ':' {
			if nibbles > 0 {
				digit = p + 1
				put(word)
				left--
				if left == 0 {
					return ip, false
				}
				nibbles, word = 0, 0
				continue
			}
			if zero >= 0 {
				return ip, false
			}
			digit, zero = p+1, out
			continue
		}
		if c == '.' && nibbles > 0 {
			if left < 2 || digit < 0 {
				return ip, false
			}
			v4, ok := Addr4(s[digit:])
			if !ok {
				return ip, false
			}
			put(uint32(v4[0])<<8 | uint32(v4[1]))
			word = uint32(v4[2])<<8 | uint32(v4[3])
			left--
			break
		}
		nibbles++
		if nibbles > 4 {
			return ip, false
		}
		switch l := c | 0x20; {
		case c >= '0' && c <= '9':
			word = word*16 + uint32(c-'0')
		case l >= 'a' && l <= 'f':
			word = word*16 + uint32(l-'a') + 10
		default:
			return ip, false
		}
	}
	if nibbles == 0 && zero < 0 {
		return ip, false
	}
	put(word)
	left--
	if left > 0 {
		if zero < 0 {
			return ip, false
		}
		// What follows the "::" moves to the end, zeros take its place.
		n := 2 * left
		copy(ip[zero+n:], ip[zero:out])
		clear(ip[zero : zero+n])
		return ip, true
	}
	return ip, zero < 0
}

// Parse reads an address without a port (ngx_parse_addr).
func Parse[T string | []byte](s T) (ev.Addr, bool) {
	if ip, ok := Addr4(s); ok {
		a := ev.Addr{Family: syscall.AF_INET}
		copy(a.IP[:], ip[:])
		return a, true
	}
	if ip, ok := Addr6(s); ok {
		return ev.Addr{Family: syscall.AF_INET6, IP: ip}, true
	}
	return ev.Addr{}, false
}

// ParsePort reads an address with or without a port: "1.2.3.4:80", "[::1]:80"
// (ngx_parse_addr_port).
func ParsePort[T string | []byte](s T) (ev.Addr, bool) {
	if a, ok := Parse(s); ok {
		return a, true
	}
	if len(s) > 0 && s[0] == '[' {
		end := indexByte(s, ']')
		if end < 0 || end == len(s)-1 || s[end+1] != ':' {
			return ev.Addr{}, false
		}
		a, ok := Parse(s[1:end])
		return withPort(a, ok, s[end+2:])
	}
	colon := indexByte(s, ':')
	if colon < 0 {
		return ev.Addr{}, false
	}
	a, ok := Parse(s[:colon])
	return withPort(a, ok, s[colon+1:])
}

func indexByte[T string | []byte](s T, c byte) int {
	for i := 0; i < len(s); i++ {
		if s[i] == c {
			return i
		}
	}
	return -1
}

func withPort[T string | []byte](a ev.Addr, ok bool, port T) (ev.Addr, bool) {
	n, isNum := module.Atoi(string(port))
	if !ok || !isNum || n < 1 || n > 65535 {
		return ev.Addr{}, false
	}
	a.Port = n
	return a, true
}

// Same reports equal addresses; the ports count only with port (ngx_cmp_sockaddr).
func Same(a, b ev.Addr, port bool) bool {
	if a.Family != b.Family {
		return false
	}
	switch a.Family {
	case syscall.AF_UNIX:
		return a.Path == b.Path
	case syscall.AF_INET6:
		return a.IP == b.IP && (!port || a.Port == b.Port)
	}
	return [4]byte(a.IP[:4]) == [4]byte(b.IP[:4]) && (!port || a.Port == b.Port)
}

// Wildcard reports "*" and "[::]" (ngx_inet_wildcard).
func Wildcard(a ev.Addr) bool { return a.Family != syscall.AF_UNIX && a.IP == [16]byte{} }

// Mapped gives the IPv4 address inside an IPv6 one (::ffff:1.2.3.4).
func Mapped(a ev.Addr) (ip [4]byte, ok bool) {
	if a.Family != syscall.AF_INET6 || [12]byte(a.IP[:12]) != [12]byte{10: 0xff, 11: 0xff} {
		return ip, false
	}
	return [4]byte(a.IP[12:]), true
}
