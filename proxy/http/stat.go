package http

import "nginxoracle/proxy/ev"

// statKind is where stub_status counts a request (stat_reading, stat_writing).
type statKind uint8

const (
	statNone statKind = iota
	statReading
	statWriting
)

func (r *Request) setStat(k statKind) {
	switch r.stat {
	case statReading:
		ev.Stats.Reading.Add(-1)
	case statWriting:
		ev.Stats.Writing.Add(-1)
	}
	r.stat = k
	switch k {
	case statReading:
		ev.Stats.Reading.Add(1)
	case statWriting:
		ev.Stats.Writing.Add(1)
	}
}
