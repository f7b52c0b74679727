package run

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/observe"
)

// DefaultErrorLog is what the server is given with -e: the log of everything
// before the configuration is read, and of a configuration that names none.
const DefaultErrorLog = LogDir + "/error.log"

// words of a configuration that decide how it is started and where its logs are.
// A configuration is not parsed for this: a name in a comment that no log is
// written to does no harm. Configurations of many blocks are long, and a search for the plain
// name costs a fiftieth of one for the pattern, which is only tried where the name stands.
var (
	errorLogs  = word{"error_log", regexp.MustCompile(`(?s)^.?\berror_log\s+"?([^\s;"']+)`)}
	accessLogs = word{"access_log", regexp.MustCompile(`(?s)^.?\baccess_log\s+"?([^\s;"'$]+)`)}
	daemonWord = word{"daemon", regexp.MustCompile(`^[\s;{}]?daemon\s`)}

	includeWord = word{"include", regexp.MustCompile(`(?s)^[\s;{}]?include\s+["']?([^\s;"'$]+)`)}
)

// word is a directive's name and the pattern of it with its argument, from the byte before the name.
type word struct {
	name    string
	pattern *regexp.Regexp
}

// argumentMost is how far behind a name its argument is looked for: a path and blanks.
const argumentMost = 5000

// each calls f with the groups of every match until it answers false.
func (w word) each(text []byte, f func(groups [][]byte) bool) {
	for at := 0; ; at += len(w.name) {
		i := bytes.Index(text[at:], []byte(w.name))
		if i < 0 {
			return
		}
		at += i
		near := text[max(at-1, 0):min(at+len(w.name)+argumentMost, len(text))]
		if m := w.pattern.FindSubmatchIndex(near); m != nil {
			groups := make([][]byte, len(m)/2)
			for g := range groups {
				groups[g] = near[m[2*g]:m[2*g+1]]
			}
			if !f(groups) {
				return
			}
		}
	}
}

func (w word) in(text []byte) (found bool) {
	w.each(text, func([][]byte) bool { found = true; return false })
	return found
}

// shortWords make a server act by a timer within the time that a case plays: bounds on a rate, and
// waits for a lock or a buffer.
var shortWords = []string{"limit_rate", "limit_req ", "auth_delay", "cache_lock", "flush="}

// Short tells whether a configuration may have a server meet a timer while a case plays: one of
// those, or a time of less than a second. A configuration that is taken for such without need
// costs time only.
func Short(conf []byte) bool {
	if Hasty(conf) {
		return true
	}
	for _, w := range shortWords {
		if bytes.Contains(conf, []byte(w)) {
			return true
		}
	}
	for at := 0; ; at += 2 {
		i := bytes.Index(conf[at:], []byte("ms"))
		if i < 0 {
			return false
		}
		at += i
		digits := 0
		for digits < at && isDigit(conf[at-digits-1]) {
			digits++
		}
		if 1 <= digits && digits <= 3 {
			return true
		}
	}
}

// noTime is a timeout without any length. (That of keepalive_timeout is no timer.)
var noTime = regexp.MustCompile(`\b(?:client_header|client_body|send|lingering|proxy_connect|proxy_read|proxy_send)_timeout\s+["']?0+(?:ms|[smhdwMy])?["']?\s*;`)

// Hasty tells whether a configuration has a timer that ends as soon as it is set: what the server then finds
// to read is what had come before.
func Hasty(conf []byte) bool { return bytes.Contains(conf, []byte("_timeout")) && noTime.Match(conf) }

// Leaves tells whether a configuration has requests that no client waits for: one that is asked for nothing may be given up
// as soon as it has been sent on.
func Leaves(conf []byte) bool { return bytes.Contains(conf, []byte("post_action")) }

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// configurations are the texts that may hold directives: nginx.conf and every
// file that is not under a folder of documents. Reading one too many is harmless.
func configurations(c *casefile.Case) [][]byte {
	var texts [][]byte
	for i := range c.Files {
		if f := &c.Files[i]; f.Data != nil {
			texts = append(texts, f.Data)
		}
	}
	return texts
}

