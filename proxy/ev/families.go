package ev

import "syscall"

// Families tells which address families the machine has an address of, besides 127.0.0.1 and ::1:
// what getaddrinfo's AI_ADDRCONFIG goes by (glibc, __check_pf). Without an answer from the kernel it has
// both.
func Families() (v4, v6 bool) {
	rib, err := syscall.NetlinkRIB(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
	if err != nil {
		return true, true
	}
	msgs, err := syscall.ParseNetlinkMessage(rib)
	if err != nil {
		return true, true
	}
	loop6 := [16]byte{15: 1}
	for i := range msgs {
		m := &msgs[i]
		if m.Header.Type != syscall.RTM_NEWADDR || len(m.Data) == 0 {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(m)
		if err != nil {
			continue
		}
		var addr []byte
		for _, a := range attrs {
			switch {
			case a.Attr.Type == syscall.IFA_LOCAL, a.Attr.Type == syscall.IFA_ADDRESS && addr == nil:
				addr = a.Value
			}
		}
		switch {
		case m.Data[0] == syscall.AF_INET && len(addr) == 4:
			v4 = v4 || string(addr) != "\x7f\x00\x00\x01"
		case m.Data[0] == syscall.AF_INET6 && len(addr) == 16:
			v6 = v6 || string(addr) != string(loop6[:])
		}
	}
	return v4, v6
}

// HasInterface tells whether the machine has a network interface of that name.
func HasInterface(name string) bool {
	rib, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC)
	if err != nil {
		return false
	}
	msgs, err := syscall.ParseNetlinkMessage(rib)
	if err != nil {
		return false
	}
	for i := range msgs {
		if msgs[i].Header.Type != syscall.RTM_NEWLINK {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(&msgs[i])
		if err != nil {
			return false
		}
		for _, a := range attrs {
			if a.Attr.Type == syscall.IFLA_IFNAME && string(a.Value) == name+"\x00" {
				return true
			}
		}
	}
	return false
}
