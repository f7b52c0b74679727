package charset

import (
	"strconv"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
)

const (
	utfLen    = 4  // most bytes that are kept of an incomplete character
	entityLen = 10 // of "&#1114111;"

	invalidUTF8    = 0xffffffff
	incompleteUTF8 = 0xfffffffe
)

type ctx struct {
	table   *table // nil: only the name is known
	charset int
	name    []byte
	length  int

	busy, free *http.Chain

	saved    [utfLen]byte // the beginning of a character
	savedLen int
}

// decode reads one character and tells how many bytes it looked at (ngx_utf8_decode).
func decode(s []byte) (u uint32, n int) {
	u = uint32(s[0])
	var valid uint32
	more := 0
	switch {
	case u >= 0xf8 || u < 0xc2:
		return invalidUTF8, 1
	case u >= 0xf0:
		u, valid, more = u&7, 0xffff, 3
	case u >= 0xe0:
		u, valid, more = u&15, 0x7ff, 2
	default:
		u, valid, more = u&31, 0x7f, 1
	}
	if len(s)-1 < more {
		return incompleteUTF8, 0
	}
	for n = 1; n <= more; n++ {
		c := s[n]
		if c < 0x80 {
			return invalidUTF8, n + 1
		}
		u = u<<6 | uint32(c&0x3f)
	}
	if u > valid {
		return u, n
	}
	return invalidUTF8, n
}

func bodyFilter(r *http.Request, in *http.Chain, next http.BodyFilter) http.Rc {
	c, _ := r.Ctx(Module).(*ctx)
	if c == nil || c.table == nil {
		return next(r, in)
	}
	if t := c.table.bytes; t != nil && c.busy == nil {
		for cl := in; cl != nil; cl = cl.Next {
			recodeBytes(cl.Buf, t)
		}
		return next(r, in)
	}

	var out *http.Chain
	ll := &out
	for cl := in; cl != nil; cl = cl.Next {
		switch {
		case cl.Buf.Size() == 0:
			*ll = r.NewChain(cl.Buf)
		case c.table.toUTF8 != nil:
			*ll = c.toUTF8(r, cl.Buf)
		default:
			*ll = c.fromUTF8(r, cl.Buf)
		}
		for *ll != nil {
			ll = &(*ll).Next
		}
	}

	rc := next(r, out)
	ll = &c.busy
	for *ll != nil {
		ll = &(*ll).Next
	}
	*ll = out
	for c.busy != nil {
		cl := c.busy
		b := cl.Buf
		if b.Size() != 0 {
			break
		}
		c.busy = cl.Next
		if b.Tag != Module {
			continue
		}
		if from := b.Shadow; from != nil {
			from.Data = from.Data[len(from.Data):]
		}
		cl.Next = c.free
		c.free = cl
	}
	return rc
}

func recodeBytes(b *http.Buf, t *[256]byte) {
	changed := false
	for i, c := range b.Data {
		if t[c] != c {
			b.Data[i] = t[c]
			changed = true
		}
	}
	if changed {
		b.InFile = false
	}
}

// buffer gives a link with room for size bytes.
func (c *ctx) buffer(r *http.Request, size int) *http.Chain {
	for ll := &c.free; *ll != nil; ll = &(*ll).Next {
		cl := *ll
		if b := cl.Buf; len(b.Start) >= size && b.Start != nil {
			*ll = cl.Next
			cl.Next = nil
			b.Data = b.Start[:0]
			b.Temporary, b.Shadow = true, nil
			return cl
		}
	}
	b := r.NewBuf()
	b.Start = ev.Bytes(int64(size))
	b.Data = b.Start[:0]
	b.Temporary, b.Tag = true, Module
	return r.NewChain(b)
}

// part gives a link to the first n bytes of a buffer, which stay where they are.
func (c *ctx) part(r *http.Request, from *http.Buf, n int) *http.Chain {
	b := r.NewBuf()
	b.Tag = Module
	b.Temporary, b.Memory, b.Flush = from.Temporary, from.Memory, from.Flush
	b.Data = from.Data[:n]
	return r.NewChain(b)
}

// writer fills one buffer after the other.
type writer struct {
	c    *ctx
	r    *http.Request
	out  *http.Chain
	last *http.Chain
	b    *http.Buf
}

func (w *writer) start(size int) {
	cl := w.c.buffer(w.r, size)
	if w.last != nil {
		w.last.Next = cl
	} else {
		w.out = cl
	}
	w.last, w.b = cl, cl.Buf
}

