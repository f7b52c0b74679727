package mask

import (
	"slices"
	"testing"
)

// A row is needed where its values differ; being there is enough only for those that are equal by chance.
func TestIdle(t *testing.T) {
	all := map[string]int{}
	for _, r := range Table {
		all[r.Name] = 1
	}
	if got := Idle(all, nil); len(got) != 0 {
		t.Errorf("all rows were used, and %v are idle", got)
	}
	delete(all, "date")
	delete(all, "request_id")
	if got, want := Idle(all, nil), []string{"date", "request_id"}; !slices.Equal(got, want) {
		t.Errorf("idle %v, want %v", got, want)
	}
	if got, want := Idle(all, map[string]int{"date": 1, "request_id": 1}), []string{"request_id"}; !slices.Equal(got, want) {
		t.Errorf("shown, but never different: idle %v, want %v", got, want)
	}
}

func TestShownCountsEqualTextsToo(t *testing.T) {
	o := observation()
	m := New(o, o)
	m.Shown = map[string]int{}
	text := []byte("HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 17:39:27 GMT\r\nExpires: tomorrow\r\n\r\n")
	m.Compare(Client, text, text)
	if m.Shown["date"] != 1 || m.Shown["expires"] != 0 || m.Used["date"] != 0 {
		t.Errorf("shown %v, used %v: want one date of the right form, and no other value", m.Shown, m.Used)
	}
}
