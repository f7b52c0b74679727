package http

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nginxoracle/proxy/module"
)

var limits = HashLimits{Name: "test_hash", Max: 512, BucketSize: 64}

// labels are few, so that names share beginnings and ends.
var label = rapid.SampledFrom([]string{"a", "b", "a-b", "www", "test"})

func domain(min, max int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(label, min, max).Draw(t, "labels"), ".")
	})
}

// wildcardModel is what the names mean: exact, else the longest end, else the longest beginning.
func wildcardModel(names []string, host string) string {
	best := ""
	longer := func(n, base string) {
		if best == "" || len(base) > len(strings.Trim(best, "*.")) {
			best = n
		}
	}
	for _, n := range names {
		if n == host || n == "."+host {
			return n
		}
	}
	for _, n := range names {
		if base, ok := strings.CutPrefix(n, "*"); ok && strings.HasSuffix(host, base) {
			longer(n, base[1:])
		}
		if strings.HasPrefix(n, ".") && strings.HasSuffix(host, n) {
			longer(n, n[1:])
		}
	}
	if best != "" {
		return best
	}
	for _, n := range names {
		if base, ok := strings.CutSuffix(n, "*"); ok && strings.HasPrefix(host, base) {
			longer(n, strings.TrimSuffix(base, "."))
		}
	}
	return best
}

func TestNameTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b NameBuilder
		var names []string
		for range rapid.IntRange(1, 8).Draw(t, "names") {
			d := domain(1, 3).Draw(t, "domain")
			n := rapid.SampledFrom([]string{d, "*." + d, "." + d, d + ".*"}).Draw(t, "kind")
			if b.Add(n, n, true) == NameAdded {
				names = append(names, n)
			}
		}
		table, err := b.Table(&module.Conf{Cycle: &module.Cycle{}}, limits)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			host := domain(1, 4).Draw(t, "host")
			got, _ := table.Find([]byte(host)).(string)
			if want := wildcardModel(names, host); got != want {
				t.Fatalf("names %q, host %s: %q, want %q", names, host, got, want)
			}
		}
	})
}

func TestNameBuilderRefuses(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  int
	}{
		{[]string{"a", "A"}, NameConflict},
		{[]string{"a", ".a"}, NameConflict},
		{[]string{".a", "a"}, NameConflict},
		{[]string{"*.a", ".a"}, NameConflict},
		{[]string{"a.*", "a.*"}, NameConflict},
		{[]string{"*.a", "a.*"}, NameAdded},
		{[]string{"a..b"}, NameInvalid},
		{[]string{"a.*.b"}, NameInvalid},
		{[]string{"*.a.*"}, NameInvalid},
	} {
		var b NameBuilder
		got := 0
		for _, n := range c.names {
			got = b.Add(n, n, true)
		}
		if got != c.want {
			t.Errorf("%q: %d, want %d", c.names, got, c.want)
		}
	}
}

func TestFindLocation(t *testing.T) {
	piece := rapid.SampledFrom([]string{"/", "a", "b", "-", "/a", "/b/", "."})
	uri := rapid.Custom(func(t *rapid.T) string {
		return "/" + strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "pieces"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		newLoc := func(name string, exact bool) *CoreLoc {
			l := &CoreLoc{Name: name, Exact: exact}
			l.Ctx = &ConfCtx{Loc: []any{l}}
			return l
		}
		top := newLoc("", false)
		seen := map[string]bool{}
		for range rapid.IntRange(1, 12).Draw(t, "locations") {
			name, exact := uri.Draw(t, "name"), rapid.Bool().Draw(t, "exact")
			key := name
			if exact {
				key = "=" + name
			}
			if !seen[key] {
				seen[key] = true
				top.Locations = append(top.Locations, newLoc(name, exact))
			}
		}
		initLocations(nil, top)
		if err := initLocationTrees(nil, top); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			u := uri.Draw(t, "uri")
			want := top
			for l := range seen {
				if l == "="+u {
					want = newLoc(u, true)
					break
				}
				if l[0] == '/' && strings.HasPrefix(u, l) && len(l) > len(want.Name) {
					want = newLoc(l, false)
				}
			}
			r := &Request{URI: []byte(u)}
			r.setLoc(top.Ctx.Loc)
			r.FindLocation()
			if r.Core.Name != want.Name || r.Core.Exact != want.Exact {
				t.Fatalf("locations %v, URI %s: %q exact %v, want %q exact %v", seen, u, r.Core.Name, r.Core.Exact, want.Name, want.Exact)
			}
		}
	})
}

func TestValidateHost(t *testing.T) {
	for host, want := range map[string]string{
		"a.test": "a.test", "A.Test.": "a.test", "a.test:80": "a.test", "a.test.:80": "a.test",
		"[::1]:80": "[::1]", "[::1]": "[::1]", "a..b": "bad", "a/b": "bad", "a b": "bad", "": "bad",
		".": "bad", ":80": "bad", "a\x00b": "bad", "a:b:c": "a", "..": "bad",
	} {
		b, rc := ValidateHost([]byte(host))
		got := string(b)
		if rc != OK {
			got = "bad"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}
