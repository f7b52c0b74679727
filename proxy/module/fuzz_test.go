package module

import (
	"strings"
	"testing"
)

// Sizes and times of any text are refused or lie in their range; a unit's letter is read in either case.
func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"0", "1k", "8M", "1g", "9223372036854775807", "1h 30m", "1y2M3w4d5h6m7s", "10ms", "1s1h", "-1", "k", " 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, read := range map[string]func(string) (int64, bool){
			"size": ParseSize, "offset": ParseOffset,
			"seconds": func(s string) (int64, bool) { return ParseTime(s, true) }, "milliseconds": func(s string) (int64, bool) { return ParseTime(s, false) },
		} {
			n, ok := read(s)
			if ok && n < 0 {
				t.Fatalf("%s %q is %d", name, s, n)
			}
			if up, upOK := read(strings.ToUpper(s)); (name == "size" || name == "offset") && isASCII(s) && (up != n || upOK != ok) {
				t.Fatalf("%s %q is %d, %v, but in capitals %d, %v", name, s, n, ok, up, upOK)
			}
		}
		if n, ok := Atoi(s); ok && n < 0 {
			t.Fatalf("number %q is %d", s, n)
		}
		whole, ok := AtoFP(s, 2)
		if n, is := Atoi(s); is && n < 1<<50 && (!ok || whole != 100*n) {
			t.Fatalf("%q is %d, but %d, %v in hundredths", s, n, whole, ok)
		}
	})
}

func isASCII(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0 }
