package gen

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/minimize/conftree"
)

// MaxUnits is how many units fit into one batch: slots have two digits.
const MaxUnits = 100

// Unit is one server group with everything that belongs to it, written for
// slot 0. It is treated as immutable; Clone it to change it.
type Unit struct {
	Label   string // where it came from: "7/3/12" is seed 7, batch 3, unit 12; mutants add "+m…"
	From    string // what the seed was kept for that it was made of; "" for a fresh one
	Body    []*conftree.Node
	Files   []casefile.File
	Origins []casefile.Origin
	Clients []casefile.Section
}

// Head is what the units of a batch inherit: directives of main, events and http.
type Head struct {
	Main, HTTP []*conftree.Node
}

// Batch is many units in one configuration.
type Batch struct {
	Head  Head
	Units []*Unit
}

// Options steer the generator beside the seed.
type Options struct {
	Units int               // units in a batch; at most MaxUnits
	Known func(string) bool // what may be used, a directive's name or with its arguments; nil: all of the grammar's
}

// Generator makes batches. It is used by one goroutine at a time.
type Generator struct {
	w    *world
	opts Options
	deck *deck
}

// New makes a generator.
func New(o Options) (*Generator, error) {
	if o.Units < 1 || o.Units > MaxUnits {
		return nil, fmt.Errorf("gen: %d units in a batch, want 1 to %d", o.Units, MaxUnits)
	}
	w, err := newWorld(o.Known)
	if err != nil {
		return nil, fmt.Errorf("gen: %w", err)
	}
	return &Generator{w: w, opts: o}, nil
}

func featureWeights() []int {
	weights := make([]int, len(features))
	for i, f := range features {
		weights[i] = f.weight
	}
	return weights
}

// Batch makes batch number index of a campaign's seed.
func (g *Generator) Batch(seed, index uint64) *Batch {
	b := &Batch{}
	g.reset()
	seeded(seed, index, func(r *rnd) { g.fill(r, b, fmt.Sprintf("%d/%d", seed, index)) })
	return b
}

// FromBytes makes a batch out of a fuzz engine's bytes.
func (g *Generator) FromBytes(data []byte) *Batch {
	b := &Batch{}
	g.reset()
	fromBytes(data, func(r *rnd) { g.fill(r, b, "bytes") })
	return b
}

// reset deals every batch from fresh decks, so that a batch follows from its
// seed and number alone.
func (g *Generator) reset() {
	g.deck = newDeck(featureWeights())
	for _, d := range g.w.deckCtx {
		d.left = nil
	}
}

func (g *Generator) fill(r *rnd, b *Batch, label string) {
	b.Head = g.head(r)
	for i := range g.opts.Units {
		u := &unit{rnd: r, w: g.w}
		cards := make([]int, r.in(2, 5))
		for j := range cards {
			cards[j] = g.deck.deal(r)
		}
		u.build(cards)
		out := &Unit{Label: fmt.Sprintf("%s/%d", label, i), Body: u.http, Files: u.files, Origins: u.origins, Clients: u.clients}
		for _, s := range u.servers {
			out.Body = append(out.Body, s.node)
		}
		out.Own()
		b.Units = append(b.Units, out)
	}
}

func (g *Generator) head(r *rnd) Head {
	u := &unit{rnd: r, w: g.w}
	h := Head{Main: []*conftree.Node{u.dir("error_log", "logs/error.log warn")}}
	if u.ok("pcre_jit") && r.pct(20) {
		h.Main = append(h.Main, u.dir("pcre_jit", u.pick("on", "off")))
	}
	events := conftree.B([]string{"events"}, u.dir("worker_connections", "2048"))
	h.Main = append(h.Main, u.some(mainOnes).Kids...)
	events.Add(u.some(eventsOnes).Kids...)
	h.Main = append(h.Main, events)
	http := u.some(httpOnes)
	u.put(http, "limit_req_log_level", u.pick("info", "notice")) // see fLimitReq
	if r.pct(50) {
		t := conftree.B([]string{"types"}, u.dir("text/html", "html htm"), u.dir("text/plain", "txt"), u.dir("application/octet-stream", "bin"))
		if u.ok("types") {
			http.Add(t)
		}
	}
	u.put(http, "access_log", u.pick("off", "logs/access.log"))
	u.sprinkle(http, "http", &server{port: listenPort, hosts: []string{"localhost"}}, 10)
	for _, n := range http.Kids {
		if unframes(n) { // units see to it that their origins wait for such requests, see settleUnframed
			continue
		}
		if !strings.Contains(strings.Join(n.Words, " "), "u00_") { // a variable of a unit that may be dropped
			for i, w := range n.Words { // what all units inherit is no unit's own, though each stores its own
				n.Words[i] = strings.NewReplacer("u00/st$uri", "all/st/$server_port$uri", "u00", "all", itoa(listenPort), "8080").Replace(w)
			}
			h.HTTP = append(h.HTTP, n)
		}
	}
	return h
}

