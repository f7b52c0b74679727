package http

// TakeBuffered gives what has been read from the client behind the request's header and is in no
// body: the beginning of what goes through a tunnel. The bytes are good until the next read.
func (r *Request) TakeBuffered() []byte {
	b := r.headerIn.unread()
	r.headerIn.pos = r.headerIn.last
	return b
}
