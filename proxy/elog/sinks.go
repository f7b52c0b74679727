package elog

import "syscall"

// Writer takes whole lines: an open file, a memory of a test.
type Writer interface {
	// WriteLine writes an entry with its newline in one piece.
	WriteLine(b []byte) error
}

// Target is one error_log: where entries go, and the level up to which they do.
type Target struct {
	Level   Level
	W       Writer
	Console bool // writes to the standard error stream
	full    int64
}

// List is the error_log directives of one level of the configuration. It is a Sink.
type List struct {
	Targets []*Target // the most talkative first (ngx_log.c, ngx_log_insert)
}

// Startup is the copy of entries at warn and graver on the standard error stream, as
// "nginx: [emerg] text", until the process has settled (nginx's ngx_use_stderr).
var Startup struct {
	On bool
	W  Writer
}

// Insert adds a target in its place.
func (s *List) Insert(t *Target) {
	i := 0
	for i < len(s.Targets) && s.Targets[i].Level >= t.Level {
		i++
	}
	s.Targets = append(s.Targets, nil)
	copy(s.Targets[i+1:], s.Targets[i:])
	s.Targets[i] = t
}

// Enabled reports whether the most talkative target takes that level.
func (s *List) Enabled(l Level) bool {
	return len(s.Targets) > 0 && s.Targets[0].Level >= l
}

// Write hands the entry to each target that takes it. A full disk silences a target for the rest of
// the second, as nginx does.
func (s *List) Write(l Level, entry []byte) { s.write(l, entry, false) }

func (s *List) write(l Level, entry []byte, all bool) {
	line := append(entry, '\n')
	console := false
	for _, t := range s.Targets {
		if t.Level < l && !all {
			break
		}
		console = console || t.Console
		if t.full != 0 && t.full == Now().Unix() {
			continue
		}
		if err := t.W.WriteLine(line); err == syscall.ENOSPC {
			t.full = Now().Unix()
		}
	}
	if !Startup.On || l > Warn || console {
		return
	}
	Startup.W.WriteLine(append([]byte("nginx: ["+names[l]+"] "), message(line)...))
}

// message is what follows "DATE [level] PID#TID: " in an entry, with the connection's number left in
// front (none has one while starting).
func message(line []byte) []byte {
	for i := 0; i+1 < len(line); i++ {
		if line[i] == ':' && line[i+1] == ' ' {
			return line[i+2:]
		}
	}
	return line
}
