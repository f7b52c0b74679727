package module

import (
	"fmt"
	"strings"

	"nginxoracle/proxy/conf"
	"nginxoracle/proxy/elog"
)

// source is the text that is being read.
type source struct {
	name string
	r    *conf.Reader
}

// maxConfText is the longest diagnostic before " in FILE:LINE", in bytes (NGX_MAX_CONF_ERRSTR).
const maxConfText = 1024

// File is the name of the file that is being read, empty for a parameter.
func (cf *Conf) File() string {
	if cf.src == nil {
		return ""
	}
	return cf.src.name
}

// Line is the line that is being read.
func (cf *Conf) Line() int {
	if cf.src == nil {
		return 0
	}
	return cf.src.r.Line
}

// Log is where the cycle's diagnostics go.
func (cf *Conf) Log() *elog.Log { return cf.Cycle.Log }

// report writes "text (errno) in FILE:LINE" (ngx_conf_log_error).
func (cf *Conf) report(level elog.Level, errno error, format string, args []any) {
	if !cf.Cycle.Log.Enabled(level) {
		return
	}
	b := fmt.Appendf(nil, format, args...)
	if len(b) > maxConfText {
		b = b[:maxConfText]
	}
	b = elog.AppendErrno(b, errno, maxConfText)
	switch {
	case cf.src == nil:
		cf.Cycle.Log.Err(level, nil, "%s", b)
	case cf.src.r.Parameter():
		cf.Cycle.Log.Err(level, nil, "%s in command line", b)
	default:
		cf.Cycle.Log.Err(level, nil, "%s in %s:%d", b, CText(cf.src.name), cf.src.r.Line)
	}
}

// Is tells whether a word is keyword as C's strcmp has it: up to a zero byte. nginx asks so of most of its keywords.
func Is(word, keyword string) bool { return CText(word) == keyword }

// Same is the key of a table that is the same word to C's strcmp.
func Same[V any](table map[string]V, word string) (key string, ok bool) {
	if _, ok := table[word]; ok {
		return word, true
	}
	for key := range table {
		if Is(word, CText(key)) {
			return key, true
		}
	}
	return "", false
}

// CText is s as C's "%s" prints it: up to a zero byte. Words of a configuration can hold one.
func CText(s string) string {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return s[:i]
	}
	return s
}

// Emerg writes `[emerg] … in FILE:LINE` and returns ErrReported.
func (cf *Conf) Emerg(format string, args ...any) error {
	cf.report(elog.Emerg, nil, format, args)
	return ErrReported
}

// EmergErrno is Emerg with " (2: No such file or directory)" after the text.
func (cf *Conf) EmergErrno(errno error, format string, args ...any) error {
	cf.report(elog.Emerg, errno, format, args)
	return ErrReported
}

// Warn writes `[warn] … in FILE:LINE`.
func (cf *Conf) Warn(format string, args ...any) { cf.report(elog.Warn, nil, format, args) }

// Report writes a diagnostic of any level, with an optional errno.
func (cf *Conf) Report(level elog.Level, errno error, format string, args ...any) {
	cf.report(level, errno, format, args)
}

// Prefix is the full name under the prefix (ngx_conf_full_name).
func (cf *Conf) Prefix(path string) string { return FullName(cf.Cycle.Prefix, path) }

// ConfPrefix is the full name under the folder of nginx.conf.
func (cf *Conf) ConfPrefix(path string) string { return FullName(cf.Cycle.ConfPrefix, path) }

// OpenFile asks for a log file of the cycle.
func (cf *Conf) OpenFile(path string) *File { return cf.Cycle.OpenFile(path) }

