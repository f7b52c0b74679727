package tool

import "debug/elf"

// Static tells whether a program needs no loader: only such a one runs in a cell
// whose file system is not this machine's.
func Static(path string) (bool, error) {
	f, err := elf.Open(path)
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
