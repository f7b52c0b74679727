package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"nginxoracle/fuzz/grammar"
)

// conf is one configuration.
type conf struct {
	about string // the directive
	own   string // what it has beside the common part
	text  string
}

// plan says what is swept.
type plan struct {
	from, to  string
	n, random int
	seed      uint64
	has       func(grammar.Directive) bool
}

// common stands in every http block: what directives name.
const common = `limit_req_zone $uri zone=lr:32k rate=1r/s; limit_conn_zone $uri zone=lc:32k; log_format lf x; map $uri $mapped { default 1; } upstream up { server 127.0.0.1:9001; }`

// places are the contexts of nginx's tables as texts around a directive.
var places = map[string]string{
	"main":           "%s\nevents { }\nhttp { " + common + " server { listen 127.0.0.1:8080; } }\n",
	"any":            "events { }\nhttp { " + common + "\n%s\n server { listen 127.0.0.1:8080; } }\n",
	"events":         "events {\n%s\n}\nhttp { server { listen 127.0.0.1:8080; } }\n",
	"http":           "events { }\nhttp { " + common + "\n%s\n server { listen 127.0.0.1:8080; location / { } } }\n",
	"server":         "events { }\nhttp { " + common + " server { listen 127.0.0.1:8080;\n%s\n location / { } } }\n",
	"location":       "events { }\nhttp { " + common + " server { listen 127.0.0.1:8080; location / {\n%s\n } } }\n",
	"upstream":       "events { }\nhttp { upstream u { server 127.0.0.1:9001;\n%s\n } server { listen 127.0.0.1:8080; location / { proxy_pass http://u; } } }\n",
	"if-in-server":   "events { }\nhttp { " + common + " server { listen 127.0.0.1:8080; if ($uri) {\n%s\n } } }\n",
	"if-in-location": "events { }\nhttp { " + common + " server { listen 127.0.0.1:8080; location / { if ($uri) {\n%s\n } } } }\n",
	"limit_except":   "events { }\nhttp { " + common + " server { listen 127.0.0.1:8080; location / { limit_except GET {\n%s\n } } } }\n",
	"alone":          "%s\n",
}

func in(place, own, about string) conf {
	return conf{about: about, own: own + " (" + place + ")", text: fmt.Sprintf(places[place], own)}
}

// configurations lists all that is swept, the systematic part first.
func (p *plan) configurations(t *grammar.Tables) []conf {
	var list []grammar.Directive
	for _, d := range t.Directives {
		if p.has(d) && d.Name >= p.from && (p.to == "" || d.Name <= p.to) && d.Name != "load_module" {
			list = append(list, d)
		}
	}
	slices.SortStableFunc(list, func(a, b grammar.Directive) int { return strings.Compare(a.Name, b.Name) })
	s := &source{Rand: rand.New(rand.NewPCG(p.seed, 0)), t: t, list: list}
	var out []conf
	if p.n != 0 {
		for _, d := range list {
			out = append(out, s.systematic(d)...)
		}
	}
	if p.n > 0 && p.n < len(out) {
		s.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		out = out[:p.n]
	}
	for range p.random {
		c := s.combination()
		if s.IntN(8) == 0 {
			c = s.spoil(c)
		}
		out = append(out, c)
	}
	return out
}

// source makes arguments and configurations.
type source struct {
	*rand.Rand
	t    *grammar.Tables
	list []grammar.Directive
	turn int
}

func one[T any](s *source, list []T) T { return list[s.IntN(len(list))] }

// oddOr is an odd value or one of a list, each as likely.
func (s *source) oddOr(list []string) string {
	if i := s.IntN(len(list) + len(odd)); i < len(list) {
		return list[i]
	}
	return one(s, odd)
}

// place takes turns at a directive's contexts: a value is parsed in the same way in each of them.
func (s *source) place(d grammar.Directive) string {
	s.turn++
	return d.Contexts[s.turn%len(d.Contexts)]
}

