// Package elog is the error log: levels, entries in nginx's form, and the
// context that a connection or a request adds to each entry
// (nginx: src/core/ngx_log.c, ngx_log_error_core).
package elog

// Level of an entry; smaller is graver (ngx_log.h, NGX_LOG_*).
type Level int

const (
	Stderr Level = iota
	Emerg
	Alert
	Crit
	Error
	Warn
	Notice
	Info
	Debug
)

// Context appends what a handler knows (", client: 127.0.0.1, server: …") to
// an entry; it may be nil.
type Context interface {
	AppendLog(b []byte) []byte
}

// Sink is where entries go: the files of error_log, each with its level.
type Sink interface {
	// Enabled reports whether an entry of that level goes anywhere.
	Enabled(l Level) bool
	// Write takes a whole entry, without the newline.
	Write(l Level, entry []byte)
}

// Log writes entries "2006/01/02 15:04:05 [error] PID#TID: *CONN text (ERRNO: strerror) while ACTION, context".
type Log struct {
	Sink   Sink
	Conn   uint64 // connection number, 0 = none
	Action string // "reading client request line", written as " while …"; empty = none: nginx's log->action
	Ctx    Context
	All    bool // debug_connection: every level goes everywhere
}
