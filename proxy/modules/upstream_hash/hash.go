// Package upstream_hash is ngx_http_upstream_hash_module: a server is chosen by the hash of a text.
package upstream_hash

import (
	"hash/crc32"
	"sort"
	"strconv"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/upstream"
)

// Module is ngx_http_upstream_hash_module.
var Module = &http.Module{
	Name: "ngx_http_upstream_hash_module",
	Directives: []module.Directive{
		{Name: "hash", Where: module.HTTPUps, Args: module.Take12, Level: module.SrvConf, Set: setHash},
	},
	CreateSrv: func(*module.Conf) any { return &srvConf{} },
}

type srvConf struct {
	key    *http.ComplexValue
	points []point
}

// point is a place on the ring of the consistent hash.
type point struct {
	hash   uint32
	server string
}

// maxTries is how often a hash is tried before round robin decides.
const maxTries = 20

func setHash(cf *module.Conf, cmd *module.Directive, conf any) error {
	c := conf.(*srvConf)
	key, err := http.CompileComplexValue(cf, cf.Args[1])
	if err != nil {
		return err
	}
	c.key = key
	us := http.ConfSrv(cf, upstream.Module).(*upstream.SrvConf)
	if us.Init != nil {
		cf.Warn("load balancing method redefined")
	}
	us.Flags = upstream.AllButBackup
	peerInit := func(get func(pc *upstream.Peer) int) func(r *http.Request, u *upstream.Upstream, us *upstream.SrvConf) http.Rc {
		return func(r *http.Request, u *upstream.Upstream, us *upstream.SrvConf) http.Rc {
			return c.initPeer(r, u, us, get)
		}
	}
	switch {
	case len(cf.Args) == 2:
		us.Init = func(cf *module.Conf, us *upstream.SrvConf) error {
			err := upstream.InitRoundRobin(cf, us)
			us.PeerInit = peerInit(getHash)
			return err
		}
	case module.Is(cf.Args[2], "consistent"):
		us.Init = func(cf *module.Conf, us *upstream.SrvConf) error {
			if err := upstream.InitRoundRobin(cf, us); err != nil {
				return err
			}
			us.PeerInit = peerInit(getConsistent)
			c.points = ring(us.Peers)
			return nil
		}
	default:
		return cf.Emerg("invalid parameter \"%s\"", cf.Args[2])
	}
	return nil
}

func (c *srvConf) initPeer(r *http.Request, u *upstream.Upstream, us *upstream.SrvConf, get func(pc *upstream.Peer) int) http.Rc {
	if rc := upstream.InitRoundRobinPeer(r, u, us); rc != http.OK {
		return rc
	}
	key, rc := r.Complex(c.key)
	if rc != http.OK {
		return http.Error
	}
	m := &u.Peer.Method
	m.Key, m.Conf = key, c
	m.Tries, m.Rehash, m.Hash = 0, 0, 0
	u.Peer.Get = get
	if c.points != nil {
		h := crc32.ChecksumIEEE(key)
		m.Hash = uint32(sort.Search(len(c.points), func(i int) bool { return c.points[i].hash >= h }))
	}
	return http.OK
}

// roundRobin reports whether the hash has nothing to say.
func roundRobin(pc *upstream.Peer) bool {
	return pc.Method.Tries > maxTries || pc.RR.Peers.Single || len(pc.Method.Key) == 0
}

// getHash is compatible with Cache::Memcached: ((crc32([REHASH] KEY) >> 16) & 0x7fff) added up
// (ngx_http_upstream_get_hash_peer).
func getHash(pc *upstream.Peer) int {
	m := &pc.Method
	if roundRobin(pc) {
		return upstream.GetRoundRobin(pc)
	}
	now, _ := pc.Loop.Now()
	pc.Cached = false
	pc.Conn = nil
	peers := pc.RR.Peers
	for {
		var sum uint32
		if m.Rehash > 0 {
			var b [20]byte
			sum = crc32.Update(0, crc32.IEEETable, strconv.AppendInt(b[:0], int64(m.Rehash), 10))
		}
		sum = crc32.Update(sum, crc32.IEEETable, m.Key)
		m.Hash += sum >> 16 & 0x7fff
		m.Rehash++

		i := peers.ByWeight(int(m.Hash) % peers.TotalWeight)
		p := &peers.List[i]
		if !pc.Tried(i) && p.Usable(now) {
			p.Check(now)
			pc.SetTried(i)
			return pc.Take(p)
		}
		if m.Tries++; m.Tries > maxTries {
			return upstream.GetRoundRobin(pc)
		}
	}
}

// ring places every server at 160 points for each unit of its weight, as Cache::Memcached::Fast
// does: crc32(HOST \0 PORT PREV_HASH) (ngx_http_upstream_init_chash).
func ring(peers *upstream.Peers) []point {
	points := make([]point, 0, peers.TotalWeight*160)
	for i := range peers.List {
		p := &peers.List[i]
		host, port := split(p.Server)
		base := crc32.ChecksumIEEE([]byte(host + "\x00" + port))
		var prev uint32
		for range p.Weight * 160 {
			prev = crc32.Update(base, crc32.IEEETable, []byte{byte(prev), byte(prev >> 8), byte(prev >> 16), byte(prev >> 24)})
			points = append(points, point{prev, p.Server})
		}
	}
	// nginx's sort is stable; of equal points the first stays
	sort.SliceStable(points, func(i, j int) bool { return points[i].hash < points[j].hash })
	out := points[:1]
	for _, p := range points[1:] {
		if p.hash != out[len(out)-1].hash {
			out = append(out, p)
		}
	}
	return out
}

func split(server string) (host, port string) {
	if len(server) >= 5 && ascii.EqualFold(server[:5], "unix:") {
		return server[5:], ""
	}
	for j := len(server) - 1; j >= 0; j-- {
		c := server[j]
		if c == ':' {
			return server[:j], server[j+1:]
		}
		if c < '0' || c > '9' {
			break
		}
	}
	return server, ""
}

// getConsistent goes round the ring from the key's place (ngx_http_upstream_get_chash_peer).
func getConsistent(pc *upstream.Peer) int {
	m := &pc.Method
	if roundRobin(pc) {
		return upstream.GetRoundRobin(pc)
	}
	pc.Cached = false
	pc.Conn = nil
	now, _ := pc.Loop.Now()
	points := m.Conf.(*srvConf).points
	list := pc.RR.Peers.List
	for {
		server := points[int(m.Hash)%len(points)].server
		best, total := -1, 0
		for i := range list {
			p := &list[i]
			if pc.Tried(i) || !p.Usable(now) || p.Server != server {
				continue
			}
			p.CurrentWeight += p.EffectiveWeight
			total += p.EffectiveWeight
			if p.EffectiveWeight < p.Weight {
				p.EffectiveWeight++
			}
			if best < 0 || p.CurrentWeight > list[best].CurrentWeight {
				best = i
			}
		}
		if best >= 0 {
			p := &list[best]
			p.CurrentWeight -= total
			p.Check(now)
			pc.SetTried(best)
			return pc.Take(p)
		}
		m.Hash++
		if m.Tries++; m.Tries > maxTries {
			return upstream.GetRoundRobin(pc)
		}
	}
}
