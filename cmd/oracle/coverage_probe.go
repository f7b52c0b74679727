package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"nginxoracle/fuzz/grammar"
	"nginxoracle/oracle/engine"
)

// probe tests a configuration that has the directive in its first context, with
// one argument. Whatever nginx thinks of the argument, a directive that is
// refused or unknown is named in the diagnosis.
func probe(ctx context.Context, cell engine.Cell, d grammar.Directive) (bool, error) {
	text := d.Name + " x;\n"
	if d.Block() {
		text = d.Name + " x { }\n"
	}
	where := d.Contexts[0]
	wrap := map[string]string{
		"main": "%s", "any": "%s", "events": "events { %s }", "http": "http { %s }", "server": "http { server { %s } }", "location": "http { server { location / { %s } } }",
		"upstream": "http { upstream u { %s } }", "if-in-server": "http { server { if ($uri) { %s } } }", "if-in-location": "http { server { location / { if ($uri) { %s } } } }",
		"limit_except": "http { server { location / { limit_except GET { %s } } } }", "stream": "stream { %s }", "stream-server": "stream { server { %s } }", "stream-upstream": "stream { upstream u { %s } }", "mail": "mail { %s }", "mail-server": "mail { server { %s } }",
	}[where]
	if wrap == "" {
		return false, fmt.Errorf("no way to test context %q", where)
	}
	conf := fmt.Sprintf(wrap, text)
	if where != "events" && d.Name != "events" {
		conf = "events { }\n" + conf
	}
	said, _, err := test(ctx, cell, conf)
	if err != nil {
		return false, err
	}
	outer, _, _ := strings.Cut(conf[strings.LastIndex(conf[:strings.Index(conf, d.Name)+1], "\n")+1:], " ")
	return !lacks(said, d.Name) && !lacks(said, outer), nil
}

// lackedVariable is how nginx, and a candidate that refuses what nginx has, name a variable that they
// do not have; they name one at a time.
var lackedVariable = regexp.MustCompile(`(?:unknown "|directive "\$)(\w+)" (?:variable|is not supported)`)

// supportedVariables asks which variables a target has: all are used in one configuration, and those
// that it does not know are taken out one by one, until the rest loads.
func supportedVariables(ctx context.Context, cell engine.Cell, vars []grammar.Variable) (map[grammar.Variable]bool, error) {
	has := map[grammar.Variable]bool{}
	for _, block := range []struct{ outer, conf string }{
		{"", "events { }\nhttp { server { listen 127.0.0.1:8080; %s } }\n"},
		{"stream", "events { }\nstream { server { listen 127.0.0.1:8080; return x; %s } }\n"},
	} {
		left := slices.DeleteFunc(slices.Clone(vars), func(v grammar.Variable) bool { return outermost(v.Module) != block.outer })
		for len(left) > 0 {
			var b strings.Builder
			for i, v := range left {
				fmt.Fprintf(&b, "set $asked_for_%d \"${%s}\";\n", i, member(v.Name))
			}
			said, ok, err := test(ctx, cell, fmt.Sprintf(block.conf, b.String()))
			if err != nil {
				return nil, err
			}
			if ok {
				break
			}
			m := lackedVariable.FindStringSubmatch(said)
			n := len(left)
			switch {
			case m != nil:
				left = slices.DeleteFunc(left, func(v grammar.Variable) bool { return member(v.Name) == m[1] })
			case block.outer != "" && lacks(said, block.outer):
				left = nil
			}
			if len(left) == n {
				return nil, fmt.Errorf("ask for variables: %s", strings.TrimSpace(said))
			}
		}
		for _, v := range left {
			has[v] = true
		}
	}
	return has, nil
}

// member is a variable of a family, and any other by its name.
func member(name string) string {
	if strings.HasSuffix(name, "_") {
		return name + "x"
	}
	return name
}

// test runs -t on a configuration.
func test(ctx context.Context, cell engine.Cell, conf string) (said string, ok bool, err error) {
	if err := cell.Reset(ctx, []engine.File{{Path: "nginx.conf", Data: []byte(conf)}, {Path: "logs", Dir: true}}); err != nil {
		return "", false, err
	}
	out, err := cell.Command(ctx, "-p", "/cell/", "-c", "/cell/nginx.conf", "-e", "/cell/logs/error.log", "-t")
	if err != nil {
		return "", false, err
	}
	return string(out.Stderr), out.Exit.Exited && out.Exit.Code == 0, nil
}

// lacks tells whether a diagnosis names a directive as one that the target does not have.
func lacks(said, name string) bool {
	return strings.Contains(said, `unknown directive "`+name+`"`) || strings.Contains(said, `directive "`+name+`" is not supported`)
}
