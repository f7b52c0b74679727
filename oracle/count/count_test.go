package count

import "testing"

func TestOf(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Of(0, "case"), "0 cases"},
		{Of(1, "case"), "1 case"},
		{Of(2, "entry"), "2 entries"},
		{Of(1, "entry"), "1 entry"},
		{Of(3, "batch"), "3 batches"},
		{Of(1, "wrong file"), "1 wrong file"},
		{Of(2, "run without verdict", "runs without verdict"), "2 runs without verdict"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
