package bench

import (
	"reflect"
	"strings"
	"testing"
)

func TestCoresOfTheRoles(t *testing.T) {
	pairs := func(n int) []int { return []int{n &^ 1, n | 1} }   // 0 and 1 are threads of one core
	halves := func(n int) []int { return []int{n % 2, n%2 + 2} } // 0 and 2 are
	alone := func(n int) []int { return []int{n} }
	unknown := func(int) []int { return nil }
	for _, c := range []struct {
		name            string
		allowed         []int
		siblings        func(int) []int
		want            [3]int
		shared, threads string
	}{
		{"two", []int{0, 1}, alone, [3]int{0, 1, 1}, "share core 1", ""},
		{"two others", []int{3, 7}, alone, [3]int{3, 7, 7}, "share core 7", ""},
		{"three", []int{0, 1, 2}, unknown, [3]int{0, 1, 2}, "", ""},
		{"threads of one", []int{0, 1}, pairs, [3]int{0, 1, 1}, "share core 1", "one physical core (0 and 1)"},
		{"two with two threads", []int{0, 1, 2, 3}, pairs, [3]int{0, 2, 3}, "one physical core (2 and 3)", ""},
		{"the same, numbered apart", []int{0, 1, 2, 3}, halves, [3]int{0, 1, 3}, "one physical core (1 and 3)", ""},
		{"the origin is not put beside the server", []int{0, 1, 2}, pairs, [3]int{0, 2, 2}, "share core 2", ""},
		{"three with two threads", []int{0, 1, 2, 3, 4, 5}, pairs, [3]int{0, 2, 4}, "", ""},
	} {
		got, err := pickCores(c.allowed, c.siblings)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if [3]int{got.server, got.client, got.origin} != c.want || !said(got.shared, c.shared) || !said(got.threads, c.threads) {
			t.Errorf("%s: %+v, want %v", c.name, got, c.want)
		}
	}
	if _, err := pickCores([]int{5}, alone); err == nil {
		t.Error("one core is enough")
	}
}

func said(got, want string) bool {
	return strings.Contains(got, want) && (got == "") == (want == "")
}

func TestCPUList(t *testing.T) {
	for s, want := range map[string][]int{"0\n": {0}, "0-1": {0, 1}, "2,6": {2, 6}, "0-1,8-9\n": {0, 1, 8, 9}, "": nil} {
		if got := cpuList(s); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}
