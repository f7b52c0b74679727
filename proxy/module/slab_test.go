package module

import "testing"

// The smallest zone has seven pages: so many pieces of a class fit, and all of them again once they
// have been given back, then even whole pages.
func TestSlab(t *testing.T) {
	for _, c := range []struct{ size, fit int }{
		{8, 7 * 504}, {16, 7 * 254}, {17, 7 * 127}, {64, 7 * 64}, {65, 7 * 32}, {128, 7 * 32}, {2048, 14}, {2049, 7}, {4096, 7}, {4097, 3}, {8193, 2},
	} {
		s := NewSlab(8 * 4096)
		for range 2 {
			var got []SlabBlock
			for {
				b, ok := s.Alloc(c.size)
				if !ok {
					break
				}
				got = append(got, b)
			}
			if len(got) != c.fit {
				t.Errorf("pieces of %d bytes: %d fit, want %d", c.size, len(got), c.fit)
			}
			for i := range got {
				s.Free(got[(i*5+3)%len(got)])
				if len(got)%5 == 0 {
					t.Fatal("the order of giving back repeats itself")
				}
			}
		}
		if b, ok := s.Alloc(7 * 4096); !ok {
			t.Errorf("after pieces of %d bytes: the pages are not one run again", c.size)
		} else {
			s.Free(b)
		}
	}
}
