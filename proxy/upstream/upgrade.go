package upstream

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
)

// upgrade turns the two connections into a tunnel (ngx_http_upstream_upgrade).
func (u *Upstream) upgrade(r *http.Request) {
	c := r.Conn
	if r != r.Main {
		c.Log.Err(elog.Error, nil, "connection upgrade in subrequest")
		u.finalize(r, http.Error)
		return
	}
	r.KeepAlive = false
	c.Log.Action = "proxying upgraded connection"
	u.readHandler = func(r *http.Request, u *Upstream) { u.tunnel(r, true, false) }
	u.writeHandler = func(r *http.Request, u *Upstream) { u.tunnel(r, false, true) }
	r.ReadHandler = func(r *http.Request) { Of(r).tunnel(r, false, false) }
	r.WriteHandler = func(r *http.Request) { Of(r).tunnel(r, true, true) }

	if r.Core.TCPNodelay > 0 && (!c.SetNodelay() || !u.Peer.Conn.SetNodelay()) {
		u.finalize(r, http.Error)
		return
	}
	if r.SendSpecial(false, true) == http.Error {
		u.finalize(r, http.Error)
		return
	}
	if u.Peer.Conn.Read.Ready || len(u.Buffer.Data) > 0 {
		c.Loop.Post(&c.Read)
		u.tunnel(r, true, true)
		return
	}
	u.tunnel(r, false, true)
}

// tunnel moves bytes in one direction (ngx_http_upstream_process_upgraded).
func (u *Upstream) tunnel(r *http.Request, fromUpstream, doWrite bool) {
	down, up := r.Conn, u.Peer.Conn
	if down.Write.TimedOut {
		r.HC.TimedOut = true
		down.Fault(errTimedOut, "client timed out")
		u.finalize(r, codeRequestTimeout)
		return
	}
	if up.Read.TimedOut || up.Write.TimedOut {
		down.Fault(errTimedOut, "upstream timed out")
		u.finalize(r, codeGatewayTimeout)
		return
	}

	src, dst, b := up, down, &u.Buffer
	var header []byte
	if !fromUpstream {
		src, dst, b = down, up, &u.fromClient
		// What the client sent behind its header comes first, out of the buffer of the header; what comes while that is sent
		// is read over the header from its beginning, as in nginx: a log shows it.
		if all, rest := r.HeaderBuffer(); len(rest) > 0 {
			header, b = all, &http.Buf{Start: all, Data: rest}
			doWrite = true
		} else if b.Start == nil {
			b.Start = buffer(&u.clientMem, u.Conf.BufferSize)
			b.Data = b.Start[:0]
		}
	}

	for {
		if doWrite && len(b.Data) > 0 && dst.Write.Ready {
			n := dst.Send(b.Data)
			if n == ev.Err {
				u.finalize(r, http.Error)
				return
			}
			if n > 0 {
				if b.Data = b.Data[n:]; len(b.Data) == 0 {
					b.Data = b.Start[:0]
				}
			}
		}
		room := b.Data[len(b.Data):cap(b.Data)]
		if len(room) == 0 || !src.Read.Ready {
			break
		}
		n := src.Recv(room)
		if n == ev.Again || n == 0 {
			break
		}
		if n == ev.Err {
			src.Read.EOF = true
			break
		}
		doWrite = true
		b.Data = b.Data[:len(b.Data)+n]
		if fromUpstream {
			u.State.BytesReceived += int64(n)
		}
	}

	if header != nil {
		r.SetHeaderRest(header, b.Data)
	}

	if up.Read.EOF && len(u.Buffer.Data) == 0 ||
		down.Read.EOF && len(u.fromClient.Data) == 0 ||
		down.Read.EOF && up.Read.EOF {
		u.finalize(r, http.OK)
		return
	}
	wait(&up.Write, u.Conf.SendTimeout)
	wait(&up.Read, u.Conf.ReadTimeout)
	wait(&down.Write, r.Core.SendTimeout)
}

// wait runs a timer while the event is not ready.
func wait(e *ev.Event, ms int64) {
	if !e.Ready {
		e.Conn.Loop.AddTimer(e, ms)
	} else if e.TimerSet {
		e.Conn.Loop.DelTimer(e)
	}
}
