// Package exit holds the exit codes of every oracle command: one meaning each,
// the same everywhere, so that a finding is never taken for a broken rig.
package exit

import (
	"errors"
	"fmt"
)

// Code is an exit code of the oracle.
type Code int

// The codes. Their numbers are a contract with scripts and CI: they never change.
const (
	Agree    Code = 0 // all agree, or differ exactly as a recorded divergence says
	Differ   Code = 1 // a new mismatch, or a benchmark's FAIL
	Usage    Code = 2 // wrong usage, or a wrong file
	Rig      Code = 3 // the rig broke: no verdict
	Unstable Code = 4 // only unstable cases, or a benchmark's NO NUMBER
	Stale    Code = 5 // a catalogue entry is stale
	Refused  Code = 6 // the candidate refuses a directive: nothing was compared
)

var names = [...]string{
	Agree:    "agree",
	Differ:   "differ",
	Usage:    "wrong usage",
	Rig:      "rig failed",
	Unstable: "unstable",
	Stale:    "stale",
	Refused:  "refused",
}

// String is the code's name as the summary line shows it.
func (c Code) String() string {
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("code %d", int(c))
	}
	return names[c]
}

// Summary is the last line of a command: what happened and its code, as in
// "3 cases, 1 differs: exit 1 (differ)".
func (c Code) Summary(what string) string { return c.line(what, c.String()) }

// Interrupted is the last line of a command that a signal ended. What has no verdict since somebody
// wanted no more of it is not the rig's fault: the number stays, the word does not.
func (c Code) Interrupted(what string) string {
	if c == Rig {
		return c.line(what, "interrupted")
	}
	return c.Summary(what)
}

func (c Code) line(what, word string) string {
	if what != "" {
		what += ": "
	}
	return fmt.Sprintf("%sexit %d (%s)", what, int(c), word)
}

// Error is an error that says which code the process must end with.
type Error struct {
	Code Code
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error; %w wraps as in fmt.Errorf.
func Errorf(c Code, format string, args ...any) error {
	return &Error{Code: c, Err: fmt.Errorf(format, args...)}
}

// Wrap gives err a code, unless it is nil or carries one already.
func Wrap(c Code, err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{Code: c, Err: err}
}

// Of is the code that err asks for: Agree for nil, and Rig for an error that
// carries none, since an unknown failure gives no verdict.
func Of(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return Agree
	case errors.As(err, &e):
		return e.Code
	default:
		return Rig
	}
}

// Worst is the code of a run made of several: a broken rig outranks every
// verdict, then what a person must act on first.
func Worst(a, b Code) Code {
	if rank(b) > rank(a) {
		return b
	}
	return a
}

func rank(c Code) int {
	for i, x := range []Code{Agree, Unstable, Refused, Stale, Differ, Usage, Rig} {
		if x == c {
			return i
		}
	}
	return int(Rig) + 1
}
