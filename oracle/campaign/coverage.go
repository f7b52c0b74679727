package campaign

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"nginxoracle/oracle/engine"
)

// block is one basic block of the candidate's source: its package's and function's numbers in
// the coverage build, and its own number within the function.
type block uint64

func blockOf(pkg, fn, n uint64) block { return block(pkg<<44 | fn<<24 | n) }

// counterFile is how the names of Go's counter files begin (internal/coverage, CounterFilePref).
const counterFile = engine.AsideDir + "/covcounters."

// blocks reads which blocks ran out of the files that a coverage build left at its end. The
// order is that of the files; a block may come twice. No file at all is an error: the program was
// killed, or is no coverage build, which must not look like a program that ran nothing.
func blocks(aside []engine.File) (ran []block, err error) {
	found := false
	for _, f := range aside {
		if !strings.HasPrefix(f.Path, counterFile) {
			continue
		}
		found = true
		if ran, err = counters32(ran, f.Data); err != nil {
			return nil, fmt.Errorf("read %s: %w", f.Path, err)
		}
	}
	if !found {
		return nil, errors.New("the coverage build left no counters")
	}
	return ran, nil
}

// Sizes and values of Go's counter files (src/internal/coverage/defs.go and decodecounter, version 1).
const (
	counterHeader  = 32 // magic, version, hash of the meta data, flavour, byte order, padding
	counterFooter  = 16 // magic, padding, number of segments, padding
	segmentHeader  = 16 // number of functions, length of the string table, length of the arguments
	counterVersion = 1
	flavourRaw     = 1 // 32-bit numbers
	flavourULEB    = 2 // unsigned LEB128
)

var counterMagic = []byte("\x00cwm")

var errCut = errors.New("the file is cut")

// counters32 reads one counter file and appends the blocks whose counters are not zero.
// `go tool covdata` reads the same in a process of its own, at a hundred times the cost.
func counters32(ran []block, data []byte) ([]block, error) {
	if len(data) < counterHeader+counterFooter || !bytes.Equal(data[:4], counterMagic) {
		return nil, errors.New("no counter file")
	}
	if v := binary.LittleEndian.Uint32(data[4:]); v != counterVersion {
		return nil, fmt.Errorf("counter file of version %d, want %d", v, counterVersion)
	}
	flavour, big := data[24], data[25] != 0
	if flavour != flavourRaw && flavour != flavourULEB || big {
		return nil, fmt.Errorf("counters of flavour %d, big-endian %t: not known", flavour, big)
	}
	footer := data[len(data)-counterFooter:]
	if !bytes.Equal(footer[:4], counterMagic) {
		return nil, errCut
	}
	segments := binary.LittleEndian.Uint32(footer[8:])
	r := &counterReader{rest: data[counterHeader : len(data)-counterFooter], raw: flavour == flavourRaw}
	whole := len(r.rest)
	for range segments {
		head := r.take(segmentHeader)
		if r.cut {
			return nil, errCut
		}
		functions := binary.LittleEndian.Uint64(head)
		r.take(int(binary.LittleEndian.Uint32(head[8:])) + int(binary.LittleEndian.Uint32(head[12:])))
		r.take(-(whole - len(r.rest)) & 3) // the payload begins at a multiple of four
		for range functions {
			n, pkg, fn := r.number(), r.number(), r.number()
			for i := range n {
				if r.number() != 0 {
					ran = append(ran, blockOf(pkg, fn, i))
				}
				if r.cut {
					return nil, errCut
				}
			}
		}
	}
	return ran, nil
}

type counterReader struct {
	rest []byte
	raw  bool
	cut  bool
}

func (r *counterReader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.cut, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *counterReader) number() uint64 {
	if r.raw {
		if b := r.take(4); !r.cut {
			return uint64(binary.LittleEndian.Uint32(b))
		}
		return 0
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		n = -1
	}
	r.take(n)
	return v
}
