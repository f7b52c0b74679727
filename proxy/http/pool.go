package http

import (
	"math/bits"

	"nginxoracle/proxy/ev"
)

// slab hands out zeroed values from parts that are kept when it is reset.
type slab[T any] struct {
	parts   [][]T
	part, n int
}

const (
	slabPart = 16
	slabKeep = 4 // parts kept over a reset
)

func (s *slab[T]) get() *T {
	if s.part == len(s.parts) {
		s.parts = append(s.parts, make([]T, slabPart))
	}
	p := &s.parts[s.part][s.n]
	if s.n++; s.n == slabPart {
		s.part, s.n = s.part+1, 0
	}
	var zero T
	*p = zero
	return p
}

func (s *slab[T]) reset() {
	if len(s.parts) > slabKeep {
		s.parts = s.parts[:slabKeep:slabKeep]
	}
	s.part, s.n = 0, 0
}

// pool is a request's memory: buffers, links, header fields and bytes live as long as the
// request and are used again by the next one.
type pool struct {
	bufs    slab[Buf]
	chains  slab[Chain]
	headers slab[Header]
	files   slab[File]
	free    *Chain // links given back

	chunks [][]byte // small pieces are cut from chunks[chunk], filled up to used
	chunk  int
	used   int
	large  [][]byte // from the worker, given back
	worker *worker

	open     []*File  // closed at the request's end, the last opened first
	contents [][]byte // names of files that came from memory
	remove   []*TempFile
}

const (
	poolChunk = 4096
	poolKeep  = 4 // chunks kept over a reset
)

func (p *pool) alloc(n int) []byte {
	if n > poolChunk/2 {
		return p.allocLarge(n)
	}
	if len(p.chunks) == 0 || n > poolChunk-p.used {
		p.nextChunk()
	}
	b := p.chunks[p.chunk][p.used : p.used+n : p.used+n]
	p.used += n
	return b
}

func (p *pool) nextChunk() {
	if p.used > 0 {
		p.chunk++
	}
	if p.chunk == len(p.chunks) {
		p.chunks = append(p.chunks, make([]byte, poolChunk))
	}
	p.used = 0
}

func (p *pool) allocLarge(n int) []byte {
	b := p.worker.getLarge(n)
	p.large = append(p.large, b)
	return b[:n:n]
}

// Large buffers are kept by the worker in classes of powers of two, from 4K to 256K.
const (
	minLarge   = 12
	maxLarge   = 18
	keepLarge  = 1 << 22 // bytes kept a class
	largeKinds = maxLarge - minLarge + 1
)

func largeClass(n int) int { return max(bits.Len(uint(n-1)), minLarge) - minLarge }

func (w *worker) getLarge(n int) []byte {
	k := largeClass(n)
	if k >= largeKinds {
		return ev.Bytes(int64(n))
	}
	l := w.large[k]
	if len(l) == 0 {
		return make([]byte, 1<<(k+minLarge))
	}
	b := l[len(l)-1]
	w.large[k] = l[:len(l)-1]
	return b
}

func (w *worker) putLarge(b []byte) {
	k := largeClass(len(b))
	if k >= largeKinds || len(w.large[k])<<(k+minLarge) >= keepLarge {
		return
	}
	w.large[k] = append(w.large[k], b)
}

func (p *pool) closeFiles() {
	clear(p.contents)
	p.contents = p.contents[:0]
	for i := len(p.open) - 1; i >= 0; i-- {
		switch f := p.open[i]; {
		case f.hold.Cached():
			f.hold.Release()
		case f.FD >= 0:
			ev.CloseFD(f.FD)
			f.FD = -1
		}
		p.open[i] = nil
	}
	p.open = p.open[:0]
}

func (p *pool) reset() {
	p.closeFiles()
	p.bufs.reset()
	p.chains.reset()
	p.headers.reset()
	p.files.reset()
	p.free = nil
	p.chunk, p.used = 0, 0
	if len(p.chunks) > poolKeep {
		p.chunks = p.chunks[:poolKeep:poolKeep]
	}
	for i, b := range p.large {
		p.worker.putLarge(b)
		p.large[i] = nil
	}
	p.large = p.large[:0]
}

// NewBuf gives a zeroed buffer of the request's pool (ngx_calloc_buf).
func (r *Request) NewBuf() *Buf { return r.pool.bufs.get() }

// NewChain gives a link that carries b (ngx_alloc_chain_link).
func (r *Request) NewChain(b *Buf) *Chain {
	p := r.pool
	cl := p.free
	if cl != nil {
		p.free = cl.Next
		cl.Next = nil
	} else {
		cl = p.chains.get()
	}
	cl.Buf = b
	return cl
}

// FreeChain gives one link back (ngx_free_chain).
func (r *Request) FreeChain(cl *Chain) {
	cl.Buf = nil
	cl.Next = r.pool.free
	r.pool.free = cl
}

// Alloc gives n bytes that live as long as the request (ngx_pnalloc). They are not zeroed. Large
// ones are used again by other requests: nothing may look at them once the request is freed.
func (r *Request) Alloc(n int) []byte { return r.pool.alloc(n) }

// NewFile gives a file of the request's pool; fd is closed when the request is freed,
// after it was logged (ngx_pool_cleanup_file).
func (r *Request) NewFile(fd int, name []byte) *File {
	f := r.pool.files.get()
	f.FD, f.Name = fd, name
	r.pool.open = append(r.pool.open, f)
	return f
}

// NewHeader gives a zeroed header field of the request's pool.
func (r *Request) NewHeader() *Header { return r.pool.headers.get() }

// InMemory reports a buffer whose data is at hand (ngx_buf_in_memory).
func (b *Buf) InMemory() bool { return b.Temporary || b.Memory || len(b.Data) > 0 }

// GetFreeBuf takes a link and its buffer from free, or makes both (ngx_chain_get_free_buf).
func (r *Request) GetFreeBuf(free **Chain) *Chain {
	if cl := *free; cl != nil {
		*free = cl.Next
		cl.Next = nil
		return cl
	}
	return r.NewChain(r.NewBuf())
}

// UpdateChains moves out behind busy, gives back what was sent: buffers of tag to free, to be
// filled again, other links to the pool (ngx_chain_update_chains).
func (r *Request) UpdateChains(free, busy, out **Chain, tag any) {
	if *out != nil {
		ll := busy
		for *ll != nil {
			ll = &(*ll).Next
		}
		*ll = *out
		*out = nil
	}
	for *busy != nil {
		cl := *busy
		if cl.Buf.Tag != tag {
			*busy = cl.Next
			r.FreeChain(cl)
			continue
		}
		if cl.Buf.Size() != 0 {
			break
		}
		cl.Buf.Data = cl.Buf.Start[:0]
		*busy = cl.Next
		cl.Next = *free
		*free = cl
	}
}

// AddCopy appends links for in's buffers to *chain (ngx_chain_add_copy).
func (r *Request) AddCopy(chain **Chain, in *Chain) {
	ll := chain
	for *ll != nil {
		ll = &(*ll).Next
	}
	for ; in != nil; in = in.Next {
		cl := r.NewChain(in.Buf)
		*ll = cl
		ll = &cl.Next
	}
}
