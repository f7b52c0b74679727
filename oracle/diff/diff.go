// Package diff compares two observations of one case. It is pure.
package diff

// Verdict is the outcome of comparing. The zero value is none of them.
type Verdict int

const (
	NoVerdict Verdict = iota
	Agree
	Differ
	Unstable  // the reference differs from itself
	RigFailed // the measurement broke
	Refused   // the candidate refuses a directive: nothing compared
)

func (v Verdict) String() string {
	switch v {
	case Agree:
		return "agree"
	case Differ:
		return "differ"
	case Unstable:
		return "unstable"
	case RigFailed:
		return "rig failed"
	case Refused:
		return "refused"
	}
	return "no verdict"
}

// Kind says what differs.
type Kind string

const (
	KindLoad    Kind = "load"    // exit status or diagnostics of -t or of the start
	KindClient  Kind = "client"  // bytes a client received
	KindEnd     Kind = "end"     // how a connection ended
	KindOrigin  Kind = "origin"  // bytes an origin received
	KindConns   Kind = "conns"   // how many connections an origin saw
	KindAccess  Kind = "access"  // access log
	KindError   Kind = "error"   // error log
	KindTree    Kind = "tree"    // work tree
	KindProcess Kind = "process" // exits, crashes, descriptors
)

// Mismatch is one difference that no mask covers.
type Mismatch struct {
	Kind  Kind
	Where string // "client 1", "origin 127.0.0.1:9001, connection 1", "logs/access.log", …
	At    int    // byte of the reference's value at which the first difference begins
	Pos   int    // the same place in the candidate's value: masked values before it may differ in length
	// Message counts the recv steps of a client's or origin's script that had ended before At.
	Message int
	Ref     []byte // whole value, reference
	Cand    []byte // whole value, candidate
}

// Result of one comparison.
type Result struct {
	Verdict    Verdict
	Mismatches []Mismatch
	Masks      map[string]int // masks used, with how often
	Shown      map[string]int // of Census: see mask.Comparer
	Why        string         // for RigFailed, Unstable, Refused
}
