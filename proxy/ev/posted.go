package ev

// queue is a list of posted events, first in, first out (ngx_event_posted.h).
type queue struct{ head, tail *Event }

func (q *queue) push(e *Event) {
	if e.Posted {
		return
	}
	e.Posted, e.queue, e.prev, e.next = true, q, q.tail, nil
	if q.tail == nil {
		q.head = e
	} else {
		q.tail.next = e
	}
	q.tail = e
}

func (q *queue) remove(e *Event) {
	if e.prev == nil {
		q.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		q.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.Posted, e.queue, e.prev, e.next = false, nil, nil, nil
}

// Post makes e's handler be called at the end of this turn.
func (l *Loop) Post(e *Event) { l.posted.push(e) }

// PostNext makes e's handler be called in the next turn, after what the kernel reports, with Ready set.
func (l *Loop) PostNext(e *Event) { l.postedNext.push(e) }

// DelPosted takes an event back.
func (l *Loop) DelPosted(e *Event) {
	if e.Posted {
		e.queue.remove(e)
	}
}

func (l *Loop) runPosted(q *queue) {
	for q.head != nil {
		e := q.head
		q.remove(e)
		l.invoke(e)
		if q.head == nil {
			l.Flush()
		}
	}
}

// movePostedNext makes the events of PostNext ordinary ones; it tells whether there were any.
func (l *Loop) movePostedNext() bool {
	any := false
	for l.postedNext.head != nil {
		e := l.postedNext.head
		l.postedNext.remove(e)
		e.Ready, e.drained, e.deferred = true, false, false
		l.posted.push(e)
		any = true
	}
	return any
}
