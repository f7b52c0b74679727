package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

var okWorkload = Workload{Path: "/", Body: []byte("ok\n")}

// serve answers each connection by f, which returns when it wants the connection closed.
func serve(t *testing.T, f func(c net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); f(c) }()
		}
	}()
	return l.Addr().String()
}

// answer reads one request and sends raw.
func answer(c net.Conn, raw string) bool {
	buf := make([]byte, 4096)
	if n, err := c.Read(buf); err != nil || n == 0 {
		return false
	}
	_, err := io.WriteString(c, raw)
	return err == nil
}

const whole = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"

func TestVerifyLooksAtEveryByte(t *testing.T) {
	for _, c := range []struct{ name, raw string }{
		{"wrong byte", strings.Replace(whole, "ok", "oK", 1)},
		{"wrong status", strings.Replace(whole, "200", "404", 1)},
		{"short", whole[:len(whole)-1]},
	} {
		addr := serve(t, func(c2 net.Conn) { answer(c2, c.raw) })
		if _, err := okWorkload.verify(addr, 1); err == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
	addr := serve(t, func(c net.Conn) {
		for answer(c, whole) {
		}
	})
	if n, err := okWorkload.verify(addr, 3); err != nil || n != len(whole) {
		t.Errorf("length %d, %v; want %d", n, err, len(whole))
	}
}

func openLoop(t *testing.T, job OpenLoopJob) (l Latency) {
	in, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := OpenLoop(bytes.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOpenLoopKeepsOrMakesConnections(t *testing.T) {
	var conns atomic.Int64
	addr := serve(t, func(c net.Conn) {
		conns.Add(1)
		for answer(c, whole) {
		}
	})
	job := OpenLoopJob{Addr: addr, Request: okWorkload.request(), Length: len(whole), Rate: 200, Conns: 2, Seconds: 0.2}
	if l := openLoop(t, job); l.Errors != 0 || l.P50 == 0 || conns.Load() != 2 {
		t.Errorf("kept: %+v, %d connections", l, conns.Load())
	}
	conns.Store(0)
	job.Addr = serve(t, func(c net.Conn) { conns.Add(1); answer(c, whole) })
	job.Fresh = true
	if l := openLoop(t, job); l.Errors != 0 || l.P50 == 0 || conns.Load() != 40 {
		t.Errorf("fresh: %+v, %d connections, want 40", l, conns.Load())
	}
}

func TestOpenLoopCountsWhatGoesWrong(t *testing.T) {
	for _, c := range []struct {
		name, raw, first string
		fresh            bool
	}{
		{"short and ended", whole[:len(whole)-1], "an end after", true},
		{"long", whole + "x", "bytes", true},
		{"ended, kept alive", "", "", false},
	} {
		addr := serve(t, func(c2 net.Conn) { answer(c2, c.raw) })
		l := openLoop(t, OpenLoopJob{Addr: addr, Request: okWorkload.request(), Length: len(whole), Rate: 100, Conns: 2, Fresh: c.fresh, Seconds: 0.1})
		if l.Errors != 10 || !strings.Contains(l.First, c.first) {
			t.Errorf("%s: %+v", c.name, l)
		}
	}
}

// A kept connection that ends between requests is opened again and is no failure; a piece of a response is one.
func TestKeptClientsOfAReload(t *testing.T) {
	run := func(each func(n int64, c net.Conn)) *tally {
		var n atomic.Int64
		stop := make(chan struct{})
		addr := serve(t, func(c net.Conn) {
			k := n.Add(1)
			if k == 5 {
				close(stop)
			}
			each(k, c)
		})
		var got tally
		got.onKept(okWorkload, addr, 0, stop)
		return &got
	}
	got := run(func(n int64, c net.Conn) { answer(c, whole); answer(c, whole) })
	if got.failed != 0 || got.reopened < 4 || got.kept < 8 {
		t.Errorf("ended between requests: %+v (%v)", got.kept, got.first)
	}
	got = run(func(n int64, c net.Conn) { answer(c, whole); answer(c, whole[:20]) })
	if got.failed < 4 {
		t.Errorf("pieces of responses: %d failed", got.failed)
	}
	got = run(func(n int64, c net.Conn) { answer(c, "") })
	if got.failed < 4 || got.reopened != 0 {
		t.Errorf("new connections that end: %d failed, %d reopened", got.failed, got.reopened)
	}
}

// What a candidate does wrong is its row's failure; the run goes on.
func TestWrongCandidateFailsItsRow(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "no\n") }))
	defer s.Close()
	_, err := okWorkload.verify(s.Listener.Addr().String(), 1)
	bounds, terr := Thresholds()
	if terr != nil {
		t.Fatal(terr)
	}
	r := &runner{opt: Options{Reference: Server{Name: "a"}, Candidate: Server{Name: "b"}}, bounds: bounds}
	row := Row{Workload: "static-3b", Ref: Side{Samples: []Sample{{Requests: 1}}}}
	if err := r.outcome(Workload{Name: "static-3b"}, &row, blame("b", err)); err != nil {
		t.Errorf("the candidate's fault: %v", err)
	}
	if _, fail, none := (Report{Rows: []Row{row}}).Count(); fail != 2 || none != 0 || !strings.Contains(row.Figures[0].Why, `"no\n"`) {
		t.Errorf("%+v", row.Figures)
	}
	if err := r.outcome(Workload{Name: "static-3b"}, &Row{}, blame("a", err)); err == nil {
		t.Error("the reference's fault is no broken rig")
	}
	if err := r.outcome(Workload{Name: "static-3b"}, &Row{}, err); err == nil {
		t.Error("nobody's fault is no broken rig")
	}
}

func TestTenThousandLines(t *testing.T) {
	w := Workload{Conf: large()}
	if n := strings.Count(w.conf(place{dir: "d"}), "\n"); n != 10_000 {
		t.Errorf("%d lines", n)
	}
}
