// Package zlib is zlib's deflate and inflate: the streams are byte for byte those of the C library
// that nginx is linked with, which Go's own compressors' are not. It wraps a translation of zlib to Go.
package zlib

import (
	"runtime"
	"unsafe"

	"modernc.org/libc"
	z "modernc.org/z/lib"
)

// Flush values of Deflate and its results (zlib.h).
const (
	NoFlush   = z.Z_NO_FLUSH
	SyncFlush = z.Z_SYNC_FLUSH
	Finish    = z.Z_FINISH

	OK        = z.Z_OK
	StreamEnd = z.Z_STREAM_END
	BufError  = z.Z_BUF_ERROR
	DataError = z.Z_DATA_ERROR
)

// GzipWrap is added to the window's bits for a gzip header and trailer.
const GzipWrap = 16

// stream is a z_stream in memory that the collector does not move.
type stream struct {
	tls  *libc.TLS
	strm uintptr
}

func newStream() stream {
	tls := libc.NewTLS()
	return stream{tls: tls, strm: libc.Xcalloc(tls, 1, z.Size_t(unsafe.Sizeof(z.Z_stream{})))}
}

func (s *stream) free() {
	libc.Xfree(s.tls, s.strm)
	s.tls.Close()
	s.strm = 0
}

func (s *stream) z() *z.Z_stream { return *(**z.Z_stream)(unsafe.Pointer(&s.strm)) }

// TotalIn and TotalOut are the bytes taken and given since the start.
func (s *stream) TotalIn() int64  { return int64(s.z().Ftotal_in) }
func (s *stream) TotalOut() int64 { return int64(s.z().Ftotal_out) }

// run lets step work from in to out.
func (s *stream) run(in, out []byte, step func() int32) (taken, given, rc int) {
	st := s.z()
	st.Fnext_in, st.Favail_in = address(in), z.UInt(len(in))
	st.Fnext_out, st.Favail_out = address(out), z.UInt(len(out))
	rc = int(step())
	taken = len(in) - int(st.Favail_in)
	given = len(out) - int(st.Favail_out)
	st.Fnext_in, st.Fnext_out = 0, 0
	runtime.KeepAlive(in)
	runtime.KeepAlive(out)
	return taken, given, rc
}

// empty stands for no bytes: zlib wants an address all the same.
var empty [1]byte

func address(b []byte) uintptr {
	if cap(b) == 0 {
		return uintptr(unsafe.Pointer(&empty[0]))
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}

// Deflater compresses one stream after the other.
type Deflater struct{ stream }

// NewDeflater makes one (deflateInit2): level 1 to 9, bits 9 to 15 plus GzipWrap, memLevel 1 to 9. rc
// is zlib's result, and there is no Deflater unless it is OK.
func NewDeflater(level, bits, memLevel int) (d *Deflater, rc int) {
	d = &Deflater{newStream()}
	version, _ := libc.CString("1.2.11")
	defer libc.Xfree(d.tls, version)
	rc = int(z.XdeflateInit2_(d.tls, d.strm, int32(level), z.Z_DEFLATED, int32(bits), int32(memLevel),
		z.Z_DEFAULT_STRATEGY, version, int32(unsafe.Sizeof(z.Z_stream{}))))
	if rc != OK {
		d.free()
		return nil, rc
	}
	return d, rc
}

// Deflate takes bytes of in and gives bytes into out; both are the worker's own memory, not on a stack.
func (d *Deflater) Deflate(in, out []byte, flush int) (taken, given, rc int) {
	return d.run(in, out, func() int32 { return z.Xdeflate(d.tls, d.strm, int32(flush)) })
}

// Reset makes it ready for a new stream.
func (d *Deflater) Reset() { z.XdeflateReset(d.tls, d.strm) }

// Close frees it.
func (d *Deflater) Close() {
	z.XdeflateEnd(d.tls, d.strm)
	d.free()
}

// Inflater decompresses one stream after the other.
type Inflater struct{ stream }

// NewInflater makes one (inflateInit2).
func NewInflater(bits int) (i *Inflater, rc int) {
	i = &Inflater{newStream()}
	version, _ := libc.CString("1.2.11")
	defer libc.Xfree(i.tls, version)
	rc = int(z.XinflateInit2_(i.tls, i.strm, int32(bits), version, int32(unsafe.Sizeof(z.Z_stream{}))))
	if rc != OK {
		i.free()
		return nil, rc
	}
	return i, rc
}

// Inflate takes bytes of in and gives bytes into out.
func (i *Inflater) Inflate(in, out []byte, flush int) (taken, given, rc int) {
	return i.run(in, out, func() int32 { return z.Xinflate(i.tls, i.strm, int32(flush)) })
}

// Reset makes it ready for a new stream.
func (i *Inflater) Reset() int { return int(z.XinflateReset(i.tls, i.strm)) }

// Close frees it.
func (i *Inflater) Close() {
	z.XinflateEnd(i.tls, i.strm)
	i.free()
}
