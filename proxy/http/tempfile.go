package http

import (
	"fmt"
	"syscall"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
)

// WriteChain appends the memory of c to the file at t.Offset, which the caller moves on; the file
// is made on first use (ngx_write_chain_to_temp_file).
func (t *TempFile) WriteChain(r *Request, c *Chain) (int64, error) {
	if t.File.FD < 0 {
		if err := t.create(r); err != nil {
			return 0, err
		}
		if t.LogLevel != 0 {
			r.Conn.Log.Err(t.LogLevel, nil, "%s %s", t.Warn, t.File.Name)
		}
	}
	off, total := t.Offset, int64(0)
	for ; c != nil; c = c.Next {
		for p := c.Buf.Data; len(p) > 0; {
			n, err := ev.Pwrite(t.File.FD, p, off)
			if err != nil {
				r.Conn.Log.Err(logCrit, err, "pwrite() \"%s\" failed", t.File.Name)
				return total, err
			}
			p = p[n:]
			off += int64(n)
			total += int64(n)
			t.File.Offset += int64(n)
		}
	}
	return total, nil
}

// create opens a new file under the path, with its levels (ngx_create_temp_file).
func (t *TempFile) create(r *Request) error {
	log := r.Conn.Log
	path, ok := t.Path.(*module.Path)
	if !ok {
		return syscall.EINVAL
	}
	perm := t.Access
	if perm == 0 {
		perm = 0600
	}
	n := module.NextTempNumber(false)
	for {
		digits := fmt.Sprintf("%010d", n)
		name := tempName(path, digits)
		fd, err := ev.Open(name, ev.ReadWrite|ev.Create|ev.Excl, perm)
		if err == nil {
			t.File.FD, t.File.Name = fd, []byte(name)
			if !t.Persistent {
				ev.Unlink(name)
			}
			p := r.pool
			p.open = append(p.open, &t.File)
			if t.Clean {
				p.remove = append(p.remove, t)
			}
			return nil
		}
		if err == syscall.EEXIST {
			n = module.NextTempNumber(true)
			continue
		}
		if path.Level[0] == 0 || err != syscall.ENOENT {
			log.Err(logCrit, err, "open() \"%s\" failed", name)
			return err
		}
		if err := makeLevels(r, path, name); err != nil {
			return err
		}
	}
}

// tempName is the path, the levels made of the last digits, and the digits
// (ngx_create_hashed_filename).
func tempName(path *module.Path, digits string) string {
	name := path.Name
	end := len(digits)
	for _, l := range path.Level {
		if l == 0 {
			break
		}
		name += "/" + digits[end-l:end]
		end -= l
	}
	return name + "/" + digits
}

// makeLevels makes the folders of name under path (ngx_create_path).
func makeLevels(r *Request, path *module.Path, name string) error {
	pos := len(path.Name)
	for _, l := range path.Level {
		if l == 0 {
			break
		}
		pos += l + 1
		if err := ev.Mkdir(name[:pos], 0700); err != nil && err != syscall.EEXIST {
			r.Conn.Log.Err(logCrit, err, "mkdir() \"%s\" failed", name[:pos])
			return err
		}
	}
	return nil
}

// removeTempFiles deletes the files that were kept by name only while the request ran
// (client_body_in_file_only clean).
func (r *Request) removeTempFiles() {
	p := r.pool
	for i, t := range p.remove {
		name := string(t.File.Name)
		if err := ev.Unlink(name); err != nil && err != syscall.ENOENT {
			r.Conn.Log.Err(logCrit, err, "unlink() \"%s\" failed", name)
		}
		p.remove[i] = nil
	}
	p.remove = p.remove[:0]
}