// What a head may have, beside what is sprinkled: how often of 100, the name, and the forms of its arguments.
type headOne struct {
	pct   int
	name  string
	forms []string
}

var (
	mainOnes = []headOne{
		{4, "lock_file", []string{"logs/x.lock"}}, {4, "worker_priority", []string{"0", "5"}}, {4, "worker_rlimit_core", []string{"0", "1m"}},
		{4, "working_directory", []string{"/cell"}}, {4, "worker_cpu_affinity", []string{"auto", "01", "auto 01"}},
		{6, "user", []string{"root", "www-data", "www-data www-data", "nobody nogroup", "www-data root"}},
		{4, "worker_rlimit_nofile", []string{"4096", "10000"}}, {4, "worker_shutdown_timeout", []string{"10s", "1m"}}, {4, "worker_processes", []string{"1"}},
		{4, "env", []string{"TZ", "PATH=/x", "ALL=a=b"}}, {3, "master_process", []string{"on"}}, {3, "pid", []string{"logs/x.pid"}},
		{8, "thread_pool", []string{"all threads=1", "default threads=2 max_queue=0", "x threads=32 max_queue=65536", "default threads=4 max_queue=1"}},
	}
	eventsOnes = []headOne{
		{15, "multi_accept", []string{"on"}}, {15, "accept_mutex", []string{"on"}}, {6, "epoll_events", []string{"1", "2", "512"}},
		{6, "worker_aio_requests", []string{"1", "32"}}, {5, "use", []string{"epoll"}}, {4, "accept_mutex_delay", []string{"1s", "30s"}},
		{4, "debug_connection", []string{"10.0.0.1", "192.168.0.0/16", "::1", "unix:"}},
	}
	httpOnes = []headOne{
		{4, "server_names_hash_bucket_size", []string{"128", "256"}}, {4, "server_names_hash_max_size", []string{"512", "1024", "4096"}},
		{4, "variables_hash_bucket_size", []string{"64", "128"}}, {4, "variables_hash_max_size", []string{"1024", "2048"}},
		{4, "map_hash_bucket_size", []string{"64", "128"}}, {4, "map_hash_max_size", []string{"1024", "2048"}},
		{4, "open_log_file_cache", []string{"off", "max=10", "max=1 inactive=20s valid=60s min_uses=2"}},
		{6, "limit_conn_log_level", []string{"info", "warn"}},
	}
)

// some is a block with some of a list.
func (u *unit) some(list []headOne) *conftree.Node {
	b := conftree.B([]string{"http"})
	for _, o := range list {
		if u.pct(o.pct) {
			u.put(b, o.name, u.pick(o.forms...))
		}
	}
	return b
}

// markers part a unit's text from what it inherits; Split looks for them.
const (
	unitMark = "    # unit "
	unitEnd  = "    # end of units\n"
)

// Case writes a batch as one case: unit i of the batch in slot i. Client
// numbers are slot*100+1 and up. What a slot's names do not stand in is shared with the units.
func (b *Batch) Case() *casefile.Case {
	c := &casefile.Case{Title: fmt.Sprintf("generated: %d units", len(b.Units))}
	if len(b.Units) == 1 {
		c.Title = "generated: unit " + b.Units[0].Label
	}
	c.Files = append(c.Files, casefile.File{Path: "nginx.conf", Data: b.Sheet().Conf()}, casefile.File{Path: "logs", Dir: true})
	c.Files = append(c.Files, b.Files()...)
	for i, u := range b.Units {
		to := slotName(i)
		for _, o := range u.Origins {
			n := casefile.Origin{Addr: to.text(o.Addr)}
			for _, steps := range o.Conns {
				n.Conns = append(n.Conns, to.steps(steps))
			}
			c.Origins = append(c.Origins, n)
		}
		for _, s := range u.Clients {
			s.Addr, s.Steps = to.text(s.Addr), to.steps(s.Steps)
			s.ID += i * 100
			if s.With != 0 {
				s.With += i * 100
			}
			c.Sections = append(c.Sections, s)
		}
	}
	return c
}

// Files are the units' own files, each unit's in its slot.
func (b *Batch) Files() (files []casefile.File) {
	for i, u := range b.Units {
		to := slotName(i)
		for _, f := range u.Files {
			f.Path, f.Link, f.Data = to.text(f.Path), to.text(f.Link), to.bytes(f.Data)
			files = append(files, f)
		}
	}
	return files
}

// Sheet is a batch's configuration in pieces, to be put together with and without some of its units.
type Sheet struct {
	head  []byte
	units [][]byte
}

