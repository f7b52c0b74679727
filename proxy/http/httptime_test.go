package http

import (
	"testing"
	"time"
)

func TestParseHTTPTime(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
	}{
		{"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
		{"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
		{"Sun Nov  6 08:49:37 1994", 784111777},
		{"Sun Nov 16 08:49:37 1994", 784975777},
		{"x,06 Nxx 1994 08:49:37", 784111777},
		{"Thu, 29 Feb 2024 00:00:00 GMT", 1709164800},
		{"Fri, 29 Feb 2023 00:00:00 GMT", -1},
		{"Thu, 29 Feb 1900 00:00:00 GMT", -1},
		{"Sun, 31 Apr 1994 08:49:37 GMT", -1},
		{"Sun, 06 Nov 1994 24:49:37 GMT", -1},
		{"Sun, 06 Nov 1994 08:60:37 GMT", -1},
		{"Sun, 06 Nov 1994 08:49:60 GMT", -1},
		{"Sun, 06 Nov 1994 08:49:3", -1},
		{"Sun, 6 Nov 1994 08:49:37 GMT", -1},
		{"Sunday, 06-Nov-69 08:49:37 GMT", 3150953377},
		{"Sun, 06 Zov 1994 08:49:37 GMT", -1},
		{"Thu, 01 Jan 1970 00:00:00 GMT", 0},
		{"Wed, 31 Dec 1969 23:59:59 GMT", -1},
		{"Wed, 31 Dec 1969 23:59:58 GMT", -2},
		{"", -1},
	} {
		if got := ParseHTTPTime([]byte(c.in)); got != c.want {
			t.Errorf("%q: %d, want %d", c.in, got, c.want)
		}
	}
}

func FuzzParseHTTPTime(f *testing.F) {
	f.Add("Sun, 06 Nov 1994 08:49:37 GMT")
	f.Add("Sunday, 06-Nov-94 08:49:37 GMT")
	f.Add("Sun Nov  6 08:49:37 1994")
	f.Fuzz(func(t *testing.T, s string) {
		got := ParseHTTPTime([]byte(s))
		for _, layout := range []string{time.RFC1123, time.ANSIC} {
			if tm, err := time.Parse(layout, s); err == nil && tm.Year() > 1970 && tm.UTC().Format(layout) == s && got != tm.Unix() {
				t.Fatalf("%q: %d, want %d", s, got, tm.Unix())
			}
		}
	})
}
