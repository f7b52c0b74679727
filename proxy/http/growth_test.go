package http

import (
	"fmt"
	"testing"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http/pcre"
	"nginxoracle/proxy/module"
)

var sizes = []int{10, 1000, 10000}

// The cost of finding a location, by how many there are (names and prefixes, found in the middle).
func BenchmarkFindLocation(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			top := &CoreLoc{}
			top.Ctx = &ConfCtx{Loc: []any{top}}
			for i := range n {
				l := &CoreLoc{Name: fmt.Sprintf("/p%05d/", i)}
				l.Ctx = &ConfCtx{Loc: []any{l}}
				top.Locations = append(top.Locations, l)
			}
			initLocations(nil, top)
			if err := initLocationTrees(nil, top); err != nil {
				b.Fatal(err)
			}
			want := fmt.Sprintf("/p%05d/", n/2)
			r := &Request{URI: []byte(want + "x")}
			b.ReportAllocs()
			for b.Loop() {
				r.setLoc(top.Ctx.Loc)
				r.FindLocation()
				if r.Core.Name != want {
					b.Fatalf("%q, want %q", r.Core.Name, want)
				}
			}
		})
	}
}

// The cost of finding a server's name, exact and by a wildcard, by how many there are.
func BenchmarkFindName(b *testing.B) {
	for _, n := range sizes {
		var builder NameBuilder
		for i := range n {
			for _, name := range []string{fmt.Sprintf("s%d.example.test", i), fmt.Sprintf("*.w%d.example.test", i)} {
				if builder.Add(name, name, true) != NameAdded {
					b.Fatalf("%s was not added", name)
				}
			}
		}
		table, err := builder.Table(&module.Conf{Cycle: &module.Cycle{}}, HashLimits{Name: "names", Max: 1 << 20, BucketSize: 512})
		if err != nil {
			b.Fatal(err)
		}
		for kind, x := range map[string][2]string{
			"exact":    {"s%d.example.test", "s%d.example.test"},
			"wildcard": {"a.w%d.example.test", "*.w%d.example.test"},
		} {
			host, want := []byte(fmt.Sprintf(x[0], n/2)), fmt.Sprintf(x[1], n/2)
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if got, _ := table.Find(host).(string); got != want {
						b.Fatalf("%q, want %q", got, want)
					}
				}
			})
		}
	}
}

// The cost of writing a response's header.
func BenchmarkHeader(b *testing.B) {
	core := &CoreLoc{}
	r := &Request{Core: core, Version: HTTP11, KeepAlive: true, Conn: &ev.Conn{Loop: &ev.Loop{}}}
	r.Main = r
	r.HeadersOut = HeadersOut{
		Status: 200, ContentType: []byte("text/html"), ContentLengthN: 1 << 20, LastModifiedTime: 1700000000,
		Headers: []*Header{{Hash: 1, Key: []byte("ETag"), Value: []byte(`"65a0-100000"`)}, {Hash: 1, Key: []byte("Accept-Ranges"), Value: []byte("bytes")}},
	}
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if len(r.appendHeader(buf)) < 200 {
			b.Fatal("too short a header")
		}
	}
}

// The cost of finding a location among 200 regexes, which are tried in their order: the first, the 100th, none.
func BenchmarkFindLocationRegex(b *testing.B) {
	const n = 200
	top := &CoreLoc{Name: "top"}
	top.Ctx = &ConfCtx{Loc: []any{top}}
	for i := range n {
		name := fmt.Sprintf("^/r%d/[a-z]+$", i)
		re, err := pcre.Compile(name, false)
		if err != nil {
			b.Fatal(err)
		}
		l := &CoreLoc{Name: name, Regex: &Regex{Name: name, re: re}}
		l.Ctx = &ConfCtx{Loc: []any{l}}
		top.Regexes = append(top.Regexes, l)
	}
	for _, c := range []struct{ name, uri, want string }{
		{"first", "/r0/abc", "^/r0/[a-z]+$"},
		{"100th", "/r99/abc", "^/r99/[a-z]+$"},
		{"none", "/s/abc", "top"},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := &Request{URI: []byte(c.uri), Captures: make([]int, 0, 2)}
			b.ReportAllocs()
			for b.Loop() {
				r.setLoc(top.Ctx.Loc)
				r.FindLocation()
				if r.Core.Name != c.want {
					b.Fatalf("%q, want %q", r.Core.Name, c.want)
				}
			}
		})
	}
}
