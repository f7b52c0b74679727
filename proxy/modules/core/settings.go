package core

import (
	"strings"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/http/pcre"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/openfile"
)

// minPoolSize and poolAlignment bound the pools that nginx would make (NGX_MIN_POOL_SIZE).
const (
	minPoolSize   = 112
	poolAlignment = 16
)

func poolSize(cf *module.Conf, cmd *module.Directive, field any) error {
	switch n := *field.(*int64); {
	case n < minPoolSize:
		return cf.Emerg("the pool size must be no less than %d", minPoolSize)
	case n%poolAlignment != 0:
		return cf.Emerg("the pool size must be a multiple of %d", poolAlignment)
	}
	return nil
}

// sendLowat has no effect on Linux, and nginx says so.
func sendLowat(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.SendLowatSet {
		return module.ErrDuplicate
	}
	if _, ok := module.ParseSize(cf.Args[1]); !ok {
		return module.Text("invalid value")
	}
	c.SendLowatSet = true
	cf.Warn(`"send_lowat" is not supported, ignored`)
	return nil
}

// setRoot is the setter of root and alias (ngx_http_core_root).
func setRoot(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	alias := cmd.Name == "alias"
	if c.Root.Set {
		if (c.Alias != 0) == alias {
			return module.ErrDuplicate
		}
		earlier := "root"
		if c.Alias != 0 {
			earlier = "alias"
		}
		return cf.Emerg(`"%s" directive is duplicate, "%s" directive was specified earlier`, cmd.Name, earlier)
	}
	if c.Named && alias {
		return cf.Emerg(`the "alias" directive cannot be used inside the named location`)
	}
	root := cf.Args[1]
	for _, name := range []string{"document_root", "realpath_root"} {
		if strings.Contains(root, "$"+name) || strings.Contains(root, "${"+name+"}") {
			return cf.Emerg(`the $%s variable cannot be used in the "%s" directive`, name, cmd.Name)
		}
	}
	c.Alias = 0
	if alias {
		c.Alias = len(c.Name)
	} else {
		root = strings.TrimSuffix(root, "/")
	}
	if first := cf.Args[1]; !strings.HasPrefix(first, "$") && !strings.HasPrefix(first, "/") { // "root /" is whole, though nothing is left of it
		root = cf.Prefix(root)
	}
	c.Root = module.Str{Set: true, V: root}
	if strings.HasPrefix(cf.Args[1], "/") && root != cf.Args[1] {
		c.RootText = module.CText(cf.Args[1])
	}
	inRegex := alias && c.Regex != nil
	if inRegex {
		c.Alias = http.AliasRegex
	}
	if !inRegex && http.ScriptVariablesCount(root) == 0 {
		return nil
	}
	v, err := http.CompileRoot(cf, root)
	c.RootValues = v
	return err
}

func setAio(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.Aio != unset {
		return module.ErrDuplicate
	}
	switch v := cf.Args[1]; {
	case module.Is(v, "off"):
		c.Aio = 0
		return nil
	case module.Is(v, "on"):
		c.Aio = 0
		return cf.Emerg(`"aio on" is unsupported on this platform`)
	case v == "threads" || strings.HasPrefix(v, "threads="):
		return cf.NotSupported("aio " + v)
	}
	return module.Text("invalid value")
}

func setDirectio(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.Directio != unset {
		return module.ErrDuplicate
	}
	if module.Is(cf.Args[1], "off") {
		c.Directio = directioOff
		return nil
	}
	if _, ok := module.ParseOffset(cf.Args[1]); !ok {
		return module.Text("invalid value")
	}
	return cf.NotSupported("directio " + cf.Args[1])
}

func keepaliveTimeout(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.KeepaliveTimeout != unset {
		return module.ErrDuplicate
	}
	n, ok := module.ParseTime(cf.Args[1], false)
	if !ok {
		return module.Text("invalid value")
	}
	c.KeepaliveTimeout = n
	if len(cf.Args) == 2 {
		return nil
	}
	if c.KeepaliveHeader, ok = module.ParseTime(cf.Args[2], true); !ok {
		return module.Text("invalid value")
	}
	return nil
}

func internal(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.Internal != unset {
		return module.ErrDuplicate
	}
	c.Internal = 1
	return nil
}

func postAction(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.PostActionSet {
		return module.ErrDuplicate
	}
	c.PostAction, c.PostActionSet = cf.Args[1], true
	return nil
}

