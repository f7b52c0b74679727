package http

// HeaderBuffer gives the buffer in which the request's header was read, up to the last byte that was read, and of
// it what lies behind the header and is in no body: the beginning of what goes through a tunnel.
func (r *Request) HeaderBuffer() (whole, rest []byte) {
	h := r.headerIn
	return h.b[:h.last:h.last], h.b[h.pos:h.last:h.last]
}

// SetHeaderRest says what of that buffer is still to be sent.
func (r *Request) SetHeaderRest(whole, rest []byte) {
	h := r.headerIn
	h.pos = cap(whole) - cap(rest)
	h.last = h.pos + len(rest)
}
