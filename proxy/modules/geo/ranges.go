package geo

import (
	"encoding/binary"
	"slices"
	"strings"

	"nginxoracle/proxy/inet"
	"nginxoracle/proxy/module"
)

// ranges are values by ranges of IPv4 addresses, in lists by the address' upper half.
type ranges struct {
	fallback []byte // nil: empty
	low      map[uint16][]span
}

// span is a range within one upper half, both ends in it.
type span struct {
	start, end uint16
	value      []byte
}

func (t *ranges) find(a uint32) []byte {
	n := uint16(a)
	for _, s := range t.low[uint16(a>>16)] {
		if n >= s.start && n <= s.end {
			return s.value
		}
	}
	return t.fallback
}

// rangeRow reads "from-to value" (ngx_http_geo_range).
func (b *builder) rangeRow(cf *module.Conf, key, value string) error {
	t := &b.g.table
	if module.Is(key, "default") {
		if t.fallback != nil {
			cf.Warn(`duplicate default geo range value: "%s", old value: "%s"`, value, t.fallback)
		}
		t.fallback = []byte(value)
		return nil
	}
	if t.low == nil {
		t.low = map[uint16][]span{}
	}
	b.entries++
	b.outside = true
	net := key
	if module.Is(key, "delete") {
		net = value
	}
	from, to, ok := strings.Cut(net, "-")
	start, ok1 := inet.Addr4(from)
	end, ok2 := inet.Addr4(to)
	s, e := binary.BigEndian.Uint32(start[:]), binary.BigEndian.Uint32(end[:])
	if !ok || !ok1 || !ok2 || s > e {
		return cf.Emerg(`invalid range "%s"`, net)
	}
	missing := false
	for h := s >> 16; h <= e>>16; h++ {
		lo, hi := uint16(0), uint16(0xffff)
		if h == s>>16 {
			lo = uint16(s)
		}
		if h == e>>16 {
			hi = uint16(e)
		}
		if module.Is(key, "delete") {
			missing = !t.drop(uint16(h), lo, hi) || missing
			continue
		}
		if err := t.add(cf, uint16(h), span{lo, hi, []byte(value)}, net); err != nil {
			return err
		}
	}
	if missing {
		cf.Warn(`no address range "%s" to delete`, net)
	}
	return nil
}

func (t *ranges) drop(h, lo, hi uint16) bool {
	for i, s := range t.low[h] {
		if s.start == lo && s.end == hi {
			t.low[h] = slices.Delete(t.low[h], i, i+1)
			return true
		}
	}
	return false
}

// add puts a span among those of its half: between them, over the same one, or into a greater
// one, which it cuts (ngx_http_geo_add_range).
func (t *ranges) add(cf *module.Conf, h uint16, n span, net string) error {
	list := t.low[h]
	for i := len(list) - 1; i >= 0; i-- {
		old := list[i]
		switch {
		case n.end < old.start:
			continue
		case n.start > old.end:
			t.low[h] = slices.Insert(list, i+1, n)
		case n.start == old.start && n.end == old.end:
			cf.Warn(`duplicate range "%s", value: "%s", old value: "%s"`, net, n.value, old.value)
			list[i].value = n.value
		case n.start > old.start && n.end < old.end:
			list[i].end = n.start - 1
			t.low[h] = slices.Insert(list, i+1, n, span{n.end + 1, old.end, old.value})
		case n.start == old.start && n.end < old.end:
			list[i].start = n.end + 1
			t.low[h] = slices.Insert(list, i, n)
		case n.start > old.start && n.end == old.end:
			list[i].end = n.start - 1
			t.low[h] = slices.Insert(list, i+1, n)
		default:
			return cf.Emerg(`range "%s" overlaps "%d.%d.%d.%d-%d.%d.%d.%d"`, net,
				h>>8, h&0xff, old.start>>8, old.start&0xff, h>>8, h&0xff, old.end>>8, old.end&0xff)
		}
		return nil
	}
	t.low[h] = slices.Insert(list, 0, n)
	return nil
}
