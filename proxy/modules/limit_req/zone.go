package limit_req

import (
	"sync"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// zone is a limit_req_zone as one reading of the configuration has it (ngx_http_limit_req_ctx_t).
type zone struct {
	name string
	key  *http.ComplexValue
	rate uint64
	*buckets
	node *node // held by the request that is being looked at, until it is charged or let go
}

// buckets is what workers and runs share.
type buckets struct {
	mu           sync.Mutex
	slab         *module.Slab
	byKey        map[string]*node
	newest, last *node // by use
}

type node struct {
	key          string
	block        module.SlabBlock
	at           int64 // ms, when excess was reckoned
	excess       uint64
	count        int // requests that hold it
	newer, older *node
}

// longAgo is the age of a bucket that has not been charged yet, which makes its first charge free
// (nginx: the machine's time of running).
const longAgo = 1 << 32

// nodeSize is what a key costs besides its bytes, of the tree's node and the module's.
const nodeSize = 80

func (z *zone) init(c *module.Cycle, shm *module.Zone, old any) error {
	if o, ok := old.(*zone); ok {
		if o.key.Text != z.key.Text {
			c.Log.Err(elog.Emerg, nil, "limit_req \"%s\" uses the \"%s\" key while previously it used the \"%s\" key",
				shm.Name, z.key.Text, o.key.Text)
			return module.ErrReported
		}
		z.buckets = o.buckets
		return nil
	}
	z.buckets = &buckets{slab: module.NewSlab(shm.Size), byKey: map[string]*node{}}
	z.slab.Alloc(80) // the tree's root and the queue
	z.slab.Alloc(len(" in limit_req zone \"\"") + 1 + len(shm.Name))
	return nil
}

// verdict is what a look-up found.
type verdict int

const (
	nothing verdict = iota // no key
	charged
	held // found good, to be charged later
	over
	full // no room for a new key
)

// lookup finds a key's bucket, or makes it, and says how full it would be (ngx_http_limit_req_lookup).
func (z *zone) lookup(log *elog.Log, now int64, key []byte, burst uint64, charge bool) (verdict, uint64) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if n := z.byKey[string(key)]; n != nil {
		z.unlink(n)
		z.link(n)
		excess, ms := z.reckon(n, now)
		if excess > burst {
			return over, excess
		}
		if !charge {
			n.count++
			z.node = n
			return held, excess
		}
		n.excess = excess
		if ms != 0 {
			n.at = now
		}
		return charged, excess
	}

	z.expire(now, 1)
	block, ok := z.slab.Alloc(nodeSize + len(key))
	if !ok {
		z.expire(now, 0)
		if block, ok = z.slab.Alloc(nodeSize + len(key)); !ok {
			log.Err(elog.Alert, nil, "could not allocate node in limit_req zone \"%s\"", z.name)
			return full, 0
		}
	}
	n := &node{key: string(key), block: block}
	z.byKey[n.key] = n
	z.link(n)
	if charge {
		n.at = now
		return charged, 0
	}
	n.at = now - longAgo
	n.count = 1
	z.node = n
	return held, 0
}

// reckon is a bucket's excess with one request more, and the time since it was last reckoned.
func (z *zone) reckon(n *node, now int64) (excess uint64, ms int64) {
	ms = now - n.at
	if ms < -60000 {
		ms = 1
	} else if ms < 0 {
		ms = 0
	}
	e := int64(n.excess - z.rate*uint64(ms)/1000 + 1000)
	return uint64(max(e, 0)), ms
}

// account charges the buckets that are held and finds the longest delay, with the excess and the limit
// that it comes from (ngx_http_limit_req_account).
func account(limits []limit, now int64, excess uint64, l *limit) (delay, e uint64, by *limit) {
	if excess > l.delay {
		delay = (excess - l.delay) * 1000 / l.zone.Data.(*zone).rate
	}
	e, by = excess, l
	for i := len(limits) - 1; i >= 0; i-- {
		l := &limits[i]
		z := l.zone.Data.(*zone)
		if z.node == nil {
			continue
		}
		z.mu.Lock()
		excess, ms := z.reckon(z.node, now)
		if ms != 0 {
			z.node.at = now
		}
		z.node.excess = excess
		z.node.count--
		z.mu.Unlock()
		z.node = nil
		if excess <= l.delay {
			continue
		}
		if d := (excess - l.delay) * 1000 / z.rate; d > delay {
			delay, e, by = d, excess, l
		}
	}
	return delay, e, by
}

// release lets go of the buckets that are held.
func release(limits []limit) {
	for i := len(limits) - 1; i >= 0; i-- {
		z := limits[i].zone.Data.(*zone)
		if z.node == nil {
			continue
		}
		z.mu.Lock()
		z.node.count--
		z.mu.Unlock()
		z.node = nil
	}
}

// expire forgets up to two buckets that have been empty for a minute; from 0 on it begins with the oldest
// one, whatever it holds (ngx_http_limit_req_expire).
func (z *zone) expire(now int64, from int) {
	for i := from; i < 3; i++ {
		n := z.last
		if n == nil || n.count > 0 {
			return
		}
		if i > 0 {
			ms := now - n.at
			if ms < 0 {
				ms = -ms
			}
			if ms < 60000 || int64(n.excess-z.rate*uint64(ms)/1000) > 0 {
				return
			}
		}
		z.unlink(n)
		delete(z.byKey, n.key)
		z.slab.Free(n.block)
	}
}

func (b *buckets) link(n *node) {
	n.newer, n.older = nil, b.newest
	if b.newest != nil {
		b.newest.newer = n
	} else {
		b.last = n
	}
	b.newest = n
}

func (b *buckets) unlink(n *node) {
	if n.newer != nil {
		n.newer.older = n.older
	} else {
		b.newest = n.older
	}
	if n.older != nil {
		n.older.newer = n.newer
	} else {
		b.last = n.newer
	}
}
