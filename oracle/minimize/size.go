package minimize

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/count"
)

// Size is how large a case is to the person who reads it.
type Size struct {
	Lines    int // of configuration, blank ones left out: nginx.conf and what else is named *.conf
	Requests int
	Bytes    int // of the case file without its comment
}

// What a minimum should be: a person takes it in at one look.
const (
	FewLines    = 25 // fewer than
	FewRequests = 1  // at most: a configuration that does not load has none
)

// Few tells whether a case is as small as a minimum should be.
func (s Size) Few() bool { return s.Lines < FewLines && s.Requests <= FewRequests }

func (s Size) String() string {
	return fmt.Sprintf("%s of configuration, %s, %s", count.Of(s.Lines, "line"), count.Of(s.Requests, "request"), count.Of(s.Bytes, "byte"))
}

// requestLine is the first line of a request of HTTP/1.
var requestLine = regexp.MustCompile(`(?m)^[A-Z]+ [^\r\n]* HTTP/1\.[0-9]\r?$`)

// Measure is a case's size. A client makes one request, or as many as it sends request lines, or waits for
// responses, where either is more: what is damaged shows no line, and what reads to the end waits for no response.
func Measure(c *casefile.Case) (s Size) {
	for _, f := range c.Files {
		if f.Path == "nginx.conf" || strings.HasSuffix(f.Path, ".conf") {
			for _, l := range bytes.Split(f.Data, []byte("\n")) {
				if len(bytes.TrimSpace(l)) > 0 {
					s.Lines++
				}
			}
		}
	}
	for _, k := range c.Sections {
		if !k.Client {
			continue
		}
		waits, sent := 0, []byte(nil)
		for _, st := range k.Steps {
			switch {
			case st.Op == casefile.Send:
				sent = append(sent, bytes.Join(st.Data, nil)...)
			case st.Op == casefile.Recv && (st.What == casefile.Response || st.What == casefile.Head):
				waits++
			}
		}
		s.Requests += max(1, waits, len(requestLine.FindAll(sent, -1)))
	}
	n := *c
	n.Prose, n.Meta = nil, nil
	s.Bytes = len(n.Print())
	return s
}
