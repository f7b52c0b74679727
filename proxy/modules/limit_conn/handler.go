package limit_conn

import (
	"sync"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// zone is a limit_conn_zone as one reading of the configuration has it (ngx_http_limit_conn_ctx_t).
type zone struct {
	name string
	key  *http.ComplexValue
	*counts
}

// counts is what workers and runs share.
type counts struct {
	mu    sync.Mutex
	slab  *module.Slab
	byKey map[string]*node
}

type node struct {
	key   string
	block module.SlabBlock
	conns int
}

// nodeSize is what a key costs besides its bytes, of the tree's node and the module's.
const nodeSize = 36

func (z *zone) init(c *module.Cycle, shm *module.Zone, old any) error {
	if o, ok := old.(*zone); ok {
		if o.key.Text != z.key.Text {
			c.Log.Err(elog.Emerg, nil, "limit_conn_zone \"%s\" uses the \"%s\" key while previously it used the \"%s\" key",
				shm.Name, z.key.Text, o.key.Text)
			return module.ErrReported
		}
		z.counts = o.counts
		return nil
	}
	z.counts = &counts{slab: module.NewSlab(shm.Size), byKey: map[string]*node{}}
	z.slab.Alloc(64) // the tree's root
	z.slab.Alloc(len(" in limit_conn_zone \"\"") + 1 + len(shm.Name))
	return nil
}

// enter counts one request more of a key; a nil node is a refusal, with full when there is no room to
// count in.
func (z *zone) enter(key []byte, most int) (n *node, full bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	n = z.byKey[string(key)]
	if n == nil {
		block, ok := z.slab.Alloc(nodeSize + len(key))
		if !ok {
			return nil, true
		}
		n = &node{key: string(key), block: block}
		z.byKey[n.key] = n
	} else if n.conns >= most {
		return nil, false
	}
	n.conns++
	return n, false
}

func (c *counts) leave(n *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.conns--; n.conns == 0 {
		delete(c.byKey, n.key)
		c.slab.Free(n.block)
	}
}

// hold is a request's place in a zone. It is given back when the request is over, or at once when a
// further zone refuses.
type hold struct {
	counts *counts
	node   *node // nil: given back
	prev   *hold
}

func release(data any) {
	h := data.(*hold)
	if h.node != nil {
		h.counts.leave(h.node)
		h.node = nil
	}
}

// handler counts a request in all zones (ngx_http_limit_conn_handler).
func handler(r *http.Request) http.Rc {
	if r.Main.LimitConnStatus != 0 {
		return http.Declined
	}
	c := r.LocConf[Module.Index].(*conf)
	log := r.Conn.Log
	var held *hold
	for i := range c.limits {
		l := &c.limits[i]
		z := l.zone.Data.(*zone)
		key, rc := r.Complex(z.key)
		if rc != http.OK {
			return 500
		}
		if len(key) == 0 {
			continue
		}
		if len(key) > 255 {
			log.Err(elog.Error, nil, "the value of the \"%s\" key is more than 255 bytes: \"%s\"", z.key.Text, key)
			continue
		}
		r.Main.LimitConnStatus = passed
		n, full := z.enter(key, l.max)
		if n == nil {
			if full {
				r.Conn.Loop.Log.Err(elog.Crit, nil, "ngx_slab_alloc() failed: no memory in limit_conn_zone \"%s\"", z.name)
			} else {
				log.Err(elog.Level(c.level), nil, "limiting connections%s by zone \"%s\"", c.dryWord(), l.zone.Name)
			}
			for ; held != nil; held = held.prev {
				release(held)
			}
			if c.dryRun > 0 {
				r.Main.LimitConnStatus = rejectedDryRun
				return http.Declined
			}
			r.Main.LimitConnStatus = rejected
			return http.Rc(c.status)
		}
		held = &hold{z.counts, n, held}
		r.AddLast(held, release)
	}
	return http.Declined
}

func (c *conf) dryWord() string {
	if c.dryRun > 0 {
		return ", dry run,"
	}
	return ""
}
