package upstream

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// How a peer served, as told to Peer.Free (NGX_PEER_*).
const (
	PeerOK     = 0
	PeerNext   = 2
	PeerFailed = 4
)

// PeerServer is one address that may be chosen, with what is known of its health
// (ngx_http_upstream_rr_peer_t). Times are seconds of the loop's clock.
type PeerServer struct {
	Addr   ev.Addr
	Name   []byte // as $upstream_addr shows it
	Server string // as written in the configuration

	CurrentWeight, EffectiveWeight, Weight int
	Conns, MaxConns                        int
	Fails, MaxFails                        int
	Accessed, Checked, FailTimeout         int64
	Down                                   bool
}

// Peers is an upstream's servers; Backup, when not nil, is used when none of them can be.
type Peers struct {
	List        []PeerServer
	Single      bool
	Weighted    bool
	TotalWeight int
	Tries       int
	Name        []byte
	Backup      *Peers
}

// Peer is a request's choice of a peer and the connection to it
// (ngx_peer_connection_t with ngx_http_upstream_rr_peer_data_t).
type Peer struct {
	Conn      *ev.Conn
	Addr      *ev.Addr // nil when there is nothing to free
	Name      []byte
	Tries     int
	StartTime int64 // ms
	Get       func(pc *Peer) int
	Free      func(pc *Peer, state int)
	Cached    bool
	Keepalive bool // SO_KEEPALIVE
	Local     *Local
	local     Local // of an evaluated proxy_bind
	Log       *elog.Log
	Loop      *ev.Loop
	Up        *Upstream
	shared    *shared

	// RR is the choice among Peers that every balancing method ends in.
	RR struct {
		Peers   *Peers
		Current *PeerServer
		tried   []uint64
		one     [1]uint64
	}

	// Method is the scratch of a balancing method (hash, ip_hash, random).
	Method struct {
		Key    []byte
		Hash   uint32
		Rehash int
		Tries  int
		Addr   []byte
		Conf   any
	}

	// OrigGet and OrigFree are what keepalive wraps; Cache is its state.
	OrigGet  func(pc *Peer) int
	OrigFree func(pc *Peer, state int)
	Cache    any
}

// Tried reports whether peer i of the current set was tried by this request.
func (pc *Peer) Tried(i int) bool { return pc.RR.tried[i/64]&(1<<(i%64)) != 0 }

// SetTried marks it.
func (pc *Peer) SetTried(i int) { pc.RR.tried[i/64] |= 1 << (i % 64) }

// Usable reports whether a peer may be chosen now: not down, not failing, not full.
func (p *PeerServer) Usable(now int64) bool {
	if p.Down || p.MaxFails != 0 && p.Fails >= p.MaxFails && now-p.Checked <= p.FailTimeout {
		return false
	}
	return p.MaxConns == 0 || p.Conns < p.MaxConns
}

// Take makes p, number i of the current set, the chosen peer.
func (pc *Peer) Take(p *PeerServer) int {
	pc.RR.Current = p
	pc.Addr = &p.Addr
	pc.Name = p.Name
	p.Conns++
	return ev.OK
}

// ByWeight finds the server that owns place w of the row in which each has as many places as its
// weight says.
func (p *Peers) ByWeight(w int) int {
	i := 0
	for w >= p.List[i].Weight {
		w -= p.List[i].Weight
		i++
	}
	return i
}

// UseBackup turns to the backup servers, if there are any.
func (pc *Peer) UseBackup() bool {
	if pc.RR.Peers.Backup == nil {
		return false
	}
	pc.RR.Peers = pc.RR.Peers.Backup
	clear(pc.RR.tried)
	return true
}

// InitRoundRobin builds the peers of an upstream from its servers, or from the name that a
// plain proxy_pass gave (ngx_http_upstream_init_round_robin).
func InitRoundRobin(cf *module.Conf, us *SrvConf) error {
	us.PeerInit = InitRoundRobinPeer
	if us.HasSrvs {
		us.Peers = us.build(false)
		if us.Peers == nil {
			cf.Log().Err(elog.Emerg, nil, "no servers in upstream \"%s\" in %s:%d", us.Host, us.File, us.Line)
			return module.ErrReported
		}
		if us.Peers.Backup = us.build(true); us.Peers.Backup != nil {
			us.Peers.Single = false
			us.Peers.Backup.Single = false
		}
		return nil
	}

	if us.Port == 0 {
		cf.Log().Err(elog.Emerg, nil, "no port in upstream \"%s\" in %s:%d", us.Host, us.File, us.Line)
		return module.ErrReported
	}
	u := URL{Host: us.Host, Port: us.Port}
	if err := u.Resolve(); err != nil {
		cf.Log().Err(elog.Emerg, nil, "%s in upstream \"%s\" in %s:%d", err, us.Host, us.File, us.Line)
		return module.ErrReported
	}
	us.Peers = resolvedPeers(us.Host, u.Addrs)
	return nil
}

