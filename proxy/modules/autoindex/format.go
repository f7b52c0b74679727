package autoindex

import (
	"strconv"
	"time"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/http/parse"
)

// nameLen is the width of the column of names, in characters.
const nameLen = 50

func (ac *conf) appendHTML(b []byte, r *http.Request, entries []entry) []byte {
	utf8 := ascii.EqualFold(r.HeadersOut.Charset, "utf-8")
	offset := int64(0)
	if ac.localtime != 0 {
		sec, _ := r.Conn.Loop.Now()
		_, seconds := time.Unix(sec, 0).Zone()
		offset = int64(seconds / 60 * 60)
	}

	b = append(b, "<html>\r\n<head><title>Index of "...)
	b = parse.EscapeHTML(b, r.URI)
	b = append(b, "</title></head>\r\n<body>\r\n<h1>Index of "...)
	b = parse.EscapeHTML(b, r.URI)
	b = append(b, "</h1><hr><pre><a href=\"../\">../</a>\r\n"...)
	for i := range entries {
		e := &entries[i]
		b = append(b, `<a href="`...)
		b = parse.Escape(b, []byte(e.name), parse.EscapeURIComponent)
		if e.dir {
			b = append(b, '/')
		}
		b = append(b, `">`...)
		b = appendName(b, e, utf8)
		b = append(b, ' ')
		b = gmTime(e.mtime+offset).AppendFormat(b, "02-Jan-2006 15:04 ")
		b = ac.appendSize(b, e)
		b = append(b, "\r\n"...)
	}
	return append(b, "</pre><hr></body>\r\n</html>\r\n"...)
}

// appendName fills the column: a long name ends in "..>", a short one is padded.
func appendName(b []byte, e *entry, utf8 bool) []byte {
	name := []byte(e.name)
	n := len(name)
	if utf8 {
		n = utf8Length(name)
	}
	if n > nameLen {
		if n == len(name) {
			name = name[:nameLen-3]
		} else {
			name = utf8Prefix(name, nameLen-3)
		}
		b = parse.EscapeHTML(b, name)
		return append(b, "..&gt;</a>"...)
	}
	b = parse.EscapeHTML(b, name)
	if e.dir && n < nameLen {
		b = append(b, '/')
		n++
	}
	b = append(b, "</a>"...)
	for ; n < nameLen; n++ {
		b = append(b, ' ')
	}
	return b
}

func (ac *conf) appendSize(b []byte, e *entry) []byte {
	if ac.exactSize != 0 {
		if e.dir {
			return append(b, "                  -"...)
		}
		return appendPadded(b, e.size, 19)
	}
	if e.dir {
		return append(b, "      -"...)
	}
	// Half a unit and more counts as one.
	round := func(unit int64) int64 {
		n := e.size / unit
		if e.size%unit > unit/2-1 {
			n++
		}
		return n
	}
	switch {
	case e.size > 1<<30-1:
		return append(appendPadded(b, round(1<<30), 6), 'G')
	case e.size > 1<<20-1:
		return append(appendPadded(b, round(1<<20), 6), 'M')
	case e.size > 9999:
		return append(appendPadded(b, round(1<<10), 6), 'K')
	}
	return appendPadded(append(b, ' '), e.size, 6)
}

// appendPadded writes a number to the right of width columns.
func appendPadded(b []byte, n int64, width int) []byte {
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], n, 10)
	for i := len(d); i < width; i++ {
		b = append(b, ' ')
	}
	return append(b, d...)
}

// gmTime is a time as ngx_gmtime has it: from 1970 to 9999.
func gmTime(sec int64) time.Time {
	return time.Unix(min(max(sec, 0), 253402300799), 0).UTC()
}

func appendJSON(b []byte, entries []entry, callback []byte) []byte {
	if callback != nil {
		b = append(b, "/* callback */\r\n"...)
		b = append(append(b, callback...), '(')
	}
	b = append(b, '[')
	for i := range entries {
		e := &entries[i]
		b = append(b, "\r\n{ \"name\":\""...)
		b = parse.EscapeJSON(b, []byte(e.name))
		b = append(b, `", "type":"`...)
		b = append(b, e.kind()...)
		b = append(b, `", "mtime":"`...)
		b = ev.HTTPTime(b, e.mtime)
		b = append(b, '"')
		if e.file {
			b = append(b, `, "size":`...)
			b = strconv.AppendInt(b, e.size, 10)
		}
		b = append(b, " },"...)
	}
	if len(entries) > 0 {
		b = b[:len(b)-1]
	}
	b = append(b, "\r\n]"...)
	if callback != nil {
		b = append(b, ");"...)
	}
	return b
}

func appendXML(b []byte, entries []entry) []byte {
	b = append(b, "<?xml version=\"1.0\"?>\r\n<list>\r\n"...)
	for i := range entries {
		e := &entries[i]
		b = append(append(b, '<'), e.kind()...)
		b = append(b, ` mtime="`...)
		b = gmTime(e.mtime).AppendFormat(b, "2006-01-02T15:04:05Z")
		if e.file {
			b = append(b, `" size="`...)
			b = strconv.AppendInt(b, e.size, 10)
		}
		b = append(b, `">`...)
		b = parse.EscapeHTML(b, []byte(e.name))
		b = append(append(append(b, "</"...), e.kind()...), ">\r\n"...)
	}
	return append(b, "</list>\r\n"...)
}

func (e *entry) kind() string {
	switch {
	case e.dir:
		return "directory"
	case e.file:
		return "file"
	}
	return "other"
}

// utf8Length is the number of characters, or of bytes when the text is not UTF-8
// (ngx_utf8_length).
func utf8Length(s []byte) int {
	n := 0
	for i := 0; i < len(s); n++ {
		size := utf8Size(s[i:])
		if size == 0 {
			return len(s)
		}
		i += size
	}
	return n
}

// utf8Prefix is the first n characters.
func utf8Prefix(s []byte, n int) []byte {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		size := utf8Size(s[i:])
		if size == 0 {
			break
		}
		i += size
	}
	return s[:i]
}

// utf8Size is the length of the character that s begins with, 0 for none. Surrogates pass, and
// any bytes from 0x80 on may follow the first (ngx_utf8_decode).
func utf8Size(s []byte) int {
	u := uint32(s[0])
	var valid uint32
	n := 0
	switch {
	case u < 0x80:
		return 1
	case u >= 0xf8 || u < 0xc2:
		return 0
	case u >= 0xf0:
		u, valid, n = u&7, 0xffff, 3
	case u >= 0xe0:
		u, valid, n = u&15, 0x7ff, 2
	default:
		u, valid, n = u&31, 0x7f, 1
	}
	if len(s)-1 < n {
		return 0
	}
	for _, c := range s[1 : n+1] {
		if c < 0x80 {
			return 0
		}
		u = u<<6 | uint32(c&0x3f)
	}
	if u <= valid || u > 0x10ffff {
		return 0
	}
	return n + 1
}
