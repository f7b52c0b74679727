package mask

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"nginxoracle/oracle/observe"
)

// Where a mask applies: what kind of text the value stands in.
type Where uint

const (
	Client Where = 1 << iota // bytes that a client received
	Origin                   // bytes that an origin received
	Access                   // an access log
	Error                    // an error log, and standard error while the server runs
	Diag                     // diagnostics of -t and of the start
	Tree                     // a file that the server has written
	wires  = Client | Origin
	texts  = Access | Error | Diag
)

// Row is one mask: a value that may differ between two runs of one case. Both
// sides must have the value at the same place, and each must pass Check; then
// Pair and Bind, where a row has them, must hold between the two.
type Row struct {
	Name  string
	Where Where
	// Vars: the row applies only where the configuration mentions one of these variables: anywhere, or, if only a log_format
	// does, where that has it in a line. Without Vars it applies always.
	Vars []string
	// Inside: the value is a part of such a variable's.
	Inside bool
	// Trait: besides, the row applies only where the configuration has this: observe.Expires or observe.Moment. Empty: whatever it has.
	Trait string
	// Form finds the value: its first group. What is around the group is context.
	Form  *regexp.Regexp
	Check func(value string, s *Side) error
	// Pair is what must hold between the two sides' values; nil for nothing.
	Pair func(ref, cand string, r, c *Side) error
	// Bind: a value of the one side stands for the same value of the other throughout the case.
	Bind bool
	// Fold: besides, several values of the reference may go with one of the candidate: a
	// candidate may do in one process what the reference does in two.
	Fold bool
	// Chance: the values of two runs are often equal by chance, as whole seconds and short times are.
	Chance bool
	Why    string
}

