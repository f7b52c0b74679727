package charset

import "testing"

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		in   string
		want uint32
		n    int
	}{
		{"é", 0xe9, 2}, {"€", 0x20ac, 3}, {"😀", 0x1f600, 4}, {"\xed\xa0\x80", 0xd800, 3},
		{"\xc3", incompleteUTF8, 0}, {"\xe2\x82", incompleteUTF8, 0}, {"\xff", invalidUTF8, 1}, {"\x80", invalidUTF8, 1},
		{"\xc3x", invalidUTF8, 2}, {"\xe0\x80\x80", invalidUTF8, 3}, {"\xf4\x90\x80\x80", 0x110000, 4},
	} {
		if got, n := decode([]byte(c.in)); got != c.want || n != c.n {
			t.Errorf("%q: %x %d, want %x %d", c.in, got, n, c.want, c.n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("é€😀"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			u, n := decode(b)
			if u == incompleteUTF8 {
				if n != 0 || len(b) > 3 {
					t.Fatalf("%q incomplete", b)
				}
				return
			}
			if n < 1 || n > len(b) {
				t.Fatalf("%q: %d bytes", b, n)
			}
			b = b[n:]
		}
	})
}
