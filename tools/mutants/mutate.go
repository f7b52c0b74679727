package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Mutant is one small change of one source file.
type Mutant struct {
	Kind       string
	File       string // relative to the repository
	Line       int
	Start, End int // bytes of the file that are replaced
	Old, New   string
}

// Diff shows the change as two lines.
func (m Mutant) Diff(src []byte) string {
	from := strings.LastIndexByte(string(src[:m.Start]), '\n') + 1
	to := m.End + strings.IndexByte(string(src[m.End:])+"\n", '\n')
	before := string(src[from:to])
	after := string(src[from:m.Start]) + m.New + string(src[m.End:to])
	prefix := func(p, s string) string { return p + strings.ReplaceAll(s, "\n", "\n"+p) }
	return fmt.Sprintf("%s:%d (%s)\n%s\n%s", m.File, m.Line, m.Kind, prefix("- ", before), prefix("+ ", after))
}

// Apply gives the file's text with the change.
func (m Mutant) Apply(src []byte) []byte {
	return slices.Concat(src[:m.Start], []byte(m.New), src[m.End:])
}

// visitor collects the mutants of one file.
type visitor struct {
	fset *token.FileSet
	file string
	src  []byte
	out  []Mutant
}

func (v *visitor) add(kind string, from, to token.Pos, repl string) {
	s, e := v.fset.Position(from).Offset, v.fset.Position(to).Offset
	m := Mutant{Kind: kind, File: v.file, Line: v.fset.Position(from).Line, Start: s, End: e, Old: string(v.src[s:e]), New: repl}
	if !slices.ContainsFunc(v.out, func(o Mutant) bool { return o.Start == s && o.End == e && o.New == repl }) { // the first kind has it
		v.out = append(v.out, m)
	}
}

func (v *visitor) text(n ast.Node) string {
	return string(v.src[v.fset.Position(n.Pos()).Offset:v.fset.Position(n.End()).Offset])
}

// ofHeader tells a statement that writes or takes a header field.
func ofHeader(text string) bool {
	low := strings.ToLower(text)
	return strings.Contains(low, "header") || strings.Contains(low, "field") || strings.Contains(low, `: "`) || strings.Contains(low, `\r\n`)
}

// ofState tells the name of what a machine's state is kept in.
func ofState(name string) bool {
	name = strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	return slices.Contains([]string{"state", "step", "phase", "next", "handler", "read", "write"}, name)
}

// drop takes a statement's effect away and leaves what it mentions used, so that the rest still compiles
// where it can.
func (v *visitor) drop(kind string, s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ExprStmt:
		if _, ok := s.X.(*ast.CallExpr); ok {
			v.add(kind, s.Pos(), s.End(), "{}")
		}
	case *ast.AssignStmt:
		if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
			v.add(kind, s.Rhs[0].Pos(), s.Rhs[0].End(), v.text(s.Lhs[0]))
		}
	}
}

