// Package bench measures a candidate against the reference, in pairs, with the
// same configuration file and one worker each, and refuses to give a number
// that the measurement does not support. docs/measuring.md says how each
// figure is taken.
package bench

import (
	"fmt"
	"time"
)

// Server is one of the two sides.
type Server struct {
	Name    string   // as the target was named: "nginx", "nginx:1.22", "proxy"; of a path, its last element
	Version string   // what -v says
	SHA256  string   // of the server's binary
	Argv    []string `json:"-"` // command and its leading arguments (a loader, say); "-p … -c …" follow
}

// Workload is one row of the table: what is asked, how, and what is expected back.
type Workload struct {
	Name string
	What string // said in every line of output
	Conf string // the http block's content; {PORT}, {ORIGIN}, {ROOT} are filled in
	Host string
	Path string
	Body []byte // the exact response body
	// Fresh opens a connection for each request.
	Fresh bool
	// Origin is the body size that the workload's origin answers with; 0 = it has none.
	Origin int
	// Kind says which measurement the row takes.
	Kind  Kind
	Conns int // of Idle
}

// Kind is the way a workload is measured.
type Kind int

const (
	Throughput Kind = iota // wrk, closed loop; CPU, system calls, memory, open-loop latency
	OneByOne               // one connection, one request at a time: a latency, not a throughput
	Idle                   // memory of an idle connection
	Reload                 // failed requests while the configuration is reloaded
	Startup                // time to load a large configuration
)

// Options of a run.
type Options struct {
	Reference, Candidate Server
	Pairs                int           // at least 5 for a verdict
	Duration             time.Duration // of one side of one pair
	Only                 string        // a workload's name, or ""
	Dir                  string        // scratch; made and removed by the caller
	Self                 string        // the oracle's own binary, for the origin's and the client's roles
	IdleWait             time.Duration // at most this long for an idle machine
	Each                 func(Row)     // told of each row when it is done; may be nil
}

// Sample is one side of one pair.
type Sample struct {
	Requests   int64
	Failed     int64
	Seconds    float64
	UserUs     float64 // CPU of all server processes, microseconds
	SystemUs   float64
	RSS        int64 // bytes, at the end of the load
	Throughput float64
}

// CPU is microseconds of CPU a request.
func (s Sample) CPU() float64 { return (s.UserUs + s.SystemUs) / float64(s.Requests) }

// Latency is in microseconds: of the open-loop run from the time a request was due, of the one-by-one run
// (Rate 0) from the time it was sent.
type Latency struct {
	Rate           int // requests a second asked for
	P50, P99, P999 int64
	Late           int64 // requests that were sent after they were due (they count from when due)
	Errors         int64
	First          string `json:",omitempty"` // the first error
}

// Side is what was measured of one server in one workload.
type Side struct {
	Of       string // the server's name
	Samples  []Sample
	Closed   []Latency // OneByOne: one a pair
	Syscalls float64   // a request, by launching under strace; <= 0 = no number
	Latency  Latency
	Value    float64 // Idle: bytes a connection; Startup: seconds; Reload: failed requests
	Values   []float64
	Why      string // why there is no number
	Note     string `json:",omitempty"`
}

// Row is a workload's outcome.
type Row struct {
	Workload              string
	What                  string
	Ref, Cand             Side
	Ceiling               float64 // the origin alone, requests a second; 0 = no origin
	Shared                string  // which roles shared a core, and what that voids
	Figures               []Figure
	LoadBefore, LoadAfter string
	NotIdle               string `json:",omitempty"` // what the wait for an idle machine ended with, if not with one
}

// Report is a whole run: never quoted without its machine.
type Report struct {
	Machine              string
	At                   time.Time
	Seconds              float64 // of the whole run
	Reference, Candidate Server
	Rows                 []Row
	Left                 []string `json:",omitempty"` // workloads that were not measured
	Broken               string   `json:",omitempty"` // why the run ended before its end
}

// Count is the number of figures with each verdict. What stands beside a row's figures, and could not be
// taken, is no number either.
func (r Report) Count() (pass, fail, none int) {
	for _, row := range r.Rows {
		for _, s := range []Side{row.Ref, row.Cand} {
			if len(s.Samples) > 0 && s.Syscalls <= 0 {
				none++
			}
			if s.Latency.Errors > 0 {
				none++
			}
		}
		for _, f := range row.Figures {
			switch f.Verdict {
			case Pass:
				pass++
			case Fail:
				fail++
			default:
				none++
			}
		}
	}
	return
}

// Verdict of a figure.
type Verdict string

const (
	Pass     Verdict = "PASS"
	Fail     Verdict = "FAIL"
	NoNumber Verdict = "NO NUMBER"
)

// Figure is one ratio held against its threshold.
type Figure struct {
	Name      string  // "cpu a request", "throughput", "memory an idle connection"
	Ref, Cand float64 // best of each
	Unit      string
	Spread    [2]float64 // (worst-best)/best, reference and candidate
	Ratio     float64    // candidate / reference
	Bound     string     // "<= 0.75"
	Verdict   Verdict
	Why       string // for NO NUMBER
}

// wrong tells that the candidate has failed without a figure.
func (f Figure) wrong() bool { return f.Verdict == Fail && f.Why != "" }

// line is the figure with the names of its servers.
func (f Figure) line(ref, cand string) string {
	if f.wrong() {
		return fmt.Sprintf("%-9s %-26s %s: %s", f.Verdict, f.Name, cand, f.Why)
	}
	s := fmt.Sprintf("%-9s %-26s %s %10.2f  %s %10.2f %-4s ratio %5.2f (%s)  spread %2.0f%%/%2.0f%%",
		f.Verdict, f.Name, ref, f.Ref, cand, f.Cand, f.Unit, f.Ratio, f.Bound, 100*f.Spread[0], 100*f.Spread[1])
	if f.Why != "" {
		s += "  " + f.Why
	}
	return s
}
