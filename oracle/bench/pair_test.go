package bench

import "testing"

// Both sides go first as often.
func TestPairsTakeTurns(t *testing.T) {
	r := &runner{opt: Options{Reference: Server{Name: "a"}, Candidate: Server{Name: "b"}}}
	var row Row
	for i, want := range []string{"ab", "ba", "ab"} {
		s := r.pair(&row, i)
		if got := s[0].Name + s[1].Name; got != want {
			t.Errorf("pair %d: %s, want %s", i, got, want)
		}
		for _, x := range s {
			if (x.Name == "a") != (x.Side == &row.Ref) {
				t.Errorf("pair %d: %s writes into the other's side", i, x.Name)
			}
		}
	}
}
