package upstream

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
)

// Pipe carries a buffered answer: raw buffers are read full, the protocol's filter makes
// shadows of their parts, the shadows go to the client or, when it is slow, to a temporary file
// (ngx_event_pipe_t). A raw buffer is free again when its last shadow has been sent.
type Pipe struct {
	upstream, downstream *ev.Conn
	r                    *http.Request
	u                    *Upstream

	freeRaw *http.Chain  // raw buffers that can be read into; the first may be partly filled
	In      *http.Chain  // shadows that wait
	lastIn  **http.Chain //
	out     *http.Chain  // parts of the temporary file
	busy    *http.Chain  // handed to the output, not yet sent
	Free    *http.Chain

	started, read, upstreamBlocked           bool
	UpstreamDone, upstreamEOF, upstreamError bool
	downstreamError, cacheable               bool

	allocated, num          int
	readLength, prereadSize int64
	Length                  int64 // what is needed to go on, -1 = all until the end
	preread                 bool
	startSec                int64
	tempFile                http.TempFile
}

const tempFileWarn = "an upstream response is buffered to a temporary file"

func (p *Pipe) start(r *http.Request, u *Upstream) {
	sec, _ := r.Conn.Loop.Now()
	*p = Pipe{
		upstream: u.Peer.Conn, downstream: r.Conn, r: r, u: u, started: true,
		downstreamError: p.downstreamError, cacheable: u.Store, startSec: sec, Length: -1,
		preread: true, prereadSize: int64(len(u.Buffer.Data)),
	}
	p.lastIn = &p.In
	p.tempFile.File.FD = -1
	p.tempFile.Path = u.Conf.TempPath
	if p.cacheable {
		p.tempFile.Persistent = true
	} else {
		p.tempFile.LogLevel = elog.Warn
		p.tempFile.Warn = tempFileWarn
	}
	u.Buffer.Recycled = true
	// the bytes behind the header are taken as though they were read now
	u.Buffer.Data = u.Buffer.Data[:0]
}

// Append puts a link at the end of p.In.
func (p *Pipe) Append(cl *http.Chain) {
	cl.Next = nil
	*p.lastIn = cl
	p.lastIn = &cl.Next
}

// GetFree takes a link with a buffer to use as a shadow.
func (p *Pipe) GetFree() *http.Chain { return p.r.GetFreeBuf(&p.Free) }

// run moves bytes as far as they go (ngx_event_pipe); false is NGX_ABORT.
func (p *Pipe) run(doWrite bool) bool {
	for {
		if doWrite {
			p.downstream.Log.Action = "sending to client"
			switch p.writeDownstream() {
			case ev.Abort:
				return false
			case ev.Busy:
				return true
			}
		}
		p.read = false
		p.upstreamBlocked = false
		p.downstream.Log.Action = "reading upstream"
		if p.readUpstream() == ev.Abort {
			return false
		}
		if !p.read && !p.upstreamBlocked {
			break
		}
		doWrite = true
	}

	if p.upstream != nil && p.upstream.FD >= 0 {
		timer(&p.upstream.Read, p.u.Conf.ReadTimeout)
	}
	if p.downstream.FD >= 0 && p.downstream.Data == any(p.r) {
		timer(&p.downstream.Write, p.r.Core.SendTimeout)
	}
	return true
}

// timer runs while an event is waited for.
func timer(e *ev.Event, ms int64) {
	if e.Delayed {
		return
	}
	wait(e, ms)
}

func (p *Pipe) ended() bool { return p.upstreamEOF || p.upstreamError || p.UpstreamDone }

