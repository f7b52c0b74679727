package inet

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"syscall"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
)

// Listen reads an address of the listen directive into the addresses it stands for: a
// port, an address with or without one, a range of ports, a name, a Unix socket's path.
// The error is nginx's word for what is wrong; it may be empty (ngx_parse_url).
func Listen(text string, defaultPort int) ([]ev.Addr, error) {
	if len(text) >= 5 && ascii.EqualFold(text[:5], "unix:") {
		return listenUnix(text[5:])
	}
	if strings.HasPrefix(text, "[") {
		return listen6(text, defaultPort)
	}
	return listen4(text, defaultPort)
}

func listenUnix(path string) ([]ev.Addr, error) {
	if path == "" {
		return nil, module.Text("no path in the unix domain socket")
	}
	if len(path)+1 > len(syscall.RawSockaddrUnix{}.Path) {
		return nil, module.Text("too long path in the unix domain socket")
	}
	return []ev.Addr{{Family: syscall.AF_UNIX, Path: path}}, nil
}

const (
	errPort  = module.Text("invalid port")
	errRange = module.Text("invalid port range")
	errHost  = module.Text("invalid host")
)

// ports reads "80" or "80-90"; to is 0 when it is not a range.
func ports(s string) (from, to int, err error) {
	first, last, isRange := strings.Cut(s, "-")
	if isRange {
		n, ok := module.Atoi(last)
		if !ok || n < 1 || n > 65535 {
			return 0, 0, errPort
		}
		to = n
	}
	n, ok := module.Atoi(first)
	if !ok || n < 1 || n > 65535 {
		return 0, 0, errPort
	}
	if isRange && n > to {
		return 0, 0, errRange
	}
	return n, to, nil
}

// bare reads a text that may be nothing but a port or a range.
func bare(s string) (from, to int, isPort bool, err error) {
	first, last, isRange := strings.Cut(s, "-")
	bad := false
	if isRange {
		n, ok := module.Atoi(last)
		if !ok {
			return 0, 0, false, nil
		}
		bad = n < 1 || n > 65535
		to = n
	}
	n, ok := module.Atoi(first)
	if !ok {
		return 0, 0, false, nil
	}
	if bad || n < 1 || n > 65535 {
		return 0, 0, true, errPort
	}
	if isRange && n > to {
		return 0, 0, true, errRange
	}
	return n, to, true, nil
}

func listen4(text string, defaultPort int) ([]ev.Addr, error) {
	if strings.ContainsAny(text, "/?") {
		return nil, errHost
	}
	host, port, hasPort := strings.Cut(text, ":")
	from, to := defaultPort, 0
	if hasPort {
		var err error
		if from, to, err = ports(port); err != nil {
			return nil, err
		}
	} else if f, t, isPort, err := bare(text); isPort {
		if err != nil {
			return nil, err
		}
		return spread([]ev.Addr{{Family: syscall.AF_INET}}, f, t), nil
	}
	if host == "" {
		return nil, module.Text("no host")
	}
	if host == "*" {
		return spread([]ev.Addr{{Family: syscall.AF_INET}}, from, to), nil
	}
	if ip, ok := Addr4(host); ok {
		a := ev.Addr{Family: syscall.AF_INET}
		copy(a.IP[:], ip[:])
		return spread([]ev.Addr{a}, from, to), nil
	}
	addrs, ok := HostsFile(host)
	if !ok {
		return nil, module.Text("host not found")
	}
	return spread(addrs, from, to), nil
}

func listen6(text string, defaultPort int) ([]ev.Addr, error) {
	host, rest, ok := strings.Cut(text[1:], "]")
	if !ok || strings.Contains(rest, "/") {
		return nil, errHost
	}
	from, to := defaultPort, 0
	if rest != "" {
		if rest[0] != ':' {
			return nil, errHost
		}
		var err error
		if from, to, err = ports(rest[1:]); err != nil {
			return nil, err
		}
	}
	if host == "" {
		return nil, module.Text("no host")
	}
	ip, ok := Addr6(host)
	if !ok {
		return nil, module.Text("invalid IPv6 address")
	}
	return spread([]ev.Addr{{Family: syscall.AF_INET6, IP: ip}}, from, to), nil
}

