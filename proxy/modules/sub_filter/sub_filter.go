// Package sub_filter replaces strings in responses
// (nginx: src/http/modules/ngx_http_sub_filter_module.c).
package sub_filter

import (
	"bytes"
	"sort"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

type conf struct {
	dynamic            bool // some search text has variables
	pairs              []pair
	tables             *tables // of static texts
	matches            []match
	types              *http.TypeSet
	once, lastModified int
}

type pair struct{ match, value *http.ComplexValue }

// match is a text to look for, in lower case.
type match struct {
	text  []byte
	value *http.ComplexValue
}

// tables say how far to go on from a byte that stands where the shortest text's last byte would
// (shift), and which of the sorted texts have that byte there (index to index of the next byte).
type tables struct {
	min, max int
	index    [257]int
	shift    [256]int
}

// Module is ngx_http_sub_filter_module.
var Module = &http.Module{}

func init() {
	const where = http.InHTTPSrvLoc
	*Module = http.Module{
		Name: "ngx_http_sub_filter_module",
		Directives: []module.Directive{
			{Name: "sub_filter", Where: where, Args: module.Take2, Level: module.LocConf, Set: set},
			{Name: "sub_filter_types", Where: where, Args: module.OneMore, Level: module.LocConf,
				Set: http.TypesSlot(func(c *conf) **http.TypeSet { return &c.types }, "text/html")},
			{Name: "sub_filter_once", Where: where, Args: module.Flag, Level: module.LocConf,
				Set: module.FlagSlot(func(c *conf) *int { return &c.once })},
			{Name: "sub_filter_last_modified", Where: where, Args: module.Flag, Level: module.LocConf,
				Set: module.FlagSlot(func(c *conf) *int { return &c.lastModified })},
		},
		CreateLoc: func(*module.Conf) any { return &conf{once: module.Unset, lastModified: module.Unset} },
		MergeLoc:  merge,
		HeaderFilter: func(next http.HeaderFilter) http.HeaderFilter {
			return func(r *http.Request) http.Rc { return headerFilter(r, next) }
		},
		BodyFilter: func(next http.BodyFilter) http.BodyFilter {
			return func(r *http.Request, in *http.Chain) http.Rc { return bodyFilter(r, in, next) }
		},
	}
}

func set(cf *module.Conf, _ *module.Directive, c any) (err error) {
	sc := c.(*conf)
	if cf.Args[1] == "" {
		return cf.Emerg("empty search pattern")
	}
	if len(sc.pairs) == 255 {
		return cf.Emerg("number of search patterns exceeds 255")
	}
	var p pair
	if p.match, err = http.CompileComplexValue(cf, string(ascii.AppendLower(nil, cf.Args[1]))); err != nil {
		return err
	}
	if !p.match.Static {
		sc.dynamic = true
	}
	if p.value, err = http.CompileComplexValue(cf, cf.Args[2]); err != nil {
		return err
	}
	sc.pairs = append(sc.pairs, p)
	return nil
}

func merge(cf *module.Conf, prev, c any) error {
	p, sc := prev.(*conf), c.(*conf)
	module.MergeInt(&sc.once, p.once, 1)
	module.MergeInt(&sc.lastModified, p.lastModified, 0)
	if err := http.MergeTypes(cf, &sc.types, p.types, "text/html"); err != nil {
		return err
	}
	if sc.pairs == nil {
		sc.dynamic, sc.pairs, sc.matches, sc.tables = p.dynamic, p.pairs, p.matches, p.tables
	}
	if sc.pairs != nil && !sc.dynamic && sc.tables == nil {
		for i := range sc.pairs {
			sc.matches = append(sc.matches, match{text: []byte(sc.pairs[i].match.Text), value: sc.pairs[i].value})
		}
		sc.tables = newTables(sc.matches)
	}
	return nil
}

// newTables sorts the matches and makes their tables.
func newTables(ms []match) *tables {
	t := &tables{min: len(ms[0].text), max: len(ms[0].text)}
	for i := range ms {
		t.min = min(t.min, len(ms[i].text))
		t.max = max(t.max, len(ms[i].text))
	}
	last := t.min - 1
	sort.SliceStable(ms, func(i, j int) bool { return ms[i].text[last] < ms[j].text[last] })

	far := min(t.min, 255)
	for c := range t.shift {
		t.shift[c] = far
	}
	ch := 0
	for i := range ms {
		for j := range far {
			c := ms[i].text[last-j]
			t.shift[c] = min(t.shift[c], j)
		}
		for ; ch <= int(ms[i].text[last]); ch++ {
			t.index[ch] = i
		}
	}
	for ; ch < len(t.index); ch++ {
		t.index[ch] = len(ms)
	}
	return t
}

func headerFilter(r *http.Request, next http.HeaderFilter) http.Rc {
	sc := r.LocConf[Module.Index].(*conf)
	if sc.pairs == nil || r.HeadersOut.ContentLengthN == 0 || !sc.types.Has(r) {
		return next(r)
	}
	s := &ctx{conf: sc, tables: sc.tables, matches: sc.matches}
	if sc.dynamic {
		for i := range sc.pairs {
			text, rc := r.Complex(sc.pairs[i].match)
			if rc != http.OK {
				return http.Error
			}
			if len(text) > 0 {
				s.matches = append(s.matches, match{text: ascii.AppendLower(nil, text), value: sc.pairs[i].value})
			}
		}
		if len(s.matches) == 0 {
			return next(r)
		}
		s.tables = newTables(s.matches)
	}
	s.looked = make([]byte, 0, s.tables.max)
	s.offset = s.tables.min - 1
	s.lastOut = &s.out
	r.SetCtx(Module, s)
	r.FilterNeedInMemory = true
	if r == r.Main {
		r.ClearContentLength()
		if sc.lastModified == 0 {
			r.ClearLastModified()
			r.ClearETag()
		} else {
			r.WeakETag()
		}
	}
	return next(r)
}

// at tells whether a text begins at start: OK, Declined, or Again when the bytes end before it does.
func (s *ctx) at(start int, text []byte) http.Rc {
	for i, c := range text {
		p := start + i
		var have byte
		switch {
		case p < 0:
			have = s.looked[len(s.looked)+p]
		case s.pos+p < len(s.data):
			have = s.data[s.pos+p]
		default:
			return http.Again
		}
		if ascii.LowerByte(have) != c {
			return http.Declined
		}
	}
	return http.OK
}

// cut is what one step of the search found: bytes of before that are sent now (saved), then data up
// to copyEnd.
type cut struct {
	saved   []byte
	copied  []byte
	matched bool
}

// parse looks for the next text. Bytes that may be the beginning of one are kept in looked; offsets
// are from s.pos, and those before it are negative.
func (s *ctx) parse(flush bool) cut {
	t := s.tables
	offset := s.offset
	end := len(s.data) - s.pos
	var start, next int
	matched := false

	if s.once {
		offset = end + t.min - 1
		goto again
	}
	for offset < end {
		var c byte
		if offset < 0 {
			c = s.looked[len(s.looked)+offset]
		} else {
			c = s.data[s.pos+offset]
		}
		c = ascii.LowerByte(c)
		if shift := t.shift[c]; shift > 0 {
			offset += shift
			continue
		}
		start = offset - t.min + 1
		for i := max(t.index[c], s.index); i != t.index[int(c)+1]; i++ {
			if s.conf.once != 0 && s.subs != nil && s.subs[i].made {
				continue
			}
			rc := s.at(start, s.matches[i].text)
			if rc == http.Declined {
				continue
			}
			s.index = i
			if rc == http.Again {
				goto again
			}
			n := len(s.matches[i].text)
			s.offset = offset + n
			next = start + n
			end = max(next, 0)
			matched = true
			goto done
		}
		offset++
		s.index = 0
	}

	if flush {
		for ; ; offset++ {
			start = offset - t.min + 1
			if start >= end {
				break
			}
			for i := range s.matches {
				if s.at(start, s.matches[i].text) == http.Again {
					goto again
				}
			}
		}
	}

again:
	s.offset = offset
	start = offset - t.min + 1
	next = start

done:
	c := cut{matched: matched}
	c.saved = bytes.Clone(s.looked[:len(s.looked)+min(start, 0)])
	c.copied = s.data[s.pos : s.pos+max(start, 0)]

	kept := copy(s.looked[:cap(s.looked)], s.looked[len(s.looked)+min(next, 0):])
	s.looked = append(s.looked[:kept], s.data[s.pos+max(next, 0):s.pos+end]...)
	s.pos += end
	s.offset -= end
	return c
}
