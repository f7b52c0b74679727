package openfile

import (
	"strings"

	"nginxoracle/proxy/elog"
)

// Cache keeps descriptors, folders' and errors' knowledge by name (open_file_cache,
// open_log_file_cache). It is for one worker.
type Cache struct {
	Now func() int64 // seconds; set with the first use

	files    map[string]*entry
	current  int
	max      int
	inactive int64
	// the queue of use: newest first
	head, tail *entry
}

// entry is a cached file (ngx_cached_open_file_t).
type entry struct {
	key      string // all bytes that were asked for: nginx's hash is over them
	name     string // up to a zero byte, as the kernel takes it
	created  int64
	accessed int64
	fd       int
	of       Info // what was found
	uses     int
	count    int  // descriptors handed out
	close    bool // out of the cache, closed with the last use

	newer, older *entry
	queued       bool
}

// NewCache makes a cache of max entries that drops those unused for more than inactive seconds
// (ngx_open_file_cache_init).
func NewCache(max int, inactive int64) *Cache {
	return &Cache{files: map[string]*entry{}, max: max, inactive: inactive}
}

// Open finds or opens name (ngx_open_cached_file). A descriptor stays the cache's: Release gives
// it back.
func (c *Cache) Open(name []byte, of *Info, log *elog.Log) bool {
	of.FD, of.Err = -1, 0
	now := c.Now()

	f := c.files[string(name)]
	if f == nil {
		if !of.open(cText(string(name)), log) && (of.Err == 0 || !of.Errors) {
			return c.failed(nil, of, log)
		}
		f = c.create(string(name), log)
		return c.update(f, of, log, now)
	}

	f.uses++
	c.unqueue(f)

	if f.fd == -1 && f.of.Err == 0 && !f.of.IsDir {
		// It was not used often enough to be kept open.
		if !of.open(f.name, log) && (of.Err == 0 || !of.Errors) {
			return c.failed(f, of, log)
		}
		return c.update(f, of, log, now)
	}

	if (of.Uniq == 0 || of.Uniq == f.of.Uniq) && now-f.created < of.Valid {
		if f.of.Err != 0 {
			of.Err, of.Failed = f.of.Err, "open()"
		} else {
			of.found(&f.of)
			of.FD = f.fd
			if !of.IsDir {
				f.count++
			}
		}
		return c.found(f, of, log, now)
	}

	if f.of.IsDir {
		of.TestDir = true
	}
	of.FD, of.Uniq = f.fd, f.of.Uniq
	if !of.open(f.name, log) && (of.Err == 0 || !of.Errors) {
		return c.failed(f, of, log)
	}

	wasFile := !f.of.IsDir && f.of.Err == 0
	if !wasFile || of.Err == 0 && !of.IsDir && of.Uniq == f.of.Uniq {
		return c.update(f, of, log, now)
	}

	// It was changed, removed, or became a folder.
	if f.count == 0 {
		closeFD(f.fd, f.name, log)
		return c.update(f, of, log, now)
	}
	delete(c.files, f.key)
	c.current--
	f.close = true
	return c.update(c.create(f.key, log), of, log, now)
}

func cText(s string) string {
	name, _, _ := strings.Cut(s, "\x00")
	return name
}

// found copies what is known of a file.
func (of *Info) found(from *Info) {
	of.Uniq, of.Mtime, of.Size = from.Uniq, from.Mtime, from.Size
	of.IsDir, of.IsFile, of.IsExec = from.IsDir, from.IsFile, from.IsExec
}

func (c *Cache) create(key string, log *elog.Log) *entry {
	if c.current >= c.max {
		c.expire(0, log)
	}
	f := &entry{key: key, name: cText(key), fd: -1, uses: 1}
	c.files[key] = f
	c.current++
	return f
}

func (c *Cache) update(f *entry, of *Info, log *elog.Log, now int64) bool {
	f.fd = of.FD
	f.of.Err = of.Err
	if of.Err == 0 {
		f.of.found(of)
		f.close = false
		if !of.IsDir {
			f.count++
		}
	}
	f.created = now
	return c.found(f, of, log, now)
}

func (c *Cache) found(f *entry, of *Info, log *elog.Log, now int64) bool {
	f.accessed = now
	c.enqueue(f)
	if of.Err != 0 {
		return false
	}
	if !of.IsDir {
		of.ref = Hold{c, f, of.MinUses, log}
	}
	return true
}

func (c *Cache) failed(f *entry, of *Info, log *elog.Log) bool {
	if f != nil {
		delete(c.files, f.key)
		c.current--
		if f.count == 0 {
			if f.fd != -1 {
				closeFD(f.fd, f.name, log)
				f.fd = -1
			}
		} else {
			f.close = true
		}
	}
	return false
}

// closeEntry closes a descriptor that is neither in use nor used often enough
// (ngx_close_cached_file).
func (c *Cache) closeEntry(f *entry, minUses int, log *elog.Log) {
	if !f.close {
		f.accessed = c.Now()
		c.unqueue(f)
		c.enqueue(f)
		if f.uses >= minUses || f.count > 0 {
			return
		}
	}
	if f.count > 0 {
		return
	}
	if f.fd != -1 {
		closeFD(f.fd, f.name, log)
		f.fd = -1
	}
}

// expire drops one or two entries that have not been used for long; n 0 drops the oldest in any
// case (ngx_expire_old_cached_files).
func (c *Cache) expire(n int, log *elog.Log) {
	now := c.Now()
	for ; n < 3; n++ {
		f := c.tail
		if f == nil || n != 0 && now-f.accessed <= c.inactive {
			return
		}
		c.unqueue(f)
		delete(c.files, f.key)
		c.current--
		if f.of.Err == 0 && !f.of.IsDir {
			f.close = true
			c.closeEntry(f, 0, log)
		}
	}
}

// Close closes what is not in use; the rest is closed with its last use.
func (c *Cache) Close(log *elog.Log) {
	if c.Now == nil {
		return // never used
	}
	for c.tail != nil {
		c.expire(0, log)
	}
}

func (c *Cache) enqueue(f *entry) {
	f.queued = true
	f.newer, f.older = nil, c.head
	if c.head != nil {
		c.head.newer = f
	} else {
		c.tail = f
	}
	c.head = f
}

func (c *Cache) unqueue(f *entry) {
	if !f.queued {
		return
	}
	f.queued = false
	if f.newer != nil {
		f.newer.older = f.older
	} else {
		c.head = f.older
	}
	if f.older != nil {
		f.older.newer = f.newer
	} else {
		c.tail = f.newer
	}
	f.newer, f.older = nil, nil
}
