package openfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// settle spins until a file's times are old enough for its content to be kept.
func settle(t *testing.T, s *Small, path string) {
	t.Helper()
	for start := time.Now(); ; {
		if of := (Info{}); get(t, s, path, &of) && of.Content {
			return
		}
		if time.Since(start) > 10*time.Second {
			t.Skip("the file system's times are not trusted here")
		}
	}
}

// get opens through s and closes at once.
func get(t *testing.T, s *Small, path string, of *Info) bool {
	t.Helper()
	ok := s.Open([]byte(path), of, &elog.Log{}, SmallSize)
	if ok && of.FD >= 0 {
		ev.CloseFD(of.FD)
	}
	return ok
}

func content(t *testing.T, s *Small, path string) string {
	t.Helper()
	of := Info{}
	if !s.Open([]byte(path), &of, &elog.Log{}, SmallSize) {
		return of.Failed + " " + of.Err.Error()
	}
	if of.Content {
		return string(of.Data)
	}
	b := make([]byte, of.Size)
	if _, err := ev.Pread(of.FD, b, 0); err != nil {
		t.Fatal(err)
	}
	ev.CloseFD(of.FD)
	return string(b)
}

func TestSmallSeesEveryChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	s := NewSmall()
	for _, change := range []struct {
		name string
		do   func() error
		want string
	}{
		{"rewritten, same size", func() error { return os.WriteFile(path, []byte("def"), 0o644) }, "def"},
		{"appended", func() error {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("!")
			return err
		}, "abc!"},
		{"rewritten with its old mtime", func() error {
			st, err := os.Stat(path)
			if err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte("xyz"), 0o644); err != nil {
				return err
			}
			return os.Chtimes(path, time.Time{}, st.ModTime())
		}, "xyz"},
		{"replaced by rename", func() error {
			if err := os.WriteFile(path+".new", []byte("new"), 0o644); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}, "new"},
		{"removed", func() error { return os.Remove(path) }, "open() no such file or directory"},
		{"made a folder", func() error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o755)
		}, "dir"},
	} {
		t.Run(change.name, func(t *testing.T) {
			os.RemoveAll(path)
			write(t, path, "abc")
			settle(t, s, path)
			if err := change.do(); err != nil {
				t.Fatal(err)
			}
			of := Info{}
			if get(t, s, path, &of) && of.IsDir {
				if change.want != "dir" {
					t.Fatalf("a folder")
				}
				return
			}
			if got := content(t, s, path); got != change.want {
				t.Errorf("%q, want %q", got, change.want)
			}
		})
	}
}

// A file changed again and again is always seen as it is, although its times may not tell.
func TestSmallIsNotFooledByCoarseTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	s := NewSmall()
	for i := range 300 {
		want := string([]byte{'a' + byte(i%26), 'b', 'c'})
		write(t, path, want)
		if got := content(t, s, path); got != want {
			t.Fatalf("round %d: %q, want %q", i, got, want)
		}
	}
}

// A large content takes the room that is left, and pushes nothing out.
func TestSmallKeepsWhatALargeOneWouldPushOut(t *testing.T) {
	dir := t.TempDir()
	small, large := filepath.Join(dir, "small"), filepath.Join(dir, "large")
	write(t, small, "abc")
	write(t, large, string(make([]byte, smallPushes+1)))
	s := NewSmall()
	settle(t, s, small)
	settle(t, s, large)
	s.drop(large)
	s.total = smallTotal - smallPushes
	var of Info
	if !get(t, s, large, &of) || of.Content {
		t.Error("a large content was kept without room for it")
	}
	of = Info{}
	if !get(t, s, small, &of) || !of.Content {
		t.Error("a small content was pushed out by a large one")
	}
}

