package upstream

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
)

// startUnbuffered passes an answer on as it comes (ngx_http_upstream_send_response).
func (u *Upstream) startUnbuffered(r *http.Request) {
	u.readHandler = unbufferedUpstream
	r.WriteHandler = unbufferedDownstream
	r.LimitRate = 0
	r.LimitRateSet = true
	if u.Proto.InputFilterInit(r, u) == http.Error {
		u.finalize(r, http.Error)
		return
	}
	if r.Core.TCPNodelay > 0 && !r.Conn.SetNodelay() {
		u.finalize(r, http.Error)
		return
	}
	if n := len(u.Buffer.Data); n > 0 {
		u.Buffer.Data = u.Buffer.Data[:0]
		u.State.ResponseLength += int64(n)
		if u.Proto.Filter(r, u, n) == http.Error {
			u.finalize(r, http.Error)
			return
		}
		unbufferedDownstream(r)
		return
	}
	u.Buffer.Data = u.Buffer.Start[:0]
	if r.SendSpecial(false, true) == http.Error {
		u.finalize(r, http.Error)
		return
	}
	unbufferedUpstream(r, u)
}

func unbufferedDownstream(r *http.Request) {
	u := Of(r)
	c := r.Conn
	c.Log.Action = "sending to client"
	if c.Write.TimedOut {
		r.HC.TimedOut = true
		c.Fault(errTimedOut, "client timed out")
		u.finalize(r, codeRequestTimeout)
		return
	}
	u.unbuffered(r, true)
}

func unbufferedUpstream(r *http.Request, u *Upstream) {
	c := u.Peer.Conn
	c.Log.Action = "reading upstream"
	if c.Read.TimedOut {
		c.Fault(errTimedOut, "upstream timed out")
		u.finalize(r, codeGatewayTimeout)
		return
	}
	u.unbuffered(r, false)
}

// unbuffered writes and reads in turn; the buffer is read into again once all of it has been sent
// (ngx_http_upstream_process_non_buffered_request).
func (u *Upstream) unbuffered(r *http.Request, doWrite bool) {
	down, up := r.Conn, u.Peer.Conn
	b := &u.Buffer
	doWrite = doWrite || u.Length == 0
	for {
		if doWrite {
			if u.OutBufs != nil || u.busyBufs != nil || down.Buffered != 0 {
				if r.OutputFilter(u.OutBufs) == http.Error {
					u.finalize(r, http.Error)
					return
				}
				r.UpdateChains(&u.FreeBufs, &u.busyBufs, &u.OutBufs, u.Tag)
			}
			if u.busyBufs == nil {
				if u.Length == 0 || up.Read.EOF && u.Length == -1 {
					u.finalize(r, http.OK)
					return
				}
				if up.Read.EOF {
					up.Log.Err(elog.Error, nil, "upstream prematurely closed connection")
					u.finalize(r, codeBadGateway)
					return
				}
				if up.Read.Error || u.Error {
					u.finalize(r, codeBadGateway)
					return
				}
				b.Data = b.Start[:0]
			}
		}
		room := b.Data[len(b.Data):cap(b.Data)]
		if len(room) == 0 || !up.Read.Ready {
			break
		}
		n := up.Recv(room)
		if n == ev.Again {
			break
		}
		if n > 0 {
			u.State.BytesReceived += int64(n)
			u.State.ResponseLength += int64(n)
			if u.Proto.Filter(r, u, n) == http.Error {
				u.finalize(r, http.Error)
				return
			}
		}
		doWrite = true
	}

	wait(&down.Write, r.Core.SendTimeout)
	wait(&up.Read, u.Conf.ReadTimeout)
}

// AppendOut gives a new buffer at the end of u.OutBufs, to be flushed at once.
func (u *Upstream) AppendOut(r *http.Request, data []byte) *http.Buf {
	ll := &u.OutBufs
	for *ll != nil {
		ll = &(*ll).Next
	}
	cl := r.GetFreeBuf(&u.FreeBufs)
	*ll = cl
	b := cl.Buf
	b.Flush, b.Memory = true, true
	b.Data = data
	b.Tag = u.Tag
	return b
}
