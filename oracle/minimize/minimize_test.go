package minimize

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nginxoracle/oracle/casefile"
)

func parse(t interface{ Fatal(...any) }, text string) *casefile.Case {
	c, err := casefile.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const whole = `# whole
-- nginx.conf --
events {
}
http {
    map $arg_a $m {
        a b;
        default c;
    }
    server {
        listen 127.0.0.1:8080;
        root html;
        if ($m) {
            add_header X-A "one two three four";
        }
        location / {
            etag off;
            expires max;
        }
    }
}
-- html/a mtime=1700000001 --
aaaaaaaaaaaaaaaa
-- html/b --
b
-- origin 127.0.0.1:9001 --
connection
recv request
send "one"
settle
send "two"
again
connection
recv all
-- client 1 --
send "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
recv response
-- client 2 with 1 --
send "POST /b HTTP/1.1\r\nHost: b\r\n" "X-Keep: yes\r\n\r\n"
recv response
shutdown
recv all
`

// has is a predicate: the printed case contains all words.
func has(words ...string) Try {
	return func(_ context.Context, c *casefile.Case) (bool, error) {
		text := string(c.Print())
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false, nil
			}
		}
		return true, nil
	}
}

// Whatever words a predicate asks for, the result still has them, no single item
// of any pass can go, and the original is untouched.
func TestResultIsMinimalForAnyPredicate(t *testing.T) {
	pool := []string{"etag off", "X-A", "$arg_a", "html/b", "9001", "two", "X-Keep: yes", "client 2", "shutdown", "expires", "recv all", "POST"}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 1, 3, rapid.ID).Draw(t, "words")
		c := parse(t, whole)
		before := string(c.Print())
		try := has(words...)
		screen := screens(try, rapid.IntRange(0, 3).Draw(t, "screened"))
		small, stats, err := Shrink(context.Background(), c, try, Options{Screen: screen})
		if err != nil || !stats.Done {
			t.Fatalf("not done: %v %v", stats, err)
		}
		if ok, _ := try(context.Background(), small); !ok {
			t.Fatalf("the result does not hold:\n%s", small.Print())
		}
		if string(c.Print()) != before {
			t.Fatal("the original was changed")
		}
		if _, err := casefile.Parse("result", small.Print()); err != nil {
			t.Fatal(err)
		}
		for _, p := range Passes() {
			n := p.Items(small)
			for i := range n {
				drop := make([]bool, n)
				drop[i] = true
				next := p.Without(small, drop)
				if next == nil || !Reachable(next) || string(next.Print()) == string(small.Print()) {
					continue
				}
				if _, err := casefile.Parse("next", next.Print()); err != nil {
					continue
				}
				if ok, _ := try(context.Background(), next); ok {
					t.Fatalf("pass %s can still drop item %d:\n%s", p.Name, i, small.Print())
				}
			}
		}
	})
}

// screens is a Screen: 0 none, 1 one that tells, 2 one that cannot play variations without a server, 3 one that cannot
// tell when the case has few lines.
func screens(try Try, kind int) Screen {
	if kind == 0 {
		return nil
	}
	return func(ctx context.Context, best *casefile.Case, list []*casefile.Case) []Hint {
		if kind == 3 && len(best.File("nginx.conf").Data) < 100 {
			return nil
		}
		hints := make([]Hint, len(list))
		for i, c := range list {
			ok, err := try(ctx, c)
			switch {
			case err != nil || kind == 2 && !strings.Contains(string(c.File("nginx.conf").Data), "server"):
			case ok:
				hints[i] = Likely
			default:
				hints[i] = Unlikely
			}
		}
		return hints
	}
}