// readUpstream reads while there is something to read and a buffer to read into.
func (p *Pipe) readUpstream() int {
	if p.ended() || p.upstream == nil {
		return ev.OK
	}
	for !p.ended() && (p.preread || p.upstream.Read.Ready) {
		var chain *http.Chain
		n := 0
		if p.preread {
			p.preread = false
			chain = p.r.NewChain(&p.u.Buffer)
			n = int(p.prereadSize)
			p.read = p.read || n > 0
		} else {
			limit := 0
			if rate := p.u.Conf.LimitRate; rate != 0 {
				if p.upstream.Read.Delayed {
					break
				}
				sec, _ := p.upstream.Loop.Now()
				left := rate*(sec-p.startSec+1) - p.readLength
				if left <= 0 {
					p.delay(-left*1000/rate + 1)
					break
				}
				limit = int(left)
			}
			var rc int
			if chain, rc = p.rawBuffer(); chain == nil {
				if rc == ev.OK || rc == ev.Busy {
					break
				}
				return rc
			}
			n = p.upstream.Readv(p.room(chain, limit))
			p.freeRaw = chain
			if n == ev.Err {
				p.upstreamError = true
				break
			}
			if n == ev.Again {
				break
			}
			p.read = true
			if n == 0 {
				p.upstreamEOF = true
				break
			}
		}

		var delay int64
		if rate := p.u.Conf.LimitRate; rate != 0 {
			delay = int64(n) * 1000 / rate
		}
		p.readLength += int64(n)
		cl := chain
		p.freeRaw = nil
		for cl != nil && n > 0 {
			b := cl.Buf
			removeShadowLinks(b)
			size := cap(b.Data) - len(b.Data)
			if n < size {
				b.Data = b.Data[:len(b.Data)+n]
				break
			}
			b.Data = b.Data[:cap(b.Data)]
			b.Num = p.num
			p.num++
			if p.u.Proto.PipeFilter(p, b) == http.Error {
				return ev.Abort
			}
			n -= size
			ln := cl
			cl = cl.Next
			p.r.FreeChain(ln)
		}
		if cl != nil {
			ll := &cl.Next
			for *ll != nil {
				ll = &(*ll).Next
			}
			// the filter may have given buffers back meanwhile
			*ll = p.freeRaw
			p.freeRaw = cl
		}
		if delay > 0 {
			p.delay(delay)
			break
		}
	}

	if p.freeRaw != nil && p.Length != -1 {
		cl := p.freeRaw
		if int64(len(cl.Buf.Data)) >= p.Length {
			p.freeRaw = cl.Next
			cl.Buf.Num = p.num
			p.num++
			if p.u.Proto.PipeFilter(p, cl.Buf) == http.Error {
				return ev.Abort
			}
			p.r.FreeChain(cl)
		}
	}
	if p.Length == 0 {
		p.UpstreamDone = true
		p.read = true
	}
	if (p.upstreamEOF || p.upstreamError) && p.freeRaw != nil {
		b := p.freeRaw.Buf
		b.Num = p.num
		p.num++
		if p.u.Proto.PipeFilter(p, b) == http.Error {
			return ev.Abort
		}
		p.freeRaw = p.freeRaw.Next
	}
	if p.cacheable && p.In != nil {
		return p.writeTempFile()
	}
	return ev.OK
}

// room is the free part of the buffers, up to limit bytes when there is one.
func (p *Pipe) room(chain *http.Chain, limit int) [][]byte {
	iov := p.u.w.iov[:0]
	for cl := chain; cl != nil && len(iov) < cap(iov); cl = cl.Next {
		b := cl.Buf.Data[len(cl.Buf.Data):cap(cl.Buf.Data)]
		if limit > 0 {
			if len(b) >= limit {
				return append(iov, b[:limit])
			}
			limit -= len(b)
		}
		iov = append(iov, b)
	}
	return iov
}

func (p *Pipe) delay(ms int64) {
	rev := &p.upstream.Read
	rev.Delayed = true
	p.upstream.Loop.AddTimer(rev, ms)
}