// statement is a directive with arguments, a block if it is one.
func (s *source) statement(d grammar.Directive, args ...string) string {
	words := strings.Join(append([]string{d.Name}, args...), " ")
	if !d.Block() {
		return words + ";"
	}
	var b strings.Builder
	b.WriteString(words + " {")
	for range s.IntN(4) {
		b.WriteString("\n " + s.inside(d) + ";")
	}
	return b.String() + " }"
}

// inside is a line of a block: of its own language, or of a directive.
func (s *source) inside(d grammar.Directive) string {
	switch d.Name {
	case "types", "map", "geo", "split_clients", "charset_map":
		words := []string{s.oddOr(entries[d.Name])}
		for range 1 + s.IntN(7)/6 {
			words = append(words, s.oddOr(entries[d.Name]))
		}
		if s.IntN(12) == 0 {
			words = words[:1]
		}
		return strings.Join(words, " ")
	}
	context := d.Name
	if context == "if" {
		context = d.Contexts[0]
	}
	var fits []grammar.Directive
	for _, x := range s.list {
		if x.In(context) && !x.Block() {
			fits = append(fits, x)
		}
	}
	if len(fits) == 0 {
		return "x y"
	}
	x := one(s, fits)
	return strings.TrimSuffix(s.statement(x, s.right(x)...), ";")
}

// right are arguments of one of the forms that the generator has for a directive.
func (s *source) right(d grammar.Directive) []string {
	list := s.forms(d)
	if len(list) == 0 {
		return []string{one(s, odd)}
	}
	return s.fill(one(s, list))
}

// forms are the generator's, in which the names of a batch's units are those of the common part, and the table's own.
func (s *source) forms(d grammar.Directive) []string {
	row, _ := s.t.Row(d.Name)
	var out []string
	for _, f := range row.Forms {
		if f != "" {
			out = append(out, strings.NewReplacer("zone=u00_lr:", "zone=n:", "zone=u00_lc:", "zone=n:", "u00_lr", "lr", "u00_lc", "lc", "u00/", "html/").Replace(f))
		}
	}
	name := d.Name
	if d.In("upstream") {
		name += " upstream"
	}
	return append(out, forms[name]...)
}

func (s *source) fill(form string) []string {
	var b strings.Builder
	for {
		before, rest, _ := strings.Cut(form, "{")
		b.WriteString(before)
		name, behind, ok := strings.Cut(rest, "}")
		if !ok {
			break
		}
		list := fillers[name]
		if list == nil {
			list = odd
		}
		b.WriteString(one(s, list))
		form = behind
	}
	return words(b.String())
}

// words parts a form at the blanks outside of quotes.
func words(form string) []string {
	var out []string
	quote := byte(0)
	begin := -1
	for i := range len(form) {
		c := form[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == ' ':
			if begin >= 0 {
				out = append(out, form[begin:i])
			}
			begin = -1
			continue
		case c == '"' || c == '\'':
			quote = c
		}
		if begin < 0 {
			begin = i
		}
	}
	if begin >= 0 {
		out = append(out, form[begin:])
	}
	return out
}

// almost are words that are nearly those of a directive's forms.
func almost(w string) []string {
	if len(w) < 2 || strings.ContainsAny(w, `"'{}$;`) {
		return nil
	}
	return []string{w, strings.ToUpper(w[:1]) + w[1:], strings.ToUpper(w), w[:len(w)-1], w + "x", w + "=", w + "=1", w + "\x00", w + "\\", `"` + w + `"`, w + ",", " " + w + ".", "!" + w}
}

