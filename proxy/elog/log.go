package elog

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"
)

// MaxEntry is the longest entry with its newline, in bytes (NGX_MAX_ERROR_STR).
const MaxEntry = 2048

var names = [...]string{"", "emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"}

// String is the level's name as entries and error_log spell it.
func (l Level) String() string { return names[l] }

// LevelByName finds a level by its name.
func LevelByName(s string) (Level, bool) {
	for i, n := range names {
		if i > 0 && n == s {
			return Level(i), true
		}
	}
	return 0, false
}

// Now is the clock of entries' dates; a simulation puts its own here before it starts.
var Now = time.Now

// Enabled reports whether an entry of that level would go anywhere: ask before making costly arguments.
func (l *Log) Enabled(level Level) bool {
	return l != nil && l.Sink != nil && (l.All || l.Sink.Enabled(level))
}

// Err writes one entry. errno is nil or (wraps) a syscall.Errno; a foreign error is printed as its
// text. format and args are those of package fmt; note that Go's verbs differ from nginx's.
// (ngx_log.c, ngx_log_error_core)
func (l *Log) Err(level Level, errno error, format string, args ...any) {
	if !l.Enabled(level) {
		return
	}
	b := make([]byte, 0, 256)
	b = Now().AppendFormat(b, "2006/01/02 15:04:05 [")
	b = append(b, names[level]...)
	b = append(b, "] "...)
	b = strconv.AppendInt(b, int64(syscall.Getpid()), 10)
	b = append(b, '#')
	b = strconv.AppendInt(b, int64(syscall.Gettid()), 10)
	b = append(b, ": "...)
	if l.Conn != 0 {
		b = append(b, '*')
		b = strconv.AppendUint(b, l.Conn, 10)
		b = append(b, ' ')
	}
	b = appendf(b, format, args)
	b = AppendErrno(b, errno, MaxEntry)
	if level != Debug {
		if l.Action != "" {
			b = append(b, " while "...)
			b = append(b, l.Action...)
		}
		if l.Ctx != nil {
			b = l.Ctx.AppendLog(b)
		}
	}
	if len(b) > MaxEntry-1 {
		b = b[:MaxEntry-1]
	}
	if list, ok := l.Sink.(*List); ok && l.All {
		list.write(level, b, true)
		return
	}
	l.Sink.Write(level, b)
}

func appendf(b []byte, format string, args []any) []byte {
	if len(args) == 0 {
		return append(b, format...)
	}
	return fmt.Appendf(b, format, args...)
}

// AppendErrno appends " (2: No such file or directory)". max is the size of the buffer that nginx
// would have had: a longer text is cut so that the error fits (ngx_log.c, ngx_log_errno).
func AppendErrno(b []byte, errno error, max int) []byte {
	if errno == nil || errno == syscall.Errno(0) {
		return b
	}
	if len(b) > max-50 {
		b = append(b[:max-50], "..."...)
	}
	var e syscall.Errno
	if !errors.As(errno, &e) {
		return append(append(append(b, " ("...), errno.Error()...), ')')
	}
	b = append(b, " ("...)
	b = strconv.AppendInt(b, int64(e), 10)
	b = append(b, ": "...)
	b = append(b, Strerror(e)...)
	return append(b, ')')
}

// Strerror is the C library's text of an error number.
func Strerror(e syscall.Errno) string {
	if int(e) < len(strerror) && strerror[e] != "" {
		return strerror[e]
	}
	return "Unknown error"
}
