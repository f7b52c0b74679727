// Package openfile opens files for requests: plainly, through a cache of descriptors that
// the configuration asks for (open_file_cache), or, when it asks for none, through a cache of
// small files' contents that every use validates (nginx: src/core/ngx_open_file_cache.c).
package openfile

import (
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
)

// Info is what a caller asks of an opening and what it is told (ngx_open_file_info_t). FD is -1
// on the way in.
type Info struct {
	Valid    int64 // seconds for which a cached answer is taken as it is
	MinUses  int
	Errors   bool // failures are cached, too
	TestOnly bool // without a cache: stat only
	TestDir  bool // a folder is expected: stat first
	Append   bool // a log: created, written at the end

	FD      int
	Data    []byte // the content, when it was at hand; FD is then -1
	Content bool   // Data is set (it may be empty)
	Uniq    uint64
	Mtime   int64 // seconds
	Size    int64 // bytes
	IsDir   bool
	IsFile  bool
	IsExec  bool // its owner may execute it

	Err    syscall.Errno // why it failed; 0 with a failure: it has been logged
	Failed string        // the call that failed, as logs name it

	ref Hold
}

// Hold is a cached descriptor in use (ngx_open_file_cache_cleanup_t). Each has the min_uses of the location that
// asked: of two that hold one file, each counts for itself.
type Hold struct {
	cache   *Cache
	file    *entry
	minUses int
	log     *elog.Log
}

// Cached tells whether there is a descriptor to give back; without, it is the caller's own to close.
func (h *Hold) Cached() bool { return h.file != nil }

// Release gives the descriptor back (ngx_open_file_cleanup).
func (h *Hold) Release() {
	h.file.count--
	h.cache.closeEntry(h.file, h.minUses, h.log)
	h.cache.expire(1, h.log)
}

func (of *Info) fill(st *ev.FileInfo) {
	of.Uniq = st.Ino
	of.Mtime = st.MtimeSec
	of.Size = st.Size
	of.IsDir = st.IsDir()
	of.IsFile = st.IsFile()
	of.IsExec = st.Mode&0o100 != 0
}

func (of *Info) fail(call string, err error) bool {
	of.FD = -1
	of.Failed = call
	of.Err, _ = err.(syscall.Errno)
	return false
}

// Held is the cached descriptor that an opening has given.
func (of *Info) Held() Hold { return of.ref }

// Open opens name without a cache; a descriptor in of.FD is the caller's to close.
func Open(name []byte, of *Info, log *elog.Log) bool {
	of.FD = -1
	if of.TestOnly {
		st, err := ev.Stat(string(name))
		if err != nil {
			return of.fail("stat()", err)
		}
		of.fill(&st)
		return true
	}
	return of.open(string(name), log)
}

// open opens name, or keeps the descriptor that of has when name is still the same file
// (ngx_open_and_stat_file).
func (of *Info) open(name string, log *elog.Log) bool {
	if of.FD != -1 || of.TestDir {
		st, err := ev.Stat(name)
		if err != nil {
			return of.fail("stat()", err)
		}
		if of.FD != -1 && of.Uniq == st.Ino || of.FD == -1 && st.IsDir() {
			of.fill(&st)
			return true
		}
	}

	mode := ev.ReadOnly | ev.Nonblock // not to hang on a FIFO
	if of.Append {
		mode = ev.WriteOnly | ev.Append | ev.Create
	}
	fd, err := ev.Open(name, mode, 0o644)
	if err != nil {
		return of.fail("open()", err)
	}
	st, err := ev.Fstat(fd)
	if err != nil {
		log.Err(elog.Crit, err, `fstat() "%s" failed`, name)
		closeFD(fd, name, log)
		of.FD = -1
		return false
	}
	if st.IsDir() {
		closeFD(fd, name, log)
		fd = -1
	}
	of.FD = fd
	of.fill(&st)
	return true
}

func closeFD(fd int, name string, log *elog.Log) {
	if err := ev.CloseFD(fd); err != nil {
		log.Err(elog.Alert, err, `close() "%s" failed`, name)
	}
}