// systematic are the configurations about one directive.
func (s *source) systematic(d grammar.Directive) []conf {
	var out []conf
	add := func(args ...string) { out = append(out, in(s.place(d), s.statement(d, args...), d.Name)) }
	add()
	var keywords []string
	for _, form := range s.forms(d) {
		args := s.fill(form)
		add(args...)
		for i, w := range args {
			for _, k := range almost(w) {
				if slices.Contains(keywords, k) {
					continue
				}
				keywords = append(keywords, k)
				changed := slices.Clone(args)
				changed[i] = k
				add(changed...)
			}
		}
		// every odd value at one place of the form, the places in turn
		if len(args) > 1 {
			for i := range args {
				for range 12 {
					changed := slices.Clone(args)
					changed[i] = one(s, odd)
					add(changed...)
				}
			}
		}
		for range 4 {
			add(append(slices.Clone(args), s.oddOr(parameters))...)
		}
	}
	if d.Args == "flag" {
		for range 12 {
			add(one(s, odd))
		}
	} else if !d.Takes(0) || d.Takes(1) {
		for _, v := range odd {
			if d.Takes(1) {
				add(v)
			}
		}
		for _, v := range parameters {
			args := s.right(d)
			add(append(args[:min(1, len(args)):min(1, len(args))], v)...)
		}
		for range 40 {
			if d.Takes(2) {
				add(one(s, odd), one(s, odd))
			}
			if d.Takes(3) {
				add(one(s, odd), one(s, odd), one(s, odd))
			}
		}
	}
	// twice, and on two levels
	for range 6 {
		place := s.place(d)
		out = append(out, in(place, s.statement(d, s.right(d)...)+"\n"+s.statement(d, s.right(d)...), d.Name))
		out = append(out, s.levels(d, d))
	}
	// out of place
	for _, place := range slices.Sorted(maps.Keys(places)) {
		if !d.In(place) {
			out = append(out, in(place, s.statement(d, s.right(d)...), d.Name))
		}
	}
	return out
}

// levels has directives in http, server and location.
func (s *source) levels(list ...grammar.Directive) conf {
	var level [3]string
	for _, d := range list {
		for i, context := range []string{"http", "server", "location"} {
			if d.In(context) && s.IntN(3) > 0 {
				args := s.right(d)
				if s.IntN(3) == 0 && len(args) > 0 {
					args[s.IntN(len(args))] = one(s, odd)
				}
				level[i] += "\n" + s.statement(d, args...)
			}
		}
	}
	own := fmt.Sprintf("http {%s\nserver {%s\nlocation / {%s\n} } }", level[0], level[1], level[2])
	return conf{about: list[0].Name, own: own, text: fmt.Sprintf("events { }\nhttp { %s%s\n server { listen 127.0.0.1:8080;%s\n location / {%s\n proxy_pass http://127.0.0.1:9001; } } }\n", common, level[0], level[1], level[2])}
}

// combination is one to four directives, most of one module, with arguments right and odd.
func (s *source) combination() conf {
	d := one(s, s.list)
	family := s.list
	switch s.IntN(5) {
	case 0:
		return s.tree()
	case 1:
		if list := s.related(one(s, families)); len(list) > 0 {
			if list[0].In("upstream") {
				own := s.statement(list[0], s.any(list[0])...)
				for range 1 + s.IntN(4) {
					x := one(s, list)
					own += "\n" + s.statement(x, s.any(x)...)
				}
				return in("upstream", own, list[0].Name)
			}
			var some []grammar.Directive
			for range 2 + s.IntN(4) {
				some = append(some, one(s, list))
			}
			return s.levels(some...)
		}
	}
	if s.IntN(4) > 0 {
		family = nil
		for _, x := range s.list {
			if x.Module == d.Module {
				family = append(family, x)
			}
		}
	}
	if s.IntN(3) == 0 {
		list := []grammar.Directive{d}
		for range 1 + s.IntN(3) {
			list = append(list, one(s, family))
		}
		return s.levels(list...)
	}
	place := one(s, d.Contexts)
	own := s.statement(d, s.any(d)...)
	for range s.IntN(3) {
		if x := one(s, family); x.In(place) || s.IntN(12) == 0 {
			own += "\n" + s.statement(x, s.any(x)...)
		}
	}
	return in(place, own, d.Name)
}

