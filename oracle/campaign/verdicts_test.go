package campaign

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"nginxoracle/fuzz/gen"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/minimize"
	"nginxoracle/oracle/minimize/conftree"
	"nginxoracle/oracle/observe"
)

const oops = "HTTP/1.1 500 Oops\r\n\r\n"

// untimedSeed is a seed whose first batch may meet no timer: what differs once there is not held up.
func untimedSeed(t *testing.T) uint64 {
	t.Helper()
	g, err := gen.New(gen.Options{Units: 6})
	if err != nil {
		t.Fatal(err)
	}
	for seed := uint64(6); seed < 1000; seed++ {
		isTimed, any := timed(g.Batch(seed, 0).Case()), false
		for slot := range 6 {
			any = any || isTimed(slot)
		}
		if !any {
			return seed
		}
	}
	t.Fatal("every batch may meet a timer")
	return 0
}

// What has no verdict is no agreement, and what the candidate does is not the reference's wavering.
func TestWhatACampaignEndsWith(t *testing.T) {
	seed := untimedSeed(t)
	for _, x := range []struct {
		name  string
		twist func(target string, n int32, slot, slots int) string
		code  exit.Code
		want  toll
	}{
		{"all agree", func(string, int32, int, int) string { return "" }, exit.Agree, toll{}},
		{"once in company", func(target string, n int32, slot, slots int) string {
			if target == "proxy" && n == 1 && slot == 2 {
				return oops
			}
			return ""
		}, exit.Unstable, toll{Company: 1}},
		{"each time elsewhere, in company only", func(target string, n int32, slot, slots int) string {
			if target == "proxy" && slots > 1 && slot == int(n)%slots {
				return oops
			}
			return ""
		}, exit.Differ, toll{Company: 1, CompanyAgain: 1}},
		{"each time elsewhere, on both sides", func(target string, n int32, slot, slots int) string {
			if slots > 1 && slot == int(n)%slots {
				return oops + target
			}
			return ""
		}, exit.Unstable, toll{Company: 3}}, // the unit, and two when the batch is run on the reference alone
		{"the reference wavers", func(target string, n int32, slot, slots int) string {
			if target == "nginx" && slot == 0 {
				return fmt.Sprintf("HTTP/1.1 2%02d OK\r\n\r\n", n)
			}
			return ""
		}, exit.Unstable, toll{Unstable: 2}}, // in the batch, and run again by itself
		{"the candidate wavers", func(target string, n int32, slot, slots int) string {
			if target == "proxy" && slot == 0 && n%2 == 1 {
				return oops
			}
			return ""
		}, exit.Differ, toll{Wavers: 1}},
	} {
		r := &rigged{t: t, dir: t.TempDir(), bug: "no such directive", twist: x.twist}
		one := func(c *Config) {
			c.Feedback, c.Wrong, c.Jobs, c.Batches, c.Shrink = false, 0, 1, 1, minimize.Budget{Attempts: 1}
		}
		sum := r.campaign(func(c *Config) { one(c); c.Seed = seed })
		got := sum.toll()
		got.Compared, got.Settled = 0, 0
		if sum.Code != x.code || got != x.want || len(sum.Findings) != 0 {
			t.Errorf("%s: code %v (%s), %+v, want %v and %+v", x.name, sum.Code, sum.Why, got, x.code, x.want)
		}
		// What a run was told of, the next one does not end with.
		r.twist = nil
		if again := r.campaign(func(c *Config) { one(c); c.Seed = seed }); again.Code != exit.Agree {
			t.Errorf("%s: the next run in the same folder ends with %v (%s)", x.name, again.Code, again.Why)
		}
	}
}

