// Package geo is ngx_http_geo_module: variables that depend on an address, by networks or by
// ranges (src/http/modules/ngx_http_geo_module.c).
package geo

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"strings"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/inet"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_geo_module.
var Module = &http.Module{
	Name: "ngx_http_geo_module",
	Directives: []module.Directive{
		{Name: "geo", Where: module.HTTPMain, Args: module.Block | module.Take12, Set: setGeo},
	},
}

// geo is one block: where the address comes from, and the values of networks or ranges.
type geo struct {
	index     int // the variable that holds the address, -1: the client's
	proxies   []inet.CIDR
	recursive bool
	ranges    bool
	nets      nets
	table     ranges
}

type builder struct {
	g        *geo
	entries  int
	includes int
	outside  bool // entries stand outside the included file
}

func setGeo(cf *module.Conf, cmd *module.Directive, _ any) error {
	g := &geo{index: -1}
	name := cf.Args[1]
	if !strings.HasPrefix(name, "$") {
		return cf.Emerg(`invalid variable name "%s"`, name)
	}
	if len(cf.Args) == 3 {
		i, err := http.VariableIndex(cf, name[1:])
		if err != nil {
			return err
		}
		g.index = i
		name = cf.Args[2]
		if !strings.HasPrefix(name, "$") {
			return cf.Emerg(`invalid variable name "%s"`, name)
		}
	}
	v, err := http.AddVariable(cf, name[1:], http.VarChangeable)
	if err != nil {
		return err
	}
	b := builder{g: g}
	saved := *cf
	cf.Handler = b.row
	err = cf.ReadBlock()
	cf.Handler, cf.Args = saved.Handler, saved.Args
	if err != nil {
		return err
	}
	if g.ranges && b.entries > binaryEntries && b.includes == 1 && !b.outside {
		return cf.NotSupported("geo with a base in binary form")
	}
	v.Get, v.Data = get, g
	return nil
}

// binaryEntries is how many ranges of one file make nginx write them to a binary one.
const binaryEntries = 100000

// row reads a line of the block (ngx_http_geo).
func (b *builder) row(cf *module.Conf) error {
	g := b.g
	if len(cf.Args) == 1 {
		switch module.CText(cf.Args[0]) {
		case "ranges":
			if g.nets.used {
				return cf.Emerg(`the "ranges" directive must be the first directive inside "geo" block`)
			}
			g.ranges = true
			return nil
		case "proxy_recursive":
			g.recursive = true
			return nil
		}
	}
	if len(cf.Args) != 2 {
		return cf.Emerg("invalid number of the geo parameters")
	}
	switch key, value := cf.Args[0], cf.Args[1]; {
	case module.Is(key, "include"):
		return b.include(cf, value)
	case module.Is(key, "proxy"):
		net, err := network(cf, value)
		g.proxies = append(g.proxies, net)
		return err
	case g.ranges:
		return b.rangeRow(cf, key, value)
	default:
		return g.nets.row(cf, key, value)
	}
}

func (b *builder) include(cf *module.Conf, name string) error {
	name = cf.ConfPrefix(name)
	if b.g.ranges {
		if _, err := os.Stat(name + ".bin"); !errors.Is(err, fs.ErrNotExist) {
			return cf.NotSupported("geo with a base in binary form")
		}
	}
	err := cf.ReadFile(name)
	b.includes++
	b.outside = false
	return err
}

func network(cf *module.Conf, text string) (inet.CIDR, error) {
	if text == "255.255.255.255" {
		all := [16]byte{255, 255, 255, 255}
		return inet.CIDR{Family: ev.INET, Addr: all, Mask: all}, nil
	}
	net, lowBits, ok := inet.ParseCIDR(text)
	if !ok {
		return net, cf.Emerg(`invalid network "%s"`, text)
	}
	if lowBits {
		cf.Warn("low address bits of %s are meaningless", text)
	}
	return net, nil
}

// get finds the value of the address; one that cannot be had counts as 255.255.255.255.
func get(r *http.Request, v *http.VarValue, data any) http.Rc {
	g := data.(*geo)
	a, ok := g.address(r)
	if !ok || a.Family == ev.UNIX {
		a = ev.Addr{Family: ev.INET, IP: [16]byte{255, 255, 255, 255}}
	}
	if v4, mapped := inet.Mapped(a); mapped {
		a = ev.Addr{Family: ev.INET}
		copy(a.IP[:], v4[:])
	}
	var value []byte
	if g.ranges {
		n := uint32(0xffffffff)
		if a.Family == ev.INET {
			n = binary.BigEndian.Uint32(a.IP[:])
		}
		value = g.table.find(n)
	} else {
		value = g.nets.find(a)
	}
	if value == nil {
		*v = http.VarNull
		return http.OK
	}
	return v.Set(value)
}

func (g *geo) address(r *http.Request) (a ev.Addr, ok bool) {
	a = r.Conn.Peer
	if g.index != -1 {
		v := r.FlushedVariable(g.index)
		if v == nil || v.NotFound {
			return a, false
		}
		if a, ok = inet.Parse(v.V); !ok {
			return a, false
		}
	}
	if xff := r.HeadersIn.XForwardedFor; xff != nil && g.proxies != nil {
		r.ForwardedAddr(&a, xff, nil, g.proxies, g.recursive)
	}
	return a, true
}
