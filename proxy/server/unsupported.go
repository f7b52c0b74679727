package server

import (
	_ "embed"
	"strings"

	"nginxoracle/proxy/module"
)

// directivesTSV is every directive of nginx 1.26.3: name, module, contexts, arguments.
//
//go:embed directives.tsv
var directivesTSV string

// absent are modules that the reference's own build lacks, or has only as files to be loaded: their
// directives are as unknown to it as any other word. The blocks of stream and mail are refused
// nevertheless, for other builds have them.
var absent = []string{
	"ngx_devpoll", "ngx_eventport", "ngx_kqueue", "ngx_iocp", "ngx_google_perftools", "ngx_http_degradation",
	"ngx_http_geoip", "ngx_http_image_filter", "ngx_http_perl", "ngx_http_xslt", "ngx_stream_", "ngx_mail_",
}

// words of the table's columns.
var (
	contextNames = map[string]module.Where{
		"main": module.Main, "events": module.Events, "http": module.HTTPMain, "server": module.HTTPSrv,
		"location": module.HTTPLoc, "upstream": module.HTTPUps, "if-in-server": module.HTTPSif,
		"if-in-location": module.HTTPLif, "limit_except": module.HTTPLmt,
	}
	argNames = map[string]module.Args{
		"noargs": module.NoArgs, "take1": module.Take1, "take2": module.Take2, "take3": module.Take3,
		"take12": module.Take12, "take13": module.Take13, "take23": module.Take23, "take123": module.Take123,
		"take1234": module.Take1234, "1more": module.OneMore, "2more": module.TwoMore, "any": module.AnyArgs,
		"flag": module.Flag, "block": module.Block,
	}
)

// refusals makes a set for each kind of module that knows the directives which sets do not, in the
// contexts where they do not: nginx's own checks of place and arguments come first, the refusal last.
func refusals(sets []*module.Set) []*module.Set {
	type key struct {
		name string
		kind module.Type
	}
	known := map[key]module.Where{}
	for _, s := range sets {
		for i := range s.Directives {
			d := &s.Directives[i]
			known[key{d.Name, s.Type}] |= d.Where
		}
	}
	out := map[module.Type]*module.Set{}
	for _, kind := range []module.Type{module.CoreModule, module.EventModule, module.HTTPModule} {
		out[kind] = &module.Set{Name: refused, Type: kind}
	}
	for _, row := range tableRows() {
		kind := module.CoreModule
		switch {
		case row.where&module.Main != 0:
		case row.where&module.Events != 0:
			kind = module.EventModule
		default:
			kind = module.HTTPModule
		}
		have := known[key{row.name, kind}]
		if have&module.Any != 0 || row.where&^have == 0 {
			continue
		}
		out[kind].Directives = append(out[kind].Directives, module.Directive{
			Name: row.name, Where: row.where &^ have, Args: row.args,
			Set: func(cf *module.Conf, cmd *module.Directive, _ any) error { return cf.NotSupported(cmd.Name) },
		})
	}
	return []*module.Set{out[module.CoreModule], out[module.EventModule], out[module.HTTPModule]}
}

type tableRow struct {
	name, module string
	where        module.Where
	args         module.Args
}

func tableRows() (rows []tableRow) {
	for _, line := range strings.Split(directivesTSV, "\n") {
		f := strings.Split(line, "\t")
		if len(f) < 4 || strings.HasPrefix(line, "#") || isAbsent(f[1]) {
			continue
		}
		row := tableRow{name: f[0], module: f[1]}
		for _, w := range strings.Split(f[2], ",") {
			row.where |= contextNames[strings.TrimSpace(w)]
		}
		for _, w := range strings.Split(f[3], ",") {
			row.args |= argNames[strings.TrimSpace(w)]
		}
		if row.where != 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

func isAbsent(name string) bool {
	for _, p := range absent {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
