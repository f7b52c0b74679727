package upstream

import (
	"strings"
	"syscall"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/inet"
	"nginxoracle/proxy/module"
)

// URL is an address in a directive: "host:port/uri", "[::1]:80", "unix:/path:/uri"
// (ngx_url_t, without listen's forms).
type URL struct {
	Text        string
	DefaultPort int
	URIPart     bool // a URI may follow
	NoResolve   bool // leave names unresolved

	Host, PortText, URI string
	Port                int
	NoPort, Unix        bool
	Addrs               []NamedAddr
}

// ParseURL reads u.Text into the other fields (ngx_parse_url). The error is nginx's word
// for what is wrong.
func ParseURL(u *URL) error {
	t := u.Text
	if len(t) >= 5 && ascii.EqualFold(t[:5], "unix:") {
		return u.parseUnix()
	}
	if t != "" && t[0] == '[' {
		return u.parseInet6()
	}
	return u.parseInet()
}

func (u *URL) parseUnix() error {
	path := u.Text[5:]
	if u.URIPart {
		if i := strings.IndexByte(path, ':'); i >= 0 {
			path, u.URI = path[:i], path[i+1:]
		}
	}
	if path == "" {
		return module.Text("no path in the unix domain socket")
	}
	u.Host = path
	if len(path)+1 > 108 {
		return module.Text("too long path in the unix domain socket")
	}
	u.Unix = true
	u.Addrs = []NamedAddr{{
		Addr: ev.Addr{Family: syscall.AF_UNIX, Path: path},
		Name: u.Text[:5+len(path)],
	}}
	return nil
}

func (u *URL) parseInet() error {
	host := u.Text
	port := strings.IndexByte(host, ':')
	uri := strings.IndexByte(host, '/')
	if args := strings.IndexByte(host, '?'); args >= 0 && (uri < 0 || args < uri) {
		uri = args
	}
	last := len(host)
	if uri >= 0 {
		if !u.URIPart {
			return module.Text("invalid host")
		}
		u.URI = host[uri:]
		last = uri
		if uri < port {
			port = -1
		}
	}
	if port >= 0 {
		n, ok := portNumber(host[port+1 : last])
		if !ok {
			return module.Text("invalid port")
		}
		u.Port = n
		u.PortText = host[port+1 : last]
		last = port
	} else {
		u.NoPort = true
		u.Port = u.DefaultPort
	}
	if last == 0 {
		return module.Text("no host")
	}
	u.Host = host[:last]
	if a, ok := inet.Parse(u.Host); ok && a.Family == syscall.AF_INET {
		u.Addrs = []NamedAddr{named(a, u.Port)}
		return nil
	}
	if u.NoResolve {
		return nil
	}
	return u.Resolve()
}

func (u *URL) parseInet6() error {
	t := u.Text
	end := strings.IndexByte(t, ']')
	if end < 0 {
		return module.Text("invalid host")
	}
	last := len(t)
	if i := strings.IndexByte(t[end+1:], '/'); i >= 0 {
		if !u.URIPart {
			return module.Text("invalid host")
		}
		last = end + 1 + i
		u.URI = t[last:]
	}
	if port := end + 1; port < last {
		if t[port] != ':' {
			return module.Text("invalid host")
		}
		n, ok := portNumber(t[port+1 : last])
		if !ok {
			return module.Text("invalid port")
		}
		u.Port, u.PortText = n, t[port+1:last]
	} else {
		u.NoPort = true
		u.Port = u.DefaultPort
	}
	if end == 1 {
		return module.Text("no host")
	}
	u.Host = t[:end+1]
	ip, ok := inet.Addr6(t[1:end])
	if !ok {
		return module.Text("invalid IPv6 address")
	}
	u.Addrs = []NamedAddr{named(ev.Addr{Family: syscall.AF_INET6, IP: ip}, u.Port)}
	return nil
}

func portNumber(s string) (int, bool) {
	n, ok := Atoi(s)
	return n, ok && n >= 1 && n <= 65535
}

// Atoi reads digits only (ngx_atoi): no sign, not empty, no overflow.
func Atoi[T string | []byte](s T) (int, bool) {
	if len(s) == 0 {
		return 0, false
	}
	n := 0
	for i := 0; i < len(s); i++ {
		ch := s[i]
		if ch < '0' || ch > '9' {
			return 0, false
		}
		d := int(ch - '0')
		if n > (1<<63-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

func named(a ev.Addr, port int) NamedAddr {
	a.Port = port
	return NamedAddr{Addr: a, Name: a.Text()}
}

// Resolve finds the addresses of u.Host at load time (ngx_inet_resolve_host).
func (u *URL) Resolve() error {
	u.Addrs = nil
	if a, ok := inet.Parse(u.Host); ok {
		u.Addrs = []NamedAddr{named(a, u.Port)}
		return nil
	}
	addrs, ok := inet.HostsFile(u.Host)
	if !ok {
		return module.Text("host not found")
	}
	for _, a := range addrs {
		u.Addrs = append(u.Addrs, named(a, u.Port))
	}
	return nil
}
