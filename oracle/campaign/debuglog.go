package campaign

import (
	"bytes"
	"strconv"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/observe"
)

// The reference tells what it does in its debug log (Debian's build is --with-debug). Which
// sentences it says, without the numbers and names in them, is as good as coverage of its source.
const (
	debugLog     = engine.AsideDir + "/debug.log"
	debugGlobals = "error_log " + debugLog + " debug;"
)

// debugShapes reads a debug log and lists, by unit, the shapes of the messages about its
// connections, each once, in the order in which they first came. A connection is its client's: the
// log names the client's port where it accepts it (src/event/ngx_event_accept.c, ngx_event_accept).
func debugShapes(log []byte, clients []observe.Conn, slots int) [][]string {
	byPort := map[int]int{}
	for _, c := range clients {
		if c.Port != 0 {
			byPort[c.Port] = (c.ID - 1) / 100
		}
	}
	out := make([][]string, slots)
	seen := make([]map[string]bool, slots)
	slotOf := map[string]int{} // connection's number -> unit
	var shape []byte
	for line := range bytes.Lines(log) {
		conn, text, ok := debugLine(line)
		if !ok {
			continue
		}
		if rest, ok := bytes.CutPrefix(text, []byte("accept: ")); ok {
			if slot, ok := byPort[portOf(rest)]; ok && slot < slots {
				slotOf[string(conn)] = slot
			} else {
				delete(slotOf, string(conn))
			}
		}
		slot, ok := slotOf[string(conn)]
		if !ok {
			continue
		}
		shape = debugShape(shape[:0], text)
		if seen[slot] == nil {
			seen[slot] = map[string]bool{}
		}
		if !seen[slot][string(shape)] {
			s := string(shape)
			seen[slot][s] = true
			out[slot] = append(out[slot], s)
		}
	}
	return out
}

// debugLine takes "2026/01/02 03:04:05 [debug] 7#7: *12 message" apart. A line of another level, or
// about no connection, is none.
func debugLine(line []byte) (conn, text []byte, ok bool) {
	const date = len("2026/01/02 03:04:05 ")
	if len(line) < date {
		return nil, nil, false
	}
	rest, ok := bytes.CutPrefix(line[date:], []byte("[debug] "))
	if !ok {
		return nil, nil, false
	}
	_, rest, ok = bytes.Cut(rest, []byte(": *"))
	if !ok {
		return nil, nil, false
	}
	conn, text, ok = bytes.Cut(bytes.TrimRight(rest, "\n"), []byte(" "))
	return conn, text, ok
}

// portOf is the port of "127.0.0.1:1234 fd:5", 0 when there is none.
func portOf(text []byte) int {
	addr, _, _ := bytes.Cut(text, []byte(" "))
	n, err := strconv.Atoi(string(addr[bytes.LastIndexByte(addr, ':')+1:]))
	if err != nil {
		return 0
	}
	return n
}

// telling are messages whose number is a reason, not an accident.
var telling = [][]byte{[]byte("http finalize request: "), []byte("http proxy status "), []byte("http special response: ")}

// debugShape appends the shape of a message: what stands between its first and its last quote
// is a value, and so is every word with a digit in it.
func debugShape(b, text []byte) []byte {
	for _, p := range telling {
		if rest, ok := bytes.CutPrefix(text, p); ok {
			end := bytes.IndexAny(rest, ", ")
			if end < 0 {
				end = len(rest)
			}
			return append(append(b, p...), rest[:end]...)
		}
	}
	if i, j := bytes.IndexByte(text, '"'), bytes.LastIndexByte(text, '"'); i < j {
		b = words(b, text[:i])
		b = append(b, '"', '"')
		return words(b, text[j+1:])
	}
	return words(b, text)
}

// words appends text with every word that holds a digit, a slash or no ASCII as "#".
func words(b, text []byte) []byte {
	for len(text) > 0 {
		n, odd := 0, false
		for n < len(text) && inWord(text[n]) {
			c := text[n]
			odd = odd || c >= '0' && c <= '9' || c == '/' || c >= 0x80
			n++
		}
		switch {
		case n == 0:
			b = append(b, text[0])
			n = 1
		case odd:
			b = append(b, '#')
		default:
			b = append(b, text[:n]...)
		}
		text = text[n:]
	}
	return b
}

func inWord(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '-' || c == '/' || c == '.' || c == '%' || c == '?' || c == '&' || c == '=' || c >= 0x80
}

// debugLogOf is the debug log among an instrument's files, nil when there is none.
func debugLogOf(aside []engine.File) []byte {
	for _, f := range aside {
		if f.Path == debugLog {
			return f.Data
		}
	}
	return nil
}