// spread gives each address every port of the range.
func spread(addrs []ev.Addr, from, to int) []ev.Addr {
	var out []ev.Addr
	for _, a := range addrs {
		for p := from; p <= max(from, to); p++ {
			a.Port = p
			out = append(out, a)
		}
	}
	return out
}

// HostsFile resolves a name by /etc/hosts alone: a configuration is read in a place
// without a network. IPv6 addresses come first, as getaddrinfo orders loopback ones; when the
// machine has addresses of one family only, those of the other are left out (AI_ADDRCONFIG); and
// only the first line counts unless /etc/host.conf says "multi on" (glibc, nss_files). Numbers that stand for an
// address count as names of it.
func HostsFile(name string) ([]ev.Addr, bool) {
	name, _, _ = strings.Cut(name, "\x00") // the resolver is handed a C string (ngx_inet_resolve_host)
	if a, ok := numbers(name); ok {
		return []ev.Addr{a}, true
	}
	if a, ok := scoped(name); ok {
		return []ev.Addr{a}, true
	}
	data, err := os.ReadFile("/etc/hosts")
	if err != nil {
		data = []byte("127.0.0.1 localhost\n")
	}
	var v4, v6 []ev.Addr
	var first ev.Addr
	for _, line := range strings.Split(string(data), "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		a, ok := Parse(words[0])
		if !ok {
			continue
		}
		for _, w := range words[1:] {
			if !ascii.EqualFold(w, name) {
				continue
			}
			if v4 == nil && v6 == nil {
				first = a
			}
			if a.Family == syscall.AF_INET {
				v4 = append(v4, a)
			} else {
				v6 = append(v6, a)
			}
			break
		}
	}
	if has4, has6 := ev.Families(); has4 != has6 {
		if has4 {
			v6 = nil
		} else {
			v4 = nil
		}
	}
	all := append(v6, v4...)
	if len(all) > 1 && !multi() {
		all = []ev.Addr{first}
	}
	return all, len(all) > 0
}

func multi() bool {
	data, _ := os.ReadFile("/etc/host.conf")
	on := false
	for _, line := range strings.Split(string(data), "\n") {
		if w := strings.Fields(line); len(w) == 2 && w[0] == "multi" {
			on = w[1] == "on"
		}
	}
	return on
}

// numbers reads an IPv4 address of one to four numbers, the last of which fills what is left:
// "127.1", "0x7f000001", "010.0.0.1" (inet_aton(3)).
func numbers(s string) (a ev.Addr, ok bool) {
	words := strings.Split(s, ".")
	if len(words) > 4 {
		return a, false
	}
	var ip uint64
	for i, w := range words {
		n, err := strconv.ParseUint(w, 0, 32)
		if err != nil || strings.ContainsAny(w, "_bBoO") && !strings.HasPrefix(ascii.Lower(w), "0x") {
			return a, false
		}
		if i < len(words)-1 {
			if n > 255 {
				return a, false
			}
			ip |= n << (24 - 8*i)
			continue
		}
		if n >= 1<<(32-8*i) {
			return a, false
		}
		ip |= n
	}
	a = ev.Addr{Family: syscall.AF_INET}
	binary.BigEndian.PutUint32(a.IP[:], uint32(ip))
	return a, true
}

// scoped reads an IPv6 address with a scope behind it: an interface's name where the address is of a link, or a
// number (glibc, __inet6_scopeid_pton). What takes an address from here has no use for the scope.
func scoped(s string) (a ev.Addr, ok bool) {
	text, scope, ok := strings.Cut(s, "%")
	if !ok {
		return a, false
	}
	ip, ok := Addr6(text)
	if !ok {
		return a, false
	}
	a = ev.Addr{Family: syscall.AF_INET6, IP: ip}
	link := ip[0] == 0xfe && ip[1]&0xc0 == 0x80 || ip[0] == 0xff && ip[1]&0x0f == 2
	if link && ev.HasInterface(scope) {
		return a, true
	}
	_, err := strconv.ParseUint(scope, 10, 32)
	return a, err == nil
}
