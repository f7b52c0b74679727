package resolver

import (
	"encoding/binary"
	"strings"
	"syscall"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/ev"
)

// appendQuery writes a question for one name (RFC 1035, section 4).
func appendQuery(b []byte, id uint16, name string, kind uint16) []byte {
	b = binary.BigEndian.AppendUint16(b, id)
	b = append(b, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0) // recursion desired, one question
	for _, label := range strings.Split(name, ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	b = append(b, 0)
	b = binary.BigEndian.AppendUint16(b, kind)
	return append(b, 0, 1) // IN
}

// message is what an answer says.
type message struct {
	id    uint16
	name  string // that was asked for, lower case
	kind  uint16
	code  int
	addrs []ev.Addr
	ttl   int64 // s, the least
}

const headerLen = 12

// parse reads an answer; false when it is none.
func parse(b []byte) (*message, bool) {
	if len(b) < headerLen || b[2]&0x80 == 0 || b[4] != 0 || b[5] != 1 {
		return nil, false
	}
	m := &message{id: binary.BigEndian.Uint16(b), code: int(b[3] & 0xf), ttl: -1}
	name, p, ok := readName(b, headerLen)
	if !ok || p+4 > len(b) || b[p+2] != 0 || b[p+3] != 1 {
		return nil, false
	}
	m.name = ascii.Lower(name)
	m.kind = binary.BigEndian.Uint16(b[p:])
	p += 4
	if b[2]&0x02 != 0 && m.code == 0 {
		m.code = ServFail // cut short
		return m, true
	}
	if m.code != 0 {
		return m, true
	}
	for range int(binary.BigEndian.Uint16(b[6:])) {
		_, q, ok := readName(b, p)
		if !ok || q+10 > len(b) {
			return nil, false
		}
		kind := binary.BigEndian.Uint16(b[q:])
		ttl := int64(int32(binary.BigEndian.Uint32(b[q+4:])))
		n := int(binary.BigEndian.Uint16(b[q+8:]))
		q += 10
		if q+n > len(b) {
			return nil, false
		}
		if kind == m.kind && binary.BigEndian.Uint16(b[q-8:]) == 1 {
			a := ev.Addr{Family: syscall.AF_INET}
			want := 4
			if kind == typeAAAA {
				a.Family, want = syscall.AF_INET6, 16
			}
			if n != want {
				return nil, false
			}
			copy(a.IP[:], b[q:q+n])
			m.addrs = append(m.addrs, a)
		}
		if ttl = max(ttl, 0); m.ttl < 0 || ttl < m.ttl {
			m.ttl = ttl
		}
		p = q + n
	}
	return m, true
}

// readName reads a name, following where it is shortened; next is the byte behind it.
func readName(b []byte, p int) (name string, next int, ok bool) {
	var out []string
	for hops := 0; p < len(b); {
		n := int(b[p])
		switch {
		case n == 0:
			if next == 0 {
				next = p + 1
			}
			return strings.Join(out, "."), next, true
		case n&0xc0 == 0xc0:
			if p+1 >= len(b) || hops > 127 {
				return "", 0, false
			}
			if next == 0 {
				next = p + 2
			}
			p = (n&0x3f)<<8 | int(b[p+1])
			hops++
		case n&0xc0 != 0 || p+1+n > len(b):
			return "", 0, false
		default:
			out = append(out, string(b[p+1:p+1+n]))
			p += 1 + n
		}
	}
	return "", 0, false
}