// Table is all masks. A mask that is not here does not exist.
var Table = []Row{
	{
		Name: "date", Where: Client, Chance: true,
		Form:  regexp.MustCompile(`\r\nDate: ([^\r\n]*)\r\n`),
		Check: imfDate,
		Why:   "the time at which the response was made; RFC 9110 section 5.6.7, IMF-fixdate, within two seconds of the run",
	},
	{
		Name: "expires", Where: Client, Trait: observe.Expires, Chance: true,
		Form:  regexp.MustCompile(`\r\nExpires: ([^\r\n]*)\r\n`),
		Check: anyIMFDate, Pair: sameLead,
		Why: "made from the current time by expires; both sides must be equally far from their run's begin, two seconds apart at most",
	},
	{
		Name: "max-age", Where: Client, Trait: observe.Moment, Chance: true,
		Form:  regexp.MustCompile(`\r\nCache-Control: max-age=(\d+)\r\n`),
		Check: number(0, 1<<40), Pair: sameMoment,
		Why: "seconds until a moment (expires @15h, expires modified +1d, or what a variable holds); counted from its run's begin both sides must mean the same one, give or take two seconds and the run's length",
	},
	{
		Name: "max-age-sent", Where: wires | Access | Tree, Vars: []string{"sent_http_cache_control"}, Inside: true, Trait: observe.Moment, Chance: true,
		Form:  regexp.MustCompile(`\bmax-age=(\d+)`),
		Check: number(0, 1<<40), Pair: sameMoment,
		Why: "the same seconds in $sent_http_cache_control: in a log line, or sent on",
	},
	{
		Name: "last-modified", Where: Client, Chance: true,
		Form:  regexp.MustCompile(`\r\nLast-Modified: ([^\r\n]*)\r\n`),
		Check: imfDate,
		Why:   "the time of a file that the server has written in the run (proxy_store); that of any other file is compared",
	},
	{
		Name: "etag", Where: Client, Chance: true,
		Form:  regexp.MustCompile(`\r\nETag: (?:W/)?"([0-9a-f]{8,9})-[0-9a-f]+"\r\n`),
		Check: hexSeconds,
		Why:   "the same time in an entity tag, in hexadecimal (ngx_http_set_etag); the size behind it is compared",
	},
	{
		Name: "log-time", Where: Error | Diag, Chance: true,
		Form:  regexp.MustCompile(`(?m)^(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) \[`),
		Check: clock("2006/01/02 15:04:05"),
		Why:   "the time of an error log's entry, within two seconds of the run",
	},
	{
		Name: "log-pid", Where: Error | Diag, Bind: true, Fold: true,
		Form:  regexp.MustCompile(`(?m)^\S+ \S+ \[[a-z]+\] (\d+)#\d+: `),
		Check: number(1, 1<<22),
		Why:   "the process that wrote the entry; one process stays one process",
	},
	{
		Name: "log-tid", Where: Error | Diag, Bind: true, Fold: true,
		Form:  regexp.MustCompile(`(?m)^\S+ \S+ \[[a-z]+\] \d+#(\d+): `),
		Check: number(1, 1<<22),
		Why:   "the thread that wrote the entry",
	},
	{
		Name: "log-connection", Where: Error, Bind: true,
		Form:  regexp.MustCompile(`(?m)^\S+ \S+ \[[a-z]+\] \d+#\d+: \*(\d+) `),
		Check: number(1, 1<<40),
		Why:   "the number of the connection that the entry is about; one connection stays one connection",
	},
	{
		Name: "notice-pid", Where: Error, Bind: true, Fold: true,
		Form:  regexp.MustCompile(`(?m)\b(?:process|pid) (\d+)\b`),
		Check: number(1, 1<<22),
		Why:   "the process that an entry is about (\"worker process 13 exited on signal 11\")",
	},
	{
		Name: "buffer-address", Where: Error,
		Form:  regexp.MustCompile(` size buf in [a-z ]+ t:\d r:\d f:\d ([0-9A-F]{16} [0-9A-F]{16}-[0-9A-F]{16} [0-9A-F]{16}) `),
		Check: addresses, Pair: sameShape,
		Why: "where a buffer lies in memory (nginx's %p): its start, its content's begin and end, its file; which of them are null and which are equal is compared",
	},
	{
		Name: "time_local", Where: Access, Chance: true,
		Form:  regexp.MustCompile(`(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})`),
		Check: clock("02/Jan/2006:15:04:05 -0700"),
		Why:   "the time of a log line ($time_local, in the predefined format combined too), within two seconds of the run",
	},
	{
		Name: "time_local-sent", Where: wires | Tree, Vars: []string{"time_local"}, Chance: true,
		Form:  regexp.MustCompile(`(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})`),
		Check: clock("02/Jan/2006:15:04:05 -0700"),
		Why:   "$time_local sent to a client or an origin",
	},
	{
		Name: "time_iso8601", Where: wires | Access | Tree, Vars: []string{"time_iso8601"}, Chance: true,
		Form:  regexp.MustCompile(`(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d)`),
		Check: clock("2006-01-02T15:04:05-07:00"),
		Why:   "$time_iso8601, within two seconds of the run",
	},
	{
		Name: "msec", Where: wires | Access | Tree, Vars: []string{"msec"}, Chance: true,
		Form:  regexp.MustCompile(`(\d{10}\.\d{3})`),
		Check: unixMillis,
		Why:   "$msec, within two seconds of the run",
	},
	{
		Name: "duration", Where: wires | Access | Tree, Chance: true,
		Vars: []string{"request_time", "upstream_response_time", "upstream_connect_time", "upstream_header_time",
			"upstream_first_byte_time", "upstream_session_time", "upstream_queue_time", "session_time", "connection_time"},
		Form:  regexp.MustCompile(`(\d+\.\d{3})`),
		Check: duration,
		Why:   "a measured time in seconds with three digits; not longer than the run. That there is one at all (and no \"-\") is compared",
	},
	{
		Name: "request_id", Where: wires | Access | Error | Tree, Vars: []string{"request_id"}, Bind: true,
		Form:  regexp.MustCompile(`([0-9a-f]{32})`),
		Check: pass,
		Why:   "16 random bytes in hexadecimal; one request keeps one id wherever it shows",
	},
	{
		Name: "pid", Where: wires | Access | Tree, Vars: []string{"pid"}, Bind: true, Fold: true,
		Form:  regexp.MustCompile(`(\d+)`),
		Check: ownPid,
		Why:   "$pid is the worker's; a number just above the main process's",
	},
	{
		Name: "connection", Where: wires | Access | Tree, Vars: []string{"connection"}, Bind: true,
		Form:  regexp.MustCompile(`(\d+)`),
		Check: connectionNumber,
		Why:   "$connection counts every connection of the server; not much above those that the case makes",
	},
	{
		Name: "port", Where: wires | texts | Tree, Vars: []string{"remote_port", "realip_remote_port"},
		Form:  regexp.MustCompile(`(\d{4,5})`),
		Check: clientPort,
		Why:   "the kernel chose the client's port; it must be one that a client of the case had",
	},
}