// What a Screen has seen is not tried again, and a variation that it takes for one that holds is not believed.
func TestScreening(t *testing.T) {
	c := parse(t, whole)
	_, alone, err := Shrink(context.Background(), c, has("X-Keep: yes", "etag"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	try := has("X-Keep: yes", "etag")
	small, seen, err := Shrink(context.Background(), c, try, Options{Screen: screens(try, 1)})
	if err != nil || !seen.Done || seen.Attempts*2 > alone.Attempts || seen.Screened == 0 {
		t.Errorf("screened: %v %v\nalone: %v", seen, err, alone)
	}
	if !strings.Contains(seen.String(), "variations in") {
		t.Errorf("what was screened is not said: %s", seen)
	}
	most := 0
	liar := func(_ context.Context, _ *casefile.Case, list []*casefile.Case) []Hint {
		most = max(most, len(list))
		hints := make([]Hint, len(list))
		for i := range hints {
			hints[i] = Likely
		}
		return hints
	}
	lied, stats, err := Shrink(context.Background(), c, try, Options{Screen: liar})
	if err != nil || !stats.Done {
		t.Fatalf("%v %v", stats, err)
	}
	if ok, _ := try(context.Background(), lied); !ok {
		t.Errorf("a wrong hint was believed:\n%s", lied.Print())
	}
	if most < fewScreened || most > ScreenMost {
		t.Errorf("%d variations in one boot", most)
	}
	if a, b := len(small.Print()), len(lied.Print()); a != b {
		t.Errorf("%d bytes with hints, %d with wrong ones", a, b)
	}
}

func TestBudgetsAndErrors(t *testing.T) {
	c := parse(t, whole)
	_, stats, err := Shrink(context.Background(), c, has("X-Keep"), Options{Budget: Budget{Attempts: 3}})
	if err != nil || stats.Done || stats.Attempts != 3 {
		t.Errorf("attempts: %v %v", stats, err)
	}
	now := time.Unix(0, 0)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	_, stats, _ = Shrink(context.Background(), c, has("X-Keep"), Options{Budget: Budget{Time: 5 * time.Second}, Now: clock})
	if stats.Done || !strings.Contains(stats.Why, "5s spent") {
		t.Errorf("time: %v", stats)
	}
	calls := 0
	broken := func(context.Context, *casefile.Case) (bool, error) { calls++; return true, errors.New("no cell") }
	got, stats, err := Shrink(context.Background(), c, broken, Options{})
	if err == nil || stats.Done || calls != maxErrors || got != c {
		t.Errorf("a rig that breaks: %v %v after %d calls", stats, err, calls)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, stats, _ = Shrink(ctx, c, has("X-Keep"), Options{}); stats.Done {
		t.Error("an interrupted run says that it is done")
	}
}

func TestEveryStepIsSaved(t *testing.T) {
	var last *casefile.Case
	small, stats, err := Shrink(context.Background(), parse(t, whole), has("etag off"), Options{Saved: func(c *casefile.Case) { last = c }})
	if err != nil || last == nil || string(last.Print()) != string(small.Print()) {
		t.Errorf("what was saved last is not the result: %v", err)
	}
	if stats.Memo == 0 {
		t.Error("nothing was answered from memory, though every pass runs twice")
	}
}

func TestBrokenConfigurationShrinksByBytes(t *testing.T) {
	c := parse(t, "# t\n-- nginx.conf --\nevents { }\nhttp {\n    server_tokens on;\n    server { return 200 \"open; }\n}\n")
	small, _, err := Shrink(context.Background(), c, has("open"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(small.File("nginx.conf").Data)); got != "open" {
		t.Errorf("left %q", got)
	}
}

func TestReachable(t *testing.T) {
	for text, want := range map[string]bool{
		"events {\n}\nhttp {\n    server {\n        listen 8080;\n    }\n}\n":           true,
		"events {\n}\nhttp {\n    server {\n        listen 127.0.0.1:8081;\n    }\n}\n": false,
		"events {\n}\n":         false,
		"events { does not end": true,
	} {
		c := parse(t, "# t\n-- nginx.conf --\n"+text+"\n-- client 1 --\nsend \"x\"\n")
		if Reachable(c) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// A request that is neither the first nor the last goes by itself, whatever its length, and what waits for it with it.
func TestWholeRequests(t *testing.T) {
	const server = "# t\n-- nginx.conf --\nevents {\n}\nhttp {\n    server {\n        listen 8080;\n    }\n}\n-- client 1 --\n"
	c := parse(t, server+"send \"GET /a HTTP/1.1\\r\\n\\r\\nGET /b HTTP/1.1\\r\\nA: 1\\r\\nB: 2\\r\\n\\r\\nGET /c HTTP/1.1\\r\\n\\r\\n\"\nrecv response\n")
	n := passCalled(t, "requests").Without(c, []bool{false, true, false})
	if got, want := string(n.Sections[0].Steps[0].Data[0]), "GET /a HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n"; got != want {
		t.Errorf("left %q", got)
	}
	c = parse(t, server+"send \"a\"\nrecv response\nsend \"b\"\nsettle\nsend \"c\"\nrecv response\nsend \"d\"\nrecv all\n")
	n = passCalled(t, "exchanges").Without(c, []bool{false, true, false})
	if got := len(n.Sections[0].Steps); got != 4 || string(n.Sections[0].Steps[2].Data[0]) != "d" {
		t.Errorf("left\n%s", n.Print())
	}
}

func passCalled(t *testing.T, name string) Pass {
	for _, p := range Passes() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no pass %s", name)
	return Pass{}
}

func TestPassOrder(t *testing.T) {
	var names []string
	for _, p := range Passes() {
		names = append(names, p.Name)
	}
	const want = "clients, exchanges, requests, blocks, directives, origins, files, steps, origin connections, origin steps, join, lines, unwrap, arguments, names, runs, bytes, contents"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("passes %s\nwant   %s", got, want)
	}
}
