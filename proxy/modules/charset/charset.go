// Package charset tells and converts character sets
// (nginx: src/http/modules/ngx_http_charset_filter_module.c).
package charset

import (
	"strconv"
	"strings"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// A set is a place in mainConf.sets, or one of these, or varBase and the index of a variable.
const (
	setOff  = -2
	setNone = -3 // a name that no directive mentions
	varBase = 0x10000
)

type mainConf struct {
	sets    []*set
	maps    []*charsetMap
	recodes []recode // those that some level needs for sure
}

type set struct {
	name   string
	utf8   bool
	length int            // bytes of a recoded character, on average
	to     map[int]*table // by destination
}

// charsetMap is a charset_map, in both directions.
type charsetMap struct {
	src, dst         int
	forward, reverse *table
}

type recode struct{ src, dst int }

// table converts from one set to another; which of its parts is used depends on which set is UTF-8.
type table struct {
	bytes    *[256]byte       // neither
	toUTF8   *[256][]byte     // the destination
	fromUTF8 *[256]*[256]byte // the source: by the character's two bytes; 0 is none
}

type locConf struct {
	charset, source, override int
	types                     *http.TypeSet
}

// Module is ngx_http_charset_filter_module.
var Module = &http.Module{}

func init() {
	const where = http.InHTTPSrvLocLif
	*Module = http.Module{
		Name: "ngx_http_charset_filter_module",
		Directives: []module.Directive{
			{Name: "charset", Where: where, Args: module.Take1, Level: module.LocConf, Set: setCharset},
			{Name: "source_charset", Where: where, Args: module.Take1, Level: module.LocConf, Set: setSource},
			{Name: "override_charset", Where: where, Args: module.Flag, Level: module.LocConf,
				Set: module.FlagSlot(func(c *locConf) *int { return &c.override })},
			{Name: "charset_types", Where: http.InHTTPSrvLoc, Args: module.OneMore, Level: module.LocConf,
				Set: http.TypesSlot(func(c *locConf) **http.TypeSet { return &c.types }, "text/html")},
			{Name: "charset_map", Where: module.HTTPMain, Args: module.Block | module.Take2, Level: module.MainConf, Set: setMap},
		},
		CreateMain: func(*module.Conf) any { return &mainConf{} },
		CreateLoc: func(*module.Conf) any {
			return &locConf{charset: module.Unset, source: module.Unset, override: module.Unset}
		},
		MergeLoc: mergeLoc,
		Postconf: postconf,
		HeaderFilter: func(next http.HeaderFilter) http.HeaderFilter {
			return func(r *http.Request) http.Rc { return headerFilter(r, next) }
		},
		BodyFilter: func(next http.BodyFilter) http.BodyFilter {
			return func(r *http.Request, in *http.Chain) http.Rc { return bodyFilter(r, in, next) }
		},
	}
}

// find looks a set up by name.
func (mc *mainConf) find(name string) int {
	for i, s := range mc.sets {
		if ascii.EqualFold(s.name, name) {
			return i
		}
	}
	return setNone
}

func (mc *mainConf) add(name string) int {
	if i := mc.find(name); i >= 0 {
		return i
	}
	mc.sets = append(mc.sets, &set{name: name, utf8: ascii.EqualFold(name, "utf-8"), to: map[int]*table{}})
	return len(mc.sets) - 1
}

func setCharset(cf *module.Conf, _ *module.Directive, c any) error {
	lc := c.(*locConf)
	if lc.charset != module.Unset {
		return module.ErrDuplicate
	}
	if module.Is(cf.Args[1], "off") {
		lc.charset = setOff
		return nil
	}
	return setSlot(cf, &lc.charset)
}

func setSource(cf *module.Conf, _ *module.Directive, c any) error {
	lc := c.(*locConf)
	if lc.source != module.Unset {
		return module.ErrDuplicate
	}
	return setSlot(cf, &lc.source)
}

func setSlot(cf *module.Conf, at *int) error {
	if name, ok := strings.CutPrefix(cf.Args[1], "$"); ok {
		i, err := http.VariableIndex(cf, name)
		if err != nil {
			return err
		}
		*at = varBase + i
		return nil
	}
	*at = http.ConfMain(cf, Module).(*mainConf).add(cf.Args[1])
	return nil
}

func setMap(cf *module.Conf, _ *module.Directive, c any) error {
	mc := c.(*mainConf)
	from, to := cf.Args[1], cf.Args[2]
	m := &charsetMap{src: mc.add(from), dst: mc.add(to)}
	if m.src == m.dst {
		return cf.Emerg(`"charset_map" between the same charsets "%s" and "%s"`, from, to)
	}
	// ngx_http_charset_map_block compares with the first map as often as there are maps, and with no other.
	for _, o := range mc.maps[:min(len(mc.maps), 1)] {
		if o.src == m.src && o.dst == m.dst || o.src == m.dst && o.dst == m.src {
			return cf.Emerg(`duplicate "charset_map" between "%s" and "%s"`, from, to)
		}
	}
	mc.maps = append(mc.maps, m)

	dst := mc.sets[m.dst]
	if dst.utf8 {
		m.forward = &table{toUTF8: &[256][]byte{}}
		ascii := [256]byte{}
		for i := range 256 {
			c := byte('?')
			if i < 128 {
				c = byte(i)
				ascii[i] = c
			}
			m.forward.toUTF8[i] = []byte{c}
		}
		m.reverse = &table{fromUTF8: &[256]*[256]byte{0: &ascii}}
	} else {
		m.forward, m.reverse = &table{bytes: &[256]byte{}}, &table{bytes: &[256]byte{}}
		for i := range 256 {
			c := byte('?')
			if i < 128 {
				c = byte(i)
			}
			m.forward.bytes[i], m.reverse.bytes[i] = c, c
		}
	}

	characters, length := 0, 0
	saved := *cf
	cf.Handler = func(cf *module.Conf) error {
		n, err := m.row(cf, dst.utf8)
		if n > 0 {
			characters++
			length += n
		}
		return err
	}
	err := cf.ReadBlock()
	cf.Handler, cf.Args = saved.Handler, saved.Args
	if characters > 0 {
		dst.length += length
		whole := dst.length
		dst.length /= characters
		if whole*10/characters%10 > 4 {
			dst.length++
		}
	}
	return err
}

// row reads "C2 D0B0 ;": a byte and its counterpart; n is the length of a UTF-8 one.
func (m *charsetMap) row(cf *module.Conf, utf8 bool) (n int, err error) {
	if len(cf.Args) != 2 {
		return 0, cf.Emerg("invalid parameters number")
	}
	invalid := func(s string) error { return cf.Emerg(`invalid value "%s"`, s) }
	src, ok := hexByte(cf.Args[0])
	if !ok {
		return 0, invalid(cf.Args[0])
	}
	text := cf.Args[1]
	if !utf8 {
		dst, ok := hexByte(text)
		if !ok {
			return 0, invalid(text)
		}
		m.forward.bytes[src], m.reverse.bytes[dst] = dst, src
		return 0, nil
	}

	var seq []byte
	for i := 0; i < len(text); i += 2 {
		b, ok := hexByte(text[i:min(i+2, len(text))])
		if !ok || i+2 > len(text) {
			return 0, invalid(text)
		}
		seq = append(seq, b)
	}
	m.forward.toUTF8[src] = seq
	if len(seq) == 0 {
		return 0, invalid(text)
	}
	code, _ := decode(seq)
	if code > 0xffff {
		return len(seq), invalid(text)
	}
	page := m.reverse.fromUTF8[code>>8]
	if page == nil {
		page = &[256]byte{}
		m.reverse.fromUTF8[code>>8] = page
	}
	page[code&0xff] = src
	return len(seq), nil
}

func hexByte(s string) (byte, bool) {
	n, err := strconv.ParseUint(s, 16, 32)
	if err != nil || n > 255 || strings.ContainsAny(s, "_+") {
		return 0, false
	}
	return byte(n), true
}

func mergeLoc(cf *module.Conf, prev, c any) error {
	p, lc := prev.(*locConf), c.(*locConf)
	if err := http.MergeTypes(cf, &lc.types, p.types, "text/html", "text/xml", "text/plain", "text/vnd.wap.wml",
		"application/javascript", "application/rss+xml"); err != nil {
		return err
	}
	module.MergeInt(&lc.override, p.override, 0)
	module.MergeInt(&lc.charset, p.charset, setOff)
	module.MergeInt(&lc.source, p.source, setOff)
	if lc.charset == setOff || lc.source == setOff || lc.charset == lc.source || lc.charset >= varBase || lc.source >= varBase {
		return nil
	}
	mc := http.ConfMain(cf, Module).(*mainConf)
	rc := recode{lc.source, lc.charset}
	for _, o := range mc.recodes {
		if o == rc {
			return nil
		}
	}
	mc.recodes = append(mc.recodes, rc)
	return nil
}

func postconf(cf *module.Conf) error {
	mc := http.ConfMain(cf, Module).(*mainConf)
	for _, m := range mc.maps {
		mc.sets[m.src].to[m.dst] = m.forward
		mc.sets[m.dst].to[m.src] = m.reverse
	}
	for _, rc := range mc.recodes {
		if mc.sets[rc.src].to[rc.dst] == nil {
			cf.Log().Err(elog.Emerg, nil, `no "charset_map" between the charsets "%s" and "%s"`, mc.sets[rc.src].name, mc.sets[rc.dst].name)
			return module.ErrReported
		}
	}
	return nil
}