// Sheet writes a batch's configuration, unit i in slot i.
func (b *Batch) Sheet() *Sheet {
	var text bytes.Buffer
	text.Write(conftree.Print(b.Head.Main))
	text.WriteString("http {\n")
	text.Write(conftree.PrintAt(b.Head.HTTP, 1))
	s := &Sheet{head: text.Bytes(), units: make([][]byte, len(b.Units))}
	for i, u := range b.Units {
		mark := fmt.Sprintf("%s%02d: %s\n", unitMark, i, u.Label)
		body := conftree.PrintAt(u.Body, 1)
		s.units[i] = append([]byte(mark), slotName(i).bytes(body)...)
	}
	return s
}

// Unit is the text of the unit in a slot.
func (s *Sheet) Unit(slot int) []byte { return s.units[slot] }

// Conf is the nginx.conf of the units in some slots, which they keep; of all of them when none is named.
func (s *Sheet) Conf(slots ...int) []byte {
	var text bytes.Buffer
	text.Write(s.head)
	if len(slots) == 0 {
		for _, u := range s.units {
			text.Write(u)
		}
	}
	for _, i := range slots {
		text.Write(s.units[i])
	}
	text.WriteString(unitEnd + "}\n")
	return text.Bytes()
}

// Only is the batch with the units of some slots alone, renumbered from slot 0.
func (b *Batch) Only(slots ...int) *Batch {
	n := &Batch{Head: b.Head}
	for _, s := range slots {
		n.Units = append(n.Units, b.Units[s])
	}
	return n
}

// SlotOfPort tells which slot an address of the generator's belongs to.
func SlotOfPort(port int) (int, bool) {
	if port < listenPort || port >= listenPort+10*MaxUnits {
		return 0, false
	}
	return (port - listenPort) / 10, true
}

// SlotOfLine tells which unit line n (from 1) of a batch's nginx.conf belongs to.
func SlotOfLine(conf []byte, n int) (int, bool) {
	slot, found := 0, false
	for i, line := range strings.Split(string(conf), "\n") {
		if i+1 > n {
			break
		}
		if rest, ok := strings.CutPrefix(line, strings.TrimSuffix(unitMark, " ")); ok {
			_, err := fmt.Sscanf(rest, "%d:", &slot)
			found = err == nil
		}
		if line+"\n" == unitEnd {
			found = false
		}
	}
	return slot, found
}

// Parts are the texts of a batch's units in its nginx.conf, by slot, and the text that they inherit.
func Parts(conf []byte) (head []byte, units map[int][]byte) {
	body, _, _ := bytes.Cut(conf, []byte(unitEnd))
	list := bytes.Split(body, []byte(unitMark))
	units = map[int][]byte{}
	for _, text := range list[1:] {
		var slot int
		if _, err := fmt.Sscanf(string(text[:min(len(text), 8)]), "%d:", &slot); err == nil {
			units[slot] = text
		}
	}
	return list[0], units
}

// Split takes a case of one unit apart again, so that it can be put beside others.
func Split(c *casefile.Case) (*Batch, error) {
	f := c.File("nginx.conf")
	if f == nil {
		return nil, errors.New("gen: case without nginx.conf")
	}
	text := string(f.Data)
	i, j := strings.Index(text, unitMark), strings.Index(text, unitEnd)
	if i < 0 || j < i {
		return nil, errors.New("gen: nginx.conf has no unit marks")
	}
	label, body, _ := strings.Cut(text[i+len(unitMark):j], "\n")
	_, label, _ = strings.Cut(label, ": ")
	head, err := conftree.Parse([]byte(text[:i] + "}\n"))
	if err != nil {
		return nil, fmt.Errorf("gen: split: head: %w", err)
	}
	u := &Unit{Label: label, Origins: c.Origins}
	if u.Body, err = conftree.Parse([]byte(body)); err != nil {
		return nil, fmt.Errorf("gen: split: unit: %w", err)
	}
	b := &Batch{Units: []*Unit{u}}
	for _, n := range head {
		if n.Name() == "http" {
			b.Head.HTTP = n.Kids
			continue
		}
		b.Head.Main = append(b.Head.Main, n)
	}
	for _, f := range c.Files {
		if f.Path != "nginx.conf" && f.Path != "logs" {
			u.Files = append(u.Files, f)
		}
	}
	for _, s := range c.Sections {
		if s.Client {
			u.Clients = append(u.Clients, s)
		}
	}
	return b, nil
}

// Clone copies a unit so that the copy can be changed.
func (u *Unit) Clone() *Unit {
	c := (&casefile.Case{Files: u.Files, Origins: u.Origins, Sections: u.Clients}).Clone()
	return &Unit{Label: u.Label, Body: conftree.CloneAll(u.Body), Files: c.Files, Origins: c.Origins, Clients: c.Sections}
}