// logNames are the paths that the configuration names after word.
func logNames(c *casefile.Case, w word) map[string]bool {
	names := map[string]bool{}
	for _, text := range configurations(c) {
		w.each(text, func(groups [][]byte) bool {
			names[treePath(string(groups[1]))] = true
			return true
		})
	}
	return names
}

// Levels at which an error log's entries are compared.
var levels = []string{"emerg", "alert", "crit", "error", "warn"}

// entryStart is the beginning of an error log's entry (src/core/ngx_log.c,
// ngx_log_error_core), or of one that goes to standard error while the server starts.
var entryStart = regexp.MustCompile(`^(?:\d{4}/\d\d/\d\d \d\d:\d\d:\d\d|nginx:) \[([a-z]+)\] `)

// entries takes a log apart. A line that starts no entry goes on with the one
// before it: a value from the wire may hold a newline. A line before the first entry
// is kept as an entry without a level, so that nothing is lost.
func entries(file string, text []byte) []observe.LogEntry {
	var out []observe.LogEntry
	if len(text) == 0 {
		return nil
	}
	text = bytes.TrimSuffix(text, []byte("\n"))
	// An entry is cut out once its end is known: a flood of lines that start none would be copied
	// again with every line.
	level, start, keep := "", 0, true
	end := func(at int) {
		if keep && at > start {
			out = append(out, observe.LogEntry{File: file, Level: level, Text: string(text[start : at-1])})
		}
	}
	at := 0
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if m := entryStart.FindSubmatch(line); m != nil {
			end(at)
			level, start = string(m[1]), at
			keep = slices.Contains(levels, level)
		}
		at += len(line) + 1
	}
	end(at)
	return out
}

// sortOut divides what the work tree holds afterwards into logs and the rest.
func sortOut(o *observe.Observation, c *casefile.Case, files []engine.File) {
	isError, isAccess := logNames(c, errorLogs), logNames(c, accessLogs)
	isError[DefaultErrorLog] = true
	o.Access = map[string][]byte{}
	was := map[string]engine.File{}
	for _, f := range tree(c) {
		was[f.Path] = f
	}
	own := map[string]bool{} // the oracle's sockets
	for _, x := range c.Origins {
		if path, ok := strings.CutPrefix(x.Addr, "unix:/cell/"); ok {
			own[path] = true
		}
	}
	given := map[string]bool{}
	for i := range c.Files {
		given[c.Files[i].Path] = true
	}
	for _, f := range files {
		if own[f.Path] {
			continue
		}
		inLogs := strings.HasPrefix(f.Path, LogDir+"/") || strings.HasPrefix(f.Path, "/var/log/")
		switch {
		case f.Dir || f.Link != "":
			o.Tree = append(o.Tree, state(f, was))
		case isError[f.Path]:
			o.Errors = append(o.Errors, entries(f.Path, f.Data)...)
		case isAccess[f.Path] || inLogs && !given[f.Path]:
			o.Access[f.Path] = f.Data
		default:
			o.Tree = append(o.Tree, state(f, was))
		}
	}
	for _, e := range o.Errors {
		if i := strings.Index(e.Text, "exited on signal "); i >= 0 && e.Level == "alert" {
			o.Process.Worker = e.Text[i:]
			break
		}
	}
}

func state(f engine.File, was map[string]engine.File) observe.FileState {
	before, ok := was[f.Path]
	same := ok && before.Dir == f.Dir && before.Link == f.Link && bytes.Equal(before.Data, f.Data) &&
		(before.Mode == f.Mode || f.Link != "")
	return observe.FileState{Path: f.Path, Mode: f.Mode, Size: int64(len(f.Data)), Data: f.Data, Link: f.Link, Dir: f.Dir, New: !same}
}
