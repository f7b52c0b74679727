package upstream

import (
	"errors"
	"fmt"
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// store gives the temporary file of a whole answer its name (ngx_http_upstream_store).
func (u *Upstream) store(r *http.Request) {
	tf := &u.Pipe.tempFile
	if tf.File.FD < 0 {
		// an empty answer has made no file yet
		tf.Persistent = true
		if _, err := tf.WriteChain(r, nil); err != nil {
			return
		}
	}
	var path []byte
	if v := u.Conf.StoreValue; v != nil {
		val, rc := r.Complex(v)
		if rc != http.OK {
			return
		}
		path = val[:len(val)-1] // the byte that ends a C string is compiled in
	} else {
		val, _, ok := r.MapURIToPath(0)
		if !ok {
			return
		}
		path = val
	}
	mtime := int64(-1)
	if h := u.HeadersIn.LastModified; h != nil {
		mtime = u.HeadersIn.LastModifiedTime
	}
	(&stored{
		r: r, from: string(tf.File.Name), to: string(path),
		access: uint32(u.Conf.StoreAccess), mtime: mtime,
	}).rename()
	u.Store = false
}

// stored is a temporary file on its way to its name (ngx_ext_rename_file_t).
type stored struct {
	r        *http.Request
	from, to string
	access   uint32
	mtime    int64 // -1 = as it is
}

func (s *stored) crit(err error, format string, args ...any) {
	s.r.Conn.Log.Err(elog.Crit, err, format, args...)
}

func (s *stored) remove(name string) bool {
	err := ev.Unlink(name)
	if err != nil {
		s.crit(err, "unlink() \"%s\" failed", name)
	}
	return err == nil
}

func (s *stored) rename() {
	if !s.move() {
		s.remove(s.from)
	}
}

func (s *stored) move() bool {
	if err := ev.Chmod(s.from, s.access); err != nil {
		s.crit(err, "chmod() \"%s\" failed", s.from)
		return false
	}
	if s.mtime != -1 {
		if err := ev.Utimes(s.from, s.mtime); err != nil {
			s.crit(err, "utimes() \"%s\" failed", s.from)
			return false
		}
	}
	err := ev.Rename(s.from, s.to)
	if errors.Is(err, syscall.ENOENT) {
		if dir, err := createFullPath(s.to, s.access|(s.access&0o444)>>2); err != nil {
			s.crit(err, "mkdir() \"%s\" failed", dir)
			return false
		}
		err = ev.Rename(s.from, s.to)
	}
	if err == nil {
		return true
	}
	if errors.Is(err, syscall.EXDEV) {
		return s.copy()
	}
	s.crit(err, "rename() \"%s\" to \"%s\" failed", s.from, s.to)
	return false
}

// copy is for names on another file system.
func (s *stored) copy() bool {
	name := fmt.Sprintf("%s.%010d", s.to, module.NextTempNumber(false))
	if !s.copyTo(name) {
		return false
	}
	if err := ev.Rename(name, s.to); err != nil {
		s.crit(err, "rename() \"%s\" to \"%s\" failed", name, s.to)
		s.remove(name)
		return false
	}
	s.remove(s.from)
	return true
}

func (s *stored) copyTo(name string) bool {
	in, err := ev.Open(s.from, ev.ReadOnly, 0)
	if err != nil {
		s.crit(err, "open() \"%s\" failed", s.from)
		return false
	}
	defer ev.CloseFD(in)
	out, err := ev.Open(name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, s.access)
	if err != nil {
		s.crit(err, "open() \"%s\" failed", name)
		return false
	}
	defer ev.CloseFD(out)
	buf := make([]byte, 64<<10)
	for off := int64(0); ; {
		n, err := ev.Pread(in, buf, off)
		if err == nil && n > 0 {
			_, err = ev.Pwrite(out, buf[:n], off)
		}
		if err != nil {
			s.crit(err, "copy \"%s\" to \"%s\" failed", s.from, name)
			s.remove(name)
			return false
		}
		if n == 0 {
			break
		}
		off += int64(n)
	}
	if s.mtime != -1 {
		if err := ev.Utimes(name, s.mtime); err != nil {
			s.crit(err, "utimes() \"%s\" failed", name)
			s.remove(name)
			return false
		}
	}
	return true
}

// createFullPath makes the folders above a name; with an error, which of them failed
// (ngx_create_full_path).
func createFullPath(name string, access uint32) (string, error) {
	for i := 1; i < len(name); i++ {
		if name[i] != '/' {
			continue
		}
		err := ev.Mkdir(name[:i], access)
		if err != nil && !errors.Is(err, syscall.EEXIST) && !errors.Is(err, syscall.EACCES) {
			return name[:i], err
		}
	}
	return "", nil
}