func TestSmallHitDoesNotAllocate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "abc")
	s := NewSmall()
	settle(t, s, path)
	name := []byte(path)
	log := &elog.Log{}
	var of Info
	if n := testing.AllocsPerRun(100, func() {
		of = Info{}
		if !s.Open(name, &of, log, 3) || string(of.Data) != "abc" {
			t.Fatal(of)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// clock is a cache with a time that the test turns.
func clock(max int, inactive int64) (*Cache, *int64) {
	now := int64(1000)
	c := NewCache(max, inactive)
	c.Now = func() int64 { return now }
	return c, &now
}

func open(c *Cache, path string, of Info) Info {
	c.Open([]byte(path), &of, &elog.Log{})
	if h := of.Held(); h.Cached() {
		h.Release()
	}
	return of
}

func TestCacheKeepsAnAnswerWhileItIsValid(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	write(t, path, "abc")
	c, now := clock(10, 100)
	defer c.Close(&elog.Log{})
	ask := Info{Valid: 60, MinUses: 1}

	first := open(c, path, ask)
	if first.FD < 0 || first.Size != 3 {
		t.Fatalf("%+v", first)
	}
	os.Remove(path)
	if again := open(c, path, ask); again.FD != first.FD || again.Size != 3 {
		t.Errorf("while valid: %+v", again)
	}
	*now += 60
	if gone := open(c, path, ask); gone.Err != syscall.ENOENT || gone.Failed != "stat()" {
		t.Errorf("afterwards: %+v", gone)
	}
	write(t, path, "abcd")
	if back := open(c, path, ask); back.Size != 4 {
		t.Errorf("back again: %+v", back)
	}
}

func TestCacheKeepsErrorsWhenAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	c, now := clock(10, 100)
	defer c.Close(&elog.Log{})
	ask := Info{Valid: 60, MinUses: 1, Errors: true}
	if of := open(c, path, ask); of.Err != syscall.ENOENT {
		t.Fatalf("%+v", of)
	}
	write(t, path, "abc")
	if of := open(c, path, ask); of.Err != syscall.ENOENT || of.Failed != "open()" {
		t.Errorf("while valid: %+v", of)
	}
	*now += 60
	if of := open(c, path, ask); of.Err != 0 || of.Size != 3 {
		t.Errorf("afterwards: %+v", of)
	}
}

func TestCacheClosesSeldomUsedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "abc")
	c, _ := clock(10, 100)
	defer c.Close(&elog.Log{})
	ask := Info{Valid: 60, MinUses: 2}
	open(c, path, ask)
	if c.files[path].fd != -1 {
		t.Errorf("open after one use")
	}
	open(c, path, ask)
	if c.files[path].fd == -1 {
		t.Errorf("closed after two uses")
	}
}

func TestCacheDropsTheOldestWhenFull(t *testing.T) {
	dir := t.TempDir()
	c, _ := clock(2, 100)
	ask := Info{Valid: 60, MinUses: 1}
	for _, n := range []string{"a", "b", "c"} {
		write(t, filepath.Join(dir, n), n)
		open(c, filepath.Join(dir, n), ask)
	}
	if c.files[filepath.Join(dir, "a")] != nil || c.current != 2 || len(c.files) != 2 {
		t.Errorf("%d entries, %v", c.current, c.files)
	}
	c.Close(&elog.Log{})
	if c.current != 0 || c.head != nil {
		t.Errorf("not empty after Close: %d", c.current)
	}
}

// A changed file that a request still has open is left to it.
func TestCacheLeavesAnOpenFileToItsUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "abc")
	c, now := clock(10, 100)
	defer c.Close(&elog.Log{})
	held := Info{Valid: 60, MinUses: 1}
	c.Open([]byte(path), &held, &elog.Log{})
	write(t, path+".new", "defg")
	os.Rename(path+".new", path)
	*now += 60
	if of := open(c, path, Info{Valid: 60, MinUses: 1}); of.Size != 4 || of.FD == held.FD {
		t.Errorf("%+v", of)
	}
	b := make([]byte, 3)
	if n, err := ev.Pread(held.FD, b, 0); n != 3 || err != nil || string(b) != "abc" {
		t.Errorf("held file: %q %v", b, err)
	}
	h := held.Held()
	h.Release()
}