// kinds is the table of mutation kinds: each looks at one node and adds what it would change.
var kinds = []struct {
	name string
	find func(v *visitor, name string, n ast.Node)
}{
	{"boundary", swapOp(map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"})},
	{"equality", swapOp(map[token.Token]string{token.EQL: "!=", token.NEQ: "=="})},
	{"connective", swapOp(map[token.Token]string{token.LAND: "||", token.LOR: "&&"})},
	{"arithmetic", swapOp(map[token.Token]string{token.ADD: "-", token.SUB: "+"})},
	{"condition", func(v *visitor, name string, n ast.Node) {
		if s, ok := n.(*ast.IfStmt); ok {
			v.add(name, s.Cond.Pos(), s.Cond.End(), "!("+v.text(s.Cond)+")")
		}
	}},
	{"off-by-one", func(v *visitor, name string, n ast.Node) {
		if s, ok := n.(*ast.SliceExpr); ok {
			for _, b := range []ast.Expr{s.Low, s.High} {
				if b != nil {
					v.add(name, b.Pos(), b.End(), "("+v.text(b)+")+1")
				}
			}
		}
	}},
	{"constant", func(v *visitor, name string, n ast.Node) {
		l, ok := n.(*ast.BasicLit)
		if !ok {
			return
		}
		switch l.Kind {
		case token.INT:
			if k, err := strconv.ParseInt(l.Value, 0, 64); err == nil {
				v.add(name, l.Pos(), l.End(), strconv.FormatInt(k+1, 10))
			}
		case token.STRING:
			if s, err := strconv.Unquote(l.Value); err == nil && len(s) > 1 && s[0] != '"' {
				v.add(name, l.Pos(), l.End(), strconv.Quote(s[:len(s)-1]+"~"))
			}
		}
	}},
	{"dropped-header", func(v *visitor, name string, n ast.Node) {
		if s, ok := n.(ast.Stmt); ok && movable(s) && ofHeader(v.text(s)) {
			v.drop(name, s)
		}
	}},
	{"skipped-state", func(v *visitor, name string, n ast.Node) {
		if s, ok := n.(*ast.AssignStmt); ok && s.Tok == token.ASSIGN && len(s.Lhs) == 1 && ofState(v.text(s.Lhs[0])) {
			v.drop(name, s)
		}
	}},
	{"dropped-call", func(v *visitor, name string, n ast.Node) {
		if s, ok := n.(*ast.ExprStmt); ok {
			v.drop(name, s)
		}
	}},
	{"dropped-assignment", func(v *visitor, name string, n ast.Node) {
		if s, ok := n.(*ast.AssignStmt); ok && s.Tok == token.ASSIGN && len(s.Lhs) == 1 {
			if _, ok := s.Lhs[0].(*ast.SelectorExpr); ok {
				v.drop(name, s)
			}
		}
	}},
	{"swapped-order", func(v *visitor, name string, n ast.Node) {
		b, ok := n.(*ast.BlockStmt)
		if !ok {
			return
		}
		for i := 1; i < len(b.List); i++ {
			x, y := b.List[i-1], b.List[i]
			if movable(x) && movable(y) && v.text(x) != v.text(y) {
				v.add(name, x.Pos(), y.End(), v.text(y)+"\n"+v.text(x))
			}
		}
	}},
	{"skipped-case", func(v *visitor, name string, n ast.Node) {
		if c, ok := n.(*ast.CaseClause); ok && len(c.List) > 0 && len(c.Body) > 0 {
			if _, ok := c.Body[0].(*ast.ReturnStmt); !ok {
				v.add(name, c.Body[0].Pos(), c.Body[len(c.Body)-1].End(), "")
			}
		}
	}},
	{"result", func(v *visitor, name string, n ast.Node) {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
			if id, ok := r.Results[0].(*ast.Ident); ok {
				if to := map[string]string{"true": "false", "false": "true", "OK": "Declined", "Declined": "OK"}[id.Name]; to != "" {
					v.add(name, id.Pos(), id.End(), to)
				}
			}
		}
	}},
}

func movable(s ast.Stmt) bool {
	switch x := s.(type) {
	case *ast.ExprStmt:
		return true
	case *ast.AssignStmt:
		return x.Tok == token.ASSIGN
	}
	return false
}

func swapOp(to map[token.Token]string) func(*visitor, string, ast.Node) {
	return func(v *visitor, name string, n ast.Node) {
		if b, ok := n.(*ast.BinaryExpr); ok {
			if repl, ok := to[b.Op]; ok {
				v.add(name, b.OpPos, b.OpPos+token.Pos(len(b.Op.String())), repl)
			}
		}
	}
}

// sites lists every mutant of source files, in their order.
func sites(repo string, files []string) ([]Mutant, error) {
	var all []Mutant
	for _, name := range files {
		src, err := os.ReadFile(filepath.Join(repo, name))
		if err != nil {
			return nil, err
		}
		found, err := inFile(name, src)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func inFile(name string, src []byte) ([]Mutant, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	v := &visitor{fset: fset, file: name, src: src}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if _, ok := n.(*ast.Field); ok {
				return false // types and tags of fields
			}
			if n != nil {
				for _, k := range kinds {
					k.find(v, k.name, n)
				}
			}
			return true
		})
	}
	return v.out, nil
}

// deal draws n mutants, the kinds in turn as a shuffled deck, so that a kind with few sites is
// drawn as often as one with many. The same seed gives the same mutants for the same source.
func deal(all []Mutant, n int, seed uint64) []Mutant {
	rng := rand.New(rand.NewPCG(seed, 0x6d7574616e7473))
	by := map[string][]Mutant{}
	for _, m := range all {
		by[m.Kind] = append(by[m.Kind], m)
	}
	for _, k := range kinds {
		rng.Shuffle(len(by[k.name]), func(i, j int) { s := by[k.name]; s[i], s[j] = s[j], s[i] })
	}
	var out []Mutant
	for len(out) < n {
		before := len(out)
		for _, i := range rng.Perm(len(kinds)) {
			k := kinds[i].name
			if s := by[k]; len(s) > 0 && len(out) < n {
				out, by[k] = append(out, s[0]), s[1:]
			}
		}
		if len(out) == before {
			break
		}
	}
	return out
}
