package http

// lasting is what is undone when a request is all over, after its log entry (nginx: a
// handler of its pool; those of AddCleanup run before the log).
type lasting struct {
	data any
	undo func(data any)
}

// AddLast has undo called with data when the request is all over, after it has been logged.
func (r *Request) AddLast(data any, undo func(data any)) {
	r.Main.last = append(r.Main.last, lasting{data, undo})
}

// FindLast gives the newest data of AddLast that is of T.
func FindLast[T any](r *Request) (t T, ok bool) {
	for i := len(r.Main.last) - 1; i >= 0; i-- {
		if t, ok = r.Main.last[i].data.(T); ok {
			return t, true
		}
	}
	return t, false
}

func (r *Request) runLast() {
	for i := len(r.last) - 1; i >= 0; i-- {
		r.last[i].undo(r.last[i].data)
	}
	clear(r.last)
	r.last = r.last[:0]
}