func resolvedPeers(host string, addrs []NamedAddr) *Peers {
	n := len(addrs)
	p := &Peers{Single: n == 1, TotalWeight: n, Tries: n, Name: []byte(host)}
	for _, a := range addrs {
		p.List = append(p.List, PeerServer{
			Addr: a.Addr, Name: []byte(a.Name), Weight: 1, EffectiveWeight: 1, MaxFails: 1, FailTimeout: 10,
		})
	}
	return p
}

func (us *SrvConf) build(backup bool) *Peers {
	p := &Peers{Name: []byte(us.Host)}
	for _, s := range us.Servers {
		if s.Backup != backup {
			continue
		}
		p.TotalWeight += len(s.Addrs) * s.Weight
		if !s.Down {
			p.Tries += len(s.Addrs)
		}
		for _, a := range s.Addrs {
			p.List = append(p.List, PeerServer{
				Addr: a.Addr, Name: []byte(a.Name), Server: s.Name,
				Weight: s.Weight, EffectiveWeight: s.Weight,
				MaxConns: s.MaxConns, MaxFails: s.MaxFails, FailTimeout: s.FailTimeout, Down: s.Down,
			})
		}
	}
	if len(p.List) == 0 {
		return nil
	}
	p.Single = len(p.List) == 1
	p.Weighted = p.TotalWeight != len(p.List)
	return p
}

// InitRoundRobinPeer prepares a request's choosing (ngx_http_upstream_init_round_robin_peer).
func InitRoundRobinPeer(r *http.Request, u *Upstream, us *SrvConf) http.Rc {
	u.Peer.usePeers(us.Peers)
	u.Peer.shared = us.shared
	return http.OK
}

func (pc *Peer) usePeers(p *Peers) {
	n := len(p.List)
	tries := p.Tries
	if p.Backup != nil {
		n = max(n, len(p.Backup.List))
		tries += p.Backup.Tries
	}
	pc.RR.Peers, pc.RR.Current = p, nil
	if n <= 64 {
		pc.RR.one[0] = 0
		pc.RR.tried = pc.RR.one[:]
	} else {
		pc.RR.tried = make([]uint64, (n+63)/64)
	}
	pc.Get, pc.Free, pc.Tries = GetRoundRobin, FreeRoundRobin, tries
}

// GetRoundRobin chooses by smooth weighted round robin (ngx_http_upstream_get_round_robin_peer).
func GetRoundRobin(pc *Peer) int {
	pc.Cached = false
	pc.Conn = nil
	peers := pc.RR.Peers

	if peers.Single {
		p := &peers.List[0]
		if !p.Down && (p.MaxConns == 0 || p.Conns < p.MaxConns) {
			return pc.Take(p)
		}
	} else if p := pc.best(); p != nil {
		return pc.Take(p)
	}

	if pc.UseBackup() {
		if rc := GetRoundRobin(pc); rc != ev.Busy {
			return rc
		}
	}
	pc.Name = peers.Name
	return ev.Busy
}

func (pc *Peer) best() *PeerServer {
	now, _ := pc.Loop.Now()
	best, total := -1, 0
	list := pc.RR.Peers.List
	for i := range list {
		p := &list[i]
		if pc.Tried(i) || !p.Usable(now) {
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
	if best < 0 {
		return nil
	}
	p := &list[best]
	pc.SetTried(best)
	p.CurrentWeight -= total
	p.check(now)
	return p
}

// check starts a new period of watching when the last one is over.
func (p *PeerServer) check(now int64) {
	if now-p.Checked > p.FailTimeout {
		p.Checked = now
	}
}

// Check is for balancing methods of other packages.
func (p *PeerServer) Check(now int64) { p.check(now) }

// FreeRoundRobin takes note of how the chosen peer served (ngx_http_upstream_free_round_robin_peer).
func FreeRoundRobin(pc *Peer, state int) {
	p := pc.RR.Current
	if pc.RR.Peers.Single {
		p.Conns--
		pc.Tries = 0
		return
	}
	if state&PeerFailed != 0 {
		now, _ := pc.Loop.Now()
		p.Fails++
		p.Accessed, p.Checked = now, now
		if p.MaxFails != 0 {
			p.EffectiveWeight -= p.Weight / p.MaxFails
			if p.Fails >= p.MaxFails {
				pc.Log.Err(elog.Warn, nil, "upstream server temporarily disabled")
			}
		}
		p.EffectiveWeight = max(p.EffectiveWeight, 0)
	} else if p.Accessed < p.Checked {
		// it has served since it was last checked: it lives
		p.Fails = 0
	}
	p.Conns--
	if pc.Tries != 0 {
		pc.Tries--
	}
}
