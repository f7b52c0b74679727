// Package observe holds what was seen while a target ran a case, as values.
package observe

import (
	"time"

	"nginxoracle/oracle/engine"
)

// End is how a connection ended, from the oracle's side.
type End string

const (
	EndNone    End = ""        // not seen: an observation that has this is broken
	EndClosed  End = "closed"  // FIN from the server
	EndReset   End = "reset"   // RST from the server
	EndOpen    End = "open"    // the server left it open; the script closed it
	EndLocal   End = "local"   // the script closed or reset it before the server did
	EndRefused End = "refused" // connect was refused
	EndDied    End = "died"    // the server died
)

// Conn is one connection, client or origin, as recorded.
type Conn struct {
	ID   int    // client number, or accept order at an origin (from 1)
	Addr string // the server's (client) or the origin's (origin) address
	Port int    // client: its own TCP port, 0 for a Unix socket
	Recv []byte // every byte received, in order
	// Marks are offsets into Recv where a recv step ended, one per recv step.
	Marks []int
	End   End
	Note  string // anything else worth showing ("send failed: EPIPE")
}

// LogEntry is one entry of an error log.
type LogEntry struct {
	File  string // the log's path relative to /cell; "" for standard error
	Level string // "warn", "error", …
	Text  string // the whole entry, without its last newline
}

// Command is one run of the server's binary to its end.
type Command struct {
	Code, Signal int
	Text         string // standard error
	Stdout       string
}

// FileState is one file of the work tree afterwards.
type FileState struct {
	Path string // relative to /cell; absolute when it lies elsewhere in the cell
	Mode uint32
	Size int64
	Data []byte // content (logs are compared apart and are not here)
	Link string
	Dir  bool
	New  bool // not in the case, or not as in the case
}

// Process is what was seen of the server's processes.
type Process struct {
	Started  bool
	Pid      int         // main process, as seen inside the cell
	Exit     engine.Exit // after the stop at the end
	Left     []string    // processes left in the cell after the stop
	FDBefore int         // descriptors after the start, at rest
	FDAfter  int         // descriptors after the last client, at rest
	Worker   string      // crash of a worker, from the error log ("exited on signal 11")
}

// Undone is a step of a do section that could not be carried out on the work tree as the target had left it.
type Undone struct {
	Line int    // in the case
	Text string // the step, and why not
}

// Mentions is what a configuration has that masks depend on.
type Mentions struct {
	// Vars: the variables that it mentions anywhere but in a log_format, and of Expires and Moment what holds for it, sorted.
	Vars []string
	// Logged: where its log_formats have variables, by their names.
	Logged map[string][]Place
}

// Place is where a log_format has a variable, as patterns (of package regexp) for what a line has before the variable's value and
// behind it. Empty: anything.
type Place struct{ Before, After string }

// What a configuration has besides variables, among Mentions.Vars; no variable is called so.
const (
	Expires = "expires TIME"   // an expires directive
	Moment  = "expires MOMENT" // one that counts to a moment, or may: expires @15h, expires modified +1d, expires $variable
)

// Observation is everything that was seen while one target ran one case.
type Observation struct {
	Info     engine.Info
	At       time.Time // when the run began; masks check dates against it
	Mentions Mentions
	Took     time.Duration
	Spent    []Spent // where the time went, in order
	Test     Command // nginx -t
	Start    Command // of the start, when it failed
	Clients  []Conn
	Origins  []Conn            // in accept order over all origins
	Access   map[string][]byte // access logs (any file under logs/ but the error logs), by path
	Errors   []LogEntry
	Tree     []FileState
	Process  Process
	Undone   []Undone      // steps of do sections that the work tree did not allow
	Aside    []engine.File // what the target's instruments wrote; no part of what is compared
	Timeouts int           // last-resort timeouts used: each one is counted and printed
	// Late: the machine stood still while the server had a short timer, so that what came first is
	// the machine's doing; Again counts the runs that were thrown away for that.
	Late  bool
	Again int
	// LateLanes are those that Late was set for, where the case was played in lanes.
	LateLanes []int
	// Slow: lanes were played for so long that a timer of ten seconds, which no script means to meet, can have ended.
	Slow bool
	// Part tells which part of a case played in lanes a text belongs to, by its place (see diff.Mismatch.Where). nil: there is one part.
	Part func(where string) Part
}

// Part is what of an observation shares the values that masks bind, and what they depend on.
type Part struct {
	Name string
	Mentions
	// Mixed: its lines came from several lanes in any order, so that which value of the one side goes with which
	// of the other is chance.
	Mixed bool
}

// Spent is the time that one stage of a run took.
type Spent struct {
	Stage string // "reset", "test", "start", "age", "play", "rest", "stop", "tree"
	Time  time.Duration
}
