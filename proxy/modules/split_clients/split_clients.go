// Package split_clients is ngx_http_split_clients_module: variables that divide requests in
// parts of given sizes (src/http/modules/ngx_http_split_clients_module.c).
package split_clients

import (
	"encoding/binary"
	"strings"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_split_clients_module.
var Module = &http.Module{
	Name: "ngx_http_split_clients_module",
	Directives: []module.Directive{
		{Name: "split_clients", Where: module.HTTPMain, Args: module.Block | module.Take2, Set: setSplit},
	},
}

// split is one division.
type split struct {
	source *http.ComplexValue
	parts  []part
}

// part is what hashes below a bound get; bound 0 is the rest.
type part struct {
	bound uint32
	value []byte
}

func setSplit(cf *module.Conf, cmd *module.Directive, _ any) error {
	source, err := http.CompileComplexValue(cf, cf.Args[1])
	if err != nil {
		return err
	}
	name := cf.Args[2]
	if !strings.HasPrefix(name, "$") {
		return cf.Emerg(`invalid variable name "%s"`, name)
	}
	v, err := http.AddVariable(cf, name[1:], http.VarChangeable)
	if err != nil {
		return err
	}
	s := &split{source: source}
	v.Get, v.Data = get, s
	saved := *cf
	cf.Handler = s.row
	err = cf.ReadBlock()
	cf.Handler, cf.Args = saved.Handler, saved.Args
	if err != nil {
		return err
	}
	var sum, last uint32
	for i := range s.parts {
		p := &s.parts[i]
		if p.bound == 0 {
			sum = 10000
		} else {
			sum += p.bound
		}
		if sum > 10000 {
			return cf.Emerg("percent total is greater than 100%%")
		}
		if p.bound != 0 {
			last += uint32(uint64(p.bound) * 0xffffffff / 10000)
			p.bound = last
		}
	}
	return nil
}

func (s *split) row(cf *module.Conf) error {
	p := part{}
	if len(cf.Args) > 1 {
		p.value = []byte(cf.Args[1])
	}
	if share := cf.Args[0]; share != "*" {
		digits, ok := strings.CutSuffix(share, "%")
		n, isNum := module.AtoFP(digits, 2)
		if !ok || !isNum || n == 0 {
			return cf.Emerg(`invalid percent value "%s"`, share)
		}
		p.bound = uint32(n)
	}
	s.parts = append(s.parts, p)
	return nil
}

func get(r *http.Request, v *http.VarValue, data any) http.Rc {
	s := data.(*split)
	*v = http.VarNull
	val, rc := r.Complex(s.source)
	if rc != http.OK {
		return http.OK
	}
	h := murmur2(val)
	for _, p := range s.parts {
		if h < p.bound || p.bound == 0 {
			return v.Set(p.value)
		}
	}
	return http.OK
}

// murmur2 is MurmurHash2 with nginx's seed, the length (src/core/ngx_murmurhash.c).
func murmur2(b []byte) uint32 {
	const m = 0x5bd1e995
	h := uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * m
		k ^= k >> 24
		h = h*m ^ k*m
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
