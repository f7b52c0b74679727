// Package casefile is the text form of a case: one configuration, its document
// tree, its origins' scripts and its clients' scripts. docs/case-format.md is
// the format's page. Standard library and txtar only.
package casefile

import (
	"io/fs"
	"time"
)

// Case is one test: everything a target needs to run it. A Case is treated as
// immutable once built; passes that change one make a Clone first.
type Case struct {
	Name     string // where it was read from; not part of the text
	Title    string // first "# " line
	Prose    []string
	Meta     []Field // key: value lines, in order
	Files    []File  // nginx.conf and everything else under /cell, in order
	Origins  []Origin
	Sections []Section // clients and do-sections, in the order they run
}

// Field is one "key: value" line of the comment.
type Field struct{ Key, Value string }

// File is one entry of the work tree. Path is relative to /cell.
type File struct {
	Path   string
	Data   []byte
	Mode   fs.FileMode // permission bits; 0 means the default
	MTime  time.Time   // zero means the default
	Link   string      // symlink target, if a link
	Dir    bool
	Quoted bool // printed as Go-quoted lines (always so when Data is not plain text)
	Line   int
}

// Origin is a scripted upstream.
type Origin struct {
	Addr  string
	Conns [][]Step // script of each accepted connection; the last serves the rest
	Line  int
}

// Section is a client (Client true) or a do-section.
type Section struct {
	Client bool
	ID     int    // client number
	Addr   string // "127.0.0.1:8080" when not given
	With   int    // runs together with that client; 0 = alone
	Steps  []Step
	Line   int
}

// Op names a step.
type Op string

const (
	Send     Op = "send"
	Settle   Op = "settle"
	Recv     Op = "recv" // What says what
	Pause    Op = "pause"
	Shutdown Op = "shutdown"
	Close    Op = "close"
	Reset    Op = "reset"
	Again    Op = "again"  // origin only
	Signal   Op = "signal" // do only, as are those below
	Write    Op = "write"
	Remove   Op = "remove"
	Rename   Op = "rename"
	Chmod    Op = "chmod"
)

// What a Recv step waits for.
const (
	Response = "response"
	Head     = "head"    // a response to HEAD
	Request  = "request" // origin
	Headers  = "headers" // origin
	Bytes    = "bytes"   // N of them
	All      = "all"
	None     = "none"
)

// Step is one line of a script.
type Step struct {
	Op   Op
	What string        // Recv
	Data [][]byte      // Send, Write: the quoted strings of the line; joined when sent
	N    int           // Recv Bytes
	Dur  time.Duration // Pause
	Args []string      // Signal name; Remove, Rename, Chmod, Write paths and mode
	Line int
}