// any are arguments of a right form, of a spoiled one, or odd ones.
func (s *source) any(d grammar.Directive) []string {
	args := s.right(d)
	switch s.IntN(4) {
	case 0:
	case 1:
		if len(args) > 0 {
			args[s.IntN(len(args))] = s.oddOr(parameters)
		}
	case 2:
		args = append(args, s.oddOr(parameters))
	default:
		args = nil
		for range s.IntN(4) {
			args = append(args, one(s, odd))
		}
	}
	return args
}

// related are the directives of a family that are swept.
func (s *source) related(family string) (out []grammar.Directive) {
	context := ""
	if strings.Contains(family, "least_conn") {
		context = "upstream"
	}
	for _, n := range strings.Fields(family) {
		for _, d := range s.list {
			if d.Name == n && (context == "" || d.In(context)) {
				out = append(out, d)
			}
		}
	}
	return out
}

// tree is a configuration of blocks in blocks.
func (s *source) tree() conf {
	own := s.nest("http", 0)
	return conf{about: "blocks", own: "http {" + own + "\n}", text: "events { }\nhttp { " + common + own + "\n}\n"}
}

// nested are the blocks that may stand in one, with the context that they are.
var nested = map[string][]string{"http": {"server", "server", "server", "upstream"}, "server": {"location", "location", "location", "if"}, "location": {"location", "location", "if", "limit_except"}}

func (s *source) nest(context string, depth int) string {
	family := strings.Fields(one(s, families))
	var fits, close []grammar.Directive
	for _, d := range s.list {
		if d.In(context) && !slices.Contains(nested[context], d.Name) {
			fits = append(fits, d)
			if slices.Contains(family, d.Name) {
				close = append(close, d)
			}
		}
	}
	var b strings.Builder
	for range s.IntN(3) {
		list := fits
		if len(close) > 0 && s.IntN(2) == 0 {
			list = close
		}
		d := one(s, list)
		args := s.right(d)
		if s.IntN(8) == 0 && len(args) > 0 {
			args[s.IntN(len(args))] = s.oddOr(parameters)
		}
		b.WriteString("\n" + s.statement(d, args...))
	}
	if list := nested[context]; len(list) > 0 && depth < 4 {
		for range 1 + s.IntN(3) {
			name := one(s, list)
			inner, head := name, ""
			switch name {
			case "location":
				head = " " + one(s, forms["location"])
			case "if":
				inner, head = "if-in-"+context, " "+one(s, forms["if"][:7])
			case "limit_except":
				head = " " + one(s, []string{"GET", "POST", "HEAD PUT"})
			case "upstream":
				head = " " + one(s, []string{"u", "up", "v", "127.0.0.1"})
				b.WriteString("\n" + name + head + " {\nserver 127.0.0.1:9001;" + s.nest(inner, depth+1) + "\n}")
				continue
			}
			b.WriteString("\n" + name + head + " {" + s.nest(inner, depth+1) + "\n}")
		}
	}
	return b.String()
}

// spoil changes some bytes of a configuration to those that its language is made of.
func (s *source) spoil(c conf) conf {
	b := []byte(c.text)
	for range 1 + s.IntN(3) {
		at := s.IntN(len(b))
		n := s.IntN(4) / 2 // most often one byte is taken away, or none
		put := one(s, []string{"", "", `"`, "'", `\`, ";", "{", "}", "#", "$", "${", " ", "\n", "\r", "\t", "\x00", "\xff", "\ufeff", "}}", ";;", `\\`, `\n`})
		b = slices.Concat(b[:at], []byte(put), b[min(at+n, len(b)):])
	}
	if s.IntN(6) == 0 {
		b = b[:s.IntN(len(b)+1)]
	}
	return conf{about: "spoiled " + c.about, own: string(b), text: string(b)}
}
