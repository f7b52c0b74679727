package gen

import (
	"bytes"
	"strings"

	"nginxoracle/oracle/casefile"
)

// slotName renames a unit's ports (2000k) and names (u00, U00) from slot 0 to another slot, length by
// length. It goes over every byte of every batch more than once, and looks for the zeros that
// each of them has.
type slotName int

var zeros = []byte("00")

// bytes is text as it reads in the slot; a text without such a name is returned itself.
func (slot slotName) bytes(text []byte) []byte {
	if slot == 0 {
		return text
	}
	tens, ones := byte('0'+slot/10), byte('0'+slot%10)
	out, mine := text, false
	put := func(at int) {
		if !mine {
			out, mine = bytes.Clone(text), true
		}
		out[at], out[at+1] = tens, ones
	}
	for done := 0; ; {
		i := bytes.Index(text[done:], zeros)
		if i < 0 {
			return out
		}
		at := done + i
		switch {
		case i == 0: // what would stand in front belongs to the name before
			done = at + 1
		case text[at-1] == 'u' || text[at-1] == 'U':
			put(at)
			done = at + 2
		case text[at-1] == '2' && at+3 < len(text) && text[at+2] == '0' && '0' <= text[at+3] && text[at+3] <= '9':
			put(at + 1)
			done = at + 4
		default:
			done = at + 1
		}
	}
}

func (slot slotName) text(s string) string {
	if slot == 0 || !strings.Contains(s, "00") {
		return s
	}
	return string(slot.bytes([]byte(s)))
}

func (slot slotName) steps(steps []casefile.Step) []casefile.Step {
	if slot == 0 {
		return steps
	}
	out := make([]casefile.Step, len(steps))
	for i, s := range steps {
		out[i] = s
		if s.Data != nil {
			out[i].Data = make([][]byte, len(s.Data))
			for j, d := range s.Data {
				out[i].Data[j] = slot.bytes(d)
			}
		}
	}
	return out
}