func (w *writer) room() int { return len(w.b.Start) - len(w.b.Data) }

func (w *writer) put(b ...byte) { w.b.Data = append(w.b.Data, b...) }

func (w *writer) entity(n uint32) {
	w.b.Data = append(strconv.AppendUint(append(w.b.Data, "&#"...), uint64(n), 10), ';')
}

// end makes the last buffer stand for the one it came from.
func (w *writer) end(from *http.Buf) *http.Chain {
	w.b.LastBuf, w.b.LastInChain, w.b.Flush = from.LastBuf, from.LastInChain, from.Flush
	w.b.Shadow = from
	return w.out
}

// keep is how many bytes at a buffer's front are worth not to be copied.
const keep = 512

func (c *ctx) toUTF8(r *http.Request, from *http.Buf) *http.Chain {
	t := c.table.toUTF8
	data := from.Data
	src := 0
	for src < len(data) && len(t[data[src]]) == 1 {
		src++
	}
	if src == len(data) {
		return r.NewChain(from)
	}

	// About half of the characters are expected to be recoded.
	w := writer{c: c, r: r}
	size := len(data) - src
	size = size/2 + size/2*c.length
	if src > keep {
		w.out = c.part(r, from, src)
		w.last = w.out
	} else {
		size += src
		src = 0
	}
	w.start(size)
	for ; src < len(data); src++ {
		seq := t[data[src]]
		if w.room() < len(seq) {
			rest := len(data) - src - 1
			w.start(len(seq) + rest/2 + rest/2*c.length)
		}
		w.put(seq...)
	}
	return w.end(from)
}

func (c *ctx) fromUTF8(r *http.Request, from *http.Buf) *http.Chain {
	w := writer{c: c, r: r}
	data := from.Data
	src := 0
	if c.savedLen == 0 {
		for src < len(data) && data[src] < 0x80 {
			src++
		}
		if src == len(data) {
			return r.NewChain(from)
		}
		size := len(data)
		if src > keep {
			w.out = c.part(r, from, src)
			w.last = w.out
			size = len(data) - src
			if n, _ := decode(data[src:]); n == incompleteUTF8 {
				c.savedLen = copy(c.saved[:], data[src:])
				w.out.Buf.Shadow = from
				return w.out
			}
		} else {
			src = 0
		}
		w.start(withEntity(size))
	} else {
		cl, at := c.finish(r, from, &w)
		if cl != nil {
			return cl
		}
		src = at
	}

	for src < len(data) {
		if w.room() < entityLen {
			w.start(len(data) - src + entityLen)
		}
		if data[src] < 0x80 {
			w.put(data[src])
			src++
			continue
		}
		n, taken := decode(data[src:])
		if n == incompleteUTF8 {
			c.savedLen = copy(c.saved[:], data[src:])
			if len(w.b.Data) == 0 {
				w.b.Sync, w.b.Temporary = true, false
			}
			break
		}
		src += taken
		c.write(&w, n)
	}
	return w.end(from)
}

func withEntity(size int) int {
	if size < entityLen {
		size += entityLen
	}
	return size
}

// write writes one character: its byte, an entity when the set has none, "?" for what is no character.
func (c *ctx) write(w *writer, n uint32) {
	if n > 0x10ffff {
		w.put('?')
		return
	}
	if n < 0x10000 {
		if page := c.table.fromUTF8[n>>8]; page != nil && page[n&0xff] != 0 {
			w.put(page[n&0xff])
			return
		}
	}
	w.entity(n)
}

// finish writes the character that began in the buffer before, and gives the place behind it; a
// chain that is not nil is all that comes of this buffer, since the character is still not whole.
// Such a buffer's last_buf is lost, in nginx too. The count of saved bytes is that of Debian's build,
// which mends the overread of 1.26.3 (CVE-2026-48142).
func (c *ctx) finish(r *http.Request, from *http.Buf, w *writer) (*http.Chain, int) {
	data := from.Data
	had := c.savedLen
	have := had + copy(c.saved[had:], data)
	n, taken := decode(c.saved[:have])
	if n == incompleteUTF8 && have < utfLen {
		b := r.NewBuf()
		b.Tag, b.Sync, b.Shadow = Module, true, from
		c.savedLen = have
		return r.NewChain(b), 0
	}
	w.start(withEntity(len(data)))
	if n == incompleteUTF8 {
		taken = utfLen
	}
	c.write(w, n)
	c.savedLen = 0
	return nil, max(taken-had, 0)
}
