package zlib

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
)

// The streams are those of C zlib (their lengths and hashes were taken from it).
func TestStreamsAreZlibs(t *testing.T) {
	var text []byte
	for i := range 200 {
		text = fmt.Appendf(text, "line %d of a text, %d\n", i, i*i%977)
	}
	for _, c := range []struct {
		level, bits, mem int
		size             int
		hash             string // the first bytes of SHA-256
	}{
		{1, 9, 2, 956, "37039bfb8927700e"},
		{1, 15, 8, 1020, "d67c167eeae02a11"},
		{6, 15, 8, 958, "98f2db4af91bee50"},
		{9, 12, 5, 959, "e37aa489c6aaeb9d"},
	} {
		d, rc := NewDeflater(c.level, c.bits+GzipWrap, c.mem)
		if rc != OK {
			t.Fatal(rc)
		}
		out := make([]byte, 2*len(text))
		_, n, _ := d.Deflate(text, out, Finish)
		d.Close()
		sum := sha256.Sum256(out[:n])
		if got := hex.EncodeToString(sum[:8]); n != c.size || got != c.hash {
			t.Errorf("level %d, %d bits, memory %d: %d bytes %s, want %d %s", c.level, c.bits, c.mem, n, got, c.size, c.hash)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	text := []byte(strings.Repeat("a text that is compressed, and once more. ", 500))
	for level := 1; level <= 9; level++ {
		d, _ := NewDeflater(level, 15+GzipWrap, 8)
		var stream []byte
		for round := range 2 { // a Deflater is used again
			stream = stream[:0]
			in := text
			buf := make([]byte, 100)
			for {
				taken, given, rc := d.Deflate(in, buf, Finish)
				in = in[taken:]
				stream = append(stream, buf[:given]...)
				if rc == StreamEnd {
					break
				}
			}
			zr, err := gzip.NewReader(bytes.NewReader(stream))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(zr); err != nil || !bytes.Equal(got, text) {
				t.Fatalf("level %d, round %d: %d bytes, %v", level, round, len(got), err)
			}
			d.Reset()
		}
		d.Close()

		i, _ := NewInflater(15 + GzipWrap)
		out := make([]byte, len(text)+1)
		if _, n, rc := i.Inflate(stream, out, Finish); rc != StreamEnd || !bytes.Equal(out[:n], text) {
			t.Fatalf("inflate: %d bytes, %d", n, rc)
		}
		i.Close()
	}
}

func TestBadParametersAndData(t *testing.T) {
	if _, rc := NewDeflater(1, 99, 8); rc == OK {
		t.Error("99 bits taken")
	}
	i, _ := NewInflater(15 + GzipWrap)
	defer i.Close()
	if _, _, rc := i.Inflate([]byte("no gzip"), make([]byte, 10), NoFlush); rc != DataError {
		t.Errorf("bad data: %d", rc)
	}
}
