package log

import (
	"strconv"
	"strings"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/http/parse"
	"nginxoracle/proxy/module"
)

const combined = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`

// format is a log_format, compiled.
type format struct {
	name    string
	escape  escaping
	ops     []op
	flushes []int // variables that are made anew for each entry
}

type escaping int

const (
	escapeDefault escaping = iota
	escapeJSON
	escapeNone
)

// op is one piece of an entry.
type op struct {
	text  string
	room  int // most bytes of it that are reckoned with; 0: it is a variable
	index int // variable's
	run   func(r *http.Request, b []byte) []byte
}

// own are the variables that are made here and only here; the rooms are nginx's, and decide when
// a buffer counts as full.
var own = map[string]op{
	"pipe":            {room: 1, run: appendPipe},
	"time_local":      {room: 26, run: func(r *http.Request, b []byte) []byte { return append(b, r.Conn.Loop.LogTime()...) }},
	"time_iso8601":    {room: 25, run: func(r *http.Request, b []byte) []byte { return append(b, r.Conn.Loop.ISOTime()...) }},
	"msec":            {room: 24, run: appendMsec},
	"request_time":    {room: 24, run: appendRequestTime},
	"status":          {room: 20, run: appendStatus},
	"bytes_sent":      {room: 20, run: func(r *http.Request, b []byte) []byte { return strconv.AppendInt(b, r.Conn.Sent, 10) }},
	"body_bytes_sent": {room: 20, run: appendBodyBytesSent},
	"request_length":  {room: 20, run: func(r *http.Request, b []byte) []byte { return strconv.AppendInt(b, r.RequestLength, 10) }},
}

func setFormat(cf *module.Conf, _ *module.Directive, c any) error {
	mc := c.(*mainConf)
	name := cf.Args[1]
	for _, f := range mc.formats {
		if f.name == name {
			return cf.Emerg(`duplicate "log_format" name "%s"`, name)
		}
	}
	f := &format{name: name}
	mc.formats = append(mc.formats, f)

	words := cf.Args[2:]
	if how, ok := strings.CutPrefix(words[0], "escape="); ok {
		switch module.CText(how) {
		case "json":
			f.escape = escapeJSON
		case "none":
			f.escape = escapeNone
		case "default":
		default:
			return cf.Emerg(`unknown log format escaping "%s"`, how)
		}
		words = words[1:]
	}
	return f.compile(cf, words)
}

func (f *format) compile(cf *module.Conf, words []string) error {
	for _, w := range words {
		for i := 0; i < len(w); {
			if w[i] != '$' {
				end := strings.IndexByte(w[i:], '$')
				if end < 0 {
					end = len(w) - i
				}
				f.ops = append(f.ops, op{text: w[i : i+end], room: end})
				i += end
				continue
			}
			from := i
			i++
			bracket := i < len(w) && w[i] == '{'
			if bracket {
				i++
			}
			if i == len(w) {
				return cf.Emerg(`invalid parameter "%s"`, w[from:])
			}
			start := i
			for i < len(w) && nameByte(w[i]) {
				i++
			}
			name := w[start:i]
			if bracket {
				if i == len(w) || w[i] != '}' {
					return cf.Emerg(`the closing bracket in "%s" variable is missing`, name)
				}
				i++
			}
			if name == "" {
				return cf.Emerg(`invalid parameter "%s"`, w[from:])
			}
			if o, ok := own[name]; ok {
				f.ops = append(f.ops, o)
				continue
			}
			index, err := http.VariableIndex(cf, name)
			if err != nil {
				return err
			}
			f.ops = append(f.ops, op{index: index})
			f.flushes = append(f.flushes, index)
		}
	}
	return nil
}

func nameByte(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_'
}

// prepare makes the variables and gives the room that the entry is reckoned to need.
func (f *format) prepare(r *http.Request) (room int) {
	for _, i := range f.flushes {
		r.FlushVariable(i)
	}
	for i := range f.ops {
		o := &f.ops[i]
		if o.room != 0 {
			room += o.room
			continue
		}
		v := r.IndexedVariable(o.index)
		missing := v == nil || v.NotFound
		switch f.escape {
		case escapeDefault:
			if missing {
				room++
			} else {
				room += len(v.V) + 3*escapeCount(v.V)
			}
		case escapeJSON:
			if !missing {
				room += jsonLen(v.V)
			}
		case escapeNone:
			if !missing {
				room += len(v.V)
			}
		}
	}
	return room
}

func (f *format) append(r *http.Request, b []byte) []byte {
	for i := range f.ops {
		o := &f.ops[i]
		switch {
		case o.run != nil:
			b = o.run(r, b)
		case o.room != 0:
			b = append(b, o.text...)
		default:
			v := r.IndexedVariable(o.index)
			switch {
			case v == nil || v.NotFound:
				if f.escape == escapeDefault {
					b = append(b, '-')
				}
			case f.escape == escapeDefault:
				b = appendEscaped(b, v.V)
			case f.escape == escapeJSON:
				b = parse.EscapeJSON(b, v.V)
			default:
				b = append(b, v.V...)
			}
		}
	}
	return b
}

// escaped are the bytes written as \xXX: those that are not printable ASCII, '"' and '\'.
var escaped = func() (t [256]bool) {
	for c := range t {
		t[c] = c < ' ' || c >= 0x7f || c == '"' || c == '\\'
	}
	return t
}()

func escapeCount(s []byte) (n int) {
	for _, c := range s {
		if escaped[c] {
			n++
		}
	}
	return n
}

const hex = "0123456789ABCDEF"

func appendEscaped(b, s []byte) []byte {
	for _, c := range s {
		if escaped[c] {
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}

// jsonLen is the length of parse.EscapeJSON's text.
func jsonLen(s []byte) int {
	n := len(s)
	for _, c := range s {
		switch {
		case c == '\\', c == '"', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			n++
		case c < ' ':
			n += 5
		}
	}
	return n
}

func appendPipe(r *http.Request, b []byte) []byte {
	if r.Pipeline {
		return append(b, 'p')
	}
	return append(b, '.')
}

// appendSeconds writes milliseconds as seconds with three decimals.
func appendSeconds(b []byte, sec, msec int64) []byte {
	b = append(strconv.AppendInt(b, sec, 10), '.')
	return append(b, byte('0'+msec/100), byte('0'+msec/10%10), byte('0'+msec%10))
}

func appendMsec(r *http.Request, b []byte) []byte {
	sec, msec := r.Conn.Loop.Now()
	return appendSeconds(b, sec, int64(msec))
}

func appendRequestTime(r *http.Request, b []byte) []byte {
	sec, msec := r.Conn.Loop.Now()
	ms := max((sec-r.StartSec)*1000+int64(msec-r.StartMsec), 0)
	return appendSeconds(b, ms/1000, ms%1000)
}

func appendStatus(r *http.Request, b []byte) []byte {
	n := r.ErrStatus
	if n == 0 {
		n = r.HeadersOut.Status
	}
	if n == 0 && r.Version == http.HTTP9 {
		n = 9
	}
	if n < 100 {
		b = append(b, '0')
	}
	if n < 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, int64(n), 10)
}

func appendBodyBytesSent(r *http.Request, b []byte) []byte {
	return strconv.AppendInt(b, max(r.Conn.Sent-r.HeaderSize, 0), 10)
}
