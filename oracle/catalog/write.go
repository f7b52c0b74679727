package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"nginxoracle/oracle/casefile"
)

// WriteFile puts a file in place whole or not at all: temporary name, sync,
// rename, sync of the folder.
func WriteFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, temporary+strconv.Itoa(os.Getpid())+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", path, errors.Unwrap(err)) // without the temporary name
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return fmt.Errorf("sync %s: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// temporary begins the names under which WriteFile writes; the writer's process id follows.
const temporary = ".tmp-"

// CanWrite tells why WriteFile could not put a file at path, before the work whose result goes there. It leaves nothing behind.
func CanWrite(path string) error {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s is %s: want a file", path, casefile.Kind(st.Mode()))
	}
	return CanFill(filepath.Dir(path))
}

// CanFill tells why no file can be made in a folder, which need not be there yet. It leaves nothing behind.
func CanFill(dir string) error {
	var missing []string // the deepest first
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, os.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		missing = append(missing, d)
	}
	defer func() {
		for _, d := range missing {
			_ = os.Remove(d) // one that somebody has put something into stays
		}
	}()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, temporary+strconv.Itoa(os.Getpid())+"-*")
	if err != nil {
		return fmt.Errorf("no file can be made in %s: %w", dir, errors.Unwrap(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Sweep removes what writers that were killed have left in a folder. A folder that is not there has nothing.
func Sweep(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range list {
		rest, ok := strings.CutPrefix(f.Name(), temporary)
		if !ok {
			continue
		}
		pid, _, _ := strings.Cut(rest, "-")
		if _, err := os.Stat("/proc/" + pid); err == nil && pid != strconv.Itoa(os.Getpid()) {
			continue // another campaign is writing it
		}
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
