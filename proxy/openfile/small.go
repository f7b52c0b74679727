package openfile

import (
	"time"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
)

const (
	// SmallSize is the largest content kept in memory, in bytes.
	SmallSize = 1 << 20
	// smallPushes is the largest that pushes others out: larger ones take the room that is left, so that many of
	// them do not read each other out of it.
	smallPushes = 64 << 10
	// smallTotal and smallFiles bound what one worker keeps.
	smallTotal = 32 << 20
	smallFiles = 4096
	// tick is more than the grain of a file system's times: a file that was changed so shortly before
	// it was read may be changed again without its times telling (as git's index has it, "racy").
	tick = 100 * time.Millisecond
)

// Small keeps the contents of small files. Nothing of it is taken on trust: each use asks the
// kernel for the file's stamp, and one that differs in device, number, size, mode or either time to
// the nanosecond is read anew, so that a request sees every change that was made before it by
// writing, renaming, linking or changing rights. (What a process stores through a shared writable
// mapping reaches the times only with its next fault or msync.) It is for one worker.
type Small struct {
	files map[string]*small
	total int
}

type small struct {
	stamp ev.Stamp
	data  []byte
}

// NewSmall makes an empty cache.
func NewSmall() *Small { return &Small{files: map[string]*small{}} }

// Open is Open; a regular file that is at rest and has at most limit bytes comes as Data, without
// a descriptor.
func (s *Small) Open(name []byte, of *Info, log *elog.Log, limit int64) bool {
	of.FD = -1
	if f := s.files[string(name)]; f != nil && int64(len(f.data)) <= limit {
		var now ev.Stamp
		if ev.StampOf(name, &now) == 0 && now == f.stamp {
			of.Uniq, of.Mtime, of.Size = now.Ino, now.MtimeSec, now.Size
			of.IsFile = true
			of.Data, of.Content = f.data, true
			return true
		}
		s.drop(string(name))
	}
	if !of.open(string(name), log) {
		return false
	}
	if !of.IsFile || of.Size > min(SmallSize, limit) {
		return true
	}
	s.read(name, of)
	return true
}

// read takes the file's content when no change can hide behind its times.
func (s *Small) read(name []byte, of *Info) {
	var before, after ev.Stamp
	if ev.FstampOf(of.FD, &before) != nil || before.Size > SmallSize || !ev.KeepsTimes(of.FD) {
		return
	}
	if before.Size > smallPushes && (len(s.files) == smallFiles || int64(s.total)+before.Size > smallTotal) {
		return
	}
	rest := time.Now().Add(-tick)
	if !older(before.MtimeSec, before.MtimeNsec, rest) || !older(before.CtimeSec, before.CtimeNsec, rest) {
		return
	}
	data := make([]byte, before.Size)
	for n := 0; n < len(data); {
		m, err := ev.Pread(of.FD, data[n:], int64(n))
		if m <= 0 || err != nil {
			return
		}
		n += m
	}
	if ev.FstampOf(of.FD, &after) != nil || after != before {
		return
	}
	for k := range s.files {
		if len(s.files) < smallFiles && s.total+len(data) <= smallTotal {
			break
		}
		s.drop(k)
	}
	s.files[string(name)] = &small{stamp: before, data: data}
	s.total += len(data)
}

func (s *Small) drop(name string) {
	if f := s.files[name]; f != nil {
		s.total -= len(f.data)
		delete(s.files, name)
	}
}

func older(sec, nsec int64, t time.Time) bool {
	return sec < t.Unix() || sec == t.Unix() && nsec < int64(t.Nanosecond())
}
