// Package regex is the pcre_jit directive (nginx: src/core/ngx_regex.c). It asks for patterns as machine code,
// which nobody sees from outside: the proxy's patterns are what they are, and only the flag is looked at.
package regex

import "nginxoracle/proxy/module"

// Conf is the module's configuration (ngx_regex_conf_t).
type Conf struct{ PcreJIT int }

// Set is ngx_regex_module.
var Set = &module.Set{
	Name: "ngx_regex_module", Type: module.CoreModule,
	Create: func(*module.Cycle) any { return &Conf{PcreJIT: module.Unset} },
}

func init() {
	Set.Conf = module.Core(Set)
	Set.Directives = []module.Directive{
		{Name: "pcre_jit", Where: module.Main | module.Direct, Args: module.Flag,
			Set: module.FlagSlot(func(c *Conf) *int { return &c.PcreJIT })},
	}
}
