package http

import (
	"bytes"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/inet"
)

// hasPrefixFold reports whether b begins with name, letters of ASCII alike in both cases.
func hasPrefixFold[T string | []byte](b []byte, name T) bool {
	if len(b) < len(name) {
		return false
	}
	for i := 0; i < len(name); i++ {
		if ascii.LowerByte(b[i]) != ascii.LowerByte(name[i]) {
			return false
		}
	}
	return true
}

// Lower gives b in lower case: b itself when it is already.
func (r *Request) Lower(b []byte) []byte {
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			low := append(r.Alloc(len(b))[:0], b...)
			for ; i < len(low); i++ {
				low[i] = ascii.LowerByte(low[i])
			}
			return low
		}
	}
	return b
}

func skipSpaces(b []byte) []byte {
	for len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	return b
}

// CookieValue finds "name=value" in a field's lines: between ";" or ",", up to the next ";"
// (ngx_http_parse_multi_header_lines).
func CookieValue(h *Header, name string) (value []byte, ok bool) {
	for ; h != nil; h = h.Next {
		if len(name) > len(h.Value) {
			continue
		}
		for b := h.Value; len(b) > 0; {
			if hasPrefixFold(b, name) {
				b = skipSpaces(b[len(name):])
				if len(b) > 0 {
					eq := b[0] == '='
					b = b[1:]
					if eq {
						b = skipSpaces(b)
						if i := bytes.IndexByte(b, ';'); i >= 0 {
							b = b[:i]
						}
						return b, true
					}
				}
			}
			i := bytes.IndexAny(b, ";,")
			if i < 0 {
				break
			}
			b = skipSpaces(b[i+1:])
		}
	}
	return nil, false
}

// Arg finds an argument of the query string (ngx_http_arg).
func (r *Request) Arg(name string) (value []byte, ok bool) {
	a := r.Args
	for p := 0; p+len(name) < len(a); p++ {
		if (p == 0 || a[p-1] == '&') && a[p+len(name)] == '=' && hasPrefixFold(a[p:], name) {
			value = a[p+len(name)+1:]
			// The end is looked for from the name on: a "&" in it is the end, too.
			if i := bytes.IndexByte(a[p:], '&'); i >= 0 {
				return a[p+len(name)+1 : max(p+i, p+len(name)+1)], true
			}
			return value, true
		}
	}
	return nil, false
}

// AuthBasicUser reads the user and the password of Basic authentication into HeadersIn:
// Declined when there are none (ngx_http_auth_basic_user).
func (r *Request) AuthBasicUser() Rc {
	h := &r.HeadersIn
	if h.User != nil {
		if len(h.User) == 0 {
			return Declined
		}
		// As nginx, a second look decodes the same field again.
	}
	h.User = []byte{}
	if h.Authorization == nil || !hasPrefixFold(h.Authorization.Value, "Basic ") {
		return Declined
	}
	encoded := skipSpaces(h.Authorization.Value[len("Basic "):])
	if len(encoded) == 0 {
		return Declined
	}
	auth, ok := DecodeBase64(r.Alloc((len(encoded) + 3) / 4 * 3)[:0], encoded)
	if !ok {
		return Declined
	}
	colon := bytes.IndexByte(auth, ':')
	if colon <= 0 {
		return Declined
	}
	h.User, h.Passwd = auth[:colon:colon], auth[colon+1:]
	return OK
}

var base64Value = func() (t [256]byte) {
	for i := range t {
		t[i] = 77
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = byte(i)
	}
	return t
}()

// DecodeBase64 appends the bytes of src, which may lack its "=" at the end or have
// anything behind them (ngx_decode_base64).
func DecodeBase64(dst, src []byte) ([]byte, bool) {
	n := 0
	for n < len(src) && src[n] != '=' {
		if base64Value[src[n]] == 77 {
			return dst, false
		}
		n++
	}
	if n%4 == 1 {
		return dst, false
	}
	v := func(i int) byte { return base64Value[src[i]] }
	i := 0
	for ; n-i > 3; i += 4 {
		dst = append(dst, v(i)<<2|v(i+1)>>4, v(i+1)<<4|v(i+2)>>2, v(i+2)<<6|v(i+3))
	}
	if n-i > 1 {
		dst = append(dst, v(i)<<2|v(i+1)>>4)
	}
	if n-i > 2 {
		dst = append(dst, v(i+1)<<4|v(i+2)>>2)
	}
	return dst, true
}

// ForwardedAddr follows a list of forwarders from its end as long as they are among proxies,
// from addr on: the lines of a field, or one value when headers is nil. OK: addr is new; Done:
// it is new, and behind it the list could not be followed; Declined
// (ngx_http_get_forwarded_addr).
func (r *Request) ForwardedAddr(addr *ev.Addr, headers *Header, value []byte, proxies []inet.CIDR, recursive bool) Rc {
	if headers == nil {
		return forwarded(addr, value, proxies, recursive)
	}
	var lines []*Header
	for h := headers; h != nil; h = h.Next {
		lines = append(lines, h)
	}
	rc, found := Declined, false
	for i := len(lines) - 1; i >= 0; i-- {
		rc = forwarded(addr, lines[i].Value, proxies, recursive)
		if !recursive {
			break
		}
		if rc == Declined && found {
			return Done
		}
		if rc != OK {
			break
		}
		found = true
	}
	return rc
}

func forwarded(addr *ev.Addr, list []byte, proxies []inet.CIDR, recursive bool) Rc {
	lost := Declined
	for {
		if !matchCIDR(proxies, *addr) {
			return lost
		}
		end := len(list)
		for end > 1 && (list[end-1] == ' ' || list[end-1] == ',') {
			end--
		}
		start := end - 1
		for start > 0 && list[start] != ' ' && list[start] != ',' {
			start--
		}
		if start > 0 {
			start++
		}
		if start < 0 {
			return lost
		}
		a, ok := inet.ParsePort(list[start:end])
		if !ok {
			return lost
		}
		*addr, lost = a, Done
		if !recursive || start <= 0 {
			return OK
		}
		list = list[:start-1]
	}
}

func matchCIDR(list []inet.CIDR, a ev.Addr) bool {
	for i := range list {
		if list[i].Match(a) {
			return true
		}
	}
	return false
}
