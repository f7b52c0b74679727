package limit_req

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
)

// handler looks a request up in all zones; the last one is charged at once, those before it only when
// none refuses (ngx_http_limit_req_handler).
func handler(r *http.Request) http.Rc {
	if r.Main.LimitReqStatus != 0 {
		return http.Declined
	}
	c := r.LocConf[Module.Index].(*conf)
	log := r.Conn.Log
	now := r.Conn.Loop.Mono()
	found := nothing
	var excess uint64
	var l *limit
	n := 0
	for ; n < len(c.limits); n++ {
		l = &c.limits[n]
		z := l.zone.Data.(*zone)
		key, rc := r.Complex(z.key)
		if rc != http.OK {
			release(c.limits[:n])
			return 500
		}
		if len(key) == 0 {
			continue
		}
		if len(key) > 65535 {
			log.Err(elog.Error, nil, "the value of the \"%s\" key is more than 65535 bytes: \"%s\"", z.key.Text, key)
			continue
		}
		found, excess = z.lookup(r.Conn.Loop.Log, now, key, l.burst, n == len(c.limits)-1)
		if found != held {
			break
		}
	}

	switch found {
	case nothing:
		return http.Declined
	case over, full:
		if found == over {
			log.Err(elog.Level(c.level), nil, "limiting requests%s, excess: %d.%03d by zone \"%s\"",
				c.dryWord(), excess/1000, excess%1000, l.zone.Name)
		}
		release(c.limits[:n])
		if c.dryRun > 0 {
			r.Main.LimitReqStatus = rejectedDryRun
			return http.Declined
		}
		r.Main.LimitReqStatus = rejected
		return http.Rc(c.status)
	case held:
		excess = 0
	}

	wait, excess, l := account(c.limits[:n], now, excess, l)
	if wait == 0 {
		r.Main.LimitReqStatus = passed
		return http.Declined
	}
	log.Err(c.delayLevel(), nil, "delaying request%s, excess: %d.%03d, by zone \"%s\"",
		c.dryWord(), excess/1000, excess%1000, l.zone.Name)
	if c.dryRun > 0 {
		r.Main.LimitReqStatus = delayedDryRun
		return http.Declined
	}
	r.Main.LimitReqStatus = delayed
	return hold(r, int64(wait))
}

func (c *conf) dryWord() string {
	if c.dryRun > 0 {
		return ", dry run"
	}
	return ""
}

// hold stops the request for some milliseconds; a client that goes away meanwhile is noticed.
func hold(r *http.Request, ms int64) http.Rc {
	c := r.Conn
	if c.Read.Ready {
		c.Loop.Post(&c.Read)
	}
	c.Read.Watch()
	r.ReadHandler = (*http.Request).TestReading
	r.WriteHandler = resume
	c.Write.Delayed = true
	c.Loop.AddTimer(&c.Write, ms)
	return http.Again
}

func resume(r *http.Request) {
	if r.Conn.Write.Delayed {
		return
	}
	r.ReadHandler = http.BlockReading
	r.WriteHandler = (*http.Request).RunPhases
	r.RunPhases()
}