// rawBuffer finds a buffer to read into; with a nil chain rc says why there is none (OK: none now).
func (p *Pipe) rawBuffer() (*http.Chain, int) {
	switch {
	case p.freeRaw != nil:

	case p.allocated < p.u.Conf.Bufs.Num:
		if !ev.Reserve(p.u.Conf.Bufs.Size, p.upstream.Log) {
			return nil, ev.Abort
		}
		b := p.r.NewBuf()
		b.Start = p.u.rawMem(p.allocated, p.u.Conf.Bufs.Size)
		b.Data = b.Start[:0]
		b.Temporary = true
		p.allocated++
		return p.r.NewChain(b), ev.OK

	case !p.cacheable && p.downstream.Data == any(p.r) &&
		p.downstream.Write.Ready && !p.downstream.Write.Delayed:
		// the client can take what there is: write first
		p.upstreamBlocked = true
		return nil, ev.OK

	case p.cacheable || p.tempFile.Offset < p.u.Conf.MaxTempFileSize:
		if rc := p.writeTempFile(); rc != ev.OK {
			return nil, rc
		}

	default:
		return nil, ev.OK
	}
	cl := p.freeRaw
	p.freeRaw = nil
	return cl, ev.OK
}

// rawMem is the memory of raw buffer i, kept for the worker's next exchange.
func (u *Upstream) rawMem(i int, size int64) []byte {
	if i == len(u.raw) {
		u.raw = append(u.raw, nil)
	}
	return buffer(&u.raw[i], size)
}

// writeDownstream hands what has been read to the output.
func (p *Pipe) writeDownstream() int {
	flushed := 0
	for {
		if p.downstreamError {
			return p.drain()
		}
		if p.ended() {
			for cl := p.busy; cl != nil; cl = cl.Next {
				cl.Buf.Recycled = false
			}
			for _, chain := range [...]**http.Chain{&p.out, &p.In} {
				if *chain == nil {
					continue
				}
				for cl := *chain; cl != nil; cl = cl.Next {
					cl.Buf.Recycled = false
				}
				if p.r.OutputFilter(*chain) == http.Error {
					p.downstreamError = true
					return p.drain()
				}
				*chain = nil
			}
			p.lastIn = &p.In
			return ev.OK
		}
		if p.downstream.Data != any(p.r) || !p.downstream.Write.Ready || p.downstream.Write.Delayed {
			return ev.OK
		}

		out, flush := p.takeOut()
		if out == nil {
			if !flush {
				return ev.OK
			}
			if flushed++; flushed > 11 {
				return ev.Busy
			}
		}
		rc := p.r.OutputFilter(out)
		p.r.UpdateChains(&p.Free, &p.busy, &out, p.u.Tag)
		if rc == http.Error {
			p.downstreamError = true
			return p.drain()
		}
		for cl := p.Free; cl != nil; cl = cl.Next {
			if cl.Buf.TempFile {
				continue
			}
			if cl.Buf.LastShadow {
				p.AddFreeBuf(cl.Buf.Shadow)
				cl.Buf.LastShadow = false
			}
			cl.Buf.Shadow = nil
		}
	}
}

// takeOut collects what may be sent now: no more raw buffers than busy_buffers_size are
// with the client at a time. flush asks to push out what is there.
func (p *Pipe) takeOut() (out *http.Chain, flush bool) {
	var size int64
	var prev *byte
	for cl := p.busy; cl != nil; cl = cl.Next {
		if b := cl.Buf; b.Recycled {
			if prev == &b.Start[0] {
				continue
			}
			size += int64(len(b.Start))
			prev = &b.Start[0]
		}
	}
	if size >= p.u.Conf.BusyBuffersSize {
		return nil, true
	}
	ll := &out
	prevLast := true
	for {
		var cl *http.Chain
		if p.out != nil {
			cl = p.out
			if cl.Buf.Recycled {
				p.downstream.Log.Err(elog.Alert, nil, "recycled buffer in pipe out chain")
			}
			p.out = cl.Next
		} else if !p.cacheable && p.In != nil {
			cl = p.In
			if cl.Buf.Recycled && prevLast {
				if size+int64(len(cl.Buf.Start)) > p.u.Conf.BusyBuffersSize {
					return out, true
				}
				size += int64(len(cl.Buf.Start))
			}
			prevLast = cl.Buf.LastShadow
			if p.In = cl.Next; p.In == nil {
				p.lastIn = &p.In
			}
		} else {
			return out, false
		}
		cl.Next = nil
		*ll = cl
		ll = &cl.Next
	}
}

