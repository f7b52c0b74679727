package http_test

import (
	"bytes"
	"testing"

	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
)

// byFD keeps what each descriptor is sent.
type byFD struct {
	oneClient
	sent map[int]string
}

func (k *byFD) Writev(fd int, iov [][]byte) (int, error) {
	all := bytes.Join(iov, nil)
	k.sent[fd] += string(all)
	return len(all), nil
}

type waits func()

func (w waits) SendNow() { w() }

func TestWhatWaitsDoesNotGetIntoAnothersSend(t *testing.T) {
	k := &byFD{oneClient: oneClient{slots: map[int][2]uint32{}}, sent: map[int]string{}}
	l := ev.NewLoop(k, 16, prepare(t, "server { listen 127.0.0.1:8080; }").log)
	conn := func(fd int) *ev.Conn {
		c := l.NewConn(fd)
		c.Write.Ready = true
		return c
	}
	chain := func(pieces ...string) (head *http.Chain) {
		for i := len(pieces) - 1; i >= 0; i-- {
			head = &http.Chain{Buf: &http.Buf{Data: []byte(pieces[i]), Memory: true}, Next: head}
		}
		return head
	}
	first, second := conn(30), conn(31)
	l.SendLater(second, waits(func() { http.SendChain(second, chain("b1"), 0, false) }))
	if rest, ok := http.SendChain(first, chain("a1", "a2"), 0, false); rest != nil || !ok {
		t.Fatalf("left %v, %v", rest, ok)
	}
	if k.sent[30] != "a1a2" || k.sent[31] != "b1" {
		t.Errorf("sent %v", k.sent)
	}
}
