package inet

import (
	"strings"
	"syscall"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
)

// CIDR is a network: of AF_INET the first four bytes of Addr and Mask count, AF_UNIX
// is every Unix socket (ngx_cidr_t).
type CIDR struct {
	Family     int
	Addr, Mask [16]byte
}

// ParseCIDR reads "10.0.0.0/8", "fe80::/10" or a plain address. lowBits says that bits
// beyond the mask were set, and have been cleared (ngx_ptocidr).
func ParseCIDR(text string) (c CIDR, lowBits, ok bool) {
	addr, mask, masked := strings.Cut(text, "/")
	a, ok := Parse(addr)
	if !ok {
		return c, false, false
	}
	c.Family, c.Addr = a.Family, a.IP
	size := 16
	if c.Family == syscall.AF_INET {
		size = 4
	}
	bits := size * 8
	if masked {
		n, isNum := module.Atoi(mask)
		if !isNum || n > bits {
			return c, false, false
		}
		bits = n
	}
	for i := 0; i < size; i++ {
		n := min(bits, 8)
		bits -= n
		c.Mask[i] = byte(0xff << (8 - n))
		if c.Addr[i]&^c.Mask[i] != 0 {
			lowBits = true
			c.Addr[i] &= c.Mask[i]
		}
	}
	return c, lowBits, true
}

// Match reports whether an address is in the network. An IPv4 address inside IPv6 is
// looked for among the IPv4 networks (ngx_cidr_match).
func (c *CIDR) Match(a ev.Addr) bool {
	if v4, ok := Mapped(a); ok {
		a.Family = syscall.AF_INET
		copy(a.IP[:], v4[:])
	}
	return c.Match6(a)
}

// Match6 is Match without a second look at what is inside an IPv6 address.
func (c *CIDR) Match6(a ev.Addr) bool {
	if a.Family != c.Family {
		return false
	}
	size := 4
	switch a.Family {
	case syscall.AF_UNIX:
		return true
	case syscall.AF_INET6:
		size = 16
	}
	for i := 0; i < size; i++ {
		if a.IP[i]&c.Mask[i] != c.Addr[i] {
			return false
		}
	}
	return true
}
