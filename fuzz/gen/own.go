package gen

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// Own gives every port and name of another slot in a unit's texts to the unit itself: damage makes
// 20045 out of 20005, and a percent sign with 20747 behind it. In a batch such a text would send a
// request to another unit's server or origin, or file a log's line under another unit. No length changes.
// What stub_status counts is the whole server's: where damage has taken the refusal before it (see
// fHandlers), it is put back.
func (u *Unit) Own() {
	conftree.Walk(u.Body, "http", func(n *conftree.Node, _ string) bool {
		for i, w := range n.Words {
			if b := []byte(w); owned(&b) {
				n.Words[i] = string(b)
			}
		}
		if holds(n, "stub_status") {
			n.Kids = refusing(n.Kids)
		}
		return true
	})
	u.settleArgs()
	u.settleRandom()
	u.settleAges()
	u.settleUnframed()
	for i := range u.Files {
		f := &u.Files[i]
		for _, name := range []*string{&f.Path, &f.Link} {
			if b := []byte(*name); owned(&b) {
				*name = string(b)
			}
		}
		owned(&f.Data)
	}
	for _, o := range u.Origins {
		for _, steps := range o.Conns {
			ownSteps(steps)
		}
	}
	for i := range u.Clients {
		ownSteps(u.Clients[i].Steps)
	}
}

// refusing gives a location's directives with one rule of access, that refuses everyone; the list may be another unit's, too.
func refusing(kids []*conftree.Node) (out []*conftree.Node) {
	for _, k := range kids {
		switch k.Name() {
		case "allow", "deny", "satisfy":
		default:
			out = append(out, k)
		}
	}
	return append(out, conftree.N("satisfy", "all"), conftree.N("deny", "all"))
}

// argsWord is a variable that holds the request's arguments.
var argsWord = regexp.MustCompile(`\$(?:args|query_string)\b|\$\{(?:args|query_string)\}`)

// settleArgs keeps a log from telling arguments that are there but empty from arguments that are not, where error_page or
// try_files may have redirected the request: nginx reads memory then that it has never set (D-163), and no two
// requests need agree. Only a log with the default escaping tells, by a "-"; scenarios/core/error-page-args.txtar
// has what is steady of it.
func (u *Unit) settleArgs() {
	redirects := false
	conftree.Walk(u.Body, "http", func(n *conftree.Node, _ string) bool {
		redirects = redirects || n.Name() == "try_files" || n.Name() == "error_page"
		return true
	})
	if !redirects {
		return
	}
	for _, n := range u.Body {
		if n.Name() != "log_format" || slices.Contains(n.Words, "escape=json") || slices.Contains(n.Words, "escape=none") {
			continue
		}
		for i, w := range n.Words {
			if argsWord.MatchString(w) {
				n.Words = slices.Clone(n.Words) // they may be another unit's, too
				n.Words[i] = argsWord.ReplaceAllString(w, "$${request_uri}")
			}
		}
	}
}

// settleRandom takes the balancer random out of an upstream that has more than one server: which one is asked is then chance,
// on both sides (see fBalance, which gives it one); damage adds servers.
func (u *Unit) settleRandom() {
	conftree.Walk(u.Body, "http", func(n *conftree.Node, _ string) bool {
		servers := 0
		for _, k := range n.Kids {
			if k.Name() == "server" {
				servers++
			}
		}
		if n.Name() == "upstream" && servers > 1 && holds(n, "random") {
			n.Kids = slices.DeleteFunc(slices.Clone(n.Kids), func(k *conftree.Node) bool { return k.Name() == "random" }) // the list may be another unit's, too
		}
		return true
	})
}

// ageWord is a variable that may hold a number of seconds which another digit follows at once, or may follow.
var ageWord = regexp.MustCompile(`\$(?:sent_http_cache_control\b|\{sent_http_cache_control\})(\d|\$|$)`)

// settleAges keeps a digit from following max-age=3600 in a log: where the seconds end could not be told then, and they are a second
// fewer in a later run.
func (u *Unit) settleAges() {
	for _, n := range u.Body {
		if n.Name() != "log_format" {
			continue
		}
		for i, w := range n.Words {
			if ageWord.MatchString(w) {
				n.Words = slices.Clone(n.Words) // they may be another unit's, too
				n.Words[i] = ageWord.ReplaceAllString(w, "$${sent_http_cache_control} $1")
			}
		}
	}
}

// unframes tells whether a directive takes from a request what says where its body ends, or may.
func unframes(n *conftree.Node) bool {
	return n.Name() == "proxy_set_header" && len(n.Words) > 1 && (strings.EqualFold(n.Words[1], "Content-Length") || strings.EqualFold(n.Words[1], "Transfer-Encoding"))
}

// settleUnframed has origins wait for the whole of a request whose body has no end that could be told: an answer that comes
// in the midst of it would cut it at a place of chance.
func (u *Unit) settleUnframed() {
	found := false
	conftree.Walk(u.Body, "http", func(n *conftree.Node, _ string) bool {
		found = found || unframes(n)
		return true
	})
	if !found {
		return
	}
	for i := range u.Origins {
		for j, steps := range u.Origins[i].Conns {
			u.Origins[i].Conns[j] = unhurried(steps) // a new list: the other may be another unit's, too
		}
	}
}

// unhurried waits for the server to rest behind everything that is read.
func unhurried(steps []casefile.Step) (out []casefile.Step) {
	for i, s := range steps {
		out = append(out, s)
		if s.Op == casefile.Recv && (i+1 == len(steps) || steps[i+1].Op != casefile.Settle) {
			out = append(out, casefile.Step{Op: casefile.Settle})
		}
	}
	return out
}

func holds(n *conftree.Node, name string) bool {
	return slices.ContainsFunc(n.Kids, func(k *conftree.Node) bool { return k.Name() == name })
}

func ownSteps(steps []casefile.Step) {
	for i := range steps {
		for j, d := range steps[i].Data {
			if owned(&d) { // the list may be another unit's, too
				steps[i].Data = slices.Clone(steps[i].Data)
				steps[i].Data[j] = d
			}
		}
	}
}

// owned puts slot 00 in place of any other in words of the forms 20SSk, uSS and uSS_x, in a copy of
// what b points to, and tells whether there were any.
func owned(b *[]byte) (changed bool) {
	t := *b
	for at := 0; at < len(t); at++ {
		i := bytes.IndexAny(t[at:], "2uU")
		if i < 0 {
			break
		}
		at += i
		if at > 0 && isWord(t[at-1]) {
			continue
		}
		slot := at + 1 // where the slot's digits are
		if t[at] == '2' {
			if at+5 > len(t) || t[at+1] != '0' || !isDigit(t[at+4]) || at+5 < len(t) && isWord(t[at+5]) {
				continue
			}
			slot++
		} else if at+3 > len(t) || at+3 < len(t) && t[at+3] != '_' && isWord(t[at+3]) {
			continue
		}
		if !isDigit(t[slot]) || !isDigit(t[slot+1]) || t[slot] == '0' && t[slot+1] == '0' {
			continue
		}
		if !changed {
			t = bytes.Clone(t)
			*b, changed = t, true
		}
		t[slot], t[slot+1] = '0', '0'
	}
	return changed
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// isWord tells the bytes of a regular expression's \w.
func isWord(b byte) bool {
	return isDigit(b) || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_'
}