// window is how far a clock's value may lie outside the run.
const window = 2 * time.Second

func pass(string, *Side) error { return nil }

const imf = "Mon, 02 Jan 2006 15:04:05 GMT"

var errIMF = errors.New("is no IMF-fixdate")

func imfDate(v string, s *Side) error {
	t, err := time.Parse(imf, v)
	if err != nil {
		return errIMF
	}
	return s.during(t)
}

func anyIMFDate(v string, _ *Side) error {
	if _, err := time.Parse(imf, v); err != nil {
		return errIMF
	}
	return nil
}

// sameLead wants both values to be as far from their run's begin.
func sameLead(ref, cand string, r, c *Side) error {
	a, errA := time.Parse(imf, ref)
	b, errB := time.Parse(imf, cand)
	if errA != nil || errB != nil {
		return errIMF
	}
	if d := (a.Sub(r.At) - b.Sub(c.At)).Abs(); d > window+max(r.Took, c.Took) {
		return fmt.Errorf("are %s apart", d)
	}
	return nil
}

func clock(layout string) func(string, *Side) error {
	return func(v string, s *Side) error {
		t, err := time.Parse(layout, v)
		if err != nil {
			return fmt.Errorf("is no time like %s", layout)
		}
		return s.during(t)
	}
}

func hexSeconds(v string, s *Side) error {
	n, err := strconv.ParseInt(v, 16, 64)
	if err != nil {
		return err
	}
	return s.during(time.Unix(n, 0))
}

func unixMillis(v string, s *Side) error {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return err
	}
	return s.during(time.UnixMilli(int64(f * 1000)))
}

func duration(v string, s *Side) error {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return err
	}
	if d := time.Duration(f * float64(time.Second)); d > s.Took+time.Second {
		return fmt.Errorf("is longer than the run (%s)", s.Took)
	}
	return nil
}

func number(low, high int64) func(string, *Side) error {
	return func(v string, _ *Side) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < low || n > high {
			return fmt.Errorf("is not from %d to %d", low, high)
		}
		return nil
	}
}

// sameMoment is for seconds until a moment, counted when a response was made: at some time within its run.
func sameMoment(ref, cand string, r, c *Side) error {
	a, errA := strconv.ParseInt(ref, 10, 64)
	b, errB := strconv.ParseInt(cand, 10, 64)
	if errA != nil || errB != nil {
		return errors.New("are no numbers")
	}
	d := math.Abs(float64(a-b) + r.At.Sub(c.At).Seconds()) // the later run has less to go
	if d > (window + max(r.Took, c.Took)).Seconds() {
		return fmt.Errorf("mean moments %.0f seconds apart", d)
	}
	return nil
}

var fourAddresses = regexp.MustCompile(`^([0-9A-F]{16}) ([0-9A-F]{16})-([0-9A-F]{16}) ([0-9A-F]{16})$`)

func addresses(v string, _ *Side) error {
	if !fourAddresses.MatchString(v) {
		return errors.New("is not four addresses")
	}
	return nil
}

// sameShape is for addresses: the same ones are null on both sides, and the same ones are equal.
func sameShape(ref, cand string, _, _ *Side) error {
	shape := func(v string) (s [16]bool) {
		m := fourAddresses.FindStringSubmatch(v)
		for i, a := range m[1:] {
			for j, b := range m[1:] {
				s[4*i+j] = a == b
			}
			s[5*i] = a == "0000000000000000"
		}
		return s
	}
	if shape(ref) != shape(cand) {
		return errors.New("are not alike")
	}
	return nil
}

// ownPid: workers are started right after the main process, in a cell where
// nothing else starts processes.
func ownPid(v string, s *Side) error {
	const children = 64
	return number(int64(s.Pid), int64(s.Pid+children))(v, s)
}

// connectionNumber: the server counts its own connections to origins and to
// itself too.
func connectionNumber(v string, s *Side) error {
	return number(1, int64(16+4*s.Conns))(v, s)
}

func clientPort(v string, s *Side) error {
	n, err := strconv.Atoi(v)
	if err != nil || !s.Ports[n] {
		return fmt.Errorf("is no client's port")
	}
	return nil
}
