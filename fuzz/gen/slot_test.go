package gen

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// replacer says the same as slotName by the library's own means.
func replacer(slot int) *strings.Replacer {
	pairs := []string{"u00", fmt.Sprintf("u%02d", slot), "U00", fmt.Sprintf("U%02d", slot)}
	for k := range 10 {
		pairs = append(pairs, fmt.Sprintf("2000%d", k), fmt.Sprintf("20%02d%d", slot, k))
	}
	return strings.NewReplacer(pairs...)
}

func TestSlotNameIsAReplacer(t *testing.T) {
	for text, want := range map[string]string{
		"/cell/u00/html U00 127.0.0.1:20005": "/cell/u17/html U17 127.0.0.1:20175",
		"200020001 2000 u0 00 u000 u0020001": "201720001 2000 u0 00 u170 u1720171",
		"20002 0001 200020000":               "20172 0001 201720000",
		"":                                   "",
	} {
		if got := slotName(17).text(text); got != want || got != replacer(17).Replace(text) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("uU200001x")), 0, 30, -1).Draw(t, "text")
		slot := rapid.IntRange(0, MaxUnits-1).Draw(t, "slot")
		if got, want := slotName(slot).text(text), replacer(slot).Replace(text); got != want {
			t.Fatalf("%q in slot %d: got %q, want %q", text, slot, got, want)
		}
	})
}

// A unit is not changed by what is made of it.
func TestSlotNameLeavesTheText(t *testing.T) {
	text := []byte("u00")
	if got := string(slotName(1).bytes(text)); got != "u01" || string(text) != "u00" {
		t.Errorf("got %q, left %q", got, text)
	}
}
