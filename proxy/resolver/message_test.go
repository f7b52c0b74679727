package resolver

import (
	"syscall"
	"testing"

	"nginxoracle/proxy/ev"
)

func TestQueryIsReadBack(t *testing.T) {
	b := appendQuery(nil, 0x1234, "a.bc.test", typeA)
	want := "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x02bc\x04test\x00\x00\x01\x00\x01"
	if string(b) != want {
		t.Fatalf("query = %q, want %q", b, want)
	}
	if _, ok := parse(b); ok {
		t.Error("a question passes for an answer")
	}
	b[2], b[7] = 0x81, 2
	b = append(b, "\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x09\x00\x04\x01x\xc0\x0e"...)
	b = append(b, "\x01x\xc0\x0e\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x7f\x00\x00\x02"...)
	m, ok := parse(b)
	if !ok || m.id != 0x1234 || m.name != "a.bc.test" || m.code != 0 || m.ttl != 9 || len(m.addrs) != 1 {
		t.Fatalf("answer = %+v, %v", m, ok)
	}
	want4 := ev.Addr{Family: syscall.AF_INET, IP: [16]byte{127, 0, 0, 2}}
	if m.addrs[0] != want4 {
		t.Errorf("address = %+v, want %+v", m.addrs[0], want4)
	}
	for n := range b {
		if m, ok := parse(b[:n]); ok {
			t.Errorf("the first %d bytes pass for an answer: %+v", n, m)
		}
	}
}

func TestNameThatGoesInCircles(t *testing.T) {
	b := append(make([]byte, headerLen), 0xc0, headerLen)
	if _, _, ok := readName(b, headerLen); ok {
		t.Error("a name that points at itself was read")
	}
}
