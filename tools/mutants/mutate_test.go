package main

import (
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

const sample = `package p

import "fmt"

func f(a, b int, s []byte) bool {
	if a < b && a == 3 {
		fmt.Println("hello")
		fmt.Println(string(s[1:a]))
	}
	x.y = b
	r.state = b
	c.writeHeader(a)
	switch a {
	case 1:
		b = a - 1
	}
	return true
}
`

func TestEveryKindFindsItsSite(t *testing.T) {
	all, err := inFile("p.go", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range all {
		found[m.Kind] = true
		text := m.Apply([]byte(sample))
		if string(text) == sample {
			t.Errorf("%s at line %d changes nothing", m.Kind, m.Line)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "p.go", text, 0); err != nil {
			t.Errorf("%s at line %d does not parse: %v", m.Kind, m.Line, err)
		}
	}
	for _, k := range kinds {
		if !found[k.name] {
			t.Errorf("kind %s found nothing", k.name)
		}
	}
}

func TestDealIsDeterministicAndEven(t *testing.T) {
	all, err := inFile("p.go", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	a, b := deal(all, len(kinds), 7), deal(all, len(kinds), 7)
	if !slices.Equal(a, b) {
		t.Error("the same seed deals other mutants")
	}
	seen := map[string]int{}
	for _, m := range a {
		seen[m.Kind]++
	}
	for k, n := range seen {
		if n != 1 {
			t.Errorf("kind %s was dealt %d times in one round", k, n)
		}
	}
	if got := deal(all, 10*len(all), 7); len(got) != len(all) {
		t.Errorf("dealt %d of %d", len(got), len(all))
	}
}
