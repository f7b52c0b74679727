package casefile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxPause bounds a pause: a longer one is a mistake in the file.
const maxPause = 2 * time.Minute

// Signals that a do-section can send.
var Signals = []string{"TERM", "QUIT", "INT", "HUP", "USR1", "USR2", "WINCH", "KILL"}

// grammar is the steps that one kind of script may have: an operation's words to
// the reader of what follows.
type grammar struct {
	kind  string
	ops   []Op
	recvs []string // words after recv; a number stands for Bytes
}

var (
	clientSteps = grammar{"client",
		[]Op{Send, Settle, Recv, Pause, Shutdown, Close, Reset},
		[]string{Response, Head, All, None}}
	originSteps = grammar{"origin",
		[]Op{Recv, Send, Settle, Again, Pause, Shutdown, Close, Reset},
		[]string{Request, Headers, All}}
	doSteps = grammar{"do",
		[]Op{Signal, Write, Remove, Rename, Chmod, Pause}, nil}
)

// steps reads a script's lines; p.line is at its first line.
func (p *parser) steps(body []byte, g grammar) ([]Step, error) {
	var steps []Step
	err := p.lines(body, func(line string) error {
		return p.step(&steps, line, g)
	})
	return steps, err
}

// connections reads an origin's body: scripts separated by "connection" lines.
func (p *parser) connections(body []byte) ([][]Step, error) {
	conns := [][]Step{nil}
	first := true
	err := p.lines(body, func(line string) error {
		if line == "connection" {
			if !first {
				conns = append(conns, nil)
			}
			first = false
			return nil
		}
		first = false
		return p.step(&conns[len(conns)-1], line, originSteps)
	})
	return conns, err
}

// step reads one line and adds it to steps, or to the last step's strings when
// the line goes on with them.
func (p *parser) step(steps *[]Step, line string, g grammar) error {
	last := len(*steps) - 1
	if line[0] == '"' {
		if last < 0 || (*steps)[last].Data == nil {
			return p.errorf("want a step, got a string with no \"send\" before it")
		}
		parts, err := parseParts(line)
		if err != nil {
			return p.errorf("%v", err)
		}
		(*steps)[last].Data = append((*steps)[last].Data, parts...)
		return nil
	}
	op, rest, _ := strings.Cut(line, " ")
	s := Step{Op: Op(op), Line: p.line}
	if !slices.Contains(g.ops, s.Op) {
		return p.errorf("want a step of a %s (%s), got %s", g.kind, opNames(g.ops), show(line))
	}
	if last >= 0 {
		if op := (*steps)[last].Op; op == Close || op == Reset || op == Again {
			return p.errorf("want nothing after %q, got %s", op, show(line))
		}
	}
	if s.Op == Again && !slices.ContainsFunc(*steps, func(x Step) bool { return x.Op == Recv }) {
		return p.errorf("want a recv before \"again\", got none: the script would never wait")
	}
	if err := s.operands(strings.TrimSpace(rest), g); err != nil {
		return p.errorf("%s: %v", op, err)
	}
	*steps = append(*steps, s)
	return nil
}

func (s *Step) operands(rest string, g grammar) (err error) {
	switch s.Op {
	case Send:
		s.Data, err = parseParts(rest)
		return err
	case Recv:
		return s.recv(rest, g)
	case Pause:
		s.Dur, err = time.ParseDuration(rest)
		if err != nil || s.Dur < 0 || s.Dur > maxPause {
			return fmt.Errorf("want a duration such as 50ms, at most %s, got %s", maxPause, show(rest))
		}
		return nil
	case Signal:
		if !slices.Contains(Signals, rest) {
			return fmt.Errorf("want one of %s, got %s", strings.Join(Signals, " "), show(rest))
		}
		s.Args = []string{rest}
		return nil
	case Write:
		var name string
		if name, rest, err = word(rest); err != nil {
			return err
		}
		s.Args = []string{name}
		if err := checkPath(name); err != nil {
			return err
		}
		s.Data, err = parseParts(rest)
		return err
	case Remove:
		return s.words(rest, 1)
	case Rename:
		return s.words(rest, 2)
	case Chmod:
		if err := s.words(rest, 2); err != nil {
			return err
		}
		m, err := parseMode(s.Args[1])
		s.Args[1] = fmt.Sprintf("%04o", m)
		return err
	}
	if rest != "" {
		return fmt.Errorf("want nothing after it, got %s", show(rest))
	}
	return nil
}

func (s *Step) recv(rest string, g grammar) error {
	if n, err := strconv.Atoi(rest); err == nil && n > 0 && rest[0] != '+' {
		s.What, s.N = Bytes, n
		return nil
	}
	if !slices.Contains(g.recvs, rest) {
		return fmt.Errorf("want %s or a number of bytes, got %s", strings.Join(g.recvs, ", "), show(rest))
	}
	s.What = rest
	return nil
}

// words reads exactly n words, the first and all paths checked.
func (s *Step) words(rest string, n int) error {
	for range n {
		w, r, err := word(rest)
		if err != nil {
			return err
		}
		s.Args, rest = append(s.Args, w), r
	}
	if rest != "" {
		return fmt.Errorf("want the end of the line, got %s", show(rest))
	}
	paths := s.Args
	if s.Op == Chmod {
		paths = paths[:1]
	}
	for _, a := range paths {
		if err := checkPath(a); err != nil {
			return err
		}
	}
	return nil
}

func opNames(ops []Op) string {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = string(op)
	}
	return strings.Join(names, ", ")
}
