package run

import (
	"bytes"
	"maps"
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
// written to does no harm.
var (
	errorLogs  = regexp.MustCompile(`(?m)\berror_log\s+"?([^\s;"']+)`)
	accessLogs = regexp.MustCompile(`(?m)\baccess_log\s+"?([^\s;"'$]+)`)
	variable   = regexp.MustCompile(`\$\{?([a-z0-9_]+)`)
	daemonWord = regexp.MustCompile(`(?m)(^|[\s;{}])daemon\s`)
)

// short marks what makes a server act by a timer within the time that a case plays: a timeout
// of less than a second, a bound on a rate, a wait for a lock.
var short = regexp.MustCompile(`\b\d{1,3}ms\b|limit_rate|limit_req|delay|cache_lock|flush=\d`)

// Short tells whether a configuration may have a server meet a timer while a case plays. One
// that is taken for such without need costs time only.
func Short(conf []byte) bool { return short.Match(conf) }

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
func logNames(c *casefile.Case, word *regexp.Regexp) map[string]bool {
	names := map[string]bool{}
	for _, text := range configurations(c) {
		for _, m := range word.FindAllSubmatch(text, -1) {
			names[treePath(string(m[1]))] = true
		}
	}
	return names
}

// variables are the names of all variables that the configuration mentions.
func variables(c *casefile.Case) []string {
	seen := map[string]bool{}
	for _, text := range configurations(c) {
		for _, m := range variable.FindAllSubmatch(text, -1) {
			seen[string(m[1])] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
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
	keep := true
	for line := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		m := entryStart.FindSubmatch(line)
		switch {
		case m != nil:
			level := string(m[1])
			if keep = slices.Contains(levels, level); keep {
				out = append(out, observe.LogEntry{File: file, Level: level, Text: string(line)})
			}
		case len(text) == 0 || !keep:
		case len(out) > 0:
			out[len(out)-1].Text += "\n" + string(line)
		default:
			out = append(out, observe.LogEntry{File: file, Text: string(line)})
		}
	}
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
	for _, f := range files {
		if slices.ContainsFunc(c.Origins, func(x casefile.Origin) bool { return x.Addr == "unix:/cell/"+f.Path }) {
			continue // the oracle's own
		}
		inLogs := strings.HasPrefix(f.Path, LogDir+"/") || strings.HasPrefix(f.Path, "/var/log/")
		switch {
		case f.Dir || f.Link != "":
			o.Tree = append(o.Tree, state(f, was))
		case isError[f.Path]:
			o.Errors = append(o.Errors, entries(f.Path, f.Data)...)
		case isAccess[f.Path] || inLogs && c.File(f.Path) == nil:
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
