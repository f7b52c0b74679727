package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	reloads = 10
	kept    = 8 // connections that go on from request to request, every second one with pauses
)

// tally is what clients of a reload have seen.
type tally struct {
	sync.Mutex
	fresh, kept int // requests on connections of their own, and on kept ones
	reopened    int // kept connections that the server ended between two requests, as it may
	failed      int
	first       error
}

func (t *tally) add(n *int, err error) {
	t.Lock()
	defer t.Unlock()
	*n++
	if err != nil {
		t.failed++
		if t.first == nil {
			t.first = err
		}
	}
}

// onNew asks one request after another, each on its own connection.
func (t *tally) onNew(w Workload, addr string, stop <-chan struct{}) {
	for !over(stop) {
		_, err := w.verify(addr, 1)
		t.add(&t.fresh, err)
	}
}

// onKept asks on one connection. A server may end it where no request has been begun; a request that met that end
// goes out again (RFC 9110, 9.2.2). Anything else counts: an end on a new connection, a piece of a response, a wrong byte.
func (t *tally) onKept(w Workload, addr string, pause time.Duration, stop <-chan struct{}) {
	w.Fresh = false
	s := session{w: w, addr: addr}
	defer s.close()
	for !over(stop) {
		used := s.c != nil
		_, err := s.ask()
		if ended := err != nil && used && s.in.n == 0 && !errors.Is(err, os.ErrDeadlineExceeded); ended {
			s.close()
			t.add(&t.reopened, nil)
			continue
		}
		t.add(&t.kept, err)
		if err != nil {
			s.close()
		} else if s.c == nil {
			t.add(&t.reopened, nil) // it said so itself
		}
		time.Sleep(pause)
	}
}

func over(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// reload sends HUP ten times under load and counts the requests that failed.
func (r *runner) reload(ctx context.Context, w Workload, p place, row *Row) error {
	for _, s := range r.sides(row) {
		err := r.with(ctx, p, s.Server, func(pid int) error {
			if _, err := w.verify(p.addr(), 100); err != nil {
				return blame(s.Name, err)
			}
			stop := make(chan struct{})
			var t tally
			var clients sync.WaitGroup
			clients.Go(func() { t.onNew(w, p.addr(), stop) })
			for i := range kept {
				clients.Go(func() { t.onKept(w, p.addr(), time.Duration(i%2)*5*time.Millisecond, stop) })
			}
			var err error
			for range reloads {
				time.Sleep(200 * time.Millisecond)
				err = errors.Join(err, syscall.Kill(pid, syscall.SIGHUP))
			}
			time.Sleep(300 * time.Millisecond)
			close(stop)
			clients.Wait()
			if min(t.fresh, t.kept) < 100 {
				err = errors.Join(err, fmt.Errorf("%d requests on new connections and %d on kept ones during ten reloads: too few to say anything", t.fresh, t.kept))
			}
			if t.reopened == 0 {
				err = errors.Join(err, blame(s.Name, fmt.Errorf("ten reloads ended no kept connection: nothing was reloaded")))
			}
			s.Note = fmt.Sprintf("%d requests on new connections, one after another; %d on %d kept ones, which were ended between requests %d times", t.fresh, t.kept, kept, t.reopened)
			if t.first != nil {
				s.Note += "; the first failure: " + t.first.Error()
			}
			s.Values = append(s.Values, float64(t.failed))
			s.Value = float64(t.fresh + t.kept)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
