package upstream

import (
	"syscall"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
)

var errTimedOut error = syscall.ETIMEDOUT

// failStatus is the status that a kind of failure ends in, when no other peer is tried.
func failStatus(ft int) int {
	switch ft {
	case FTTimeout, FTHTTP504:
		return codeGatewayTimeout
	case FTHTTP500:
		return codeInternal
	case FTHTTP503:
		return codeUnavailable
	case FTHTTP403:
		return 403
	case FTHTTP404:
		return 404
	case FTHTTP429:
		return codeTooMany
	}
	return codeBadGateway
}

// next gives up on the peer and tries another one, or ends the exchange (ngx_http_upstream_next).
func (u *Upstream) next(r *http.Request, ft int) {
	if u.Peer.Addr != nil {
		if u.Peer.Conn != nil {
			u.State.BytesSent = u.Peer.Conn.Sent
		}
		state := PeerFailed
		if ft == FTHTTP403 || ft == FTHTTP404 {
			state = PeerNext
		}
		u.Peer.free(state)
	}
	if ft == FTTimeout {
		r.Conn.Log.Err(elog.Error, errTimedOut, "upstream timed out")
	}
	if u.Peer.Cached && ft == FTError {
		u.Peer.Tries++
	}
	status := failStatus(ft)
	if r.Conn.Error {
		u.finalize(r, codeClientClosed)
		return
	}
	u.State.Status = status

	if u.requestSent && r.Method&notIdempotent != 0 {
		ft |= FTNonIdempotent
	}
	if u.Peer.Tries == 0 || u.Conf.NextUpstream&ft != ft ||
		u.requestSent && r.RequestBodyNoBuffering || u.timeUp(r) {
		u.finalize(r, http.Rc(status))
		return
	}
	if u.Peer.Conn != nil {
		u.Peer.close()
	}
	u.connect(r)
}

// finalize ends the exchange (ngx_http_upstream_finalize_request).
func (u *Upstream) finalize(r *http.Request, rc http.Rc) {
	if !u.cleanup {
		// it was finalized before
		r.Finalize(http.Done)
		return
	}
	u.cleanup = false
	if u.Resolved != nil && u.Resolved.cancel != nil {
		u.Resolved.cancel()
		u.Resolved.cancel = nil
	}
	if u.State != nil && u.State.ResponseTime == -1 {
		u.State.ResponseTime = r.Conn.Loop.Mono() - u.startTime
		if p := &u.Pipe; p.readLength != 0 {
			u.State.BytesReceived += p.readLength - p.prereadSize
			u.State.ResponseLength = p.readLength
		}
		if u.Peer.Conn != nil {
			u.State.BytesSent = u.Peer.Conn.Sent
		}
	}
	u.Proto.FinalizeRequest(r, u, rc)
	if u.Peer.Free != nil && u.Peer.Addr != nil {
		u.Peer.free(PeerOK)
	}
	if u.Peer.Conn != nil {
		u.Peer.close()
	}
	u.Pipe.upstream = nil
	if tf := &u.Pipe.tempFile; u.Store && u.Pipe.started && tf.File.FD >= 0 {
		if err := ev.Unlink(string(tf.File.Name)); err != nil {
			r.Conn.Log.Err(elog.Crit, err, "unlink() \"%s\" failed", tf.File.Name)
		}
	}
	r.ReadHandler = http.BlockReading
	if rc == http.Declined {
		return
	}
	r.Conn.Log.Action = "sending to client"
	if !u.HeaderSent || rc == codeRequestTimeout || rc == codeClientClosed {
		r.Finalize(rc)
		return
	}
	flush := false
	if rc >= specialResponse {
		rc = http.Error
		flush = true
	}
	if r.HeaderOnly || u.Pipe.downstreamError {
		r.Finalize(rc)
		return
	}
	if rc == http.OK {
		rc = r.SendSpecial(true, false)
	} else if flush {
		r.KeepAlive = false
		rc = r.SendSpecial(false, true)
	}
	r.Finalize(rc)
}