// A finding that was dealt with does not keep the campaign at exit code 1; one that was not does.
func TestFindingsThatWereDealtWith(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: busiest(t)}
	r.campaign(nil)
	c, err := catalog.Open(filepath.Join(r.dir, "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	r.bug = "no such directive"
	if sum := r.campaign(nil); sum.Code != exit.Differ || len(sum.Open) != len(sum.Findings) {
		t.Fatalf("new findings are left: code %v (%s), %d open", sum.Code, sum.Why, len(sum.Open))
	}
	for i, e := range c.Entries {
		e.Case.Meta[1].Value = catalog.Fixed
		if i%2 == 1 {
			e.Case.Meta[1].Value = catalog.Divergence
			e.Case.Meta = append(e.Case.Meta, casefile.Field{Key: "reason", Value: "r"}, casefile.Field{Key: "decision", Value: "1"})
		}
		if err := catalog.WriteFile(e.Path, e.Case.Print()); err != nil {
			t.Fatal(err)
		}
	}
	if sum := r.campaign(nil); sum.Code != exit.Agree || len(sum.Open) != 0 {
		t.Errorf("all were dealt with: code %v (%s), %d open", sum.Code, sum.Why, len(sum.Open))
	}
}

// What the machine held up says nothing, nor does what a whole server's counters show.
func TestWhatSaysSomethingInCompany(t *testing.T) {
	const timedConf = "events {}\nhttp {\nserver { listen 20000; send_timeout 100ms; }\n}\n"
	cs := &casefile.Case{Files: []casefile.File{{Path: "nginx.conf", Data: []byte(timedConf)}}}
	b := &gen.Batch{Units: []*gen.Unit{{}, {}, {}}}
	r := diff.Result{Mismatches: []diff.Mismatch{{Where: "client 1"}, {Where: "client 101"}, {Where: "processes"}}}
	where := func(ms []diff.Mismatch) (out string) {
		for _, m := range ms {
			out += m.Where + "; "
		}
		return out
	}
	calm, late := &observe.Observation{}, &observe.Observation{LateLanes: []int{0}}
	stub := &observe.Observation{Clients: []observe.Conn{{ID: 101, Recv: []byte("HTTP/1.1 200 OK\r\n\r\nActive connections: 3 \n")}}}
	for _, x := range []struct {
		ref, cand *observe.Observation
		want      string
	}{
		{calm, calm, "client 1; client 101; processes; "},
		{late, calm, "client 101; "},
		{calm, stub, "client 1; processes; "},
		{late, stub, ""},
	} {
		if got := where(saying(b, cs, r, x.ref, x.cand)); got != x.want {
			t.Errorf("got %q, want %q", got, x.want)
		}
	}
}

// A page that another unit recoded says nothing, in whichever unit it differs.
func TestRecodedPagesSayNothing(t *testing.T) {
	page := []byte("HTTP/1.1 404 Not Found\r\n\r\n<html>\r\n<head><title>404")
	at := bytes.Index(page, []byte("ad>"))
	r := diff.Result{Mismatches: []diff.Mismatch{{Kind: diff.KindClient, Where: "client 1", Ref: page, Cand: page, At: at, Pos: at}, {Kind: diff.KindClient, Where: "client 1", Ref: page, Cand: page}}}
	cs := &casefile.Case{Files: []casefile.File{{Path: "nginx.conf"}}}
	calm := &observe.Observation{}
	for name, want := range map[string]int{"charset_map": 1, "types": 2} {
		b := &gen.Batch{Units: []*gen.Unit{{}, {Body: []*conftree.Node{conftree.B([]string{name})}}}}
		if got := len(saying(b, cs, r, calm, calm)); got != want {
			t.Errorf("%s: %d mismatches say something, want %d", name, got, want)
		}
	}
}

// A difference that begins within a number of stub_status is the crowd's; one beside it, or a second one elsewhere, is not.
func TestWhatBeginsInCounts(t *testing.T) {
	page := func(active, reading string) []byte {
		return []byte("HTTP/1.1 200 OK\r\n\r\nActive connections: " + active + " \nserver accepts handled requests\n 3 3 3 \nReading: " + reading + " Writing: 1 Waiting: 0 \nend")
	}
	at := func(ref, cand []byte) diff.Mismatch {
		r := diff.Compare(&observe.Observation{Clients: []observe.Conn{{ID: 1, End: observe.EndClosed, Recv: ref}}}, &observe.Observation{Clients: []observe.Conn{{ID: 1, End: observe.EndClosed, Recv: cand}}})
		if len(r.Mismatches) != 1 {
			t.Fatalf("%d mismatches, want 1", len(r.Mismatches))
		}
		return r.Mismatches[0]
	}
	counts, longer := at(page("2", "0"), page("5", "0")), at(page("2", "0"), page("21", "0"))
	other := at(page("2", "0"), append(page("2", "0"), '!'))
	text := at([]byte("Active connections: 2"), []byte("Active connections: 3"))
	for _, x := range []struct {
		name string
		ms   []diff.Mismatch
		want bool
	}{
		{"a number", []diff.Mismatch{counts}, true}, {"a longer number", []diff.Mismatch{longer, counts}, true}, {"behind them", []diff.Mismatch{other}, false},
		{"a number and more", []diff.Mismatch{counts, other}, false}, {"no such page", []diff.Mismatch{text}, false}, {"nothing", nil, false},
	} {
		if got := inCounts(x.ms); got != x.want {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}

// How many descriptors a cache that all units share holds at the end is the crowd's; of any other server it is not.
func TestDescriptorsOfASharedCache(t *testing.T) {
	gained := diff.Mismatch{Kind: diff.KindProcess, Where: diff.Descriptors}
	left := diff.Mismatch{Kind: diff.KindProcess, Where: "processes left"}
	cache := gen.Head{HTTP: []*conftree.Node{conftree.N("open_file_cache", "max=10")}}
	for _, x := range []struct {
		name  string
		head  gen.Head
		units int
		ms    []diff.Mismatch
		want  bool
	}{
		{"a shared cache", cache, 2, []diff.Mismatch{gained}, true}, {"no cache", gen.Head{}, 2, []diff.Mismatch{gained}, false},
		{"one unit", cache, 1, []diff.Mismatch{gained}, false}, {"more that differs", cache, 2, []diff.Mismatch{gained, left}, false}, {"nothing", cache, 2, nil, false},
	} {
		if got := inCache(&gen.Batch{Head: x.head, Units: make([]*gen.Unit, x.units)}, x.ms); got != x.want {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}

// nginx recodes its own pages where they lie: what one says then is the crowd's, what stands beside it is not.
func TestPagesThatARecodingChanged(t *testing.T) {
	const head, page = "HTTP/1.1 403 Forbidden\r\n\r\n", "<html>\r\n<head><title>403 Forbidden</title></head>\r\n</html>\r\n"
	recodes := &gen.Unit{Body: []*conftree.Node{conftree.B([]string{"charset_map", "a", "b"})}}
	with, without := &gen.Batch{Units: []*gen.Unit{{}, recodes}}, &gen.Batch{Units: []*gen.Unit{{}, {}}}
	at := func(kind diff.Kind, text string, i int) []diff.Mismatch {
		changed := []byte(text)
		changed[i] = '?'
		return []diff.Mismatch{{Kind: kind, Ref: []byte(text), Cand: changed, At: i, Pos: i}}
	}
	in := len(head) + len("<html>\r\n<he")
	for _, x := range []struct {
		name string
		b    *gen.Batch
		ms   []diff.Mismatch
		want bool
	}{
		{"in a page", with, at(diff.KindClient, head+page, in), true}, {"nobody recodes", without, at(diff.KindClient, head+page, in), false},
		{"in the header", with, at(diff.KindClient, head+page, 3), false}, {"behind the page", with, at(diff.KindClient, head+page+head, len(head+page)+2), false},
		{"at an origin", with, at(diff.KindOrigin, head+page, in), false}, {"one unit", &gen.Batch{Units: []*gen.Unit{recodes}}, at(diff.KindClient, head+page, in), false},
		{"in a page and elsewhere", with, append(at(diff.KindClient, head+page, in), at(diff.KindClient, head+page, 3)...), false}, {"nothing", with, nil, false},
	} {
		if got := inPages(x.b, x.ms); got != x.want {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}

// A root that begins with a variable may be empty: what its path means then is the crowd's. Other units' differences are their own.
func TestRootsOfAVariable(t *testing.T) {
	unit := func(words ...string) *gen.Unit {
		return &gen.Unit{Body: []*conftree.Node{conftree.B([]string{"server"}, conftree.N("listen", "20000"), conftree.N(words...))}}
	}
	b := &gen.Batch{Units: []*gen.Unit{unit("root", "$arg_a"), unit("root", "/x$arg_a"), unit("alias", "${arg_a}/"), unit("set", "$root", "$arg_a")}}
	for slot, want := range []bool{true, false, true, false} {
		if got := inMemory(b, slot); got != want {
			t.Errorf("unit %d: %v, want %v", slot, got, want)
		}
	}
	b.Head.HTTP = []*conftree.Node{conftree.N("root", "$http_x")}
	if !inMemory(b, 1) {
		t.Error("a root of the head counts for all")
	}
}

// In a batch that took too long the units that count failures of an upstream's servers may have met a timer; others have not.
func TestSlowBatch(t *testing.T) {
	conf := "events {}\nhttp {\n    # unit 00: a\n    upstream u {\n    }\n    # unit 01: b\n    server {\n    }\n    # end of units\n}\n"
	cs := &casefile.Case{Files: []casefile.File{{Path: "nginx.conf", Data: []byte(conf)}}}
	clients := []observe.Conn{{ID: 1}, {ID: 101}}
	for _, slow := range []bool{false, true} {
		late := lateSlots(cs, &observe.Observation{Clients: clients}, &observe.Observation{Clients: clients, Slow: slow})
		if late[0] != slow || late[1] {
			t.Errorf("slow %v: late %v", slow, late)
		}
	}
}