// AddPath registers a folder for temporary files; the answer is the one registered before when both
// are the same (ngx_file.c, ngx_add_path).
func (cf *Conf) AddPath(p *Path) (*Path, error) {
	for _, q := range cf.Cycle.Paths {
		if len(q.Name) != len(p.Name) || CText(q.Made) != CText(p.Made) { // "/a/" is another one than "/a"
			continue
		}
		if q.Data != p.Data {
			return nil, cf.Emerg(`the same path name "%s" used in %s:%d and`, q.Name, q.File, q.Line)
		}
		for n := range p.Level {
			if q.Level[n] != p.Level[n] {
				switch {
				case p.File != "":
					return nil, cf.Emerg(`the same path name "%s" in %s:%d has the different levels than`, q.Name, q.File, q.Line)
				case q.File == "":
					cf.Log().Err(elog.Emerg, nil, `the default path name "%s" has the same name as another default path, but the different levels, you need to redefine one of them in http section`, q.Name)
				default:
					cf.Log().Err(elog.Emerg, nil, `the path name "%s" in %s:%d has the same name as default path, but the different levels, you need to define default path in http section`, q.Name, q.File, q.Line)
				}
				return nil, ErrReported
			}
			if q.Level[n] == 0 {
				break
			}
		}
		return q, nil
	}
	cf.Cycle.Paths = append(cf.Cycle.Paths, p)
	return p, nil
}

// PathSlot stores a folder and its levels (ngx_file.c, ngx_conf_set_path_slot).
func PathSlot[T any](at func(*T) **Path) func(cf *Conf, cmd *Directive, conf any) error {
	return func(cf *Conf, cmd *Directive, conf any) error {
		f := at(conf.(*T))
		if *f != nil {
			return ErrDuplicate
		}
		word := cf.Args[1]
		p := &Path{Name: strings.TrimSuffix(word, "/"), Made: word, File: cf.File(), Line: cf.Line()}
		if !strings.HasPrefix(word, "/") { // ngx_conf_full_name copies these only
			p.Name = cf.Prefix(p.Name)
			p.Made = p.Name
		}
		levels := cf.Args[2:]
		for i, w := range levels {
			n, ok := Atoi(w)
			if !ok || n == 0 {
				return Text("invalid value")
			}
			p.Level[i] = n
			p.Len += n + 1
		}
		if uint(p.Len) > uint(10+len(levels)) {
			return Text("invalid value")
		}
		q, err := cf.AddPath(p)
		if err != nil {
			return err
		}
		*f = q
		return nil
	}
}

// MergePath gives a level its folder: its own, the one above, or the default
// (ngx_file.c, ngx_conf_merge_path_value).
func (cf *Conf) MergePath(at **Path, prev *Path, name string, level [3]int) error {
	if *at != nil {
		return nil
	}
	if prev != nil {
		*at = prev
		return nil
	}
	name = cf.Prefix(name)
	p := &Path{Name: name, Made: name, Level: level}
	for _, n := range level {
		if n != 0 {
			p.Len += n + 1
		}
	}
	q, err := cf.AddPath(p)
	*at = q
	return err
}

// minZone is the size of eight pages, the least that a zone can have.
const minZone = 8 * 4096

// ZoneParam takes apart the parameter zone=NAME:SIZE, which v is, of a zone that is counted in by key
// (ngx_http_limit_req_zone, ngx_http_limit_conn_zone).
func (cf *Conf) ZoneParam(v string) (name string, size int64, err error) {
	name = strings.TrimPrefix(v, "zone=")
	colon := strings.IndexByte(CText(name), ':')
	ok := colon >= 0
	if ok {
		size, ok = ParseSize(name[colon+1:])
		name = name[:colon]
	}
	if !ok {
		return "", 0, cf.Emerg(`invalid zone size "%s"`, v)
	}
	if size < minZone {
		return "", 0, cf.Emerg(`zone "%s" is too small`, v)
	}
	return name, size, nil
}

// SharedZone declares a zone, or finds it (ngx_cycle.c, ngx_shared_memory_add).
func (cf *Conf) SharedZone(name string, size int64, tag any) (*Zone, error) {
	for _, z := range cf.Cycle.Zones {
		if z.Name != name {
			continue
		}
		if z.Tag != tag {
			return nil, cf.Emerg(`the shared memory zone "%s" is already declared for a different use`, name)
		}
		if z.Size == 0 {
			z.Size = size
		}
		if size != 0 && size != z.Size {
			return nil, cf.Emerg(`the size %d of shared memory zone "%s" conflicts with already declared size %d`, size, name, z.Size)
		}
		return z, nil
	}
	z := &Zone{Name: name, Size: size, Tag: tag}
	cf.Cycle.Zones = append(cf.Cycle.Zones, z)
	return z, nil
}
