package run

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"nginxoracle/oracle/minimize/conftree"
	"nginxoracle/oracle/observe"
)

// Mentions is what texts of a configuration have that masks depend on.
func Mentions(texts ...[]byte) observe.Mentions {
	seen := map[string]bool{}
	m := observe.Mentions{Logged: map[string][]observe.Place{}}
	for _, text := range texts {
		text = withoutFormats(text, m.Logged)
		variables(text, seen)
		if bytes.Contains(text, []byte("expires")) {
			for _, w := range expiresWord.FindAllSubmatch(text, -1) {
				seen[observe.Expires] = true
				if bytes.ContainsAny(w[1], "@$") || bytes.Contains(w[1], []byte("modified")) {
					seen[observe.Moment] = true
				}
			}
		}
	}
	m.Vars = slices.Sorted(maps.Keys(seen))
	return m
}

// expiresWord is the directive expires with what it is given. A comment that reads like one costs a mask, no more.
var expiresWord = regexp.MustCompile(`(?:^|[\s;{}"'])expires["']?\s([^;]*);`)

// variables notes the names of all variables that a text mentions.
func variables(text []byte, seen map[string]bool) {
	for {
		at := bytes.IndexByte(text, '$')
		if at < 0 {
			return
		}
		text = text[at+1:]
		if name := nameAt(bytes.TrimPrefix(text, []byte("{"))); len(name) > 0 {
			seen[string(name)] = true
		}
	}
}

// nameAt is the variable's name that text begins with.
func nameAt(text []byte) []byte {
	for i, c := range text {
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9') {
			return text[:i]
		}
	}
	return text
}

// withoutFormats takes the log_formats out of a configuration's text, and notes where they have variables. A text that does not
// come apart stays as it is: its variables may then show anywhere.
func withoutFormats(text []byte, places map[string][]observe.Place) []byte {
	if !bytes.Contains(text, []byte("log_format")) {
		return text
	}
	list, err := conftree.Parse(text)
	if err != nil {
		return text
	}
	return conftree.Print(cutFormats(list, places))
}

func cutFormats(list []*conftree.Node, places map[string][]observe.Place) (rest []*conftree.Node) {
	for _, n := range list {
		if n.Name() == "log_format" && !n.Block && len(n.Words) > 2 {
			addPlaces(n.Words[2:], places)
			continue
		}
		n.Kids = cutFormats(n.Kids, places)
		rest = append(rest, n)
	}
	return rest
}

// formatted is a piece of a log_format: a text, or a variable's value.
type formatted struct{ text, name string }

// pieces cuts a format the way nginx does (ngx_http_log_compile_format): its words stand for one text.
func pieces(words []string) (out []formatted) {
	var text []byte
	for _, w := range words {
		text = append(text, conftree.Value(w)...)
	}
	for len(text) > 0 {
		at := bytes.IndexByte(text, '$')
		if at < 0 {
			return append(out, formatted{text: string(text)})
		}
		if at > 0 {
			out = append(out, formatted{text: string(text[:at])})
		}
		text = text[at+1:]
		braced := bytes.HasPrefix(text, []byte("{"))
		text = bytes.TrimPrefix(text, []byte("{"))
		name := nameAt(text)
		text = text[len(name):]
		if braced {
			text = bytes.TrimPrefix(text, []byte("}"))
		}
		out = append(out, formatted{name: string(name)})
	}
	return out
}

// addPlaces notes where the words of a log_format behind its name have variables.
func addPlaces(words []string, places map[string][]observe.Place) {
	any := false
	if option, ok := strings.CutPrefix(conftree.Value(words[0]), "escape="); ok {
		any = option == "none" // a value may hold the end of a line then
		words = words[1:]
	}
	list := pieces(words)
	for i, p := range list {
		if p.name == "" {
			continue
		}
		place := observe.Place{}
		if !any {
			before, after := "$", "^"
			if strings.HasPrefix(p.name, "upstream_") {
				before, after = times+"*"+before, after+timesBehind+"*"
			}
			place.Before, place.After = pattern(list[:i], true)+before, after+pattern(list[i+1:], false)
		}
		places[p.name] = append(places[p.name], place)
	}
}

// What a value of an upstream's variable has beside it, where a request has gone to several servers (ngx_http_upstream_response_time_variable).
const (
	times       = `(?:(?:-|\d+\.\d{3})(?:, | : ))`
	timesBehind = `(?:(?:, | : )(?:-|\d+\.\d{3}))`
)

// pattern matches what a line has of pieces: from its begin, or to its end.
func pattern(list []formatted, before bool) string {
	if before {
		for i, p := range slices.Backward(list) {
			if at := strings.LastIndexByte(p.text, '\n'); at >= 0 {
				return "^" + joined(append([]formatted{{text: p.text[at+1:]}}, list[i+1:]...))
			}
		}
		return "^" + joined(list)
	}
	for i, p := range list {
		if at := strings.IndexByte(p.text, '\n'); at >= 0 {
			return joined(append(slices.Clone(list[:i]), formatted{text: p.text[:at]})) + "$"
		}
	}
	return joined(list) + "$"
}

func joined(list []formatted) string {
	var b strings.Builder
	for _, p := range list {
		switch {
		case p.name == "":
			b.WriteString(literally(p.text))
		case numeric[p.name]:
			b.WriteString(`(?:-|[\d.]*)`)
		default:
			b.WriteString(`.*`)
		}
	}
	return b.String()
}

// literally is a pattern for a text, in which a byte that is no part of a character stands for any.
func literally(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			b.WriteByte('.')
		} else {
			b.WriteString(regexp.QuoteMeta(s[:n]))
		}
		s = s[n:]
	}
	return b.String()
}

// numeric are variables whose value is a number, or is not there.
var numeric = map[string]bool{
	"body_bytes_sent": true, "bytes_sent": true, "connection": true, "connection_requests": true, "msec": true, "pid": true,
	"remote_port": true, "request_length": true, "request_time": true, "server_port": true, "status": true,
}
