package log

import (
	"strings"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/openfile"
)

func setLog(cf *module.Conf, _ *module.Directive, c any) error {
	lc := c.(*locConf)
	path := cf.Args[1]
	if module.Is(path, "off") {
		lc.off = true
		if len(cf.Args) > 2 {
			return cf.Emerg(`invalid parameter "%s"`, cf.Args[2])
		}
		return nil
	}
	if strings.HasPrefix(path, "syslog:") {
		return cf.Emerg(`directive "access_log %s" is not supported`, path)
	}

	mc := http.ConfMain(cf, Module).(*mainConf)
	l := &accessLog{}
	lc.logs = append(lc.logs, l)
	if http.ScriptVariablesCount(path) == 0 {
		l.file = cf.OpenFile(path)
	} else {
		s, err := http.CompileScript(cf, cf.Prefix(path), false)
		if err != nil {
			return err
		}
		l.script = s
	}

	name := "combined"
	if len(cf.Args) > 2 {
		name = cf.Args[2]
	}
	if module.Is(name, "combined") {
		mc.combinedUsed = true
	}
	for _, f := range mc.formats {
		if len(f.name) == len(name) && ascii.EqualFold(module.CText(f.name), module.CText(name)) {
			l.format = f
			break
		}
	}
	if l.format == nil {
		return cf.Emerg(`unknown log format "%s"`, name)
	}

	var size, flushMs int64
	gzip := 0
	for _, a := range cf.Args[min(len(cf.Args), 3):] {
		ok := false
		switch {
		case strings.HasPrefix(a, "buffer="):
			if size, ok = module.ParseSize(a[7:]); !ok || size == 0 {
				return cf.Emerg(`invalid buffer size "%s"`, a[7:])
			}
		case strings.HasPrefix(a, "flush="):
			if flushMs, ok = module.ParseTime(a[6:], false); !ok || flushMs == 0 {
				return cf.Emerg(`invalid flush time "%s"`, a[6:])
			}
		case a == "gzip", strings.HasPrefix(a, "gzip="):
			if size == 0 {
				size = 64 << 10
			}
			gzip = 1
			if a != "gzip" {
				if gzip, ok = module.Atoi(a[5:]); !ok || gzip < 1 || gzip > 9 {
					return cf.Emerg(`invalid compression level "%s"`, a[5:])
				}
			}
		case strings.HasPrefix(a, "if="):
			v, err := http.CompileComplexValue(cf, a[3:])
			if err != nil {
				return err
			}
			l.filter = v
		default:
			return cf.Emerg(`invalid parameter "%s"`, a)
		}
	}
	if flushMs != 0 && size == 0 {
		return cf.Emerg(`no buffer is defined for access_log "%s"`, path)
	}
	if size == 0 {
		return nil
	}
	if l.script != nil {
		return cf.Emerg("buffered logs cannot have variables in name")
	}
	if b, ok := l.file.Data.(*buffer); ok {
		if int64(cap(b.data)) != size || b.flush != flushMs || b.gzip != gzip {
			return cf.Emerg(`access_log "%s" already defined with conflicting parameters`, path)
		}
		return nil
	}
	b := &buffer{data: make([]byte, 0, size), flush: flushMs, gzip: gzip}
	if flushMs != 0 {
		b.timer = &ev.Event{}
	}
	l.file.Data = b
	l.file.Flush = flush(cf.Log())
	return nil
}

func setCache(cf *module.Conf, _ *module.Directive, c any) error {
	lc := c.(*locConf)
	if lc.cacheSet {
		return module.ErrDuplicate
	}
	entries, minUses := 0, 1
	inactive, valid := int64(10), int64(60)
	for _, a := range cf.Args[1:] {
		ok := false
		switch {
		case strings.HasPrefix(a, "max="):
			entries, ok = module.Atoi(a[4:])
		case strings.HasPrefix(a, "inactive="):
			inactive, ok = module.ParseTime(a[9:], true)
		case strings.HasPrefix(a, "min_uses="):
			minUses, ok = module.Atoi(a[9:])
		case strings.HasPrefix(a, "valid="):
			valid, ok = module.ParseTime(a[6:], true)
		case module.Is(a, "off"):
			lc.cacheSet, ok = true, true
		}
		if !ok {
			return cf.Emerg(`invalid "open_log_file_cache" parameter "%s"`, a)
		}
	}
	if lc.cacheSet {
		return nil
	}
	if entries == 0 {
		return cf.Emerg(`"open_log_file_cache" must have "max" parameter`)
	}
	cache := openfile.NewCache(entries, inactive)
	lc.cacheSet, lc.cache = true, cache
	cf.Cycle.AtExit = append(cf.Cycle.AtExit, func() { cache.Close(cf.Cycle.Log) })
	lc.valid, lc.minUses = valid, minUses
	return nil
}
