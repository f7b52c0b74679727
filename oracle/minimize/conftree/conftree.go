// Package conftree is a tolerant reader of nginx.conf text: it cuts a text
// into directives and blocks the way nginx's own tokenizer does
// (ngx_conf_file.c, ngx_conf_read_token), keeps every token as it was written,
// and prints the tree back, one directive a line. It knows no directive, and
// is for passes that take configurations apart (generator, mutator,
// minimizer), never for deciding what a server would accept.
package conftree

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Node is one directive. Words holds its tokens as written, quotes included;
// the first is the directive's name. A block has Block set, even when empty.
type Node struct {
	Words []string
	Block bool
	Kids  []*Node
	Line  int // where Parse found its name; 0 for a node that was made
}

// N makes a simple directive out of raw tokens.
func N(words ...string) *Node { return &Node{Words: words} }

// B makes a block.
func B(words []string, kids ...*Node) *Node {
	return &Node{Words: words, Block: true, Kids: kids}
}

// Name is the directive's name, unquoted.
func (n *Node) Name() string {
	if len(n.Words) == 0 {
		return ""
	}
	return Value(n.Words[0])
}

// Add appends children and returns the node.
func (n *Node) Add(kids ...*Node) *Node {
	n.Kids = append(n.Kids, kids...)
	return n
}

// Clone copies a node and everything below it.
func (n *Node) Clone() *Node {
	c := &Node{Words: append([]string(nil), n.Words...), Block: n.Block, Line: n.Line}
	c.Kids = CloneAll(n.Kids)
	return c
}

// CloneAll copies a list of nodes deeply.
func CloneAll(list []*Node) []*Node {
	if list == nil {
		return nil
	}
	out := make([]*Node, len(list))
	for i, n := range list {
		out[i] = n.Clone()
	}
	return out
}

// Walk calls f for every node, parents before children, with the enclosing
// block's name ("" at the top). It stops descending where f answers false.
func Walk(list []*Node, parent string, f func(n *Node, parent string) bool) {
	for _, n := range list {
		if f(n, parent) {
			Walk(n.Kids, n.Name(), f)
		}
	}
}

// Parse cuts text into nodes. An unbalanced or unfinished text is an error
// with its line number; comments are dropped.
func Parse(text []byte) ([]*Node, error) {
	p := &parser{text: text, line: 1}
	list, err := p.block(0)
	if err != nil {
		return nil, &Error{Line: p.line, Err: err}
	}
	return list, nil
}

// Error says what is wrong with a text, and in which line.
type Error struct {
	Line int
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("configuration, line %d: %v", e.Line, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

type parser struct {
	text []byte
	pos  int
	line int
}

func (p *parser) block(depth int) ([]*Node, error) {
	var list []*Node
	var words []string
	line := 0 // of the current directive's name
	for {
		p.space()
		if p.pos >= len(p.text) {
			if depth > 0 || len(words) > 0 {
				return nil, fmt.Errorf("unexpected end of text, want ; or }")
			}
			return list, nil
		}
		switch p.text[p.pos] {
		case ';':
			p.pos++
			if len(words) == 0 {
				return nil, fmt.Errorf("unexpected ;")
			}
			list = append(list, &Node{Words: words, Line: line})
			words = nil
		case '{':
			p.pos++
			if len(words) == 0 {
				return nil, fmt.Errorf("unexpected {")
			}
			kids, err := p.block(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, &Node{Words: words, Block: true, Kids: kids, Line: line})
			words = nil
		case '}':
			if depth == 0 || len(words) > 0 {
				return nil, fmt.Errorf("unexpected }")
			}
			p.pos++
			return list, nil
		default:
			if len(words) == 0 {
				line = p.line
			}
			w, err := p.word()
			if err != nil {
				return nil, err
			}
			words = append(words, w)
		}
	}
}

func (p *parser) space() {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; c {
		case '\n':
			p.line++
			p.pos++
		case ' ', '\t', '\r':
			p.pos++
		case '#':
			for p.pos < len(p.text) && p.text[p.pos] != '\n' {
				p.pos++
			}
		default:
			return
		}
	}
}

// word takes one token. A quote opens a string only at a token's start; a
// backslash keeps the next byte from meaning anything; "${" holds a brace
// that opens no block.
func (p *parser) word() (string, error) {
	start := p.pos
	if q := p.text[p.pos]; q == '"' || q == '\'' {
		p.pos++
		for p.pos < len(p.text) {
			switch c := p.text[p.pos]; {
			case c == '\\' && p.pos+1 < len(p.text):
				p.pos++
			case c == '\n':
				p.line++
			case c == q:
				p.pos++
				return string(p.text[start:p.pos]), nil
			}
			p.pos++
		}
		return "", fmt.Errorf("unfinished string")
	}
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '\\' && p.pos+1 < len(p.text):
			p.pos++
		case c == '$' && p.pos+1 < len(p.text) && p.text[p.pos+1] == '{':
			p.pos++
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';' || c == '{':
			return string(p.text[start:p.pos]), nil
		}
		p.pos++
	}
	return string(p.text[start:p.pos]), nil
}

// Print writes nodes one directive a line, four spaces a level.
func Print(list []*Node) []byte {
	var b bytes.Buffer
	write(&b, list, 0)
	return b.Bytes()
}

// PrintAt is Print at a depth of indentation.
func PrintAt(list []*Node, depth int) []byte {
	var b bytes.Buffer
	write(&b, list, depth)
	return b.Bytes()
}

func write(b *bytes.Buffer, list []*Node, depth int) {
	pad := strings.Repeat("    ", depth)
	for _, n := range list {
		b.WriteString(pad)
		b.WriteString(strings.Join(n.Words, " "))
		if !n.Block {
			b.WriteString(";\n")
			continue
		}
		b.WriteString(" {\n")
		write(b, n.Kids, depth+1)
		b.WriteString(pad)
		b.WriteString("}\n")
	}
}

// Quote writes a literal value as one token: bare where that is safe, else in
// double quotes. Variables ($x) stay variables.
func Quote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\r\n;{}\"'\\#") {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Value is what a token means: outer quotes removed, and the escapes nginx
// knows (\" \' \\ \t \r \n) replaced; any other backslash stays.
func Value(tok string) string {
	if len(tok) >= 2 && (tok[0] == '"' || tok[0] == '\'') && tok[len(tok)-1] == tok[0] {
		tok = tok[1 : len(tok)-1]
	}
	if !strings.Contains(tok, `\`) {
		return tok
	}
	var b strings.Builder
	for i := 0; i < len(tok); i++ {
		if tok[i] != '\\' || i+1 == len(tok) {
			b.WriteByte(tok[i])
			continue
		}
		switch tok[i+1] {
		case '"', '\'', '\\':
			b.WriteByte(tok[i+1])
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'n':
			b.WriteByte('\n')
		default:
			b.WriteByte('\\')
			b.WriteByte(tok[i+1])
		}
		i++
	}
	return b.String()
}

// scaffold are directives that say nothing about what a case is about.
var scaffold = map[string]bool{"events": true, "http": true, "server": true, "listen": true, "worker_connections": true, "error_log": true}

// Names lists the directives' names in a configuration, each once, sorted,
// without those that every configuration has.
func Names(top []*Node) []string {
	seen := map[string]bool{}
	Walk(top, "", func(n *Node, parent string) bool {
		if parent != "types" && parent != "map" && !scaffold[n.Name()] {
			seen[n.Name()] = true
		}
		return true
	})
	return slices.Sorted(maps.Keys(seen))
}
