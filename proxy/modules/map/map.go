// Package mapmod is ngx_http_map_module: variables whose value depends on that of another text
// (src/http/modules/ngx_http_map_module.c).
package mapmod

import (
	"strings"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_map_module.
var Module = &http.Module{
	Name: "ngx_http_map_module",
	Directives: []module.Directive{
		{Name: "map", Where: module.HTTPMain, Args: module.Block | module.Take2, Level: module.MainConf, Set: setMap},
		{Name: "map_hash_max_size", Where: module.HTTPMain, Args: module.Take1, Level: module.MainConf,
			Set: module.NumSlot(func(c *conf) *int { return &c.max })},
		{Name: "map_hash_bucket_size", Where: module.HTTPMain, Args: module.Take1, Level: module.MainConf,
			Set: module.NumSlot(func(c *conf) *int { return &c.bucket })},
	},
	CreateMain: func(cf *module.Conf) any { return &conf{max: module.Unset, bucket: module.Unset} },
}

type conf struct{ max, bucket int }

// table is one map.
type table struct {
	source    *http.ComplexValue
	names     *http.NameTable
	regexes   []regexRow
	fallback  *http.ComplexValue // nil: empty
	hostnames bool
}

type regexRow struct {
	regex *http.Regex
	value *http.ComplexValue
}

func setMap(cf *module.Conf, cmd *module.Directive, confAny any) error {
	c := confAny.(*conf)
	module.InitInt(&c.max, 2048)
	module.InitInt(&c.bucket, 64)
	c.bucket = http.AlignLine(c.bucket)

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
	t := &table{source: source}
	v.Get, v.Data = get, t

	b := builder{t: t}
	saved := *cf
	cf.Handler = b.row
	err = cf.ReadBlock()
	cf.Handler, cf.Args = saved.Handler, saved.Args
	if err != nil {
		return err
	}
	if b.volatile {
		v.Flags |= http.VarNoCacheable
	}
	t.names, err = b.names.Table(cf, http.HashLimits{Name: "map_hash", Max: c.max, BucketSize: c.bucket})
	return err
}

type builder struct {
	t        *table
	names    http.NameBuilder
	volatile bool
}

// row reads a line of the block (ngx_http_map).
func (b *builder) row(cf *module.Conf) error {
	if len(cf.Args) == 1 && module.Is(cf.Args[0], "hostnames") {
		b.t.hostnames = true
		return nil
	}
	if len(cf.Args) == 1 && module.Is(cf.Args[0], "volatile") {
		b.volatile = true
		return nil
	}
	if len(cf.Args) != 2 {
		return cf.Emerg("invalid number of the map parameters")
	}
	key := cf.Args[0]
	if module.Is(key, "include") {
		return cf.Include(cf.Args[1])
	}
	value, err := http.CompileComplexValue(cf, cf.Args[1])
	if err != nil {
		return err
	}
	if module.Is(key, "default") {
		if b.t.fallback != nil {
			return cf.Emerg("duplicate default map parameter")
		}
		b.t.fallback = value
		return nil
	}
	if strings.HasPrefix(key, "~") {
		pattern, caseless := strings.CutPrefix(key[1:], "*")
		re, err := http.CompileRegex(cf, pattern, caseless)
		if err != nil {
			return err
		}
		b.t.regexes = append(b.t.regexes, regexRow{re, value})
		return nil
	}
	key = strings.TrimPrefix(key, `\`)
	switch b.names.Add(key, value, b.t.hostnames) {
	case http.NameInvalid:
		return cf.Emerg(`invalid hostname or wildcard "%s"`, key)
	case http.NameConflict:
		return cf.Emerg(`conflicting parameter "%s"`, ascii.Lower(key))
	}
	return nil
}

func get(r *http.Request, v *http.VarValue, data any) http.Rc {
	t := data.(*table)
	val, rc := r.Complex(t.source)
	if rc != http.OK {
		return http.Error
	}
	if t.hostnames && len(val) > 0 && val[len(val)-1] == '.' {
		val = val[:len(val)-1]
	}
	value := t.find(r, val)
	if value == nil {
		value = t.fallback
	}
	if value == nil {
		*v = http.VarNull
		return http.OK
	}
	b, rc := r.Complex(value)
	if rc != http.OK {
		return http.Error
	}
	return v.Set(b)
}

// find looks a text up: by name in lower case, then by the regular expressions in their order
// (ngx_http_map_find).
func (t *table) find(r *http.Request, val []byte) *http.ComplexValue {
	if v := t.names.Find(r.Lower(val)); v != nil {
		return v.(*http.ComplexValue)
	}
	if len(val) == 0 {
		return nil
	}
	for i := range t.regexes {
		switch t.regexes[i].regex.Exec(r, val) {
		case http.OK:
			return t.regexes[i].value
		case http.Error:
			return nil
		}
	}
	return nil
}
