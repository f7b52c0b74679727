package geo

import (
	"math/bits"
	"slices"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/inet"
	"nginxoracle/proxy/module"
)

// nets are values by network; the longest mask that matches wins (nginx: core/ngx_radix_tree.c).
type nets struct {
	used   bool
	values map[netKey][]byte
	masks  []netKey // those in use, longest first; their addr is the mask
}

type netKey struct {
	family, bits int
	addr         [16]byte
}

func keyOf(c inet.CIDR) netKey {
	n := 0
	for _, b := range c.Mask {
		n += bits.OnesCount8(b)
	}
	return netKey{c.Family, n, c.Addr}
}

// row reads "network value" (ngx_http_geo_cidr).
func (t *nets) row(cf *module.Conf, key, value string) error {
	t.used = true
	switch module.CText(key) {
	case "default":
		t.add(cf, inet.CIDR{Family: ev.INET}, value, key)
		t.add(cf, inet.CIDR{Family: ev.INET6}, value, key)
		return nil
	case "delete":
		net, err := network(cf, value)
		if err != nil {
			return err
		}
		if _, ok := t.values[keyOf(net)]; !ok {
			cf.Warn(`no network "%s" to delete`, value)
		}
		delete(t.values, keyOf(net))
		return nil
	}
	net, err := network(cf, key)
	if err != nil {
		return err
	}
	t.add(cf, net, value, key)
	return nil
}

func (t *nets) add(cf *module.Conf, net inet.CIDR, value, text string) {
	k := keyOf(net)
	if _, dup := t.values[k]; dup {
		// nginx names the value that the network's first address has, which may be a longer one's.
		old := t.find(ev.Addr{Family: net.Family, IP: net.Addr})
		cf.Warn(`duplicate network "%s", value: "%s", old value: "%s"`, text, value, old)
	}
	if t.values == nil {
		t.values = map[netKey][]byte{}
	}
	t.values[k] = []byte(value)
	mask := netKey{k.family, k.bits, net.Mask}
	if !slices.Contains(t.masks, mask) {
		t.masks = append(t.masks, mask)
		slices.SortFunc(t.masks, func(a, b netKey) int { return b.bits - a.bits })
	}
}

func (t *nets) find(a ev.Addr) []byte {
	for _, m := range t.masks {
		if m.family != a.Family {
			continue
		}
		k := netKey{m.family, m.bits, a.IP}
		for i, b := range m.addr {
			k.addr[i] &= b
		}
		if v, ok := t.values[k]; ok {
			return v
		}
	}
	return nil
}