// errorPage is the setter of error_page (ngx_http_core_error_page).
func errorPage(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.ErrorPages == nil {
		c.ErrorPages = []*http.ErrorPage{}
	}
	statuses := cf.Args[1 : len(cf.Args)-1]
	uri := cf.Args[len(cf.Args)-1]
	overwrite := -1
	if v := statuses[len(statuses)-1]; strings.HasPrefix(v, "=") {
		if len(statuses) == 1 {
			return cf.Emerg(`invalid value "%s"`, v)
		}
		overwrite = 0
		if len(v) > 1 {
			n, ok := module.Atoi(v[1:])
			if !ok {
				return cf.Emerg(`invalid value "%s"`, v)
			}
			overwrite = n
		}
		statuses = statuses[:len(statuses)-1]
	}
	value, err := http.CompileComplexValue(cf, uri)
	if err != nil {
		return err
	}
	var query []byte
	if value.Static && strings.HasPrefix(uri, "/") {
		if path, q, ok := strings.Cut(uri, "?"); ok {
			query = []byte(q)
			if value, err = http.CompileComplexValue(cf, path); err != nil {
				return err
			}
		}
	}
	for _, s := range statuses {
		n, ok := module.Atoi(s)
		if !ok || n == 499 {
			return cf.Emerg(`invalid value "%s"`, s)
		}
		if n < 300 || n > 599 {
			return cf.Emerg(`value "%s" must be between 300 and 599`, s)
		}
		p := &http.ErrorPage{Status: n, Overwrite: overwrite, Value: value, Args: query}
		if overwrite == -1 {
			switch n {
			case 494, 495, 496, 497: // nginx's own codes are sent as 400
				p.Overwrite = 400
			}
		}
		c.ErrorPages = append(c.ErrorPages, p)
	}
	return nil
}

func openFileCache(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.OpenFileCacheSet {
		return module.ErrDuplicate
	}
	limit, off := 0, false
	inactive := int64(60)
	for _, a := range cf.Args[1:] {
		bad := true
		if v, ok := strings.CutPrefix(a, "max="); ok {
			n, isNum := module.Atoi(v)
			limit, bad = n, !isNum || n <= 0
		} else if v, ok := strings.CutPrefix(a, "inactive="); ok {
			n, isTime := module.ParseTime(v, true)
			inactive, bad = n, !isTime
		} else if module.Is(a, "off") {
			off, bad = true, false
		}
		if bad {
			return cf.Emerg(`invalid "open_file_cache" parameter "%s"`, a)
		}
	}
	c.OpenFileCacheSet = true
	if off {
		return nil
	}
	if limit == 0 {
		return cf.Emerg(`"open_file_cache" must have the "max" parameter`)
	}
	cache := openfile.NewCache(limit, inactive)
	c.OpenFileCache = cache
	cf.Cycle.AtExit = append(cf.Cycle.AtExit, func() { cache.Close(cf.Cycle.Log) })
	return nil
}

// errorLog is the setter of error_log; a level may have several.
func errorLog(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	list, _ := c.ErrorLog.(*elog.List)
	err := cf.SetLog(&list)
	c.ErrorLog = list
	return err
}

func gzipDisable(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.GzipDisable == nil {
		c.GzipDisable = []*pcre.Regexp{}
	}
	for _, a := range cf.Args[1:] {
		if module.Is(a, "msie6") {
			c.GzipDisableMSIE6 = 1
			continue
		}
		re, err := pcre.Compile(a, true)
		if err != nil {
			return cf.Emerg("%s", err)
		}
		c.GzipDisable = append(c.GzipDisable, re)
	}
	return nil
}

func disableSymlinks(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*locConf)
	if c.DisableSymlinks != unset {
		return module.ErrDuplicate
	}
	from := false
	for _, a := range cf.Args[1:] {
		switch {
		case module.Is(a, "off"):
			c.DisableSymlinks = 0
		case module.Is(a, "if_not_owner"):
			c.DisableSymlinks = 2
		case module.Is(a, "on"):
			c.DisableSymlinks = 1
		case strings.HasPrefix(a, "from="):
			if _, err := http.CompileComplexValue(cf, a[len("from="):]); err != nil {
				return err
			}
			from = true
		default:
			return cf.Emerg(`invalid parameter "%s"`, a)
		}
	}
	if c.DisableSymlinks == unset {
		return cf.Emerg(`"%s" must have "off", "on" or "if_not_owner" parameter`, cmd.Name)
	}
	if len(cf.Args) == 3 {
		// The second word of "from=…" has lost its beginning in nginx when it is printed.
		if !from {
			return cf.Emerg(`duplicate parameters "%s %s"`, cf.Args[1], cf.Args[2])
		}
		if c.DisableSymlinks == 0 {
			return cf.Emerg(`"from=" cannot be used with "off" parameter`)
		}
	}
	if c.DisableSymlinks != 0 {
		return cf.NotSupported(strings.Join(cf.Args, " "))
	}
	return nil
}
