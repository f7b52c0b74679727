package http

import (
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/openfile"
)

// OpenFile opens a file as the location's settings have it: through open_file_cache, or the cache of
// small contents when there is none. A descriptor is closed, or given back, when the request is freed;
// f is nil where there is none (a folder, TestOnly, content in memory). When it fails, of tells why.
func (r *Request) OpenFile(path []byte, of *openfile.Info) (f *File, ok bool) {
	of.Valid = r.Core.OpenFileCacheValid
	of.MinUses = r.Core.OpenFileCacheMinUses
	of.Errors = r.Core.OpenFileCacheErrors > 0
	if c := r.Core.OpenFileCache; c != nil {
		return r.OpenCached(c, path, of)
	}
	if of.TestOnly {
		return nil, openfile.Open(path, of, r.Conn.Log)
	}
	cm := r.CoreMain()
	if cm.SmallFiles == nil {
		cm.SmallFiles = openfile.NewSmall()
	}
	// What does not fit the output buffers is passed on in pieces, whose borders a client can see; the copy
	// filter keeps them. With sendfile there is nothing to gain by memory, with a range not enough.
	bufs := r.LocConf[CopyFilterModule.Index].(*copyConf).bufs
	limit := int64(bufs.Num) * bufs.Size
	if r.Core.Sendfile != 1 && r.HeadersIn.Range == nil && r == r.Main {
		limit = openfile.SmallSize
	}
	if !cm.SmallFiles.Open(path, of, r.Conn.Log, limit) {
		return nil, false
	}
	if of.FD >= 0 {
		f = r.NewFile(of.FD, path)
		f.Size = of.Size
	} else if of.Content {
		r.pool.contents = append(r.pool.contents, path)
	}
	return f, true
}

// holdFiles opens what this request has from memory, for it outlives its answer: nginx keeps such a file open until the
// request is freed.
func (r *Request) holdFiles() {
	p := r.pool
	for i, name := range p.contents {
		if fd, err := ev.Open(string(name), ev.ReadOnly|ev.Nonblock, 0); err == nil {
			r.NewFile(fd, name)
		}
		p.contents[i] = nil
	}
	p.contents = p.contents[:0]
}

// OpenCached opens through a cache; of's Valid, MinUses and Errors are the caller's.
func (r *Request) OpenCached(c *openfile.Cache, path []byte, of *openfile.Info) (f *File, ok bool) {
	if c.Now == nil {
		loop := r.Conn.Loop
		c.Now = func() int64 { sec, _ := loop.Now(); return sec }
	}
	if !c.Open(path, of, r.Conn.Log) {
		return nil, false
	}
	if of.FD >= 0 {
		f = r.NewFile(of.FD, path)
		f.Size, f.hold = of.Size, of.Held()
	}
	return f, true
}

// SetFile makes b the whole of an opened file: in memory where the content is at
// hand, else in the file.
func (b *Buf) SetFile(of *openfile.Info, f *File) {
	if of.Content {
		b.Data, b.Memory, b.Pieces = of.Data, len(of.Data) > 0, true
		return
	}
	b.File, b.FilePos, b.FileLast = f, 0, of.Size
	b.InFile = of.Size > 0
}
