package tool

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
)

// Static tells whether a program needs no loader: only such a one runs in a cell
// whose file system is not this machine's.
func Static(path string) (bool, error) {
	f, err := elf.Open(path)
	var format *elf.FormatError
	if errors.As(err, &format) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("%s is no program of this system (no ELF file)", path)
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false, nil
		}
	}
	return true, nil
}
