package parse

import "math"

// Chunked reads the framing of a chunked body; the zero Chunked is a fresh one. The caller
// takes the data itself and lowers Size by what it took.
type Chunked struct {
	Size   int64 // bytes of the current chunk that have not been taken
	Length int64 // least number of bytes that must still come
	state  chunkedState
}

type chunkedState uint8

const (
	chunkStart chunkedState = iota
	chunkSize
	chunkExt
	chunkExtAlmostDone
	chunkData
	chunkAfterData
	chunkAfterDataAlmostDone
	chunkLastExt
	chunkLastExtAlmostDone
	chunkTrailer
	chunkTrailerAlmostDone
	chunkTrailerHeader
	chunkTrailerHeaderAlmostDone
)

// Parse reads framing from the front of buf and tells how many bytes of it: OK, chunk data
// begins at buf[n]; Done, the body and its trailers end before buf[n]; Again, all was framing
// and more must come; Error. RFC 9112, section 7.1; nginx: ngx_http_parse_chunked.
func (c *Chunked) Parse(buf []byte) (n int, res Result) {
	state := c.state
	if state == chunkData && c.Size == 0 {
		state = chunkAfterData
	}

	res = Again
	p := 0
loop:
	for ; p < len(buf); p++ {
		ch := buf[p]

		switch state {
		case chunkStart:
			d, ok := hexDigit(ch)
			if !ok {
				return p, Error
			}
			c.Size = int64(d)
			state = chunkSize

		case chunkSize:
			if c.Size > math.MaxInt64/16 {
				return p, Error
			}
			if d, ok := hexDigit(ch); ok {
				c.Size = c.Size*16 + int64(d)
				continue
			}
			switch ch {
			case '\r':
				state = last(c.Size, chunkExtAlmostDone, chunkLastExtAlmostDone)
			case '\n':
				state = last(c.Size, chunkData, chunkTrailer)
			case ';', ' ', '\t':
				state = last(c.Size, chunkExt, chunkLastExt)
			default:
				return p, Error
			}

		case chunkExt:
			switch ch {
			case '\r':
				state = chunkExtAlmostDone
			case '\n':
				state = chunkData
			}

		case chunkLastExt:
			switch ch {
			case '\r':
				state = chunkLastExtAlmostDone
			case '\n':
				state = chunkTrailer
			}

		case chunkExtAlmostDone, chunkAfterDataAlmostDone, chunkLastExtAlmostDone, chunkTrailerHeaderAlmostDone:
			if ch != '\n' {
				return p, Error
			}
			state = afterLF[state]

		case chunkData:
			res = OK
			break loop

		case chunkAfterData:
			switch ch {
			case '\r':
				state = chunkAfterDataAlmostDone
			case '\n':
				state = chunkStart
			default:
				return p, Error
			}

		case chunkTrailer:
			switch ch {
			case '\r':
				state = chunkTrailerAlmostDone
			case '\n':
				c.state = chunkStart
				return p + 1, Done
			default:
				state = chunkTrailerHeader
			}

		case chunkTrailerAlmostDone:
			if ch != '\n' {
				return p, Error
			}
			c.state = chunkStart
			return p + 1, Done

		case chunkTrailerHeader:
			switch ch {
			case '\r':
				state = chunkTrailerHeaderAlmostDone
			case '\n':
				state = chunkTrailer
			}
		}
	}

	c.state = state
	if c.Size > math.MaxInt64-5 {
		return p, Error
	}
	c.Length = c.least()
	return p, res
}

var afterLF = [...]chunkedState{
	chunkExtAlmostDone:           chunkData,
	chunkAfterDataAlmostDone:     chunkStart,
	chunkLastExtAlmostDone:       chunkTrailer,
	chunkTrailerHeaderAlmostDone: chunkTrailer,
}

// last chooses the state for a chunk of that size; the last chunk has size 0.
func last(size int64, data, last chunkedState) chunkedState {
	if size == 0 {
		return last
	}
	return data
}

// least is the length of the shortest body that can follow, every line ended by LF only.
func (c *Chunked) least() int64 {
	const (
		lf   = 1
		tail = 4 // LF "0" LF LF
	)
	switch c.state {
	case chunkStart:
		return 3 // "0" LF LF
	case chunkSize:
		if c.Size == 0 {
			return lf + lf
		}
		return lf + c.Size + tail
	case chunkExt, chunkExtAlmostDone:
		return lf + c.Size + tail
	case chunkData:
		return c.Size + tail
	case chunkAfterData, chunkAfterDataAlmostDone:
		return tail
	case chunkLastExt, chunkLastExtAlmostDone, chunkTrailerHeader, chunkTrailerHeaderAlmostDone:
		return lf + lf
	}
	return lf // chunkTrailer, chunkTrailerAlmostDone
}
