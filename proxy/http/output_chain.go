package http

import (
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
)

// OutputChain copies buffers that cannot go on as they are: files to memory where sendfile is off,
// constants to memory that may be written (ngx_output_chain.c).
type OutputChain struct {
	R                               *Request
	In, Free, Busy                  *Chain
	Sendfile, NeedInMemory, NeedTmp bool
	Bufs                            module.Bufs
	Whole                           bool // nobody sees the borders of buffers
	Tag                             any
	// Filter takes what is ready.
	Filter func(r *Request, out *Chain) Rc

	buf       *Buf
	allocated int
	split     bool // a file's content goes on in pieces
}

const none Rc = 1 // nothing has been handed on

// Output hands in on, with what waits from before.
func (o *OutputChain) Output(in *Chain) Rc {
	if o.In == nil && o.Busy == nil {
		if in == nil || in.Next == nil && o.asIs(in.Buf, true) {
			return o.Filter(o.R, in)
		}
	}
	if in != nil {
		o.R.AddCopy(&o.In, in)
	}
	var out *Chain
	ll := &out
	last := none
	for {
		for o.In != nil {
			b := o.In.Buf
			size := b.Size()
			if size == 0 && !b.Special() || size < 0 {
				if o.bad(b, size) {
					return Error
				}
				continue
			}
			if o.asIs(b, false) {
				cl := o.In
				o.In = cl.Next
				cl.Next = nil
				*ll = cl
				ll = &cl.Next
				continue
			}
			if o.buf == nil {
				if cl := o.Free; cl != nil {
					o.buf = cl.Buf
					o.Free = cl.Next
					o.R.FreeChain(cl)
				} else if out != nil || o.allocated == o.Bufs.Num {
					break
				} else {
					o.newBuf(size)
				}
			}
			if rc := o.copyBuf(); rc != OK {
				return rc
			}
			if b.Size() == 0 {
				cl := o.In
				o.In = cl.Next
				o.R.FreeChain(cl)
			}
			cl := o.R.NewChain(o.buf)
			*ll = cl
			ll = &cl.Next
			o.buf = nil
		}
		if out == nil && last != none {
			if o.In != nil {
				return Again
			}
			return last
		}
		last = o.Filter(o.R, out)
		if last == Error || last == Done {
			return last
		}
		o.R.UpdateChains(&o.Free, &o.Busy, &out, o.Tag)
		ll = &out
	}
}

// Spare gives the one buffer that there is to copy into.
func (o *OutputChain) Spare(b *Buf) {
	o.Free = &Chain{Buf: b}
	o.allocated = 1
}

// Again forgets what waits, for the same is handed in once more. A buffer that was on its way stays lost, and there is
// no other; keep: but for the one that a read has failed into (ngx_http_upstream_reinit).
func (o *OutputChain) Again(keep bool) {
	if keep && o.buf != nil {
		o.buf.Data = o.buf.Start[:0]
		o.Free = &Chain{Buf: o.buf}
	}
	o.buf, o.In, o.Busy = nil, nil, nil
}

// bad reports a buffer of no or negative size at the front; true: there is no going on.
func (o *OutputChain) bad(b *Buf, size int64) bool {
	kind := "zero"
	if size < 0 {
		kind = "negative"
	}
	o.R.Conn.Log.Err(logAlert, nil, "%s size buf in output t:%d r:%d f:%d %s %s-%s %s %d-%d", kind,
		bit(b.Temporary), bit(b.Recycled), bit(b.InFile), address(b.Start), address(b.Data), address(b.Data), address(b.File), b.FilePos, b.FileLast)
	if size < 0 {
		return true
	}
	cl := o.In
	o.In = cl.Next
	o.R.FreeChain(cl)
	return false
}

// asIs tells whether b goes on without being copied; alone says that it is all there is.
func (o *OutputChain) asIs(b *Buf, alone bool) bool {
	if b.Special() {
		return true
	}
	if !o.Sendfile {
		if !b.InMemory() {
			return false
		}
		b.InFile = false
	}
	if o.NeedInMemory && !b.InMemory() {
		return false
	}
	// As if it were read: into a buffer of its own, behind which what is in memory waits.
	if b.Pieces && !o.Whole && (!o.Sendfile || o.NeedInMemory) && (o.split || !alone || b.Size() > o.Bufs.Size) {
		o.split = true
		return false
	}
	return !(o.NeedTmp && b.Memory)
}

// newBuf makes a buffer to copy into: of the set size, or just large enough for a small end.
func (o *OutputChain) newBuf(size int64) {
	n := o.Bufs.Size
	recycled := true
	if o.In.Buf.LastInChain && (size < n || o.Bufs.Num == 1 && size < n+n/4) {
		n = size
		recycled = false
	}
	b := o.R.NewBuf()
	b.Start = o.R.Alloc(int(n))
	b.Data = b.Start[:0]
	b.Temporary, b.Recycled, b.Tag = true, recycled, o.Tag
	o.buf = b
	o.allocated++
}

// copyBuf copies from the first buffer that waits into buf (ngx_output_chain_copy_buf).
func (o *OutputChain) copyBuf() Rc {
	src, dst := o.In.Buf, o.buf
	size := min(src.Size(), int64(len(dst.Start)))
	if src.InMemory() {
		n := copy(dst.Start, src.Data[:size])
		dst.Data = dst.Start[:n]
		src.Data = src.Data[n:]
		dst.InFile = false
		if src.InFile {
			if o.Sendfile {
				dst.InFile, dst.File = true, src.File
				dst.FilePos, dst.FileLast = src.FilePos, src.FilePos+size
			}
			src.FilePos += size
		}
		if len(src.Data) == 0 {
			dst.Flush, dst.LastBuf, dst.LastInChain = src.Flush, src.LastBuf, src.LastInChain
		}
		return OK
	}
	n, err := ev.Pread(src.File.FD, dst.Start[:size], src.FilePos)
	if err != nil {
		o.R.Conn.Log.Err(logCrit, err, "pread() \"%s\" failed", src.File.Name)
		return Error
	}
	if int64(n) != size {
		o.R.Conn.Log.Err(logAlert, nil, "pread() read only %d of %d from \"%s\"", n, size, src.File.Name)
		return Error
	}
	dst.Data = dst.Start[:n]
	dst.InFile = false
	if o.Sendfile {
		dst.InFile, dst.File = true, src.File
		dst.FilePos, dst.FileLast = src.FilePos, src.FilePos+size
	}
	src.FilePos += size
	if src.FilePos == src.FileLast {
		dst.Flush, dst.LastBuf, dst.LastInChain = src.Flush, src.LastBuf, src.LastInChain
	}
	return OK
}
