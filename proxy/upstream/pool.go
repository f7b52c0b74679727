package upstream

import (
	"sync"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
)

// worker is what one loop keeps for its exchanges: used ones with their buffers, and
// scratch memory.
type worker struct {
	free      []*Upstream
	freeState []*States
	iov       [][]byte
}

// keepFree bounds the memory that an idle worker holds on to.
const keepFree = 1024

var (
	workersMu sync.RWMutex
	workers   = map[*ev.Loop]*worker{}
)

func workerOf(l *ev.Loop) *worker {
	workersMu.RLock()
	w := workers[l]
	workersMu.RUnlock()
	if w != nil {
		return w
	}
	workersMu.Lock()
	defer workersMu.Unlock()
	if w = workers[l]; w == nil {
		w = &worker{iov: make([][]byte, 0, 64)}
		workers[l] = w
	}
	return w
}

func (w *worker) get() *Upstream {
	if n := len(w.free); n > 0 {
		u := w.free[n-1]
		w.free = w.free[:n-1]
		u.reset()
		return u
	}
	u := &Upstream{w: w}
	u.Peer.Up = u
	u.cleanupFn = u.release
	return u
}

// reset keeps the memory and forgets the rest. It is done when an exchange starts, since a request is
// logged after its cleanup.
func (u *Upstream) reset() {
	headers := u.HeadersIn.Headers[:0]
	trailers := u.HeadersIn.Trailers[:0]
	*u = Upstream{
		w: u.w, cleanupFn: u.cleanupFn, Proto: u.Proto,
		mem: u.mem, clientMem: u.clientMem, raw: u.raw, ReqMem: u.ReqMem,
	}
	u.HeadersIn.Headers, u.HeadersIn.Trailers = headers, trailers
	u.Peer.Up = u
}

// release is the request's cleanup (ngx_http_upstream_cleanup).
func (u *Upstream) release() {
	if u.cleanup && Of(u.R) == u {
		u.finalize(u.R, http.Done)
	}
	if len(u.w.free) < keepFree {
		u.w.free = append(u.w.free, u)
	}
	if st := u.states; st != nil && u.R.UpstreamStates == any(st) && len(u.w.freeState) < keepFree && !st.kept {
		st.kept = true
		u.w.freeState = append(u.w.freeState, st)
	}
}

func (w *worker) newStates() *States {
	if n := len(w.freeState); n > 0 {
		st := w.freeState[n-1]
		w.freeState = w.freeState[:n-1]
		st.List, st.kept = st.List[:0], false
		return st
	}
	return &States{}
}

// buffer gives memory of n bytes, what mem has if it is enough.
func buffer(mem *[]byte, n int64) []byte {
	if int64(cap(*mem)) < n {
		*mem = ev.Bytes(n)
	}
	return (*mem)[:n:n]
}