// writeTempFile moves shadows to the temporary file, to free their raw buffers.
func (p *Pipe) writeTempFile() int {
	out := p.In
	if out == nil {
		return ev.Busy
	}
	if p.cacheable {
		p.In = nil
		p.lastIn = &p.In
	} else {
		var size int64
		var ll **http.Chain
		prevLast := true
		cl := out
		for cl != nil {
			n := int64(len(cl.Buf.Data))
			if prevLast && (size+n > p.u.Conf.TempFileWriteSize || p.tempFile.Offset+size+n > p.u.Conf.MaxTempFileSize) {
				break
			}
			prevLast = cl.Buf.LastShadow
			size += n
			ll = &cl.Next
			cl = cl.Next
		}
		if ll == nil {
			return ev.Busy
		}
		p.In = cl
		*ll = nil
		if cl == nil {
			p.lastIn = &p.In
		}
	}

	n, err := p.tempFile.WriteChain(p.r, out)
	if err != nil {
		return ev.Abort
	}
	if n > 0 {
		p.addOut(n)
	}

	last := &p.freeRaw
	for *last != nil {
		last = &(*last).Next
	}
	for cl := out; cl != nil; {
		next := cl.Next
		cl.Next = p.Free
		p.Free = cl
		if b := cl.Buf; b.LastShadow {
			raw := b.Shadow
			tl := p.r.NewChain(raw)
			*last = tl
			last = &tl.Next
			raw.Data = raw.Start[:0]
			removeShadowLinks(raw)
		}
		cl = next
	}
	return ev.OK
}

// addOut lengthens the last part of the file that waits, or adds one.
func (p *Pipe) addOut(n int64) {
	last := &p.out
	for *last != nil {
		if b := (*last).Buf; (*last).Next == nil && b.FileLast == p.tempFile.Offset {
			p.tempFile.Offset += n
			b.FileLast = p.tempFile.Offset
			return
		}
		last = &(*last).Next
	}
	cl := p.GetFree()
	pos := p.tempFile.Offset
	p.tempFile.Offset += n
	*cl.Buf = http.Buf{
		Tag: p.u.Tag, File: &p.tempFile.File, FilePos: pos, FileLast: p.tempFile.Offset,
		InFile: true, TempFile: true,
	}
	*last = cl
}

func removeShadowLinks(raw *http.Buf) {
	b := raw.Shadow
	if b == nil {
		return
	}
	for !b.LastShadow {
		next := b.Shadow
		b.Temporary, b.Recycled = false, false
		b.Shadow = nil
		b = next
	}
	b.Temporary, b.Recycled, b.LastShadow = false, false, false
	b.Shadow = nil
	raw.Shadow = nil
}

// AddFreeBuf gives a raw buffer back; a partly filled one stays the first.
func (p *Pipe) AddFreeBuf(b *http.Buf) {
	b.Data = b.Start[:0]
	b.Shadow = nil
	cl := p.r.NewChain(b)
	if p.freeRaw == nil || len(p.freeRaw.Buf.Data) == 0 {
		cl.Next = p.freeRaw
		p.freeRaw = cl
		return
	}
	cl.Next = p.freeRaw.Next
	p.freeRaw.Next = cl
}

// drain drops everything that is for a client that has gone.
func (p *Pipe) drain() int {
	for _, chain := range [...]**http.Chain{&p.busy, &p.out, &p.In} {
		for cl := *chain; cl != nil; {
			if cl.Buf.LastShadow {
				p.AddFreeBuf(cl.Buf.Shadow)
				cl.Buf.LastShadow = false
			}
			cl.Buf.Shadow = nil
			next := cl.Next
			cl.Next = p.Free
			p.Free = cl
			cl = next
		}
		*chain = nil
	}
	p.lastIn = &p.In
	return ev.OK
}
